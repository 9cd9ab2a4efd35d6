# The compiled path of the package, tegula_call (call.c, read_array.c). It is not built if Python's headers are missing or in
# cross-compilation; the package then makes all calls by ctypes. If it is built with Python 3.11 or later, it uses the stable
# ABI, so that one file serves 3.11 and all later versions. It cannot be used in a Python without the global interpreter lock
# (3.13t).
if(NOT CMAKE_SYSTEM_PROCESSOR STREQUAL CMAKE_HOST_SYSTEM_PROCESSOR)
  return()
endif()
find_package(Python COMPONENTS Interpreter Development.Module QUIET)
if(NOT Python_Development.Module_FOUND OR NOT Python_INTERPRETER_ID STREQUAL "Python" OR
   Python_SOABI MATCHES "^cpython-[0-9]+t")
  message(STATUS "Python: no headers of CPython; without the compiled path of calls")
  return()
endif()
add_library(tegula_call MODULE ${CMAKE_CURRENT_LIST_DIR}/call.c ${CMAKE_CURRENT_LIST_DIR}/read_array.c)
target_include_directories(tegula_call PRIVATE ${CMAKE_CURRENT_LIST_DIR}/../include)
target_include_directories(tegula_call SYSTEM PRIVATE ${Python_INCLUDE_DIRS})
target_link_libraries(tegula_call PRIVATE tegula_warnings)
set_target_properties(tegula_call PROPERTIES PREFIX "" OUTPUT_NAME _call SUFFIX .${Python_SOABI}.so)
if(Python_VERSION VERSION_GREATER_EQUAL 3.11)
  target_compile_definitions(tegula_call PRIVATE Py_LIMITED_API=0x030B0000)
  set_target_properties(tegula_call PROPERTIES SUFFIX .abi3.so)
endif()
