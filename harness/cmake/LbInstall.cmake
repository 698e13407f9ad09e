# What is installed together with the program, and the Debian package that `cpack -G DEB` makes of it all.
include(CMakePackageConfigHelpers)

# What a plug-in includes: impl.h and all that it includes.
set(api ${PROJECT_SOURCE_DIR}/harness/api)
install(FILES ${api}/impl.h ${api}/problem.h ${api}/dtype.h ${api}/int8.h ${api}/status.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/bench-lstm)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/tests/plugins/example/
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bench-lstm/example-plugin)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/README.md
        ${PROJECT_SOURCE_DIR}/CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})

# For authors of plug-ins: a CMake package and a pkg-config file. Neither depends on the architecture,
# and both find the prefix from where they lie, so an installed tree may be moved.
file(STRINGS ${api}/impl.h line REGEX "#define LB_IMPL_ABI ")
string(REGEX MATCH "[0-9]+" LB_IMPL_ABI "${line}")
set(cmake_folder ${CMAKE_INSTALL_DATADIR}/cmake/bench-lstm)
set(pkgconfig_folder ${CMAKE_INSTALL_DATADIR}/pkgconfig)
configure_package_config_file(
  ${PROJECT_SOURCE_DIR}/harness/cmake/bench-lstm-config.cmake.in
  ${PROJECT_BINARY_DIR}/install/bench-lstm-config.cmake
  INSTALL_DESTINATION ${cmake_folder}
  PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_BINDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/install/bench-lstm-config-version.cmake
  COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES ${PROJECT_BINARY_DIR}/install/bench-lstm-config.cmake
        ${PROJECT_BINARY_DIR}/install/bench-lstm-config-version.cmake
        DESTINATION ${cmake_folder})
file(RELATIVE_PATH LB_PREFIX_FROM_PC /${pkgconfig_folder} /)
string(REGEX REPLACE "/$" "" LB_PREFIX_FROM_PC "${LB_PREFIX_FROM_PC}")
configure_file(${PROJECT_SOURCE_DIR}/harness/cmake/bench-lstm.pc.in
  ${PROJECT_BINARY_DIR}/install/bench-lstm.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/install/bench-lstm.pc DESTINATION ${pkgconfig_folder})

# lb_debian_packages(<variable> <soname>...): the packages that have these libraries, with the versions
# that they say programs need, from the lists that dpkg-shlibdeps reads too. Libraries that no package
# has, such as those of NVIDIA's wheels, are left out.
function(lb_debian_packages variable)
  file(GLOB lists /var/lib/dpkg/info/*.shlibs)
  set(packages "")
  foreach(soname IN LISTS ARGN)
    string(REGEX REPLACE "^(.*)\\.so\\.(.*)$" "\\1 \\2 " start "${soname}")
    foreach(list IN LISTS lists)
      file(STRINGS ${list} lines)
      foreach(line IN LISTS lines)
        string(FIND "${line}" "${start}" at)
        if(at EQUAL 0)
          string(LENGTH "${start}" length)
          string(SUBSTRING "${line}" ${length} -1 package)
          list(APPEND packages "${package}")
        endif()
      endforeach()
    endforeach()
  endforeach()
  list(REMOVE_DUPLICATES packages)
  list(JOIN packages ", " packages)
  set(${variable} "${packages}" PARENT_SCOPE)
endfunction()

# dpkg-shlibdeps reads the libraries that the program is linked with from the program itself. Those that
# its workers load are added by hand: without them it runs, but not all implementations.
lb_debian_packages(CPACK_DEBIAN_PACKAGE_DEPENDS ${LB_LOADED_OPENBLAS} ${LB_LOADED_ONEDNN}
                   ${LB_LOADED_CUBLAS} ${LB_LOADED_CUDNN})
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME bench-lstm)
set(CPACK_PACKAGE_CONTACT "the bench-lstm authors <bench-lstm@example.org>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# It draws the pictures; without it a sweep leaves records and tables.
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS gnuplot-nox)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "cmake, pkg-config, valgrind")
include(CPack)
