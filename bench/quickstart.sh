#!/usr/bin/env bash
# From a fresh clone to a table and pictures: installs what is missing, builds, sweeps the quick
# grid. Arguments go to bench-lstm, after --sweep.
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/packages.sh

# shellcheck disable=SC2086 # lists of words
install_packages $build_packages
install_packages $optional_packages || echo "going on without: $optional_packages" >&2
cmake --preset release
cmake --build --preset release
exec ./build/release/bench-lstm --sweep "$@"
