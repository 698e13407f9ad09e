#!/usr/bin/env bash
# Everything that an NVIDIA GPU can tell about this project, in one command and without a network:
# builds, runs the gpu tests (small ones under compute-sanitizer where it is there), measures the
# ceilings, runs a fixed sweep, and leaves at most 8 files in OUT.
#
#     bench/gpu-check.sh OUT [--prefix DIR] [--build DIR] [--budget SECONDS] [--only STEPS]
#     bench/gpu-check.sh --pack DIR
#
# CUDA, cuBLAS, cuDNN, NVTX and CUPTI are found in a toolkit, in distribution packages, or in NVIDIA's
# Python wheels. --prefix adds a folder with what else the build needs (Google Benchmark, Jansson,
# OpenBLAS, pkg-config); --pack makes such a folder on a machine that has their packages. STEPS are
# some of tests,sanitizer,sweep; --budget is the sweep's (420).
set -euo pipefail
repository=$(cd "$(dirname "$0")/.." && pwd)

usage() {
  sed -n '2,13p' "$0" | sed 's/^# \{0,1\}//' >&2
  exit 2
}

# put_library FILE LINK: the library under the name that programs ask for, and the linker's link.
put_library() {
  local name
  name=$(objdump -p "$1" | awk '/SONAME/ {print $2}')
  cp -L "$1" "$pack_to/lib/$name"
  [ "$name" = "$2" ] || ln -sf "$name" "$pack_to/lib/$2"
}

# put_pc NAME: a .pc file that finds itself wherever the folder goes.
put_pc() {
  # shellcheck disable=SC2016 # variables of pkg-config
  printf 'prefix=${pcfiledir}/../..\nName: %s\nDescription: %s\nVersion: %s\n%s\n%s%s\n' "$1" "$1" \
    "$(pkg-config --modversion "$1")" 'Cflags: -I${prefix}/include' 'Libs: -L${prefix}/lib -l' "$1" \
    >"$pack_to/lib/pkgconfig/$1.pc"
}

# pack DIR: headers, libraries and descriptions of the packages, and pkg-config itself.
pack() {
  local blas library
  mkdir -p "$1"/{bin,include,lib/pkgconfig,lib/cmake/benchmark}
  pack_to=$(cd "$1" && pwd)
  find /usr/include \( -name 'jansson*.h' -o -path '*openblas*/cblas.h' -o \
    -path '*openblas*/openblas_config.h' \) -exec cp -L {} "$pack_to/include/" \;
  cp -rL /usr/include/benchmark "$pack_to/include/"

  blas=$(pkg-config --variable=libdir openblas)/libopenblas.so
  put_library "$blas" libopenblas.so
  put_library "$(gcc -print-file-name=libjansson.so)" libjansson.so
  put_library "$(gcc -print-file-name=libbenchmark.so)" libbenchmark.so
  cp -L "$(command -v pkgconf || command -v pkg-config)" "$pack_to/bin/pkg-config"
  for library in $(ldd "$blas" "$pack_to/bin/pkg-config" |
    awk '/gfortran|quadmath|pkgconf\.so/ {print $3}'); do
    put_library "$library" "$(basename "$library")"
  done
  put_pc jansson
  put_pc openblas
  cat >"$pack_to/lib/cmake/benchmark/benchmarkConfig.cmake" <<'CMAKE'
get_filename_component(packed "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
find_package(Threads REQUIRED)
add_library(benchmark::benchmark UNKNOWN IMPORTED)
set_target_properties(benchmark::benchmark PROPERTIES
  IMPORTED_LOCATION ${packed}/lib/libbenchmark.so
  INTERFACE_INCLUDE_DIRECTORIES ${packed}/include
  INTERFACE_LINK_LIBRARIES "Threads::Threads;rt")
CMAKE
  printf 'set(PACKAGE_VERSION %s)\nset(PACKAGE_VERSION_COMPATIBLE TRUE)\n' \
    "$(dpkg-query --show --showformat='${Version}' libbenchmark-dev | sed 's/-.*//')" \
    >"$pack_to/lib/cmake/benchmark/benchmarkConfigVersion.cmake"
  du -sh "$pack_to" >&2
}

out='' prefix='' build='' budget=420 steps=tests,sanitizer,sweep
while [ $# -gt 0 ]; do
  case $1 in
  --pack)
    [ $# -eq 2 ] || usage
    pack "$2"
    exit 0
    ;;
  --prefix) prefix=$(cd "$2" && pwd) && shift 2 ;;
  --build) build=$2 && shift 2 ;;
  --budget) budget=$2 && shift 2 ;;
  --only) steps=$2 && shift 2 ;;
  -*) usage ;;
  *)
    [ -z "$out" ] || usage
    out=$1 && shift
    ;;
  esac
done
[ -n "$out" ] || usage
mkdir -p "$out"
out=$(cd "$out" && pwd)
build=${build:-$repository/build/gpu-check}
log=$out/test.log
: >"$log"

# note WORDS: what happens now, for the log and for whoever watches.
note() {
  echo "== $*" | tee -a "$log"
}

# Libraries in wheels are found at run time too: they load each other by name.
wheels=$(python3 -c 'import glob, site, sysconfig
places = dict.fromkeys([sysconfig.get_paths()["purelib"], *site.getsitepackages()])
print(*(lib for place in places for lib in glob.glob(place + "/nvidia/*/lib")), sep=":")' || true)
export LD_LIBRARY_PATH=${prefix:+$prefix/lib:}${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$wheels
if [ -n "$prefix" ]; then
  export PATH=$prefix/bin:$PATH PKG_CONFIG_PATH=$prefix/lib/pkgconfig CMAKE_PREFIX_PATH=$prefix
fi

note "machine"
{
  date -u
  nvidia-smi || true
  nvcc --version || true
} >>"$log" 2>&1

note "build"
native=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -1 | tr -d . || true)
architectures=()
case $native in
90) architectures=(-D 'LB_CUDA_ARCHITECTURES=90a-real') ;;
'') ;;
*) architectures=(-D "LB_CUDA_ARCHITECTURES=$native") ;;
esac
if ! { cmake -S "$repository" -B "$build" -G Ninja -D CMAKE_BUILD_TYPE=RelWithDebInfo \
  -D BUILD_TESTING=OFF -D LB_CUDA=ON ${prefix:+-D "CMAKE_PREFIX_PATH=$prefix"} \
  ${architectures[@]+"${architectures[@]}"} && cmake --build "$build"; } >>"$log" 2>&1; then
  tail -40 "$log" >&2
  note "the build failed"
  exit 1
fi
program=$build/bench-lstm
export LB_BUILD=$build
failed=0

# wanted STEP: whether it is among the steps.
wanted() {
  case ",$steps," in *",$1,"*) return 0 ;; *) return 1 ;; esac
}

# attempt WORDS... -- COMMAND...: runs the command into the log; a failure is remembered.
attempt() {
  local what=()
  while [ "$1" != -- ]; do what+=("$1") && shift; done
  shift
  local start=$SECONDS code=0
  note "${what[*]}"
  "$@" >>"$log" 2>&1 || code=$?
  note "${what[*]}: exit code $code after $((SECONDS - start)) s"
  [ $code -eq 0 ] || failed=1
}

"$program" --version >>"$log"
if ! "$program" --list --impl cuda_step -T 1 -B 1 -H 1 | tee -a "$log" | grep -q ' ok$'; then
  tail -1 "$log" >&2
  note "there is no GPU to check"
  exit 77
fi
if wanted tests; then
  attempt gpu tests -- timeout 600 python3 "$repository/tests/cli/test_gpu_device.py"
fi
if wanted sanitizer && command -v compute-sanitizer >/dev/null; then
  for tool in memcheck racecheck synccheck; do
    attempt "$tool" -- timeout 300 python3 "$repository/tests/cli/test_gpu_device.py" --small \
      compute-sanitizer --tool "$tool" --target-processes all --error-exitcode 86
  done
fi

if wanted sweep; then
  attempt ceilings -- sh -c "'$program' --ceilings >'$out/ceilings.txt'"

  scratch=$(mktemp -d)
  trap 'rm -rf "$scratch"' EXIT
  attempt sweep -- "$program" --sweep --cases gpu --dtype f16,bf16,f32 --pass infer,train \
    --impl cudnn,cuda_naive,cuda_step --baseline cudnn --case-time 0.5 --time-budget "$budget" \
    --out "$scratch/run"
  cp "$scratch"/run/run.jsonl "$scratch"/run/run.csv "$out/" 2>>"$log" || true
  python3 -c 'import json, sys
print(json.dumps(json.loads(sys.stdin.readline())["environment"], indent=2))' \
    <"$out/run.jsonl" >"$out/environment.json" 2>>"$log" || true
  tar -C "$scratch/run" -czf "$out/plots.tar.gz" . 2>>"$log" || true
fi
note "left in $out: $(cd "$out" && echo *)"
exit $failed
