#!/usr/bin/env bash
# Makes the Python environment that the frameworks' rows run in, with pinned versions from PyPI:
#
#     bench/frameworks/setup.sh [--only NAME,...] [--into FOLDER]
#
# The folder is where the plug-ins look: $LB_FRAMEWORKS, else bench-lstm/frameworks in the user's
# cache. A folder that is there already gets what it lacks. PyTorch brings NVIDIA's libraries along,
# some 5 GB; the others take 2 GB. Without a network nothing is made, and the rows use what the
# system's Python has, such as Debian's python3-torch.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
all=$(sed -n 's/^\[\(.*\)\]/\1/p' "$here/versions.txt" | paste -sd,)
only=$all
into=${LB_FRAMEWORKS:-${XDG_CACHE_HOME:-$HOME/.cache}/bench-lstm/frameworks}
python=${PYTHON:-python3} # of the version that the plug-ins were built for

usage() {
  echo "usage: setup.sh [--only NAME,...] [--into FOLDER], of $all" >&2
  exit 2
}

while [ $# -ge 2 ]; do
  case $1 in
  --only) only=$2 ;;
  --into) into=$2 ;;
  *) usage ;;
  esac
  shift 2
done
[ $# -eq 0 ] || usage

wanted=()
for name in ${only//,/ }; do
  grep -q "^\[$name\]" "$here/versions.txt" || {
    echo "setup.sh: --only $name: allowed are $all" >&2
    exit 2
  }
  mapfile -t lines < <(sed -n "/^\[$name\]/,/^\[/{/^[a-z]/p}" "$here/versions.txt")
  wanted+=("${lines[@]}")
done

if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
  echo "setup.sh: the pinned versions need Python 3.11 or newer; name one with PYTHON=" >&2
  exit 1
fi
"$python" -m venv "$into"
"$into/bin/python3" -m pip install --disable-pip-version-check "${wanted[@]}"
echo "frameworks of $into:"
"$into/bin/python3" -m pip list --disable-pip-version-check --format=freeze |
  grep -iE '^(torch|tensorflow[a-z_-]*|keras|onnxruntime|onnx|openvino|jax|jaxlib|numpy)=='
echo "bench-lstm --sweep --framework $only --cases frameworks"
