# Writes build_info.h: what the environment record says of the build.
cmake_minimum_required(VERSION 3.22)
find_package(Git QUIET)
set(commit "unknown")
set(dirty 0)
if(GIT_FOUND)
  execute_process(COMMAND ${GIT_EXECUTABLE} rev-parse --short=12 HEAD
    WORKING_DIRECTORY ${SOURCE_DIR} OUTPUT_VARIABLE out RESULT_VARIABLE failed
    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(NOT failed)
    set(commit ${out})
    execute_process(COMMAND ${GIT_EXECUTABLE} status --porcelain --untracked-files=no
      WORKING_DIRECTORY ${SOURCE_DIR} OUTPUT_VARIABLE changes ERROR_QUIET)
    if(changes)
      set(dirty 1)
    endif()
  endif()
endif()
string(STRIP "${FLAGS}" flags)
if(SANITIZE)
  string(APPEND flags " -fsanitize=${SANITIZE}")
endif()
file(CONFIGURE OUTPUT ${OUT} @ONLY CONTENT
"/* Written by the build. */
#define LB_VERSION \"@VERSION@\"
#define LB_COMMIT \"@commit@\"
#define LB_COMMIT_DIRTY @dirty@
#define LB_COMPILER \"@COMPILER@\"
#define LB_BUILD_TYPE \"@BUILD_TYPE@\"
#define LB_FLAGS \"@flags@\"
")
