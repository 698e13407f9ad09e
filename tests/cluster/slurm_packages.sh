#!/usr/bin/env bash
# Downloads Slurm and munge for the tests with the label cluster:  tests/cluster/slurm_packages.sh FOLDER
#
# It unpacks the packages of Debian or Ubuntu, and the libraries that this machine lacks, into FOLDER. It
# does not install them, because that would start services. It needs no root, unless apt-get has no lists
# of packages yet. When it fails, its last line says why.
set -euo pipefail
folder=${1:?usage: tests/cluster/slurm_packages.sh FOLDER}
wanted=(slurmctld slurmd slurm-client munge)

# give_up REASON
give_up() {
  echo "no Slurm: $1"
  exit 1
}

mkdir -p "$(dirname "$folder")"
exec 9>"$folder.lock"
flock 9 # two tests may need the packages at the same time
[ -e "$folder/complete" ] && exit 0
command -v apt-get >/dev/null || give_up "there is no apt-get"
rm -rf "$folder"
mkdir -p "$folder/apt"
folder=$(cd "$folder" && pwd)

# Prints the names of what apt-get would install; fails when its lists do not have the packages. Packages
# of Slurm that are installed already are unpacked too, so that all of Slurm is in one folder.
closure() {
  apt-get install --simulate --no-install-recommends "${wanted[@]}" | sed -n 's/^Inst \(\S*\).*/\1/p'
}
if ! missing=$(closure 2>"$folder/apt/log"); then
  [ "$(id -u)" -eq 0 ] || give_up "apt-get's lists do not have it, and only root can update them"
  apt-get update -qq >>"$folder/apt/log" 2>&1 || give_up "apt-get update failed"
  missing=$(closure 2>>"$folder/apt/log") || give_up "$(tail -n 1 "$folder/apt/log")"
fi
# shellcheck disable=SC2086 # a list of words
mapfile -t packages < <(printf '%s\n' "${wanted[@]}" slurm-wlm-basic-plugins libmunge2 $missing |
  sort -u)
cd "$folder/apt"
apt-get -q -o "APT::Sandbox::User=$(id -un)" download "${packages[@]}" >>log 2>&1 ||
  give_up "the packages could not be downloaded"
for package in *.deb; do
  dpkg --extract "$package" "$folder"
done
cd "$folder"
rm -rf apt
touch complete
