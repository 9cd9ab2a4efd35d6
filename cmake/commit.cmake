# SPDX-License-Identifier: Apache-2.0
#
# Writes OUTPUT, a C file with the commit that the folder SOURCE is at: "2f7b3ea", "2f7b3ea-dirty" if files differ
# from it, "" without git. An unchanged file is not written again, so that nothing is compiled again.
cmake_minimum_required(VERSION 3.18)
get_filename_component(parent ${SOURCE} DIRECTORY)
set(ENV{GIT_CEILING_DIRECTORIES} ${parent}) # the repository around an unpacked archive is another project's
set(ENV{GIT_OPTIONAL_LOCKS} 0)
execute_process(COMMAND git describe --always --dirty --exclude=* WORKING_DIRECTORY ${SOURCE}
  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE result)
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "#include \"csv.h\"\nconst char tegula_commit[] = \"@commit@\";\n" @ONLY)
