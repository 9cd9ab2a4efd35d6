# SPDX-License-Identifier: Apache-2.0
#
# Turns text files into one C file with an array a file, for the table of src/plan/sources.h:
#   cmake -DOUTPUT=sources_data.c -DROOT=. -DFILES=kernels/ladder/01_naive.cu,... -P embed.cmake
# FILES: paths under ROOT. The library knows a file by its path less the first folder.
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
  string(REGEX REPLACE "(................................)" "\\1\n    " bytes "${bytes}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  string(APPEND arrays
    "/* ${name} */\nstatic const unsigned char file_${count}[] = {\n    ${bytes}0};\n\n")
  file(SHA256 "${ROOT}/${path}" digest)
  string(APPEND rows "    {\"${name}\", (const char *)file_${count}, ${size}, \"${digest}\"},\n")
  math(EXPR count "${count} + 1")
endforeach()
file(WRITE "${OUTPUT}.new" "/* Written by cmake/embed.cmake. */\n#include \"plan/sources.h\"\n\n${arrays}"
  "const tgl_source_file tgl_source_files[] = {\n${rows}    {NULL, NULL, 0, NULL},\n};\n")
file(RENAME "${OUTPUT}.new" "${OUTPUT}")
