#!/usr/bin/env bash
# Builds every faulty plug-in of tests/plugins, runs it and prints one line per defect: what caught
# it, or that it was missed. Arguments go to trial.py: names of plug-ins, or --markdown for a table.
# BUILD names the build folder, build/dev unless set.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${BUILD:-build/dev}
[ -d "$build" ] || cmake --preset dev >/dev/null
cmake --build "$build" --target bench-lstm faulty_plugins >/dev/null
exec env LB_BUILD="$PWD/$build" python3 tests/broken/trial.py "$@"
