# SPDX-License-Identifier: Apache-2.0
#
# The last step of an installation. Records the installed files for cmake/uninstall.cmake, in a file
# for each destination; and says what to do if the dynamic loader does not know the shared library.
# Uses CMAKE_INSTALL_PREFIX, CMAKE_INSTALL_MANIFEST_FILES, TEGULA_RECORDS and TEGULA_LIBDIR.
string(MD5 id "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}")
set(record "${TEGULA_RECORDS}/${id}.txt")
set(files "")
if(EXISTS "${record}") # of an earlier version, which may have had other files
  file(STRINGS "${record}" files)
endif()
list(APPEND files ${CMAKE_INSTALL_MANIFEST_FILES})
list(REMOVE_DUPLICATES files)
list(JOIN files "\n" text)
file(WRITE "${record}" "${text}\n")

if("$ENV{DESTDIR}" STREQUAL "")
  get_filename_component(libdir "${TEGULA_LIBDIR}" ABSOLUTE BASE_DIR "${CMAKE_INSTALL_PREFIX}")
  find_program(ldconfig ldconfig PATHS /sbin /usr/sbin)
  if(ldconfig)
    # -N and -X: only list, change neither the cache nor links.
    execute_process(COMMAND "${ldconfig}" -p OUTPUT_VARIABLE known ERROR_QUIET)
    execute_process(COMMAND "${ldconfig}" -v -N -X OUTPUT_VARIABLE folders ERROR_QUIET)
    string(FIND "${known}" "${libdir}/libtegula.so.0" at_library)
    string(FIND "\n${folders}" "\n${libdir}:" at_folder)
    if(at_library LESS 0 AND at_folder GREATER_EQUAL 0)
      message("Run ldconfig as root, so that programs find libtegula.so.")
    elseif(at_folder LESS 0)
      message("The loader does not search ${libdir}: programs that use libtegula.so need an rpath "
        "(-Wl,-rpath,${libdir}) or LD_LIBRARY_PATH=${libdir}.")
    endif()
  endif()
endif()
