# Sets TEGULA_KERNELS to a generated C file that contains every file under kernels/, by its path there.
file(GLOB_RECURSE kernel_files RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS
  ${PROJECT_SOURCE_DIR}/kernels/*.cu ${PROJECT_SOURCE_DIR}/kernels/*.h)
set(TEGULA_KERNELS ${PROJECT_BINARY_DIR}/sources_data.c)
string(REPLACE ";" "," listed "${kernel_files}")
list(TRANSFORM kernel_files PREPEND ${PROJECT_SOURCE_DIR}/)
add_custom_command(OUTPUT ${TEGULA_KERNELS}
  COMMAND ${CMAKE_COMMAND} -DOUTPUT=${TEGULA_KERNELS} -DROOT=${PROJECT_SOURCE_DIR} -DFILES=${listed}
    -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
  DEPENDS ${kernel_files} ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
  COMMENT "Embedding kernel sources" VERBATIM)
