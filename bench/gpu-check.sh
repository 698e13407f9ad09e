#!/usr/bin/env bash
# Runs every check and measurement that needs an NVIDIA GPU, in one command and without a network.
#
#     bench/gpu-check.sh OUT [--prefix DIR] [--build DIR] [--only STEPS] [--limit SECONDS]
#                            [--budget SECONDS] [--from DIR] [--dry-run[=FAULT]]
#     bench/gpu-check.sh --pack DIR
#
# STEPS, in their order. A step that fails does not stop the later ones, and each step has a time limit:
#   build      builds the program in the folder of --build (build/gpu-check)
#   versions   lists the program, its libraries, driver and tools, and what each implementation says
#   tiny       runs one tiny case of each implementation
#   ceilings   measures copy bandwidth, GEMM rates, launches and barriers, for the lower bound
#   headline   begins the sweep with the sizes of the README's table, for at most three minutes
#   frameworks times cudnn and PyTorch's nn.LSTM on the same cases, as far as they are installed
#   tune       measures every kernel family of fused on the grid, and writes tuned.txt
#   ncu        profiles one kernel of cluster and one of grid by Nsight Compute, into test.log
#   parts      times steps of cluster and grid whole, without the product, and without the exchange, and
#              when each warp has done each part, by cuda/try_fused.cu, and compares that with the
#              model, into test.log
#   tests-own  checks every variant, dtype and pass of the project's GPU implementations by the oracle
#   twice      runs graph, train and backward cases twice in one worker: the bits must be the same
#              where an implementation says that it is deterministic, and are compared elsewhere too
#   kernels    records the GPU kernels of three graph cases, by CUPTI
#   faults     kills a worker, runs too large a case, and launches a kernel that reads an illegal
#              address: each must cost one row
#   sweep      goes on with the sweep of the recurrent grid for at most --budget seconds (420)
#   tests-cudnn                checks cudnn as tests-own checks the project's own
#   tests-modes                checks other math modes, relu, graphs, cold caches and batched calls
#   sanitizer-memcheck (also -racecheck and -synccheck) runs small cases under compute-sanitizer, slowly
#   tests-slow                 checks the algorithms of cudnn that are slow to set up
# "tests" and "sanitizer" name all steps that begin so. The program is built when it is missing,
# whatever STEPS says. --limit is for a machine with a time limit: it ends everything shortly after
# that time, and a step for which no time is left is skipped with a message. --from continues with
# the records of an earlier OUT, which may be the same. Three runs of ten minutes each, of which the
# first has what one wants to know first:
#
#     bench/gpu-check.sh A --limit 540
#     bench/gpu-check.sh B --limit 540 --from A --only tests-own,twice,kernels,faults,sweep
#     bench/gpu-check.sh C --limit 540 --from B --only tests-cudnn,tests-modes,sanitizer,tests-slow
#
# OUT gets at most 8 files. Each is written as the step goes on, so that nothing is lost if the run
# is cut off: test.log (with the ceilings), sanitizer.log, conformance.jsonl, run.jsonl (the
# sweep), tuned.txt, tuned.jsonl, cudnn.jsonl, pytorch.jsonl or torch.csv. Tables and pages are made from them
# later, on any machine: mkdir sweep && cp run.jsonl sweep && bench-lstm --report sweep -o page.html
#
# CUDA, cuBLAS, cuDNN, NVTX and CUPTI are found in a toolkit, in distribution packages, or in
# NVIDIA's Python wheels. What else the build needs (Google Benchmark, Jansson, pkg-config) is copied
# by --pack on a machine that has the Debian packages; --prefix names the folder of that.
# --dry-run tries every step without a GPU, on a device that is host memory. With a FAULT of
# tests/plugins/gpu_fault.c, such as hang, that device fails in cases of 7 steps.
set -euo pipefail
repository=$(cd "$(dirname "$0")/.." && pwd)

usage() {
  sed -n '2,/^set /{ /^set /d; s/^# \{0,1\}//p }' "$0" >&2
  exit 2
}

# pack DIR: the files of the Debian packages that the build needs, below DIR as they lie below /.
pack() {
  mkdir -p "$1"
  # shellcheck disable=SC2016 # dpkg-query's own variable
  { dpkg-query --show --showformat '${Package}\n' libbenchmark-dev 'libbenchmark1*' 'libjansson*' \
    'pkgconf*' 'libpkgconf*' | xargs dpkg-query --listfiles 2>/dev/null || true; } | sort -u |
    grep -E '^/usr/(bin|include|lib)/' | grep -v '/libjansson\.a$' |
    tar --create --directory / --no-recursion --files-from - 2>/dev/null |
    tar --extract --directory "$1"
  du -sh "$1" >&2
}

out='' prefix='' build='' budget=420 limit=0 from='' dry=''
# The steps, as they are listed above.
known=$(sed -n '/^# STEPS/,/^# "tests"/s/^#   \([a-z][a-z-]*\) .*/\1/p' "$0" | paste -sd,)
known=$known,sanitizer-racecheck,sanitizer-synccheck
only=$known

# check_steps: refuses a misspelt step, which would otherwise silently not run.
check_steps() {
  local step
  for step in ${only//,/ }; do
    case ",$known,tests,sanitizer," in
    *",$step,"*) ;;
    *)
      echo "--only: there is no step $step; there are $known" >&2
      exit 2
      ;;
    esac
  done
}

while [ $# -gt 0 ]; do
  case $1 in
  --pack)
    [ $# -eq 2 ] || usage
    pack "$2"
    exit 0
    ;;
  --dry-run) dry=none && shift ;;
  --dry-run=*) dry=${1#*=} && shift ;;
  --prefix | --build | --budget | --limit | --only | --from)
    [ $# -ge 2 ] || usage
    declare "${1#--}=$2" # the variable of that name
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
for seconds in "$budget" "$limit"; do
  [[ $seconds =~ ^(0|[1-9][0-9]*)$ ]] && continue
  echo "--budget and --limit take a whole number of seconds, not $seconds" >&2
  exit 2
done
[ -z "$prefix" ] || prefix=$(cd "$prefix" && pwd)
[ -z "$from" ] || from=$(cd "$from" && pwd)
check_steps
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
call_limit=30 case_time=0.2 # seconds; no call on the grid takes one
[ -z "$dry" ] || call_limit=4 case_time=0.02
[ -z "$from" ] || [ "$from" -ef "$out" ] ||
  for name in run.jsonl tuned.jsonl tuned.txt cudnn.jsonl; do
    [ ! -f "$from/$name" ] || [ -e "$out/$name" ] || cp "$from/$name" "$out/"
  done

# note WORDS: writes what happens now to the log and to the terminal.
note() {
  echo "== $*" | tee -a "$log"
}

# attempt CODES WORDS... -- COMMAND...: runs the command into the log. An exit code that is not
# among CODES is remembered as a failure; the next step comes all the same. 5: nothing could run
# (no cuDNN); 77: no PyTorch, no cuDNN, no GPU; 124, 130: its time was over.
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

# begin STEP SECONDS: whether the step is wanted, and there is time for it: `allowed` is how many
# seconds it may take, SECONDS or what is left.
begin() {
  case ",$only," in
  *",$1,"* | *",${1%%-*},"*) ;;
  *) return 1 ;;
  esac
  allowed=$2
  [ "$limit" -eq 0 ] || [ "$((limit - SECONDS))" -ge "$allowed" ] || allowed=$((limit - SECONDS))
  [ "$allowed" -lt 10 ] || return 0
  note "$1: not begun, no time is left"
  return 1
}

# Libraries in wheels are found at run time too: they load each other by name.
wheels=$(python3 -c 'import glob, site, sysconfig
places = dict.fromkeys([sysconfig.get_paths()["purelib"], *site.getsitepackages()])
print(*(lib for place in places for lib in glob.glob(place + "/nvidia/*/lib")), sep=":")' || true)
export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$wheels
if [ -n "$prefix" ]; then
  packed=$(echo "$prefix"/usr/lib/*-linux-gnu)
  export PATH=$prefix/usr/bin:$PATH CMAKE_PREFIX_PATH=$prefix/usr PKG_CONFIG_SYSROOT_DIR=$prefix
  export PKG_CONFIG_LIBDIR=$packed/pkgconfig
  LD_LIBRARY_PATH=$packed:$LD_LIBRARY_PATH
fi
export LB_BUILD=$build CUDA_DEVICE_ORDER=PCI_BUS_ID

# native_architectures: those of this machine's GPUs, such as "90a-real;80-real"; nothing where they are
# unknown or older than what the kernels are written for: then the usual ones are built. Where nvidia-smi
# finds no GPU or no driver, it says so in words on its standard output.
native_architectures() {
  { nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null || echo "${dry:+9.0}"; } |
    sed -n 's/^\([0-9]*\)\.\([0-9]\)$/\1\2/p' | sort -rnu |
    sed 's/^90$/90a/; /^[1-7][0-9]$/d; s/$/-real/' | paste -sd';'
}

build_program() {
  local options=(-D BUILD_TESTING=OFF -D LB_CUDA=ON -D CMAKE_BUILD_TYPE=RelWithDebInfo) native
  native=$(native_architectures)
  [ -z "$native" ] || options+=(-D "LB_CUDA_ARCHITECTURES=$native")
  command -v ninja >/dev/null && options+=(-G Ninja)
  cmake -S "$repository" -B "$build" "${options[@]}" && cmake --build "$build" -j "$(nproc)"
}

# variants NAME: NAME:VARIANT,... from the program's own list; without one NAME, which means all.
variants() {
  local found
  found=$("$program" --list | sed -n "s/^# *\($1:[a-z0-9_]*\)$/\1/p" | paste -sd,)
  echo "${found:-$1}"
}

# lines IMPLS TYPES PROBLEM...: cases, both passes of a problem together, since they share the expected
# results. A type is a dtype with what follows the pass: f32/tf32.
lines() {
  local impls=$1 types=$2 type problem pass impl
  shift 2
  for type in ${types//,/ }; do
    for problem in "$@"; do
      for pass in train infer; do
        for impl in ${impls//,/ }; do
          echo "$impl/$problem/${type%%/*}/$pass${type#"${type%%/*}"}"
        done
      done
    done
  done
}

# sizes SEQ_LEN: the recurrent grid.
sizes() {
  local hidden
  for hidden in 128 256 512 768 1024; do
    printf "T${1}_B%s_H$hidden\n" 1 8 16 32 64
  done
}

# grid: all cases of the sweep, the most informative first: the sizes of the README's table. Predictions are compared with replayed
# graphs, which hold no work of the host; persist_dynamic compiles one kernel per case; the naive
# loop is slow.
grid() {
  local short=() long=()
  mapfile -t short < <(sizes 128)
  mapfile -t long < <(sizes 1024)
  lines "$all" f16/graph T1024_B16_H{256,512,768,1024}
  lines "$all" f16 "${short[@]}"
  lines "$families" f16/graph "${short[@]}"
  # Calls that carry their state, by one instance and by four at once: a step, and the first model of STAC-ML.
  printf '%s\n' {cudnn:persist_static,fused}/T{1,50}_B1_I100_H100_L2/f16/infer/graph/stream{,/x4}/th4
  lines "$all" f16 "${long[@]}"
  lines cuda_naive f16 "${short[@]}"
  lines "$all" bf16,f32/tf32,f32 "${short[@]}"
  lines cudnn:persist_dynamic f16 "${short[@]}"
  lines "$all" bf16,f32/tf32,f32 "${long[@]}"
  lines cuda_naive f32 "${short[@]}"
}

# swept NAME ARGUMENTS...: a sweep of the cases on stdin into OUT/NAME.jsonl, or on with it; without a
# device, on what stands for one. Interrupted when its time is over, not ended by a budget: what is
# left can then be run later. The program puts its run into a folder with much else, so that the file
# in there is a link to the one in OUT.
swept() {
  local file=$out/$1.jsonl folder=$scratch/$1 cases=$scratch/$1.txt
  local common=(--call-limit "$call_limit" --hang-limit 2 --plots none "${tune[@]}")
  shift
  sed "${dry:+s|^[^/]*/|$stand_in/|}" >"$cases"
  mkdir -p "$folder"
  ln -sf "$file" "$folder/run.jsonl"
  if [ -f "$file" ] && [ "$(wc -l <"$file")" -gt 0 ]; then
    timeout -k 20 -s INT "$allowed" "$program" --resume "$folder" "${common[@]}" \
      "${fake[@]:0:2}"
  else
    timeout -k 20 -s INT "$allowed" "$program" --sweep --out "$folder" --cases "$cases" \
      --case-time "$case_time" "${common[@]}" "$@" "${fake[@]}"
  fi
}

# conformance PART ARGUMENTS...: runs test_gpu_device.py, whose rows go to OUT as they come.
conformance() {
  local part=$1
  shift
  timeout -k 20 $((allowed + 60)) python3 "$repository/tests/cli/test_gpu_device.py" \
    --part "$part" --seconds "$allowed" --rows "$out/conformance.jsonl" "${stand[@]}" "$@"
}

note "machine"
{
  date -u
  nvidia-smi || true
  nvcc --version || true
} >>"$log" 2>&1

if begin build 3600 || [ ! -x "$program" ]; then
  attempt 0 build -- build_program
fi
if [ ! -x "$program" ]; then
  note "there is no $program"
  exit 1
fi
"$program" --version >>"$log"

# build_plugin FILE SOURCE OPTIONS...: builds FILE from a source of tests/plugins. FILE appears whole,
# since another run of this script may be using it.
build_plugin() {
  local file=$1 source=$repository/tests/plugins/$2
  shift 2
  cc -shared -fPIC -D_DEFAULT_SOURCE "-I$repository/harness/api" "-I$repository/harness" \
    "-I$repository" -o "$file.$$" "$source" "$@"
  mv "$file.$$" "$file"
}

fake_device=("$repository"/tests/fake_gpu/{fake_device,queue}.c)

# What is swept, and what stands for it without a GPU.
families=$(variants fused | sed 's/fused:auto,//')
all=$(variants cudnn),$(variants fused),cuda_step
all=${all/cudnn:auto,/} # times all others in each case: tests-slow has it
all=${all/cudnn:persist_dynamic,/}
stand_in=gpu_fault_$dry fake=() stand=(--call-limit "$call_limit") tune=()
if [ -n "$dry" ]; then
  build_plugin "$build/$stand_in.so" gpu_fault.c "-DFAULT=$dry" "${fake_device[@]}"
  grid >"$scratch/grid.txt"
  attempt 0 plan of the grid -- "$program" --plan --cases "$scratch/grid.txt"
  fake=(--plugin "$build/$stand_in.so" --where 'T*B*H<=20000')
  stand+=(--plugin "$build/$stand_in.so" --impl "$stand_in")
elif ! "$program" --list --impl cuda_step -T 1 -B 1 -H 1 | tee -a "$log" |
  grep ' ok$' >/dev/null; then
  tail -1 "$log" >&2
  note "there is no GPU to check"
  exit 77
fi

# versions: logs the versions of everything that is installed, before anything is measured. Fails
# where the program does: attempt switches `set -e` off.
versions() {
  "$program" --version || return
  "$program" --list -T 3 -B 2 -H 8 --dtype f32,f16 "${fake[@]:0:2}" || return
  nvidia-smi -L || true
  compute-sanitizer --version || true
}

# kill_a_worker PID NAME: ends the worker of a running sweep into scratch, once its first case runs:
# the record begins when the device has been asked, for which there was a worker too. Fails when it finds none.
kill_a_worker() {
  local worker=''
  for _ in $(seq 300); do
    [ ! -s "$scratch/$2/run.jsonl" ] || worker=$(pgrep -P "$1" -f -- '--worker' | tail -1) || true
    [ -z "$worker" ] || break
    sleep 0.1
  done
  sleep 1 # the case takes longer
  [ -n "$worker" ] && kill -KILL "$worker"
}

# verdicts_are NAME VERDICTS WORDS: whether the rows of a run in scratch have these verdicts, in their order.
verdicts_are() {
  local said
  said=$(sed -n 's/.*"kind":"row".*"verdict":"\([a-z]*\)".*/\1/p' "$scratch/$1/run.jsonl" | paste -sd,)
  echo "$3: $said"
  [ "$said" = "$2" ]
}

# faults: each costs the row of its own case, and the case after it runs.
faults() {
  local impl=cuda_step small=T5_B2_I4_H8/f32 slow=T1024_B16_I512_H512/f32 pid
  local illegal=bad_address
  # No call here hangs, so that only a machine which is very busy comes near the limit.
  local common=(--case-time 0.05 --call-limit $((10 * call_limit)) --plots none "${fake[@]:0:2}")
  if [ -n "$dry" ]; then # whose memory is small
    impl=$stand_in slow=T512_B16_I128_H128/f32
  fi
  "$program" --sweep --out "$scratch/large" --case "$impl/T4096_B16384_I8192_H8192/f32/train" \
    --case "$impl/$small/infer" "${common[@]}" || true
  verdicts_are large oom,ok 'too large a case' || return 1
  "$program" --sweep --out "$scratch/killed" --case "$impl/$slow/train" \
    --case "$impl/$small/infer" "${common[@]}" &
  pid=$!
  kill_a_worker "$pid" killed || {
    echo "no worker was found to kill; is pgrep installed?"
    wait "$pid" || true
    return 1
  }
  wait "$pid" || true
  # Who killed it says nothing about the case, which is run again.
  verdicts_are killed ok,ok 'a killed worker' || return 1
  if [ -n "$dry" ]; then
    illegal=gpu_fault_illegal_address
    build_plugin "$scratch/illegal.so" gpu_fault.c -DFAULT=illegal_address "${fake_device[@]}"
  else
    build_plugin "$scratch/illegal.so" bad_address.c
  fi
  "$program" --sweep --out "$scratch/illegal" --case "$illegal/T7_B2_I4_H8/f32/infer" \
    --case "$illegal/$small/infer" "${common[@]:0:6}" --plugin "$scratch/illegal.so" || true
  verdicts_are illegal error,ok 'an illegal address' && grep 'illegal memory access' "$scratch/illegal/run.jsonl" >/dev/null
}

# sanitize TOOL CODES ARGUMENTS...: small cases under a tool of compute-sanitizer, whose exit codes in
# CODES are no failure, but leave something to read.
sanitize() {
  local tool=$1 codes=$2 command=(env "SANITIZER=$1")
  shift 2
  [ -n "$dry" ] ||
    command=(compute-sanitizer --target-processes all --error-exitcode 86 --tool "$tool")
  [ -n "$dry" ] || [ "$tool" != memcheck ] || command+=(--padding 256) # finds what lands next door
  attempt 0 "$tool" -- conformance small --call-limit $((4 * call_limit)) --rows /dev/null \
    --codes "$codes" "$@" --log "$out/sanitizer.log" "${command[@]}"
}

# step NAME SECONDS CODES WORDS... -- COMMAND...: begin and attempt.
step() {
  begin "$1" "$2" || return 0
  shift 2
  attempt "$@"
}

ceilings() {
  timeout -k 20 "$allowed" "$program" --ceilings
}

# grid_sweep: the recurrent grid.
grid_sweep() {
  grid | swept run
}

# tuning: a step's time does not depend on T.
tuning() {
  local short
  mapfile -t short < <(sizes 128)
  tune=(--tune --tuned "$out/tuned.txt")
  lines fused:auto f16,f16/graph,f32/tf32,bf16,f32 "${short[@]}" | swept tuned
}

# builtin_cases NAME IMPLS: the builtin GPU cases on some implementations, into NAME.jsonl.
builtin_cases() {
  local name=$1 impls=$2 problems
  shift 2
  mapfile -t problems < <(
    sed 's/ *#.*//; /^$/d' bench/cases/gpu.txt
    [ -z "$dry" ] || echo T4_B2_H8
  )
  lines "$impls" f16,f32/tf32,bf16,f32 "${problems[@]}" | swept "$name" "$@"
}

# pytorch: PyTorch's nn.LSTM on the builtin cases. Where Python has no headers, the plug-in was not built, and a
# script of PyTorch's own takes the times of f16 into torch.csv, without a check of results.
pytorch() {
  local problem cases=()
  if [ -n "$dry" ] || [ -e "$build/frameworks/bench_lstm_pytorch_cuda.so" ]; then
    builtin_cases pytorch pytorch_cuda --framework pytorch_cuda
    return
  fi
  for problem in $(sed 's/ *#.*//; /^$/d' bench/cases/gpu.txt); do
    cases+=("$problem/f16/infer" "$problem/f16/infer/graph" "$problem/f16/train")
  done
  timeout -k 20 "$allowed" python3 bench/frameworks/torch_events.py "${cases[@]}" >"$out/torch.csv"
}

# profiled FAMILY: what bounds the forward kernel of a family, once.
profiled() {
  local case=fused:$1/T128_B16_H512/f16/infer command=(ncu --set detailed --profile-from-start off)
  [ -z "$dry" ] || case=$stand_in/T5_B2_H8/f32/infer command=()
  timeout -k 20 "$allowed" "${command[@]}" "$program" --profile "$case" --profile-calls 1 \
    "${fake[@]:0:2}"
}

# parts: what each part of a step costs. Four programs are compiled, side by side. Without a device, what an
# H100 printed stands for them.
parts() {
  local kinds=('' -DLB_FUSED_PRODUCT=0 -DLB_FUSED_EXCHANGE=0 -DLB_FUSED_TRACE) options pass
  if [ -n "$dry" ]; then
    echo try_fused whole steps
    cat results/h100/try_fused.txt
    return
  fi
  for options in "${kinds[@]}"; do
    # shellcheck disable=SC2086 # no word where there is no option
    nvcc -O3 -arch=native -I. -Iharness $options -o "$scratch/try$options" cuda/try_fused.cu \
      cuda/fused/grid/pack.c cuda/fused/cluster/pack.c cuda/fused/common/weight_layout.c &
  done
  wait
  for options in "${kinds[@]}"; do
    for pass in forward backward; do
      echo "try_fused ${options:-whole steps}"
      timeout -k 20 "$allowed" "$scratch/try$options" cluster $pass 256 16 256,512 8 4 || return
      timeout -k 20 "$allowed" "$scratch/try$options" grid $pass 256 16 512,768,1024 || return
    done
  done
}

step versions 60 0 versions -- versions
step tiny 120 0 one tiny case each -- conformance tiny
step ceilings 120 "${dry:+1,}0" ceilings -- ceilings
step headline 180 0,124,130 sizes of the README -- grid_sweep
# First the algorithms that PyTorch's rule takes.
step frameworks 90 0,5,124,130 cudnn on the frameworks\' cases -- builtin_cases cudnn \
  cudnn:standard,cudnn:persist_static
step frameworks 90 0,5,77,124,130 PyTorch -- pytorch
step tune 120 0,124,130 tuning -- tuning
tune=()
if [ -z "$dry" ] && ! command -v ncu >/dev/null; then
  note "no ncu here"
else
  step ncu 60 0 ncu of cluster -- profiled cluster
  step ncu 60 0 ncu of grid -- profiled grid
fi
if [ -z "$dry" ] && ! command -v nvcc >/dev/null; then
  note "no nvcc here"
else
  step parts 120 0 parts of a step -- parts
  step parts 10 0 parts against the model -- python3 cuda/predictions.py "$log"
fi
step tests-own 180 0 conformance, own -- conformance own
step twice 180 0 the same bits twice -- conformance twice
step kernels 120 0 kernels by CUPTI -- conformance kernels
step faults 180 0 faults cost one row -- faults
if begin sweep "$budget"; then
  attempt 0,124,130 recurrent grid -- grid_sweep
  attempt 0 predictions -- python3 "$repository/cuda/predictions.py" "$out/run.jsonl"
fi
step tests-cudnn 180 0,77 conformance, cudnn -- conformance cudnn
step tests-modes 180 0 conformance, modes -- conformance modes
if [ -z "$dry" ] && ! command -v compute-sanitizer >/dev/null; then
  note "no compute-sanitizer here"
else
  ! begin sanitizer-memcheck 180 || sanitize memcheck 0
  if begin sanitizer-racecheck 120; then
    allowed=$((allowed / 2)) # for each of the two
    sanitize racecheck 0 --except fused:cluster
    # It orders its swapped sums by remote stores and their mbarrier, which the tool may not follow.
    sanitize racecheck 0,86 --only fused:cluster
  fi
  ! begin sanitizer-synccheck 120 || sanitize synccheck 0
fi
step tests-slow 180 0,77 conformance, slow -- conformance slow
note "left in $out: $(cd "$out" && echo *)"
exit $failed
