# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# tern_check_ibverbs(LIBRARY): refuses a libibverbs whose provider interface private_abi.h does not
# declare, and sets TERN_IBVERBS_PRIVATE to the number of the one it has: 34 with the table of verbs
# of IBVERBS_1.14 (rdma-core 40 to 56), or 65 (rdma-core 65); and TERN_PROVIDER_SUFFIX, by which
# libibverbs finds the provider.
set(TERN_KNOWN_IBVERBS_PRIVATE 34 65)

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
  set(number ${CMAKE_MATCH_1})
  if(NOT number IN_LIST TERN_KNOWN_IBVERBS_PRIVATE)
    list(JOIN TERN_KNOWN_IBVERBS_PRIVATE " and " known)
    message(FATAL_ERROR "tern provider: ${library} has the provider interface ${found}; this source knows ${known} (rdma-core 40 to 56 and 65)")
  endif()
  if(NOT versions MATCHES "IBVERBS_1\\.14[^0-9]")
    message(FATAL_ERROR "tern provider: ${library} has ${found} but not IBVERBS_1.14, so it is older than rdma-core 40, whose table of verbs is shorter")
  endif()
  set(TERN_IBVERBS_PRIVATE ${number} CACHE INTERNAL "of the private interface of libibverbs")
  set(TERN_PROVIDER_SUFFIX -rdmav${number}.so CACHE INTERNAL "of the names of providers")
endfunction()
