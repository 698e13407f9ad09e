#!/usr/bin/env bash
# Installs what is missing, builds with warnings as errors, runs all tests. Arguments go to ctest:
#     tests/run.sh -L unit        only the unit tests
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/packages.sh

# shellcheck disable=SC2086 # a list of words
install_packages $test_packages
cmake --preset ci
cmake --build --preset ci
ctest --preset ci "$@"
