# Sourced by bench/quickstart.sh and tests/run.sh: installs the Debian or Ubuntu packages that are
# missing, with sudo where the caller is not root. On other systems it names them.

build_packages="gcc g++ cmake ninja-build pkg-config git
  libbenchmark-dev libjansson-dev libopenblas-dev gnuplot-nox"
# Wanted, not needed: without them their implementations are rows "absent".
optional_packages="libdnnl-dev"
test_packages="$build_packages libcmocka-dev python3 python3-jsonschema valgrind
  libbenchmark-tools python3-scipy python3-yaml jq"
# Tests that need these are skipped, and say so, where they can't be had.
optional_test_packages="chromium"

# is_installed PACKAGE
is_installed() {
  [ "$(dpkg-query --show --showformat='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# install_packages PACKAGE...
install_packages() {
  local missing=() package
  if ! command -v apt-get >/dev/null; then
    echo "no apt-get here; needed are the equivalents of:" "$@" >&2
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
      echo "these packages are missing and there is no sudo: ${missing[*]}" >&2
      return 1
    fi
    as_root=(sudo)
  fi
  echo "installing: ${missing[*]}" >&2
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2
}
