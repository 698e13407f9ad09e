# Sourced by bench/quickstart.sh and tests/run.sh. It installs the Debian or Ubuntu packages that are
# missing, with sudo where the caller is not root. On other systems it names them.

# Without these nothing can be built.
build_packages="gcc g++ cmake ninja-build pkg-config git
  libbenchmark-dev libjansson-dev gnuplot-nox"
# Without these the program is built, and the rows of the implementations that need them say "absent".
optional_packages="libopenblas-dev libdnnl-dev"
# Without these the tests can't be built or run.
test_packages="$build_packages libopenblas-dev libcmocka-dev python3 python3-jsonschema valgrind
  libbenchmark-tools python3-scipy python3-yaml jq"
# Without these the tests that need them are skipped; the summary of the tests names them.
optional_test_packages="dpkg-dev file python3-h5py"
# Ubuntu has Chromium only as a snap, which can't read the pages that tests write into /tmp.
grep -q '^ID=ubuntu' /etc/os-release 2>/dev/null || optional_test_packages="chromium $optional_test_packages"

# What the preset fuzz needs besides test_packages.
fuzz_packages="clang libclang-rt-dev"

# is_installed PACKAGE
is_installed() {
  [ "$(dpkg-query --show --showformat='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# install_packages PACKAGE...: installs what is missing of these. On a system without apt-get it
# names them and succeeds. It fails when a package can't be installed.
install_packages() {
  local missing=() package
  if ! command -v apt-get >/dev/null; then
    echo "there is no apt-get here; install the equivalents of these packages:" "$@" >&2
    return 0
  fi
  for package in "$@"; do
    # Another gnuplot package serves as well.
    [ "$package" = gnuplot-nox ] && command -v gnuplot >/dev/null && continue
    is_installed "$package" || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return 0

  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
      echo "these packages are missing, and there is no sudo to install them: ${missing[*]}" >&2
      return 1
    fi
    as_root=(sudo)
  fi
  echo "these packages are missing and will be installed: ${missing[*]}" >&2
  local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq
    -o Acquire::Retries=1 -o Acquire::http::Timeout=10)
  "${apt[@]}" update || true # one source of many may be broken, and it may not have what is missing
  "${apt[@]}" install -y --no-install-recommends "${missing[@]}" >&2 && return 0
  echo "these packages could not be installed: ${missing[*]}" >&2
  return 1
}

# use_ccache: lets CMake compile through ccache where ccache is installed.
use_ccache() {
  command -v ccache >/dev/null || return 0
  export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache
  export CMAKE_CUDA_COMPILER_LAUNCHER=ccache CCACHE_NOHASHDIR=1 # so that presets share objects
}
