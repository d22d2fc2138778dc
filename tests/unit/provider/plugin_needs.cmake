# SPDX-License-Identifier: GPL-2.0-or-later
# The plugin needs libibverbs and libc alone, asks for the private version that it was
# written for, and exports what terndv.h declares; it is what programs link with.
execute_process(COMMAND ${READELF} --wide --dynamic ${PLUGIN}
  OUTPUT_VARIABLE dynamic COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "NEEDED[^\n]*\\[[^]]*\\]" needed "${dynamic}")
list(TRANSFORM needed REPLACE ".*\\[([^]]*)\\]" "\\1")
list(SORT needed)
if(NOT needed STREQUAL "libc.so.6;libibverbs.so.1")
  message(FATAL_ERROR "NEEDED is ${needed}")
endif()

execute_process(COMMAND ${READELF} --wide --dyn-syms ${PLUGIN}
  OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
if(NOT symbols MATCHES "verbs_register_driver_${PRIVATE}@IBVERBS_PRIVATE_${PRIVATE}")
  message(FATAL_ERROR "verbs_register_driver_${PRIVATE} is not asked for as IBVERBS_PRIVATE_${PRIVATE}")
endif()
if(NOT symbols MATCHES "ibv_query_qp_data_in_order@IBVERBS_1\\.14")
  message(FATAL_ERROR "nothing keeps the plugin from rdma-core 34 to 39")
endif()
string(REGEX MATCHALL "(GLOBAL|WEAK) +(DEFAULT|PROTECTED) +[0-9]+ [^\n]*" exported "${symbols}")
list(TRANSFORM exported REPLACE ".* +[0-9]+ +([^ ]*)$" "\\1")
list(SORT exported)
if(NOT exported STREQUAL "terndv_is_supported@@TERN_1.0;terndv_wr_flush@@TERN_1.0")
  message(FATAL_ERROR "exported: ${exported}")
endif()
if(NOT dynamic MATCHES "SONAME[^\n]*\\[libtern\\.so\\.1\\]")
  message(FATAL_ERROR "its name is not libtern.so.1")
endif()
