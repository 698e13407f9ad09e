#!/usr/bin/env bash
# Everything that an NVIDIA GPU can tell about this project, in one command and without a network.
#
#     bench/gpu-check.sh OUT [--prefix DIR] [--build DIR] [--only STEPS] [--budget SECONDS]
#                            [--from DIR] [--dry-run]
#     bench/gpu-check.sh --pack DIR
#
# STEPS, in their order; one that fails does not stop those after it:
#   build      the program, in --build (build/gpu-check)
#   tests      every GPU implementation, variant, dtype and pass against the oracle
#   sanitizer  small cases under compute-sanitizer: memcheck, racecheck, synccheck
#   calibrate  the kernels of tests/simt on the device, against what the emulator recorded
#   ceilings   copy bandwidth, product rates, launches, barriers: the floor model's figures
#   peers      cudnn beside PyTorch's nn.LSTM, each where it is
#   sweep      the recurrent grid in at most --budget seconds (420), f16 first; --from goes on with
#              the run.jsonl and naive.jsonl of an earlier OUT
#   tune       where the program can: all ways that fused has, on the grid, into tuned.txt; after
#              the sweep, which shows what the model had chosen; at most half its budget
#
# At most 8 files are left in OUT: test.log, which holds the ceilings too, environment.json,
# cudnn.jsonl and peers.jsonl, run.jsonl and naive.jsonl, tuned.txt, runs.tar.gz with the folders.
#
# CUDA, cuBLAS, cuDNN, NVTX and CUPTI are found in a toolkit, in distribution packages, or in
# NVIDIA's Python wheels. --prefix adds a folder with what else the build needs (Google Benchmark,
# Jansson, OpenBLAS, pkg-config); --pack makes such a folder on a machine that has their packages.
# --dry-run takes every step without a GPU as far as it goes, with a device that is host memory.
set -euo pipefail
repository=$(cd "$(dirname "$0")/.." && pwd)

usage() {
  sed -n '2,26p' "$0" | sed 's/^# \{0,1\}//' >&2
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
    "$(pkg-config --modversion "$1")" 'Cflags: -I${prefix}/include' \
    'Libs: -L${prefix}/lib -l' "$1" \
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

out='' prefix='' build='' budget=420 from='' dry=''
steps=build,tests,sanitizer,calibrate,ceilings,peers,sweep,tune
while [ $# -gt 0 ]; do
  case $1 in
  --pack)
    [ $# -eq 2 ] || usage
    pack "$2"
    exit 0
    ;;
  --dry-run) dry=yes && shift ;;
  --prefix | --build | --budget | --only | --from)
    [ $# -ge 2 ] || usage
    case $1 in
    --prefix) prefix=$(cd "$2" && pwd) ;;
    --build) build=$2 ;;
    --budget) budget=$2 ;;
    --only) steps=$2 ;;
    --from) from=$(cd "$2" && pwd) ;;
    esac
    shift 2
    ;;
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
mkdir -p "$build"
build=$(cd "$build" && pwd)
program=$build/bench-lstm
cd "$repository" # names of case files are looked for in the current folder first
log=$out/test.log
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0
: >"$log"

# note WORDS: what happens now, for the log and for whoever watches.
note() {
  echo "== $*" | tee -a "$log"
}

# attempt CODES WORDS... -- COMMAND...: runs the command into the log. An exit code that is not
# among CODES is remembered as a failure; the next step comes all the same. 5: nothing could run
# (no cuDNN); 77: no PyTorch, no GPU; 124, 130: its time was over.
attempt() {
  local fine=$1 what=() start=$SECONDS code=0
  shift
  while [ "$1" != -- ]; do what+=("$1") && shift; done
  shift
  note "${what[*]}"
  "$@" >>"$log" 2>&1 || code=$?
  case ",$fine," in
  *",$code,"*) note "${what[*]}: done, exit code $code, after $((SECONDS - start)) s" ;;
  *)
    failed=1
    tail -15 "$log"
    note "${what[*]}: FAILED, exit code $code, after $((SECONDS - start)) s"
    ;;
  esac
}

wanted() {
  case ",$steps," in *",$1,"*) return 0 ;; *) return 1 ;; esac
}

# Libraries in wheels are found at run time too: they load each other by name.
wheels=$(python3 -c 'import glob, site, sysconfig
places = dict.fromkeys([sysconfig.get_paths()["purelib"], *site.getsitepackages()])
print(*(lib for place in places for lib in glob.glob(place + "/nvidia/*/lib")), sep=":")' || true)
export LD_LIBRARY_PATH=${prefix:+$prefix/lib:}${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$wheels
if [ -n "$prefix" ]; then
  export PATH=$prefix/bin:$PATH PKG_CONFIG_PATH=$prefix/lib/pkgconfig CMAKE_PREFIX_PATH=$prefix
fi
export LB_BUILD=$build

build_program() {
  local options=(-D BUILD_TESTING=OFF -D LB_CUDA=ON -D CMAKE_BUILD_TYPE=RelWithDebInfo) native
  native=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -1 |
    tr -d . || true)
  [ -n "$native" ] || native=${dry:+90}
  [ -z "$native" ] ||
    options+=(-D "LB_CUDA_ARCHITECTURES=${native/#90/90a}-real")
  command -v ninja >/dev/null && options+=(-G Ninja)
  cmake -S "$repository" -B "$build" "${options[@]}" && cmake --build "$build" -j "$(nproc)"
}

# variants NAME: NAME:VARIANT,... from the program's own list; without one NAME, which means all.
variants() {
  local found
  found=$("$program" --list | sed -n "s/^# *\($1:[a-z0-9_]*\)$/\1/p" | paste -sd,)
  echo "${found:-$1}"
}

# grid DTYPE [MATH]: the recurrent grid, both passes of a size together, which share an answer.
grid() {
  local seq_len hidden batch pass
  for seq_len in 128 1024; do
    for hidden in 128 256 512 768 1024; do
      for batch in 1 8 16 32 64; do
        for pass in train infer; do
          echo "T${seq_len}_B${batch}_H$hidden/$1/$pass${2:+/$2}"
        done
      done
    done
  done
}

# limited SECONDS RUN ARGUMENTS...: a sweep into the folder RUN, or on with it. Interrupted when its
# time is over, not ended by a budget: what is left can then be run later.
limited() {
  local seconds=$1 run=$2
  shift 2
  if [ -f "$run/run.jsonl" ]; then
    timeout -k 60 -s INT "$seconds" "$program" --resume "$run"
  else
    timeout -k 60 -s INT "$seconds" "$program" --sweep --out "$run" --case-time 0.2 "$@" \
      "${fake[@]}"
  fi
}

# record RUN NAME: its records to OUT, whatever came of it.
record() {
  [ ! -f "$1/run.jsonl" ] || cp "$1/run.jsonl" "$out/$2"
}

calibrate() {
  local nvcc=${CUDACXX:-$(sed -n 's/^LB_CUDA_COMPILER:[A-Z]*=//p' "$build/CMakeCache.txt")}
  local root
  root=$(dirname "$(dirname "$nvcc")")
  "$nvcc" -std=c++17 -O2 "-I$repository/tests/simt" "-I$repository/cuda" "-L$root/lib" \
    "-L$root/lib64" "$(sed -n 's/^LB_CUDA_ARCHITECTURES:[A-Z]*=\([0-9]*a\{0,1\}\).*/-arch=sm_\1/p' \
      "$build/CMakeCache.txt")" -o "$scratch/calibrate" "$repository/tests/simt/calibrate.cu"
  "$scratch/calibrate" "$repository/tests/simt/recorded.txt"
}

note "machine"
{
  date -u
  nvidia-smi || true
  nvcc --version || true
} >>"$log" 2>&1

if wanted build; then
  attempt 0 build -- build_program
fi
if [ ! -x "$program" ]; then
  note "there is no $program"
  exit 1
fi
"$program" --version >>"$log"

# What the GPU's implementations are called, and what stands for them without one.
all=$(variants cudnn),$(variants fused),cuda_step
all=${all/cudnn:auto,/} # times all others in each case: the peers step has it
naive=cuda_naive peer=cudnn tuned=fused:auto fake=() small=()
sanitize=(compute-sanitizer --target-processes all --error-exitcode 86 --tool)
if [ -n "$dry" ]; then
  cc -shared -fPIC -D_DEFAULT_SOURCE -DFAULT=none "-I$repository/harness" -o "$build/fake.so" \
    "$repository/tests/plugins/gpu_fault.c" "$repository/tests/fake_gpu/fake_device.c"
  attempt 0 plan of the grid -- "$program" --plan --impl "$all,$naive" --cases <(grid f16)
  all=gpu_fault_none naive=$all peer=$all tuned=$all
  fake=(--plugin "$build/fake.so" --where 'T*B*H<=20000')
  small=(--plugin "$build/fake.so")
  sanitize=(env SANITIZER_TOOL)
elif ! "$program" --list --impl cuda_step -T 1 -B 1 -H 1 | tee -a "$log" |
  grep ' ok$' >/dev/null; then
  tail -1 "$log" >&2
  note "there is no GPU to check"
  exit 77
fi

if wanted tests; then
  attempt 0 conformance -- timeout 600 python3 "$repository/tests/cli/test_gpu_device.py" \
    "${small[@]}"
fi
if wanted sanitizer; then
  if [ -n "$dry" ] || command -v compute-sanitizer >/dev/null; then
    for tool in memcheck racecheck synccheck; do
      command=("${sanitize[@]}" "$tool")
      [ -z "$dry" ] || command=(env "SANITIZER_TOOL=$tool")
      attempt 0 "$tool" -- timeout 300 python3 "$repository/tests/cli/test_gpu_device.py" --small \
        "${small[@]}" "${command[@]}"
    done
  else
    note "no compute-sanitizer here"
  fi
fi
if wanted calibrate; then
  attempt "${dry:+77,}0" calibration of the emulator -- calibrate
fi
if wanted ceilings; then
  attempt "${dry:+1,}0" ceilings -- "$program" --ceilings
fi
if wanted peers; then
  attempt 0,5,124,130 cudnn on the peers\' cases -- limited 180 "$scratch/cudnn" --cases gpu \
    --dtype f16,bf16,f32 --math ieee,tf32 --pass infer,train --impl "$peer" \
    ${dry:+--case T4_B2_H8}
  record "$scratch/cudnn" cudnn.jsonl
  attempt 0,77,124 PyTorch -- timeout -k 60 -s INT 180 python3 "$repository/bench/peers.py" \
    "$scratch/peers" --device cuda --cases gpu --dtype f16,bf16,f32,tf32 --case-time 0.3 \
    --against "$out/cudnn.jsonl"
  record "$scratch/peers" peers.jsonl
fi
{ grid f16 && grid bf16 && grid f32 tf32 && grid f32; } >"$scratch/grid.txt"
{ grid f16 && grid f32; } >"$scratch/naive.txt"
mkdir -p "$scratch/run" "$scratch/naive" "$scratch/tuned"
if wanted sweep; then
  for name in run naive; do
    [ -z "$from" ] || [ ! -f "$from/$name.jsonl" ] ||
      cp "$from/$name.jsonl" "$scratch/$name/run.jsonl"
  done
  end=$((SECONDS + budget))
  attempt 0,124,130 recurrent grid -- limited "$((budget * 5 / 6 + 1))" "$scratch/run" \
    --cases "$scratch/grid.txt" --impl "$all"
  record "$scratch/run" run.jsonl
  attempt 0,124,130 the naive loop on it -- limited "$((end > SECONDS ? end - SECONDS : 1))" \
    "$scratch/naive" --cases "$scratch/naive.txt" --impl "$naive"
  record "$scratch/naive" naive.jsonl
  for name in run naive; do
    [ ! -f "$scratch/$name/run.jsonl" ] || {
      "$program" --export csv "$scratch/$name" >"$scratch/$name/run.csv"
      "$program" --report "$scratch/$name" -o "$scratch/$name/report.html"
    } >>"$log" 2>&1 || true
  done
  python3 -c 'import json, sys
print(json.dumps(json.loads(sys.stdin.readline())["environment"], indent=2))' \
    <"$out/run.jsonl" >"$out/environment.json" 2>>"$log" || true
fi
if wanted tune; then
  if "$program" --help | grep -e '^ *--tune' >/dev/null; then
    [ -z "$from" ] || [ ! -f "$from/tuned.txt" ] || cp "$from/tuned.txt" "$out/"
    attempt 0,124,130 tuning -- limited "$((budget / 2 + 1))" "$scratch/tuned" --tune \
      --tuned "$out/tuned.txt" --cases "$scratch/grid.txt" --impl "$tuned"
  else
    note "this program can't tune"
  fi
fi
tar -C "$scratch" -czf "$out/runs.tar.gz" run naive tuned 2>>"$log" || true
note "left in $out: $(cd "$out" && echo *)"
exit $failed
