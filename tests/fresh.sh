#!/usr/bin/env bash
# Tries the README's two commands, bench/quickstart.sh and tests/run.sh, on a fresh Debian:
#
#     sudo tests/fresh.sh SUITE [FOLDER] [-- arguments of tests/run.sh]
#     sudo tests/fresh.sh --cuda SUITE [FOLDER]
#     sudo tests/fresh.sh --aarch64 SUITE [FOLDER]
#
# tests/README.md says what each form tries. FOLDER/SUITE (build/fresh/SUITE unless given) keeps the minimal
# system of the Debian release, the downloaded packages, and {root,user,package}.log, the complete output of
# the parts. FOLDER may be removed afterwards; nothing stays mounted. Each command's result and time are
# printed, with the versions that it was tried with. The exit code is 0 when every command succeeded.
#
# LB_FRESH_AS="user" tries that part only; the part "package" needs an earlier part's build.
# LB_FRESH_WHEELS names a folder of wheels to install from, in place of the Python package index.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  sed -n '4,6p' "$0" | sed 's/^# *//'
  exit 2
}

mode=
if [ "${1-}" = --cuda ] || [ "${1-}" = --aarch64 ]; then
  mode=$1
  shift
fi
[ $# -ge 1 ] || usage
suite=$1
shift
folder=$PWD/build/fresh
if [ $# -gt 0 ] && [ "$1" != -- ]; then
  mkdir -p "$1"
  folder=$(cd "$1" && pwd)
  shift
fi
if [ $# -gt 0 ]; then
  [ "$1" = -- ] || usage
  shift
fi
if [ "$(id -u)" -ne 0 ]; then
  echo "tests/fresh.sh: run this as root: it makes a system below $folder and enters it" >&2
  exit 2
fi
# Mounts and processes belong to namespaces of this script's own: they go when it ends, however it
# ends.
if [ "${LB_FRESH_INSIDE-}" != "$$" ]; then
  exec unshare --mount --propagation private --pid --fork --kill-child \
    sh -c 'LB_FRESH_INSIDE=$$ exec "$0" "$@"' "$PWD/tests/fresh.sh" $mode "$suite" "$folder" -- "$@"
fi

work=$folder/$suite
base=$work/base
mkdir -p "$work/archives"

# The Debian mirror that this machine uses, else Debian's own.
mirror() {
  # shellcheck disable=SC2016 # apt-get's own variable
  apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 'Origin: Debian' 2>/dev/null |
    grep -v security || echo http://deb.debian.org/debian
}

make_base() {
  [ -e "$base/.complete" ] && return 0
  if ! command -v debootstrap >/dev/null; then
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends debootstrap >&2
  fi
  rm -rf "$base"
  echo "installing the minimal system of $suite into $base" >&2
  if ! debootstrap --variant=minbase --include=ca-certificates,sudo "$suite" "$base" \
    "$(mirror | head -n 1)" >"$work/base.log" 2>&1; then
    echo "tests/fresh.sh: debootstrap failed; the last lines of $work/base.log are:" >&2
    tail -n 5 "$work/base.log" >&2
    return 1
  fi
  touch "$base/.complete"
}

# make_devices FOLDER: a /dev of the system's own. Nothing of this machine's is reachable through it.
make_devices() {
  mount -t tmpfs -o mode=755 dev "$1"
  cp -a /dev/{null,zero,full,random,urandom,tty} "$1/"
  chmod 666 "$1"/{null,zero,full,random,urandom,tty} # as Debian has them, whatever this machine has
  ln -s /proc/self/fd "$1/fd"
  ln -s /proc/self/fd/0 "$1/stdin"
  ln -s /proc/self/fd/1 "$1/stdout"
  ln -s /proc/self/fd/2 "$1/stderr"
  mkdir "$1/pts" "$1/shm"
  mount -t devpts -o newinstance,ptmxmode=666,mode=620 devpts "$1/pts"
  ln -s pts/ptmx "$1/ptmx"
  mount -t tmpfs -o mode=1777 shm "$1/shm"
}

# make_system WHO: the system WHO (root or user) with a clone of this tree in /home/lstm/bench-lstm.
make_system() {
  local system=$work/$1
  if grep -q " $system/" /proc/self/mountinfo; then
    echo "tests/fresh.sh: something is mounted below $system, so it is not removed" >&2
    return 1
  fi
  rm -rf --one-file-system "$system"
  cp -a --reflink=auto "$base" "$system"
  mount -t proc proc "$system/proc"
  mount -t sysfs -o ro sysfs "$system/sys"
  make_devices "$system/dev"
  mkdir -p "$system/var/cache/apt/archives"
  mount --bind "$work/archives" "$system/var/cache/apt/archives"
  if [ -n "${LB_FRESH_WHEELS-}" ]; then
    mkdir "$system/wheels"
    mount --bind "$LB_FRESH_WHEELS" "$system/wheels"
    printf '[global]\nno-index = true\nfind-links = /wheels\n' >"$system/etc/pip.conf"
  fi
  cp --dereference /etc/resolv.conf "$system/etc/resolv.conf"
  chroot "$system" useradd --create-home --shell /bin/bash lstm
  echo 'lstm ALL=(ALL) NOPASSWD: ALL' >"$system/etc/sudoers.d/lstm"
  if [ "$1" = package ]; then
    mkdir "$system/home/lstm/bench-lstm"
    return 0
  fi
  git clone --quiet --no-hardlinks . "$system/home/lstm/bench-lstm"
  if [ "$1" = user ]; then
    chroot "$system" chown -R lstm: /home/lstm/bench-lstm
  fi
}

# enter WHO COMMAND...: runs the command in the clone, as root or as the user, with an environment
# that holds nothing of this machine's.
enter() {
  local who=$1 account=root
  shift
  [ "$who" = user ] && account=lstm
  chroot "$work/$who" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb LANG=C.UTF-8 \
    setpriv --reuid "$account" --regid "$account" --init-groups --reset-env \
    bash -c 'cd /home/lstm/bench-lstm && exec "$@"' bash "$@"
}

# say TEXT: prints the text and appends it to the summary.
say() {
  echo "$1" | tee -a "$summary"
}

# try WHO COMMAND...: runs the command and prints a row with its result and its time.
try() {
  local who=$1 start=$SECONDS result=passed
  shift
  enter "$who" "$@" >>"$log" 2>&1 </dev/null || result="failed ($?)"
  [ "$result" = passed ] || failed=1
  say "$(printf '| %s | %s | %s | %s | %d min %02d s |' "$suite" "$who" "$*" "$result" \
    $(((SECONDS - start) / 60)) $(((SECONDS - start) % 60)))"
}

# versions WHO: the versions of what the project was built and tested with.
versions() {
  chroot "$work/$1" dpkg-query --show --showformat '${Package} ${Version}\n' gcc cmake ninja-build \
    libopenblas-dev libdnnl-dev libbenchmark-dev libjansson-dev gnuplot-nox python3 libcmocka-dev \
    2>/dev/null | sed 's/-[^-]*$//' | paste -sd, | sed 's/,/, /g' || true
}

# take_package: makes the Debian package of what an earlier part built and puts it into the system
# named package, whose package lists are fetched.
take_package() {
  local from=root
  [ -d "$work/root/home/lstm/bench-lstm/build/release" ] || from=user
  chroot "$work/$from" /usr/bin/env -i PATH=/usr/bin:/bin LANG=C.UTF-8 \
    sh -c 'cd /home/lstm/bench-lstm/build/release && rm -f ./*.deb && apt-get install -y dpkg-dev file &&
           cpack -G DEB' &&
    cp "$work/$from"/home/lstm/bench-lstm/build/release/*.deb \
      "$work/package/home/lstm/bench-lstm/bench-lstm.deb" &&
    chroot "$work/package" apt-get update
}

# The libraries of arm64, next to the tools of this machine.
# shellcheck disable=SC2016 # for the shell in the system
install_aarch64='set -e
  dpkg --add-architecture arm64
  apt-get update -qq
  . bench/packages.sh
  install_packages cmake ninja-build pkg-config git python3 python3-jsonschema gnuplot-nox \
    gcc-aarch64-linux-gnu g++-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static
  for library in libbenchmark-dev libjansson-dev libopenblas-dev libcmocka-dev; do
    apt-get install -y -qq --no-install-recommends "$library:arm64"
  done'

# A function, so that the whole script has been read before it starts to work.
main() {
  failed=0
  make_base
  summary=$work/summary
  : >"$summary"
  local parts="root user package"
  [ "$mode" != --cuda ] || parts="root user"
  [ "$mode" != --aarch64 ] || parts="root"
  for who in ${LB_FRESH_AS:-$parts}; do
    log=$work/$who.log
    : >"$log"
    make_system "$who" || return 1
    [ "$who" != package ] || take_package >>"$log" 2>&1 || {
      say "| $suite | package | cpack -G DEB | failed | |"
      return 1
    }
    if [ "$who" = package ]; then
      try "$who" apt-get install -y --no-install-recommends ./bench-lstm.deb
      try "$who" bench-lstm --sweep --impl cpu_ref,openblas -T 4 -B 2 -H 16 --out run
      continue
    fi
    if [ "$mode" = --cuda ]; then
      try "$who" bench/quickstart.sh --cuda
      # The wheels have the newest nvcc: no kernel may spill with it.
      try "$who" python3 tests/simt/budgets.py hold --out build/budgets \
        --nvcc build/cuda/nvidia/cu13/bin/nvcc
      say "$(grep -E '^[0-9]+ kernels of nvcc' "$log" | tail -n 1)"
    elif [ "$mode" = --aarch64 ]; then
      enter "$who" bash -c "$install_aarch64" >>"$log" 2>&1 || {
        say "| $suite | $who | the packages for 64-bit Arm | failed | |"
        return 1
      }
      try "$who" cmake --preset aarch64
      try "$who" cmake --build --preset aarch64
      try "$who" ctest --preset aarch64
      say "$(grep -E '^[0-9]+% tests passed' "$log" | tail -n 1)"
    else
      try "$who" bench/quickstart.sh
      try "$who" tests/run.sh "$@"
      say "$(grep -E '^[0-9]+% tests passed' "$log" | tail -n 1)"
    fi
    say "$(versions "$who")"
  done
  return "$failed"
}

main "$@"
exit
