# SPDX-License-Identifier: GPL-2.0-or-later
# tern_check_ibverbs() takes the interface that we know and refuses others by name.
cmake_minimum_required(VERSION 3.25)
if(DEFINED CHECK_LIBRARY)
  include(${PROVIDER_DIR}/private_version.cmake)
  tern_check_ibverbs(${CHECK_LIBRARY})
  return()
endif()

# A library with just these symbol versions.
function(make_library name versions)
  set(map "")
  set(source "")
  set(n 0)
  foreach(version IN LISTS versions)
    math(EXPR n "${n} + 1")
    string(APPEND source "void symbol_${n}(void) {}\n")
    string(APPEND map "${version} { global: symbol_${n}; };\n")
  endforeach()
  file(WRITE ${WORK}/${name}.c "${source}")
  file(WRITE ${WORK}/${name}.map "${map}")
  execute_process(COMMAND ${CC} -shared -fPIC -o ${WORK}/${name}.so ${WORK}/${name}.c
    -Wl,--version-script=${WORK}/${name}.map COMMAND_ERROR_IS_FATAL ANY)
endfunction()

function(expect name expected)
  execute_process(COMMAND ${CMAKE_COMMAND} -DCMAKE_READELF=${CMAKE_READELF}
    -DPROVIDER_DIR=${PROVIDER_DIR} -DCHECK_LIBRARY=${WORK}/${name}.so
    -P ${CMAKE_CURRENT_LIST_FILE}
    RESULT_VARIABLE result ERROR_VARIABLE error)
  string(REGEX REPLACE "[ \n]+" " " error "${error}")
  if(expected STREQUAL "")
    if(result)
      message(FATAL_ERROR "${name} was refused: ${error}")
    endif()
  elseif(NOT result OR NOT error MATCHES "${expected}")
    message(FATAL_ERROR "${name}: expected a refusal with '${expected}', got '${error}'")
  endif()
endfunction()

file(MAKE_DIRECTORY ${WORK})
make_library(known "IBVERBS_1.14;IBVERBS_PRIVATE_34")
make_library(newest "IBVERBS_1.14;IBVERBS_1.18;IBVERBS_PRIVATE_65")
make_library(newer "IBVERBS_1.14;IBVERBS_1.16;IBVERBS_PRIVATE_64")
make_library(older "IBVERBS_1.9;IBVERBS_PRIVATE_34")
make_library(other "SOMETHING_1.0")
expect(known "")
expect(newest "")
expect(newer "IBVERBS_PRIVATE_64; this source knows 34 and 65")
expect(older "older than rdma-core 40")
expect(other "no IBVERBS_PRIVATE_")
