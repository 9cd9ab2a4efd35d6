# SPDX-License-Identifier: Apache-2.0
#
# Products over several ranks (docs/distributed.md):
#   tegula_dist   libtegula_dist.so, over the public functions of libtegula.so, with the transport for GPUs, which
#                 loads NCCL and the driver at run time
#   tegula_mpi    libtegula_mpi.so, its transport for MPI, and the only library that is linked with MPI
set(dist ${PROJECT_SOURCE_DIR}/dist)
if(TEGULA_INSTALL)
  include(GNUInstallDirs)
endif()

# tgl_dist_library(NAME HEADERS SOURCE...)
function(tgl_dist_library name headers)
  add_library(${name} SHARED ${ARGN})
  target_compile_definitions(${name} PRIVATE _GNU_SOURCE TGL_BUILD)
  target_include_directories(${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>)
  target_compile_options(${name} PRIVATE "SHELL:-include ${PROJECT_SOURCE_DIR}/src/base/strict_math.h")
  target_link_libraries(${name} PUBLIC tegula_shared PRIVATE tegula_warnings)
  target_link_options(${name} PRIVATE -Wl,-Bsymbolic -Wl,--version-script=${dist}/dist_exports.map)
  set_target_properties(${name} PROPERTIES LINK_DEPENDS ${dist}/dist_exports.map
    LIBRARY_OUTPUT_DIRECTORY $<TARGET_FILE_DIR:tegula_shared>
    BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN"
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
  if(TEGULA_INSTALL)
    string(REPLACE "tegula_" "libtegula-" package ${name})
    install(TARGETS ${name} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${package})
    # In a Debian package both libraries are where the loader looks.
    install(CODE "
      if(CMAKE_INSTALL_COMPONENT STREQUAL \"${package}\")
        file(RPATH_REMOVE FILE
          \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/$<TARGET_FILE_NAME:${name}>\")
      endif()" COMPONENT ${package})
    foreach(header ${headers})
      install(FILES ${PROJECT_SOURCE_DIR}/include/tegula/${header}
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tegula COMPONENT ${package})
    endforeach()
  endif()
endfunction()

# The program has these sources, too: it is linked with the static library.
set(TEGULA_DIST_SOURCES
  ${dist}/dist_arguments.c ${dist}/dist_axis.c ${dist}/dist_comm.c ${dist}/dist_copy.c ${dist}/dist_cost.c
  ${dist}/dist_error.c ${dist}/dist_explain.c ${dist}/dist_layout.c ${dist}/dist_plan.c ${dist}/dist_plan_make.c
  ${dist}/dist_planner.c ${dist}/dist_product.c ${dist}/dist_reduce.c ${dist}/dist_ring.c ${dist}/dist_ring_choose.c ${dist}/dist_run.c
  ${dist}/dist_spread.c ${dist}/dist_task.c ${dist}/dist_transfer.c
  ${dist}/gpu_add.c ${dist}/gpu_driver.c ${dist}/gpu_machine.c ${dist}/gpu_pool.c ${dist}/nccl_library.c
  ${dist}/nccl_collect.c ${dist}/nccl_open.c ${dist}/rendezvous.c ${dist}/transport_nccl.c)
tgl_dist_library(tegula_dist "dist.h;nccl.h" ${TEGULA_DIST_SOURCES})
target_link_libraries(tegula_dist PRIVATE m ${CMAKE_DL_LIBS})
if(NOT TEGULA_TOP_LEVEL)
  return() # a project that takes the program in, such as the wheel, has no use for MPI
endif()
if(TEGULA_MPI)
  find_package(MPI COMPONENTS C REQUIRED)
  tgl_dist_library(tegula_mpi mpi.h ${dist}/transport_mpi.c)
  target_link_libraries(tegula_mpi PUBLIC tegula_dist MPI::MPI_C)
endif()
