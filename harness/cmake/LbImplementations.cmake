# lb_implementation(<name> SOURCES <file>... [VARIANTS <macro> <header>] [NEEDS <FEATURE>...]
#                   [LINK <target>...] [LOADS <library>])
#   Registers an implementation: <file> defines `const struct lb_impl lb_impl_<name>`. When one of
#   the features it needs is missing, it is not built, and its rows name the feature; <header>, of this
#   folder, defines <macro>, the initializer of its list of variants. <library> is the
#   struct lb_shared_library that its cases need, which worker processes load.
# lb_write_implementation_table()
#   Makes the library lb_impls from all implementations and the table of them, lb_impl_table
#   (registry.h), which it generates.

function(lb_implementation name)
  cmake_parse_arguments(arg "" "LOADS" "SOURCES;VARIANTS;NEEDS;LINK" ${ARGN})
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_SOURCES)
    message(FATAL_ERROR "lb_implementation(${name}): SOURCES are missing or an argument is unknown")
  endif()
  set(why "")
  foreach(feature IN LISTS arg_NEEDS)
    if(NOT LB_HAVE_${feature} AND NOT why)
      set(why "${LB_WHY_${feature}}")
    endif()
  endforeach()

  set(variants NULL)
  if(arg_VARIANTS)
    list(POP_FRONT arg_VARIANTS macro header)
    set(variants "(const char *const[])${macro}")
    set_property(GLOBAL APPEND PROPERTY LB_IMPL_DECLARATIONS "#include \"impls/${header}\"")
  endif()
  if(why)
    set(row "    {\"${name}\", ${variants}, NULL, \"${why}\", NULL},")
  else()
    set(library NULL)
    if(arg_LOADS)
      set(library &${arg_LOADS})
      set_property(GLOBAL APPEND PROPERTY LB_IMPL_DECLARATIONS
                   "extern struct lb_shared_library ${arg_LOADS}\;")
    endif()
    set(row "    {\"${name}\", ${variants}, &lb_impl_${name}, NULL, ${library}},")
    set_property(GLOBAL APPEND PROPERTY LB_IMPL_DECLARATIONS
                 "extern const struct lb_impl lb_impl_${name}\;")
    foreach(source IN LISTS arg_SOURCES)
      set_property(GLOBAL APPEND PROPERTY LB_IMPL_SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/${source})
    endforeach()
    set_property(GLOBAL APPEND PROPERTY LB_IMPL_LINK ${arg_LINK})
  endif()
  set_property(GLOBAL APPEND PROPERTY LB_IMPL_ROWS "${row}")
endfunction()

function(lb_write_implementation_table)
  get_property(sources GLOBAL PROPERTY LB_IMPL_SOURCES)
  get_property(link GLOBAL PROPERTY LB_IMPL_LINK)
  get_property(declarations GLOBAL PROPERTY LB_IMPL_DECLARATIONS)
  get_property(rows GLOBAL PROPERTY LB_IMPL_ROWS)
  list(REMOVE_DUPLICATES sources) # implementations may share one
  list(JOIN declarations "\n" declarations)
  list(JOIN rows "\n" rows)
  set(table ${CMAKE_CURRENT_BINARY_DIR}/impl_table.c)
  file(CONFIGURE OUTPUT ${table} @ONLY CONTENT
"/* Written by the build from impls/CMakeLists.txt: every implementation, built or not. */
#include \"model/registry.h\"

@declarations@

const struct lb_registration lb_impl_table[] = {
@rows@
    {NULL, NULL, NULL, NULL, NULL},
};
")
  add_library(lb_impls STATIC ${sources} ${table})
  target_include_directories(lb_impls PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(lb_impls PUBLIC lb_harness PRIVATE lb_warnings ${link} m)
endfunction()
