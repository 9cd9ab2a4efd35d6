# SPDX-License-Identifier: Apache-2.0
#
# The Debian packages that `make deb` writes with CPack. A package is a component of the install rules:
#   libtegula0        the shared library
#   libtegula-dev     the header, the static library, the files of pkg-config and find_package()
#   tegula            the program, its manual page and completions
#   libtegula-dist    libtegula_dist.so and its headers: products over several processes and GPUs
#   libtegula-blas    libtegula_blas.so, for LD_PRELOAD. It has a part of the names of BLAS only, and
#                     therefore provides neither libblas.so.3 nor libblas3
#   libtegula-blas3   a whole BLAS, by Debian's alternative of libblas.so.3: these functions, and OpenBLAS
#   tegula-kernels-ARCH  compiled kernels, if TEGULA_KERNELS names an archive
#   libtegula-cublas  libtegula_cublas.so, for LD_PRELOAD. It passes calls on to the program's cuBLAS
# The rules of this file are excluded from `cmake --install`.
set(packages libtegula0 libtegula-dev tegula libtegula-dist)
if(TARGET tegula_blas)
  list(APPEND packages libtegula-blas libtegula-cublas)
endif()
if(TARGET tegula_blas3)
  list(APPEND packages libtegula-blas3)
endif()
if(TEGULA_KERNELS)
  list(APPEND packages ${kernels_package})
endif()
set(TEGULA_MAINTAINER "Tegula developers <tegula@example.org>" CACHE STRING
  "Maintainer in the Debian packages, Name <address>")

# ---- Files that only packages have --------------------------------------------------------------------
# compressed(INPUT NAME): NAME.gz, without the name and time of the original.
set(documents ${PROJECT_BINARY_DIR}/debian)
set(compressed_files "")
function(compressed input name)
  add_custom_command(OUTPUT ${documents}/${name}.gz
    COMMAND ${CMAKE_COMMAND} -E copy ${input} ${documents}/${name}
    COMMAND gzip -9 -n -f ${documents}/${name} DEPENDS ${input} VERBATIM)
  set(compressed_files ${compressed_files} ${documents}/${name}.gz PARENT_SCOPE)
endfunction()
string(TIMESTAMP TEGULA_DATE "%a, %d %b %Y %H:%M:%S +0000" UTC) # SOURCE_DATE_EPOCH if it is set
configure_file(packaging/debian_changelog.in ${documents}/changelog.in @ONLY)
compressed(${documents}/changelog.in changelog.Debian)
compressed(${PROJECT_SOURCE_DIR}/CHANGELOG.md changelog)
set(changelogs ${compressed_files})
if(TEGULA_MANUAL)
  compressed(${TEGULA_MANUAL} tegula.1)
  install(FILES ${documents}/tegula.1.gz DESTINATION ${CMAKE_INSTALL_MANDIR}/man1
    COMPONENT tegula EXCLUDE_FROM_ALL)
endif()
add_custom_target(debian_files DEPENDS ${compressed_files})
if(TEGULA_MANUAL)
  add_dependencies(debian_files tegula_manual)
endif()
foreach(package ${packages})
  install(FILES packaging/debian_copyright RENAME copyright
    DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/${package} COMPONENT ${package} EXCLUDE_FROM_ALL)
  install(FILES ${changelogs}
    DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/${package} COMPONENT ${package} EXCLUDE_FROM_ALL)
endforeach()

# ---- The packages -------------------------------------------------------------------------------------
# describe(PACKAGE SECTION DEPENDS SUMMARY TEXT). DEPENDS is added to what dpkg-shlibdeps finds.
macro(describe package section depends summary text)
  string(TOUPPER ${package} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${package})
  set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${section})
  set(CPACK_DEBIAN_${upper}_PACKAGE_DEPENDS "${depends}")
  set(CPACK_DEBIAN_${upper}_DESCRIPTION "${summary}\n${text}")
endmacro()
set(library_depends "libtegula0 (= ${PROJECT_VERSION}-1)")
describe(libtegula0 libs "" "matrix multiplication on CPUs and NVIDIA GPUs"
"Tegula computes C := alpha*op(A)*op(B) + beta*C and epilogues on the CPU, on
NVIDIA GPUs, and in a simulator that runs the CUDA kernels on the host. It
loads NVIDIA's driver and NVRTC when a GPU is opened.")
describe(libtegula-dev libdevel "${library_depends}" "matrix multiplication on CPUs and NVIDIA GPUs (development)"
"The header, the static library, and the files of pkg-config and CMake for
programs that use libtegula0.")
describe(tegula science "" "multiply matrices on CPUs and NVIDIA GPUs (program)"
"The program multiplies matrices in NumPy's files, checks the library and
compares its speed with others, and explains how a product is computed.")
describe(libtegula-dist libs "${library_depends}" "matrix multiplication over several processes and GPUs"
"A library over libtegula0, and its headers, for matrices that are distributed
over the processes of a program. Between GPUs it needs NVIDIA's driver, NVRTC
and NCCL.")
describe(libtegula-blas libs "${library_depends}" "SGEMM and DGEMM of a program's BLAS computed by Tegula"
"A library for LD_PRELOAD that serves SGEMM, DGEMM, SGEMV, DGEMV and batches
of them. All other functions stay with the BLAS of the program. It is not a
whole BLAS.")
describe(libtegula-blas3 libs "libtegula-blas (= ${PROJECT_VERSION}-1), libopenblas0"
"BLAS whose SGEMM and DGEMM are computed by Tegula"
"An alternative of libblas.so.3 for all programs of the system: SGEMM, DGEMM,
SGEMV, DGEMV and batches of them by Tegula, all other functions by OpenBLAS.")
describe(libtegula-cublas libs "${library_depends}" "GEMM of a program's cuBLAS computed by Tegula"
"A library for LD_PRELOAD that serves matrix products of cuBLAS and cuBLASLt
on NVIDIA GPUs. All other functions, and products that cuBLAS computes
faster, stay with the cuBLAS of the program. It needs NVIDIA's driver and
NVRTC.")
if(TEGULA_KERNELS)
  describe(${kernels_package} libs "${library_depends}" "compiled CUDA kernels of Tegula for ${kernels_arch}"
"With this package products on such GPUs begin without a compilation. Products
with an epilogue, and rare ones, still need NVRTC.")
  string(TOUPPER ${kernels_package} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_SHLIBDEPS OFF)
endif()
set(CPACK_DEBIAN_TEGULA_PACKAGE_SUGGESTS "gcc | c-compiler") # the simulator compiles kernels with it

set(CPACK_DEBIAN_LIBTEGULA-DIST_PACKAGE_SUGGESTS libnccl2)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME tegula)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "${TEGULA_MAINTAINER}")
set(CPACK_COMPONENTS_ALL ${packages})
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR} ${PROJECT_BINARY_DIR}/blas3)
set(CPACK_DEBIAN_LIBTEGULA-DEV_PACKAGE_SHLIBDEPS OFF)
# Packages that use libtegula.so.0 depend on this version or a later one. A trigger renews the loader's cache.
file(WRITE ${documents}/shlibs
  "libtegula ${PROJECT_VERSION_MAJOR} libtegula0 (>= ${PROJECT_VERSION})\n")
set(triggers ${PROJECT_SOURCE_DIR}/packaging/triggers)
set(CPACK_DEBIAN_LIBTEGULA0_PACKAGE_CONTROL_EXTRA ${documents}/shlibs ${triggers})
set(CPACK_DEBIAN_LIBTEGULA-BLAS_PACKAGE_CONTROL_EXTRA ${triggers})
set(CPACK_DEBIAN_LIBTEGULA-CUBLAS_PACKAGE_CONTROL_EXTRA ${triggers})
if(TARGET tegula_blas3)
  # A priority above OpenBLAS's 100: who installs the package wants it.
  set(TEGULA_ALTERNATIVE "libblas.so.3-${CMAKE_LIBRARY_ARCHITECTURE}")
  set(TEGULA_BLAS3 "${CMAKE_INSTALL_FULL_LIBDIR}/tegula-blas/libblas.so.3")
  file(WRITE ${documents}/postinst "#!/bin/sh\nset -e\nupdate-alternatives --install "
    "${CMAKE_INSTALL_FULL_LIBDIR}/libblas.so.3 ${TEGULA_ALTERNATIVE} ${TEGULA_BLAS3} 110\n")
  file(WRITE ${documents}/prerm "#!/bin/sh\nset -e\n[ \"$1\" = upgrade ] || "
    "update-alternatives --remove ${TEGULA_ALTERNATIVE} ${TEGULA_BLAS3}\n")
  file(CHMOD ${documents}/postinst ${documents}/prerm PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE
    GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
  set(CPACK_DEBIAN_LIBTEGULA-BLAS3_PACKAGE_PROVIDES libblas.so.3)
  set(CPACK_DEBIAN_LIBTEGULA-BLAS3_PACKAGE_CONTROL_EXTRA
    ${triggers} ${documents}/postinst ${documents}/prerm)
endif()
include(CPack)
