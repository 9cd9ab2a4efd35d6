# tegula_embed(OUTPUT FILES DEFINITION...): generates a C file that contains these files, whose paths are
# relative to the project. The definitions are those of embed.cmake.
function(tegula_embed output files)
  string(REPLACE ";" "," listed "${files}")
  list(TRANSFORM files PREPEND ${PROJECT_SOURCE_DIR}/)
  add_custom_command(OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${output} -DROOT=${PROJECT_SOURCE_DIR} -DFILES=${listed} ${ARGN}
      -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    DEPENDS ${files} ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    COMMENT "Embedding files" VERBATIM)
endfunction()

# Sets TEGULA_KERNELS to a generated C file that contains every file under kernels/, by its path there.
file(GLOB_RECURSE kernel_files RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS
  ${PROJECT_SOURCE_DIR}/kernels/*.cu ${PROJECT_SOURCE_DIR}/kernels/*.h)
set(TEGULA_KERNELS ${PROJECT_BINARY_DIR}/sources_data.c)
tegula_embed(${TEGULA_KERNELS} "${kernel_files}" -DHEADER=plan/sources.h
  "-DTABLE=tgl_source_file tgl_source_files" -DDIGESTS=ON)
