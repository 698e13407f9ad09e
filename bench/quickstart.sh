#!/usr/bin/env bash
# From a fresh clone to a table and pictures: installs what is missing, builds, sweeps the quick
# grid. Arguments go to bench-lstm, after --sweep.
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/packages.sh

# shellcheck disable=SC2086 # a list of words
install_packages $build_packages
cmake --preset release
cmake --build --preset release
exec ./build/release/bench-lstm --sweep "$@"
