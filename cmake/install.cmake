# What `cmake --install` puts where: the header, both libraries, the program, and the files by which
# pkg-config and CMake's find_package() find them. Nothing in them names the prefix, so that an
# installed tree can be moved.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tegula)

install(FILES include/tegula/tegula.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tegula)
install(TARGETS tegula_shared tegula_static tegula_program EXPORT tegulaTargets
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR}
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})

install(EXPORT tegulaTargets NAMESPACE tegula:: DESTINATION ${package_dir})
configure_package_config_file(cmake/tegulaConfig.cmake.in tegulaConfig.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(tegulaConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/tegulaConfig.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/tegulaConfigVersion.cmake DESTINATION ${package_dir})

# pkg-config: "m" becomes "-lm"; flags stay as they are.
set(private_libs)
foreach(item ${TEGULA_LINK})
  if(NOT item MATCHES "^-")
    set(item "-l${item}")
  endif()
  list(APPEND private_libs ${item})
endforeach()
list(JOIN private_libs " " TEGULA_PC_LIBS_PRIVATE)
file(RELATIVE_PATH TEGULA_PC_PREFIX
  ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(cmake/tegula.pc.in tegula.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/tegula.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
