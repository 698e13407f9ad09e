#!/usr/bin/env bash
# Gets Nsight Systems for the test nsys:  tests/nsys.sh
#
# Debian has it in its non-free section (package nsight-systems). The packages are unpacked into
# build/nsys, not installed: as installed packages they would pull in Debian's NVIDIA driver. The
# system's list of sources stays as it is, and root is not needed. When Nsight Systems can't be had,
# the last line says why.
set -euo pipefail
folder=$(cd "$(dirname "$0")/.." && pwd)/build/nsys

# give_up REASON
give_up() {
  echo "no Nsight Systems: $1"
  exit 1
}

# fetch SUITE SITE: downloads the packages with apt lists of their own, and unpacks them.
fetch() {
  local keyring=/usr/share/keyrings/debian-archive-keyring.gpg
  [ -e "$keyring" ] || give_up "there is no $keyring"
  rm -rf "$folder"
  mkdir -p "$folder/apt/lists/partial" "$folder/apt/cache/archives/partial"
  cat >"$folder/apt/debian.sources" <<EOF
Types: deb
URIs: $2
Suites: $1
Components: main contrib non-free
Signed-By: $keyring
EOF
  local apt=(apt-get -q -o "Dir::Etc::SourceList=$folder/apt/debian.sources"
    -o Dir::Etc::SourceParts=- -o "Dir::State::Lists=$folder/apt/lists"
    -o "Dir::Cache=$folder/apt/cache" -o "APT::Sandbox::User=$(id -un)")
  "${apt[@]}" update || give_up "apt-get update failed"
  (cd "$folder/apt" && "${apt[@]}" download nsight-systems nsight-systems-target libssh-4) ||
    give_up "the packages could not be downloaded"
  local package
  for package in "$folder"/apt/*.deb; do
    dpkg --extract "$package" "$folder" || give_up "$package could not be unpacked"
  done
  rm -rf "$folder/apt"
}

if [ -x "$folder/usr/lib/nsight-systems/bin/nsys" ]; then
  exit 0
fi
command -v nsys >/dev/null && exit 0
[ "$(uname -m)" = x86_64 ] || give_up "only tried on x86_64"
# shellcheck disable=SC1091
. /etc/os-release
[ "${ID:-}" = debian ] || give_up "not on Debian, and none in PATH"
# The mirror that this machine uses. sed reads to the end, so that apt-get never writes to a closed pipe.
# shellcheck disable=SC2016 # apt-get's own variable
site=$(apt-get indextargets --format '$(SITE)' "Created-By: Packages" "Codename: $VERSION_CODENAME" \
  2>/dev/null | sed -n 1p) || site=
fetch "$VERSION_CODENAME" "${site:-http://deb.debian.org/debian}"
missing=$(LD_LIBRARY_PATH=$folder/usr/lib/x86_64-linux-gnu \
  ldd "$folder"/usr/lib/nsight-systems/bin/nsys \
  "$folder"/usr/lib/nsight-systems/host-linux-x64/QdstrmImporter |
  sed -n 's/^\s*\(\S*\) => not found.*/\1/p' | sort -u | tr '\n' ' ') || missing="unknown, because ldd failed"
if [ -n "$missing" ]; then
  rm -rf "$folder"
  give_up "libraries are missing: $missing"
fi
