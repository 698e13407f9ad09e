# Sourced by bench/quickstart.sh: a CUDA toolkit where there is none. A machine needs just a driver.

# install_cuda PREFIX: nvcc, runtime, cuBLAS, cuDNN, NVTX and CUPTI as NVIDIA's Python wheels, once.
# All of CUDA comes in one minor version, the newest that the driver can run; it must be able to run
# 13, since wheels of 12 have no nvcc. Without a driver it is the newest there is.
install_cuda() {
  local newest pinned=() name
  newest=$(nvidia-smi 2>/dev/null | sed -n 's/.*CUDA Version: *\([0-9]*\.[0-9]*\).*/\1/p' || true)
  if [ -n "$newest" ] && [ "${newest%%.*}" -lt 13 ]; then
    echo "the driver here runs CUDA $newest at most, and the wheels are of 13: get a newer driver," \
      "or install a CUDA toolkit of that version and run this without --cuda" >&2
    return 1
  fi
  if [ ! -x "$1/nvidia/cu13/bin/nvcc" ]; then
    for name in nvidia-cuda-nvcc nvidia-cuda-runtime nvidia-cuda-cccl nvidia-cuda-cupti \
      nvidia-cuda-nvrtc nvidia-nvtx; do
      pinned+=("$name${newest:+==$newest.*}")
    done
    echo "fetching a CUDA toolkit${newest:+, version $newest,} into $1 (about 2 GB)" >&2
    python3 -m pip install --quiet --target "$1" --no-compile \
      "${pinned[@]}" nvidia-cublas nvidia-cudnn-cu13
    chmod +x "$1"/nvidia/cu13/bin/* "$1"/nvidia/cu13/nvvm/bin/* 2>/dev/null || true
  fi
  export CUDACXX=$1/nvidia/cu13/bin/nvcc
  export CMAKE_PREFIX_PATH=$1${CMAKE_PREFIX_PATH:+:$CMAKE_PREFIX_PATH}
  export LD_LIBRARY_PATH=$1/nvidia/cu13/lib:$1/nvidia/cudnn/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
}
