# SPDX-License-Identifier: Apache-2.0
#
# Refuses flags of fast arithmetic, wherever they are set. src/base/strict_math.h refuses them too, but does not
# see -Ofast -fno-fast-math: it compiles correct code, and before gcc 13 the linker adds crtfastmath.o all the
# same, which flushes denormal numbers to zero in every process that loads the library.
get_property(compile_options DIRECTORY PROPERTY COMPILE_OPTIONS)
get_property(link_options DIRECTORY PROPERTY LINK_OPTIONS)
string(TOUPPER "${CMAKE_BUILD_TYPE}" upper)
set(flags " ${CMAKE_C_FLAGS} ${CMAKE_C_FLAGS_${upper}} ${CMAKE_SHARED_LINKER_FLAGS} ${CMAKE_EXE_LINKER_FLAGS}"
  " ${compile_options} ${link_options} ")
foreach(flag -Ofast -ffast-math -funsafe-math-optimizations -ffinite-math-only -fassociative-math
    -freciprocal-math)
  if("${flags}" MATCHES "[ ;]${flag}[ ;]")
    message(FATAL_ERROR "The flags of the C compiler or linker have ${flag}. Tegula cannot be built with fast "
      "arithmetic: NaN would get lost, and the library would set flush-to-zero (crtfastmath.o) for the whole "
      "process, also with -fno-fast-math behind it. Remove the flag; -O3 is as fast.")
  endif()
endforeach()
