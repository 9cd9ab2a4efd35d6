# SPDX-License-Identifier: Apache-2.0
#
# Converts kernel sources to one C file with an array for each, for the table of src/plan/sources.h:
#   cmake -DOUTPUT=sources_data.c -DROOT=. -DFILES=kernels/ladder/01_naive.cu,... -P embed.cmake
# FILES: paths relative to ROOT. The name of a file in the library is its path without the first folder.
# Comments and indentation, 40 % of the bytes, are left out; lines keep their numbers.
string(REPLACE "," ";" files "${FILES}")
string(ASCII 1 end) # stands for the end of a comment
set(arrays "")
set(rows "")
set(count 0)
foreach(path IN LISTS files)
  string(REGEX MATCH "/(.*)$" name "${path}")
  set(name "${CMAKE_MATCH_1}")
  file(READ "${ROOT}/${path}" text)
  string(REPLACE "*/" "${end}" text "${text}")
  set(before "")
  while(NOT text STREQUAL before) # each round removes a line of every comment
    set(before "${text}")
    string(REGEX REPLACE "/\\*[^${end}\n]*${end}" "" text "${text}")
    string(REGEX REPLACE "/\\*[^${end}\n]*\n" "\n/*" text "${text}")
  endwhile()
  string(REGEX REPLACE "\n +" "\n" text "${text}")
  string(REGEX REPLACE " +\n" "\n" text "${text}")
  string(SHA256 digest "${text}")
  string(HEX "${text}" bytes)
  string(LENGTH "${bytes}" digits)
  math(EXPR size "${digits} / 2")
  string(REGEX REPLACE "(................................)" "\\1\n    " bytes "${bytes}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  string(APPEND arrays
    "/* ${name} */\nstatic const unsigned char file_${count}[] = {\n    ${bytes}0};\n\n")
  string(APPEND rows "    {\"${name}\", (const char *)file_${count}, ${size}, \"${digest}\"},\n")
  math(EXPR count "${count} + 1")
endforeach()
file(WRITE "${OUTPUT}.new" "/* Written by cmake/embed.cmake. */\n#include \"plan/sources.h\"\n\n${arrays}"
  "const tgl_source_file tgl_source_files[] = {\n${rows}    {NULL, NULL, 0, NULL},\n};\n")
file(RENAME "${OUTPUT}.new" "${OUTPUT}")
