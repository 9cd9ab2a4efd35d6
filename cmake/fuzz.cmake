# Fuzz targets: programs that libFuzzer calls, with clang's sanitizers. The code under test is compiled
# into each of them with instrumentation; the library is not changed.
if(NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
  message(FATAL_ERROR "TEGULA_FUZZ needs clang: configure with -DCMAKE_C_COMPILER=clang")
endif()

# tgl_fuzz(NAME SOURCE...): builds tests/NAME.c with the sources that it tests.
function(tgl_fuzz name)
  add_executable(${name} tests/${name}.c ${ARGN})
  target_include_directories(${name} PRIVATE include src cli/io cli/reference)
  target_compile_definitions(${name} PRIVATE _GNU_SOURCE)
  target_compile_options(${name} PRIVATE -g -O1 -UNDEBUG -fsanitize=fuzzer,address,undefined
    -fno-sanitize-recover=all)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer,address,undefined)
  target_link_libraries(${name} PRIVATE tegula_static tegula_warnings)
endfunction()

tgl_fuzz(fuzz_npy cli/io/message_buffer.c cli/io/npy.c)

# The API reaches most of the library. -DTEGULA_SANITIZE=fuzzer-no-link,address,undefined, which
# tests/fuzz.sh sets, instruments all of it.
tgl_fuzz(fuzz_api tests/gemm_case.c tests/guarded.c cli/reference/elements.c cli/reference/random.c
  cli/reference/reference.c)
