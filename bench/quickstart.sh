#!/usr/bin/env bash
# Leads from a fresh clone to a table and pictures: installs what is missing, builds, and sweeps the
# quick grid. Arguments are passed to bench-lstm after --sweep (bench-lstm --help lists them). When the
# first argument is --cuda, a CUDA toolkit is fetched as Python wheels into build/cuda, for machines
# with a driver and no toolkit.
set -euo pipefail
if [ "${1-}" = --help ]; then
  sed -n '2,/^set/s/^# \{0,1\}//p' "$0"
  exit
fi
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
install_packages $optional_packages ||
  echo "going on without $optional_packages: the rows that need it will say absent" >&2
if [ ${#options[@]} -gt 0 ]; then
  install_cuda "$PWD/build/cuda"
fi
cmake --preset release ${options[@]+"${options[@]}"}
cmake --build --preset release
exec ./build/release/bench-lstm --sweep "$@"
