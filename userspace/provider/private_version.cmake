# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# tern_check_ibverbs(LIBRARY): refuses a libibverbs whose provider interface is not the one that
# abi34.h declares: IBVERBS_PRIVATE_34 with the table of verbs of IBVERBS_1.14 (rdma-core 40 to 56).
set(TERN_KNOWN_IBVERBS_PRIVATE 34)

function(tern_check_ibverbs library)
  execute_process(COMMAND ${CMAKE_READELF} --wide --version-info ${library}
    OUTPUT_VARIABLE versions RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "tern provider: ${CMAKE_READELF} cannot read ${library}")
  endif()
  string(REGEX MATCH "IBVERBS_PRIVATE_([0-9]+)" found "${versions}")
  if(NOT found)
    message(FATAL_ERROR "tern provider: ${library} has no IBVERBS_PRIVATE_<n> version: not a libibverbs with providers?")
  endif()
  if(NOT CMAKE_MATCH_1 IN_LIST TERN_KNOWN_IBVERBS_PRIVATE)
    message(FATAL_ERROR "tern provider: ${library} has the provider interface ${found}; this source knows IBVERBS_PRIVATE_${TERN_KNOWN_IBVERBS_PRIVATE} (rdma-core 40 to 56)")
  endif()
  if(NOT versions MATCHES "IBVERBS_1\\.14[^0-9]")
    message(FATAL_ERROR "tern provider: ${library} has ${found} but not IBVERBS_1.14, so it is older than rdma-core 40, whose table of verbs is shorter")
  endif()
endfunction()
