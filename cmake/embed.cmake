# SPDX-License-Identifier: Apache-2.0
#
# Converts files to one C file with an array for each, and a table of them:
#   cmake -DOUTPUT=sources_data.c -DROOT=. -DFILES=kernels/ladder/01_naive.cu,... -DHEADER=plan/sources.h
#     "-DTABLE=tgl_source_file tgl_source_files" [-DDIGESTS=ON] -P embed.cmake
# FILES: paths relative to ROOT. The name of a file in the table is its path without the first folder.
# HEADER, TABLE: the header that declares the table; its type and its name. A row is the name, the text and its
# size, and with DIGESTS also the SHA-256 of the text.
string(REPLACE "," ";" files "${FILES}")
set(arrays "")
set(rows "")
set(count 0)
foreach(path IN LISTS files)
  string(REGEX MATCH "/(.*)$" name "${path}")
  set(name "${CMAKE_MATCH_1}")
  file(READ "${ROOT}/${path}" bytes HEX)
  string(LENGTH "${bytes}" digits)
  math(EXPR size "${digits} / 2")
  set(digest "")
  if(DIGESTS)
    file(SHA256 "${ROOT}/${path}" digest)
    set(digest ", \"${digest}\"")
  endif()
  string(REGEX REPLACE "(................................)" "\\1\n    " bytes "${bytes}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  string(APPEND arrays
    "/* ${name} */\nstatic const unsigned char file_${count}[] = {\n    ${bytes}0};\n\n")
  string(APPEND rows "    {\"${name}\", (const char *)file_${count}, ${size}${digest}},\n")
  math(EXPR count "${count} + 1")
endforeach()
file(WRITE "${OUTPUT}.new" "/* Written by cmake/embed.cmake. */\n#include \"${HEADER}\"\n\n${arrays}"
  "const ${TABLE}[] = {\n${rows}    {0},\n};\n")
file(RENAME "${OUTPUT}.new" "${OUTPUT}")
