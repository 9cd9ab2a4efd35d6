# What `cmake --install` puts where: the header, both libraries, the licence, the files by which
# pkg-config and find_package() find them, and the program with its manual page and completions.
# None of them contains the prefix, so that an installed tree can be moved. The components are the
# Debian packages of cmake/debian.cmake.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tegula)

install(FILES include/tegula/tegula.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tegula
  COMPONENT libtegula-dev)
install(TARGETS tegula_shared tegula_static EXPORT tegulaTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT libtegula0 NAMELINK_COMPONENT libtegula-dev
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT libtegula-dev
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/tegula)

install(EXPORT tegulaTargets NAMESPACE tegula:: DESTINATION ${package_dir} COMPONENT libtegula-dev)
configure_package_config_file(cmake/tegulaConfig.cmake.in tegulaConfig.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(tegulaConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/tegulaConfig.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/tegulaConfigVersion.cmake DESTINATION ${package_dir}
  COMPONENT libtegula-dev)

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
foreach(dir LIBDIR INCLUDEDIR) # they may be absolute
  set(TEGULA_PC_${dir} ${CMAKE_INSTALL_${dir}})
  if(NOT IS_ABSOLUTE "${CMAKE_INSTALL_${dir}}")
    set(TEGULA_PC_${dir} "\${prefix}/${CMAKE_INSTALL_${dir}}")
  endif()
endforeach()
configure_file(cmake/tegula.pc.in tegula.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/tegula.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
  COMPONENT libtegula-dev)

if(TARGET tegula_blas)
  configure_file(cmake/tegula_blas.pc.in tegula_blas.pc @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/tegula_blas.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
    COMPONENT libtegula-blas)
  install(FILES shims/blas/tegula_blas.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tegula
    COMPONENT libtegula-blas)
endif()

if(TEGULA_TOP_LEVEL AND TEGULA_PROGRAM)
  install(TARGETS tegula_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tegula)
  install(FILES packaging/completion.bash RENAME tegula
    DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/bash-completion/completions COMPONENT tegula)
  install(FILES packaging/completion.zsh RENAME _tegula
    DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/zsh/site-functions COMPONENT tegula)
  if(TEGULA_MANUAL)
    install(FILES ${TEGULA_MANUAL} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  endif()
endif()
# An archive of compiled kernels is a package of its own for each architecture: tegula-kernels-sm90a.
set(TEGULA_KERNELS "" CACHE FILEPATH "An archive that `tegula warm --archive` made, named ARCH.kernels")
if(TEGULA_KERNELS)
  get_filename_component(kernels_arch "${TEGULA_KERNELS}" NAME_WE)
  string(REPLACE "_" "" kernels_package "tegula-kernels-${kernels_arch}")
  install(FILES ${TEGULA_KERNELS} DESTINATION lib/tegula COMPONENT ${kernels_package})
endif()

if(TEGULA_TOP_LEVEL)
  include(cmake/debian.cmake)
  # The last step records what was installed; `make uninstall` runs the component "uninstall".
  set(records "set(TEGULA_RECORDS \"${PROJECT_BINARY_DIR}/installed\")")
  install(CODE "${records}\nset(TEGULA_LIBDIR \"${CMAKE_INSTALL_LIBDIR}\")")
  install(SCRIPT cmake/after_install.cmake)
  install(CODE "${records}" COMPONENT uninstall EXCLUDE_FROM_ALL)
  install(SCRIPT cmake/uninstall.cmake COMPONENT uninstall EXCLUDE_FROM_ALL)
endif()
