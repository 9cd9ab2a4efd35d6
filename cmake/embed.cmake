# SPDX-License-Identifier: Apache-2.0
#
# Converts files to one C file with an array for each, and a table of them:
#   cmake -DOUTPUT=sources_data.c -DROOT=. -DFILES=kernels/ladder/01_naive.cu,... -DHEADER=plan/sources.h
#     "-DTABLE=tgl_source_file tgl_source_files" [-DWHOLE=ON] -P embed.cmake
# FILES: paths relative to ROOT. The name of a file in the table is its path without the first folder.
# HEADER, TABLE: the header that declares the table, its type and its name. A row is the name, the text, its
# size and its SHA-256. Comments, the messages of #error, indentation and most other spaces that C does not
# need, 45 % of the bytes, are left out. Strings are left as they are, and lines keep their numbers.
# WHOLE: the text is that of the file, and rows have no SHA-256.
string(REPLACE "," ";" files "${FILES}")
string(ASCII 1 end) # stands for the end of a comment
set(arrays "")
set(rows "")
set(count 0)
foreach(path IN LISTS files)
  string(REGEX MATCH "/(.*)$" name "${path}")
  set(name "${CMAKE_MATCH_1}")
  file(READ "${ROOT}/${path}" text)
  if(NOT WHOLE)
    string(REPLACE "*/" "${end}" text "${text}")
    set(before "")
    while(NOT text STREQUAL before) # each round removes a line of every comment
      set(before "${text}")
      string(REGEX REPLACE "/\\*[^${end}\n]*${end}" "" text "${text}")
      string(REGEX REPLACE "/\\*[^${end}\n]*\n" "\n/*" text "${text}")
    endwhile()
    string(REGEX REPLACE "\n +" "\n" text "${text}")
    string(REGEX REPLACE " +\n" "\n" text "${text}")
    string(REGEX REPLACE "(\n#error)[^\n]*" "\\1" text "${text}")
    set(before "")
    while(NOT text STREQUAL before) # each round removes a space of every line, before its first string
      set(before "${text}")
      string(REGEX REPLACE "(\n[^\"\n]*) (&&|\\|\\||[?:<>*%=]) " "\\1\\2" text "${text}")
      string(REGEX REPLACE "(\n[^\"\n]*[ ,;]) " "\\1" text "${text}")
    endwhile()
    string(SHA256 digest "${text}")
    set(digest ", \"${digest}\"")
  endif()
  string(HEX "${text}" bytes)
  string(LENGTH "${bytes}" digits)
  math(EXPR size "${digits} / 2")
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
