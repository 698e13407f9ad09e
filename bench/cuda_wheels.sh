# Sourced by bench/quickstart.sh: a CUDA toolkit where there is none. A machine needs just a driver.

# install_cuda PREFIX: nvcc, runtime, cuBLAS, cuDNN, NVTX and CUPTI as NVIDIA's Python wheels, once.
# All of CUDA comes in one minor version, the newest that the driver can run.
install_cuda() {
  local newest='' pinned=() name
  if [ ! -x "$1/nvidia/cu13/bin/nvcc" ]; then
    newest=$(nvidia-smi 2>/dev/null | sed -n 's/.*CUDA Version: *\(13\.[0-9]*\).*/\1/p' || true)
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
