# SPDX-License-Identifier: Apache-2.0
#
# Libraries with the names of other libraries, which compute with Tegula (docs/drop-ins.md):
#   tegula_blas    libtegula_blas.so, for LD_PRELOAD in programs that use a BLAS
#   tegula_cublas  libtegula_cublas.so, the same for cuBLAS (docs/cublas.md)
add_subdirectory(shims/cublas)
add_library(tegula_blas SHARED
  shims/blas/blas_batch.c
  shims/blas/blas_device.c
  shims/blas/blas_gemm.c
  shims/blas/blas_gemv.c
  shims/blas/blas_gpu.c
  shims/blas/blas_multiply.c
  shims/blas/blas_report.c)
target_compile_definitions(tegula_blas PRIVATE _GNU_SOURCE)
target_link_libraries(tegula_blas PRIVATE tegula_warnings tegula_shared ${TEGULA_LINK})
set(exports ${PROJECT_SOURCE_DIR}/shims/blas/blas_exports.map)
# nodelete: the device is never closed.
target_link_options(tegula_blas PRIVATE -Wl,--version-script=${exports} -Wl,-z,nodelete)
# The installed library finds libtegula.so beside it.
set_target_properties(tegula_blas PROPERTIES LINK_DEPENDS ${exports}
  LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR} INSTALL_RPATH "$ORIGIN")
if(TEGULA_INSTALL)
  include(GNUInstallDirs)
  install(TARGETS tegula_blas LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT libtegula-blas)
endif()
