#!/usr/bin/env bash
# Installs what is missing, builds with warnings as errors, runs all tests. Arguments go to ctest:
#     tests/run.sh -L unit        only the unit tests
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/packages.sh

# shellcheck disable=SC2086 # lists of words
install_packages $test_packages
# shellcheck disable=SC2086
install_packages $optional_packages || echo "going on without: $optional_packages" >&2
# shellcheck disable=SC2086
install_packages $optional_test_packages ||
  echo "not installed: $optional_test_packages; the tests that need it will be skipped" >&2
# The packages above are those of the system's own Python, which may not be the first one found.
python=()
[ -x /usr/bin/python3 ] && command -v apt-get >/dev/null && python=(-D Python3_EXECUTABLE=/usr/bin/python3)
cmake --preset ci "${python[@]}"
cmake --build --preset ci
# Without it the test nsys is skipped, and the summary says so.
tests/nsys.sh build/nsys >build/nsys.log 2>&1 || tail -n 1 build/nsys.log >&2
ctest --preset ci "$@"
