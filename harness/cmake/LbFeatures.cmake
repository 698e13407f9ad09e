# Optional libraries. Each feature is an option LB_<NAME> of AUTO, ON or OFF; AUTO takes what is
# there, ON fails loudly when it is missing. Afterwards LB_HAVE_<NAME> says whether it is there,
# LB_WHY_<NAME> why it is not (a half sentence that rows of missing implementations carry), and the
# target lb::<name> is what to link.

set(LB_FEATURES ONEDNN CUDA CUDNN NVTX CUPTI)
set(LB_TITLE_ONEDNN "oneDNN")
set(LB_TITLE_CUDA "CUDA with cuBLAS")
set(LB_TITLE_CUDNN "cuDNN")
set(LB_TITLE_NVTX "NVTX 3")
set(LB_TITLE_CUPTI "CUPTI")
set(LB_CUDA_ARCHITECTURES "80-real;90a-real;100-real;120" CACHE STRING
    "GPU architectures to build for; the last one without -real keeps PTX for later ones")
foreach(feature IN LISTS LB_FEATURES)
  set(LB_${feature} AUTO CACHE STRING "Use ${LB_TITLE_${feature}}: AUTO, ON or OFF")
  set_property(CACHE LB_${feature} PROPERTY STRINGS AUTO ON OFF)
endforeach()

# lb_cuda_prefixes(<variable>): where CUDA and its libraries may lie: toolkits, then the folders that
# NVIDIA's Python wheels make under site-packages (nvidia/cu13, nvidia/cudnn, ...), those of
# CMAKE_PREFIX_PATH first.
function(lb_cuda_prefixes variable)
  set(sites ${CMAKE_PREFIX_PATH})
  find_program(LB_PYTHON NAMES python3)
  mark_as_advanced(LB_PYTHON)
  if(LB_PYTHON)
    execute_process(COMMAND ${LB_PYTHON} -c "import site, sysconfig; print(*[
sysconfig.get_paths()['purelib'], *site.getsitepackages(), site.getusersitepackages()], sep=';')"
      OUTPUT_VARIABLE packages OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    list(APPEND sites ${packages})
  endif()
  set(wheels "")
  foreach(place IN LISTS sites)
    file(GLOB found LIST_DIRECTORIES TRUE ${place}/nvidia/*)
    list(SORT found ORDER DESCENDING) # cu13 stands for the newest of its kind
    list(APPEND wheels ${found})
  endforeach()
  list(REMOVE_DUPLICATES wheels)
  set(${variable} ${CMAKE_PREFIX_PATH} $ENV{CUDA_HOME} $ENV{CUDA_PATH} /usr/local/cuda ${wheels}
      PARENT_SCOPE)
endfunction()

# lb_library(<name> <header> <libraries>|"" <hint>...): makes lb::<name> of a header and the first
# library of that name (none for header-only ones), sets found_<name>. A name may be a file's, such
# as libcudnn.so.9: wheels have no link without a version. Headers count as system headers.
function(lb_library name header libraries)
  find_path(LB_${name}_INCLUDE ${header} HINTS ${ARGN} PATH_SUFFIXES include)
  mark_as_advanced(LB_${name}_INCLUDE)
  set(found ${LB_${name}_INCLUDE})
  if(libraries)
    find_library(LB_${name}_LIBRARY NAMES ${libraries} HINTS ${ARGN} PATH_SUFFIXES lib64 lib)
    mark_as_advanced(LB_${name}_LIBRARY)
    if(NOT LB_${name}_LIBRARY)
      set(found FALSE)
    endif()
  endif()
  if(found)
    add_library(lb_found_${name} INTERFACE)
    add_library(lb::${name} ALIAS lb_found_${name})
    target_include_directories(lb_found_${name} SYSTEM INTERFACE ${LB_${name}_INCLUDE})
    if(libraries)
      target_link_libraries(lb_found_${name} INTERFACE ${LB_${name}_LIBRARY})
    endif()
    set(found_${name} TRUE PARENT_SCOPE)
  else()
    set(found_${name} FALSE PARENT_SCOPE)
  endif()
endfunction()

# lb_find_cuda(<hint>...): compiler, static runtime and cuBLAS; all of them, or no CUDA. Sets
# found_cuda and LB_CUDA_COMPILER; the targets are lb::cudart and lb::cublas.
function(lb_find_cuda)
  find_program(LB_CUDA_COMPILER NAMES nvcc HINTS ENV CUDACXX ${ARGN} PATH_SUFFIXES bin)
  mark_as_advanced(LB_CUDA_COMPILER)
  lb_library(cudart cuda_runtime_api.h "cudart_static" ${ARGN})
  # The major version must be that of the headers, whatever else is installed.
  set(major 13)
  if(EXISTS "${LB_cudart_INCLUDE}/cuda_runtime_api.h")
    file(STRINGS ${LB_cudart_INCLUDE}/cuda_runtime_api.h version REGEX "define CUDART_VERSION ")
    string(REGEX MATCH "[0-9]+" version "${version}")
    math(EXPR major "0${version} / 1000")
  endif()
  lb_library(cublas cublas_v2.h "libcublas.so.${major};cublas" ${ARGN})
  set(all TRUE)
  if(NOT LB_CUDA_COMPILER OR NOT found_cudart OR NOT found_cublas)
    set(all FALSE)
  endif()
  set(found_cuda ${all} PARENT_SCOPE)
endfunction()

function(lb_find_features)
  # Each finder sets found_<name>.
  lb_cuda_prefixes(prefixes)
  lb_find_cuda(${prefixes})
  lb_library(onednn dnnl.h dnnl)
  lb_library(cudnn cudnn.h "libcudnn.so.9;cudnn" ${prefixes})
  lb_library(nvtx nvtx3/nvToolsExt.h "" ${prefixes})
  set(cupti_prefixes ${prefixes})
  list(TRANSFORM cupti_prefixes APPEND /extras/CUPTI)
  lb_library(cupti cupti.h "cupti;libcupti.so.13;libcupti.so.12" ${prefixes} ${cupti_prefixes})

  foreach(feature IN LISTS LB_FEATURES)
    string(TOLOWER ${feature} name)
    set(title ${LB_TITLE_${feature}})
    set(have OFF)
    set(why "")
    if(NOT LB_${feature} MATCHES "^(AUTO|ON|OFF)$")
      message(FATAL_ERROR "LB_${feature}=${LB_${feature}}: allowed are AUTO, ON, OFF")
    elseif(LB_${feature} STREQUAL "OFF")
      set(why "built without ${title} (switched off)")
    elseif(found_${name} AND (NOT feature MATCHES "^(CUDNN|CUPTI)$" OR LB_HAVE_CUDA))
      set(have ON)
    elseif(LB_${feature} STREQUAL "ON")
      message(FATAL_ERROR "LB_${feature}=ON: ${title} was not found; "
                          "install it, add its prefix to CMAKE_PREFIX_PATH, or use AUTO")
    else()
      set(why "built without ${title} (not found)")
      if(found_${name})
        set(why "built without ${title} (it needs CUDA)")
      endif()
    endif()
    set(LB_HAVE_${feature} ${have})
    set(LB_HAVE_${feature} ${have} PARENT_SCOPE)
    set(LB_WHY_${feature} "${why}" PARENT_SCOPE)
  endforeach()
endfunction()

function(lb_print_features)
  foreach(feature IN LISTS LB_FEATURES)
    if(LB_HAVE_${feature})
      message(STATUS "${LB_TITLE_${feature}}: found")
    else()
      message(STATUS "${LB_TITLE_${feature}}: ${LB_WHY_${feature}}")
    endif()
  endforeach()
endfunction()
