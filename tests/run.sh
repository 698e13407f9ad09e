#!/usr/bin/env bash
# Installs what is missing, builds, and runs all tests but those with the label long (tests/README.md).
# With --all it builds everything and also runs these. Other arguments are passed to ctest:
#
#     tests/run.sh -L unit                runs only the unit tests
#     tests/run.sh --all -R cli_report    runs all tests of reports
#
# LB_PRESET names the preset to build (CMakePresets.json), dev unless set: warnings do not stop a
# build, since a newer compiler has new ones. Continuous integration sets ci, where they are errors.
set -euo pipefail
if [ "${1-}" = --help ]; then
  sed -n '2,/^set/s/^# \{0,1\}//p' "$0"
  exit
fi
cd "$(dirname "$0")/.."
. bench/packages.sh
preset=${LB_PRESET:-dev}
targets=quick-tests
left_out=(--label-exclude long)
if [ "${1-}" = --all ]; then
  shift
  targets=all
  left_out=()
fi

# shellcheck disable=SC2086 # lists of words
install_packages $test_packages
for package in $optional_packages $optional_test_packages; do
  install_packages "$package" ||
    echo "going on without $package: what needs it will be absent or skipped" >&2
done
use_ccache
settings=()
# The packages above belong to the system's own Python, which may not be the first one in PATH.
if [ -x /usr/bin/python3 ] && command -v apt-get >/dev/null; then
  settings+=(-D Python3_EXECUTABLE=/usr/bin/python3)
fi
# Without a GPU nothing that is compiled for one runs, so one architecture is enough to see that it
# compiles. The tests simt_budgets compile every kernel for all architectures.
if ! nvidia-smi -L >/dev/null 2>&1; then
  settings+=(-D LB_CUDA_ARCHITECTURES=90a-real)
fi
cmake --preset "$preset" "${settings[@]}"
cmake --build --preset "$preset" --target "$targets"
# Without Nsight Systems the test cli_nsys is skipped, and the summary says so.
if [ "$targets" = all ]; then
  tests/nsys.sh >build/nsys.log 2>&1 || tail -n 1 build/nsys.log >&2
fi
ctest --test-dir "build/$preset" --output-on-failure --no-tests=error --parallel 3 \
  "${left_out[@]}" "$@"
