#!/usr/bin/env bash
# From a fresh clone to a table and pictures: installs what is missing, builds, sweeps the quick
# grid. Arguments go to bench-lstm, after --sweep. With --cuda first, a CUDA toolkit is fetched as
# Python wheels into the build folder, for machines that have a driver and no toolkit.
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/packages.sh
. bench/cuda_wheels.sh

options=()
if [ "${1-}" = --cuda ]; then
  shift
  options=(-D LB_CUDA=ON -D LB_CUDNN=ON)
  build_packages="$build_packages python3 python3-pip"
fi
# shellcheck disable=SC2086 # a list of words
install_packages $build_packages
# shellcheck disable=SC2086
install_packages $optional_packages || echo "going on without: $optional_packages" >&2
if [ ${#options[@]} -gt 0 ]; then
  install_cuda "$PWD/build/cuda"
fi
cmake --preset release ${options[@]+"${options[@]}"}
cmake --build --preset release
exec ./build/release/bench-lstm --sweep "$@"
