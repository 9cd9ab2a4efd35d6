# SPDX-License-Identifier: Apache-2.0
#
# Libraries with the names of other libraries, which compute with Tegula (docs/drop-ins.md):
#   tegula_blas    libtegula_blas.so, for LD_PRELOAD in programs that use a BLAS
#   tegula_cublas  libtegula_cublas.so, the same for cuBLAS (docs/cublas.md). It needs neither the CUDA
#                  toolkit nor cuBLAS to build
if(TEGULA_INSTALL)
  include(GNUInstallDirs)
endif()

# tgl_shim(NAME EXPORTS COMPONENT SOURCE...): a library that exports the functions in this file, and its
# object files for tests that see its calls. COMPONENT: the Debian package.
function(tgl_shim name exports component)
  add_library(${name}_objects OBJECT ${ARGN})
  target_compile_definitions(${name}_objects PRIVATE _GNU_SOURCE)
  target_include_directories(${name}_objects PRIVATE ${PROJECT_SOURCE_DIR}/include)
  target_compile_options(${name}_objects PRIVATE
    "SHELL:-include ${PROJECT_SOURCE_DIR}/src/base/strict_math.h")
  target_link_libraries(${name}_objects PRIVATE tegula_warnings)
  add_library(${name} SHARED $<TARGET_OBJECTS:${name}_objects>)
  target_link_libraries(${name} PRIVATE tegula_shared ${TEGULA_LINK})
  # nodelete: devices are never closed.
  target_link_options(${name} PRIVATE -Wl,--version-script=${exports} -Wl,-z,nodelete)
  # It finds libtegula.so beside it, installed and in the build folder, which may be moved or copied. Otherwise
  # CMake ends the build's rpath with an empty entry, which the loader takes for the current folder.
  set_target_properties(${name} PROPERTIES LINKER_LANGUAGE C LINK_DEPENDS ${exports}
    LIBRARY_OUTPUT_DIRECTORY $<TARGET_FILE_DIR:tegula_shared>
    BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN"
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
  if(TEGULA_INSTALL)
    install(TARGETS ${name} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${component})
  endif()
endfunction()

set(blas ${PROJECT_SOURCE_DIR}/shims/blas)
tgl_shim(tegula_blas ${blas}/blas_exports.map libtegula-blas
  ${blas}/blas_batch.c ${blas}/blas_device.c ${blas}/blas_gemm.c ${blas}/blas_gemv.c ${blas}/blas_gpu.c
  ${blas}/blas_multiply.c ${blas}/blas_report.c ${blas}/blas_thread_calls.c ${blas}/blas_threads.c
  ${blas}/blas_trace.c ${blas}/blas_unaligned.c)

# The functions by which threadpoolctl finds tegula_blas; openblas_names.c says why they are a library of
# their own. It calls tegula_blas, which is loaded with it.
add_library(tegula_openblas_names SHARED ${blas}/openblas_names.c)
set_target_properties(tegula_openblas_names PROPERTIES OUTPUT_NAME openblas_tegula
  LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
target_compile_definitions(tegula_openblas_names PRIVATE _GNU_SOURCE)
target_link_libraries(tegula_openblas_names PRIVATE tegula_warnings ${CMAKE_DL_LIBS})
target_link_libraries(tegula_blas PRIVATE -Wl,--no-as-needed tegula_openblas_names)
if(TEGULA_INSTALL)
  install(TARGETS tegula_openblas_names LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT libtegula-blas)
endif()

# A whole BLAS for Debian's alternative of libblas.so.3: the functions of tegula_blas, and all others by
# OpenBLAS. A library that only has OpenBLAS's SONAME stands for it here, so that building needs no OpenBLAS.
if(TEGULA_INSTALL AND CMAKE_LIBRARY_ARCHITECTURE)
  file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/openblas_soname.c CONTENT "typedef int tegula_empty;\n")
  add_library(tegula_openblas_soname SHARED ${PROJECT_BINARY_DIR}/openblas_soname.c)
  add_library(tegula_blas3 SHARED $<TARGET_OBJECTS:tegula_blas_objects>)
  foreach(target tegula_openblas_soname tegula_blas3)
    set_target_properties(${target} PROPERTIES LINKER_LANGUAGE C
      LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/blas3)
  endforeach()
  set_target_properties(tegula_openblas_soname PROPERTIES OUTPUT_NAME openblas SOVERSION 0)
  set_target_properties(tegula_blas3 PROPERTIES OUTPUT_NAME blas SOVERSION 3)
  target_link_libraries(tegula_blas3 PRIVATE tegula_shared ${TEGULA_LINK}
    -Wl,--no-as-needed tegula_openblas_names tegula_openblas_soname)
  target_link_options(tegula_blas3 PRIVATE -Wl,--version-script=${blas}/blas_exports.map -Wl,-z,nodelete)
  install(TARGETS tegula_blas3 LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/tegula-blas NAMELINK_SKIP
    COMPONENT libtegula-blas3 EXCLUDE_FROM_ALL)
endif()

set(cublas ${PROJECT_SOURCE_DIR}/shims/cublas)
tgl_shim(tegula_cublas ${cublas}/cublas_exports.map libtegula-cublas
  ${cublas}/cublas_fork.c ${cublas}/cublas_gemm.c ${cublas}/cublas_handles.c ${cublas}/cublas_lt.c ${cublas}/cublas_plans.c
  ${cublas}/cublas_real.c ${cublas}/cublas_serve.c ${cublas}/cublas_settings.c)

# libtegula_scalapack.so, for LD_PRELOAD in programs that use ScaLAPACK. It needs MPI, but no ScaLAPACK to build.
if(TARGET tegula_mpi)
  set(scalapack ${PROJECT_SOURCE_DIR}/shims/scalapack)
  tgl_shim(tegula_scalapack ${scalapack}/scalapack_exports.map tegula_mpi
    ${scalapack}/scalapack_gemm.c ${scalapack}/scalapack_grid.c)
  target_link_libraries(tegula_scalapack_objects PRIVATE MPI::MPI_C)
  target_link_libraries(tegula_scalapack PRIVATE tegula_mpi)
endif()
