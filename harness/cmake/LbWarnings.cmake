# lb_warnings: the one place that names compiler warnings; every target of the project links it.
add_library(lb_warnings INTERFACE)
set(both -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wvla)
target_compile_options(lb_warnings INTERFACE
  $<$<COMPILE_LANGUAGE:C,CXX>:${both}>
  $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes -Wmissing-prototypes>
  $<$<AND:$<BOOL:${LB_WERROR}>,$<COMPILE_LANGUAGE:C,CXX>>:-Werror>
  # nvcc's own host code breaks -Wpedantic and -Wconversion. A spill is worth a warning.
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra,-Wshadow -Xptxas=-warn-spills>
  $<$<AND:$<BOOL:${LB_WERROR}>,$<COMPILE_LANGUAGE:CUDA>>:-Werror=all-warnings>)
