# Sourced by bench/quickstart.sh: fetches a CUDA toolkit for a machine that has a driver and no toolkit.

# newest_cuda: prints the newest version of CUDA that the driver can run, as nvidia-smi says it:
# "CUDA Version: 13.0", from driver 610 on "CUDA UMD Version: 13.5". Prints nothing without a driver.
newest_cuda() {
  nvidia-smi 2>/dev/null | sed -nE 's/.*CUDA (UMD )?Version: *([0-9]+\.[0-9]+).*/\2/p' || true
}

# install_cuda PREFIX: fetches nvcc, the runtime, cuBLAS, cuDNN, NVTX and CUPTI as NVIDIA's Python
# wheels into PREFIX, unless they are there, and sets the variables by which CMake finds them.
# CUDA is the newest 13 that the driver can run, since the wheels of 12 have no nvcc.
install_cuda() {
  local newest below=14 wheels=() name
  newest=$(newest_cuda)
  if [ -n "$newest" ] && [ "${newest%%.*}" -lt 13 ]; then
    echo "the driver here runs CUDA $newest at most, and the wheels are of 13: get a newer driver," \
      "or install a CUDA toolkit of that version and run this without --cuda" >&2
    return 1
  fi
  if [ "${newest%%.*}" = 13 ]; then
    below=13.$((${newest#*.} + 1))
  fi
  if [ ! -x "$1/nvidia/cu13/bin/nvcc" ]; then
    for name in nvidia-cuda-nvcc nvidia-cuda-runtime nvidia-cuda-cccl nvidia-cuda-cupti \
      nvidia-cuda-nvrtc nvidia-nvtx; do
      wheels+=("$name>=13,<$below")
    done
    echo "fetching a CUDA toolkit of a version below $below into $1 (about 2 GB)" >&2
    python3 -m pip install --quiet --target "$1" --no-compile \
      "${wheels[@]}" "nvidia-cublas>=13,<14" nvidia-cudnn-cu13
    chmod +x "$1"/nvidia/cu13/bin/* "$1"/nvidia/cu13/nvvm/bin/* 2>/dev/null || true
  fi
  export CUDACXX=$1/nvidia/cu13/bin/nvcc
  export CMAKE_PREFIX_PATH=$1${CMAKE_PREFIX_PATH:+:$CMAKE_PREFIX_PATH}
  export LD_LIBRARY_PATH=$1/nvidia/cu13/lib:$1/nvidia/cudnn/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
}
