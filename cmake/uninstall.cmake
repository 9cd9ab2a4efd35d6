# SPDX-License-Identifier: Apache-2.0
#
# Removes the files that were installed to this prefix and DESTDIR, which cmake/after_install.cmake has
# recorded, and the folders named tegula if they are then empty.
# Uses CMAKE_INSTALL_PREFIX and TEGULA_RECORDS.
string(MD5 id "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}")
set(record "${TEGULA_RECORDS}/${id}.txt")
if(NOT EXISTS "${record}")
  message(FATAL_ERROR "Nothing was installed from this build folder to "
    "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}: give the PREFIX and DESTDIR of the installation.")
endif()

file(STRINGS "${record}" files)
set(folders "")
foreach(file IN LISTS files)
  set(path "$ENV{DESTDIR}${file}")
  get_filename_component(folder "${path}" DIRECTORY)
  if(folder MATCHES "/tegula$")
    list(APPEND folders "${folder}")
  endif()
  if(EXISTS "${path}" OR IS_SYMLINK "${path}")
    message(STATUS "Removing: ${path}")
    file(REMOVE "${path}")
    if(EXISTS "${path}" OR IS_SYMLINK "${path}")
      message(FATAL_ERROR "${path} cannot be removed")
    endif()
  endif()
endforeach()

list(REMOVE_DUPLICATES folders)
foreach(folder IN LISTS folders)
  file(GLOB rest "${folder}/*" "${folder}/.*")
  if(NOT rest)
    file(REMOVE_RECURSE "${folder}")
  endif()
endforeach()
file(REMOVE "${record}")
