# SPDX-License-Identifier: BSD-3-Clause
# The front end's tests: programs over the public verbs (the drop-in library), and foreign programs over softroce-run.
add_library(front_side STATIC front_side.c)
target_link_libraries(front_side PUBLIC shape_ibverbs softroce_front)

function(front_test name)
  add_executable(${name} ${name}.c)
  target_link_libraries(${name} PRIVATE front_side ${CMAKE_DL_LIBS})
  add_test(NAME softroce.${name} COMMAND ${name} ${ARGN})
  set_tests_properties(softroce.${name} PROPERTIES LABELS softroce TIMEOUT 900 SKIP_RETURN_CODE 77)
endfunction()

front_test(test_front_events)
front_test(test_front_faults)
front_test(test_front_late)
front_test(test_front_cm)
target_sources(test_front_cm PRIVATE cm_commands.c ${CMAKE_SOURCE_DIR}/softroce/cm/mad.c)
front_test(test_front_devices)
front_test(test_front_fork)
front_test(test_front_limit)
front_test(test_front_wr)
front_test(test_front_datagram)
front_test(test_front_ack_waits)
front_test(test_front_addresses)
front_test(test_front_busy)
front_test(test_front_idle)
front_test(test_front_lines)
front_test(test_front_register)
front_test(test_front_shared)
set_tests_properties(softroce.test_front_shared PROPERTIES LABELS "softroce;plain") # a sanitizer's polls are too far apart
front_test(test_front_verbs)
front_test(test_front_wire)

add_executable(test_front_dropin test_front_dropin.c)
target_link_libraries(test_front_dropin PRIVATE ${CMAKE_DL_LIBS})
add_test(NAME softroce.test_front_dropin COMMAND test_front_dropin $<TARGET_FILE:shape_ibverbs>)
find_program(PYTHON python3 REQUIRED)
add_test(NAME softroce.symbols COMMAND ${PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/symbols.py
  $<TARGET_FILE:shape_softroce> $<TARGET_FILE:shape_ibverbs>)
set_tests_properties(softroce.test_front_dropin softroce.symbols PROPERTIES
  LABELS softroce SKIP_RETURN_CODE 77)

hawser_fuzzer(devices softroce_front)
hawser_fuzzer(cm softroce_front)
if(TARGET fuzz_cm) # the manager without its ports
  target_sources(fuzz_cm PRIVATE ${CMAKE_SOURCE_DIR}/softroce/cm/connect.c ${CMAKE_SOURCE_DIR}/softroce/cm/mad.c
    ${CMAKE_SOURCE_DIR}/softroce/cm/manager.c ${CMAKE_SOURCE_DIR}/softroce/cm/ids.c ${CMAKE_SOURCE_DIR}/softroce/cm/ports.c)
endif()

# Programs that nobody here wrote. The label `foreign` keeps them out of sanitizer builds: their own objects are not
# instrumented, and what they leak or race with is theirs.
function(foreign_test name number pattern)
  add_test(NAME softroce.${name}
    COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/foreign.sh ${CMAKE_BINARY_DIR} ${number} ${pattern} ${ARGN})
  set_tests_properties(softroce.${name} PROPERTIES LABELS "softroce;foreign" TIMEOUT 900 SKIP_RETURN_CODE 77)
endfunction()

foreign_test(rc_pingpong        80 "1000 iters" ibv_rc_pingpong -c)
foreign_test(rc_pingpong_events 81 "200 iters" ibv_rc_pingpong -c -e -n 200)
foreign_test(rc_pingpong_256    82 "300 iters" ibv_rc_pingpong -c -m 256 -s 100000 -n 300)
foreign_test(rc_pingpong_512    83 "300 iters" ibv_rc_pingpong -c -m 512 -s 1 -n 300)
foreign_test(rc_pingpong_2048   84 "300 iters" ibv_rc_pingpong -c -m 2048 -s 65537 -n 300)
foreign_test(rc_pingpong_4096   85 "50 iters" ibv_rc_pingpong -c -m 4096 -s 4194304 -n 50 -r 50)
foreign_test(rc_pingpong_wr     86 "300 iters" ibv_rc_pingpong -c -N -n 300)
foreign_test(srq_pingpong       87 "1000 iters" ibv_srq_pingpong -c -q 8 -n 1000)
foreign_test(srq_pingpong_events 88 "200 iters" ibv_srq_pingpong -c -e -q 3 -n 200 -s 20000)
foreign_test(write_bw           89 "^ 65536 +1000 " ib_write_bw -n 1000)
foreign_test(write_bw_all       90 "^ 8388608 +10 " ib_write_bw -a -n 5 -b -q 2 -t 5)
foreign_test(write_lat          91 "^ 4096 +100 " ib_write_lat -n 100 -s 4096)
foreign_test(send_bw            92 "^ 65536 +500 " ib_send_bw -n 500)
foreign_test(send_bw_srq        93 "^ 4096 +1000 " ib_send_bw -n 500 -s 4096 --use-srq -q 2 -e)
foreign_test(read_bw            94 "^ 65536 +300 " ib_read_bw -n 300)
foreign_test(atomic_bw          95 "^ 8 +1000 " ib_atomic_bw -n 1000)
foreign_test(atomic_bw_swap     96 "^ 8 +1000 " ib_atomic_bw -n 1000 -A CMP_AND_SWAP)
foreign_test(write_bw_uc        97 "^ 65536 +500 " ib_write_bw -c UC -n 500)
foreign_test(write_lat_uc       98 "^ 64 +200 " ib_write_lat -c UC -n 200 -s 64)
# All receives of a datagram test are posted before it begins: nothing may be lost for want of one.
foreign_test(send_bw_ud         99 "^ 1024 +500 " ib_send_bw -c UD -n 500 -s 1024)
foreign_test(send_bw_ud_both   101 "^ 2048 +400 " ib_send_bw -c UD -n 400 -s 2048 -b -e)
foreign_test(send_lat_ud       102 "^ 1024 +200 " ib_send_lat -c UD -n 200 -s 1024)
foreign_test(send_lat          103 "^ 64 +200 " ib_send_lat -n 200 -s 64)
foreign_test(read_lat          104 "^ 64 +200 " ib_read_lat -n 200 -s 64)
foreign_test(atomic_lat        105 "^ 8 +200 " ib_atomic_lat -n 200)
foreign_test(ud_pingpong       106 "1000 iters" ibv_ud_pingpong -n 1000)
foreign_test(ud_pingpong_events 107 "200 iters" ibv_ud_pingpong -e -n 200 -s 4000)
foreign_test(uc_pingpong       108 "1000 iters" ibv_uc_pingpong -n 1000)

# What connects through librdmacm, whose kernel device softroce takes the place of.
function(cm_test name number pattern server client)
  add_test(NAME softroce.cm_${name}
    COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/cm.sh ${CMAKE_BINARY_DIR} ${number} ${pattern} ${server} ${client})
  set_tests_properties(softroce.cm_${name} PROPERTIES LABELS "softroce;foreign" TIMEOUT 900 SKIP_RETURN_CODE 77)
endfunction()
cm_test(rping       151 "ping data: rdma-ping-99:" "rping -s -v -V -C 100" "rping -c -v -V -C 100 -a ADDRESS")
cm_test(rping_large 152 "ping data: rdma-ping-19:" "rping -s -V -C 20 -S 60000" "rping -c -v -V -C 20 -S 60000 -a ADDRESS")
cm_test(beside      145 "ping data: rdma-ping-19:" "rping -s -V -C 20" "rping -c -v -V -C 20 -a ADDRESS")
set_tests_properties(softroce.cm_beside PROPERTIES ENVIRONMENT BESIDE=1) # the server's is not the subnet's first address
cm_test(udaddy      153 "return status 0" "udaddy -c 4 -C 20" "udaddy -c 4 -C 20 -s ADDRESS")
cm_test(ucmatose    154 "return status 0" "ucmatose -c 8 -C 20 -S 5000" "ucmatose -c 8 -C 20 -S 5000 -s ADDRESS")
cm_test(client      155 "rdma_client: end 0" rdma_server "rdma_client -s ADDRESS")
cm_test(xclient     156 "rdma_xclient: end 0" rdma_xserver "rdma_xclient -s ADDRESS")
cm_test(rstream     160 "^custom +64k +1k " "rstream -T v -S 65536 -C 1000" "rstream -T v -S 65536 -C 1000 -s ADDRESS")
cm_test(riostream   161 "^custom +64k +1k " "riostream -T v -S 65536 -C 1000" "riostream -T v -S 65536 -C 1000 -s ADDRESS")
cm_test(write_bw    157 "^ 65536 +500 " "ib_write_bw -R -d soft0 -n 500" "ib_write_bw -R -d soft0 -n 500 ADDRESS")
cm_test(send_lat_ud 158 "^ 64 +200 " "ib_send_lat -R -c UD -d soft0 -n 200 -s 64"
  "ib_send_lat -R -c UD -d soft0 -n 200 -s 64 ADDRESS")
cm_test(read_bw     159 "^ 65536 +1200 " "ib_read_bw -R -d soft0 -n 300 -q 4" "ib_read_bw -R -d soft0 -n 300 -q 4 ADDRESS")

add_test(NAME softroce.devinfo COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/devinfo.sh ${CMAKE_BINARY_DIR})
set_tests_properties(softroce.devinfo PROPERTIES LABELS "softroce;foreign" TIMEOUT 900 SKIP_RETURN_CODE 77)
add_test(NAME softroce.capture
  COMMAND ${PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/capture.py ${CMAKE_BINARY_DIR})
add_test(NAME softroce.netns COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/netns.sh ${CMAKE_BINARY_DIR})
add_test(NAME softroce.fabric COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/fabric.sh ${CMAKE_BINARY_DIR})
set_tests_properties(softroce.capture softroce.netns softroce.fabric PROPERTIES LABELS "softroce;foreign" TIMEOUT 900 SKIP_RETURN_CODE 77)
add_test(NAME softroce.ha_cut COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/ha_cut.sh ${CMAKE_BINARY_DIR})
set_tests_properties(softroce.ha_cut PROPERTIES LABELS "softroce;foreign" TIMEOUT 900 SKIP_RETURN_CODE 77)

# What stands on verbs, and on it whole stacks.
function(upper_test name number pattern server_option client_option)
  add_test(NAME softroce.${name} COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/upper.sh ${CMAKE_BINARY_DIR} ${number} ${pattern}
    ${server_option} ${client_option} ${ARGN})
  set_tests_properties(softroce.${name} PROPERTIES LABELS "softroce;foreign" TIMEOUT 900 SKIP_RETURN_CODE 77)
endfunction()

upper_test(ucx_tag_lat        110 "^Final: +1000 " -p -p ucx_perftest -t tag_lat -n 1000 -s 64)
upper_test(ucx_tag_bw         111 "^Final: +200 " -p -p ucx_perftest -t tag_bw -n 200 -s 1048576)
upper_test(ucx_put_bw         112 "^Final: +500 " -p -p ucx_perftest -t ucp_put_bw -n 500 -s 65536)
upper_test(ucx_get            113 "^Final: +500 " -p -p ucx_perftest -t ucp_get -n 500 -s 65536)
upper_test(ucx_atomic         114 "^Final: +500 " -p -p ucx_perftest -t ucp_fadd -n 500 -s 8)
upper_test(ucx_ud             115 "^Final: +1000 " -p -p ucx_perftest -d soft0:1 -x ud_verbs -t am_lat -n 1000 -s 32)
# With -c every byte is checked. Reliable messages over datagrams; the rest of libfabric: fabric.sh.
upper_test(fabric_pingpong    116 "^64k +100 " -B -P fi_pingpong -p "verbs$<SEMICOLON>ofi_rxd" -e rdm -c -I 100 -S 65536)
add_test(NAME softroce.mpi COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/mpi.sh ${CMAKE_BINARY_DIR})
add_test(NAME softroce.conformance COMMAND ${PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/conformance.py
  ${CMAKE_BINARY_DIR} ${CMAKE_SOURCE_DIR}/docs/conformance.md)
set_tests_properties(softroce.mpi softroce.conformance PROPERTIES
  LABELS "softroce;foreign" TIMEOUT 900 SKIP_RETURN_CODE 77)

# Every size of every perftest program, and every fabtest size: for the long hunt.
function(long_test name number pattern)
  foreign_test(${name} ${number} ${pattern} ${ARGN})
  set_tests_properties(softroce.${name} PROPERTIES LABELS "softroce;foreign;long")
endfunction()
long_test(long_send_bw        130 "^ 8388608 +100 " ib_send_bw -a -n 100)
long_test(long_read_bw        131 "^ 8388608 +100 " ib_read_bw -a -n 100)
long_test(long_write_bw       132 "^ 8388608 +400 " ib_write_bw -a -n 100 -q 4)
long_test(long_write_lat      133 "^ 8388608 +100 " ib_write_lat -a -n 100)
long_test(long_send_lat       134 "^ 8388608 +100 " ib_send_lat -a -n 100)
long_test(long_read_lat       135 "^ 8388608 +100 " ib_read_lat -a -n 100)
long_test(long_send_bw_ud     136 "^ 4096 +500 " ib_send_bw -c UD -a -n 500)
long_test(long_send_lat_ud    137 "^ 4096 +500 " ib_send_lat -c UD -a -n 500)
# Unreliable connections have no flow control: as much is under way as a receiver's socket holds that nobody empties.
long_test(long_send_lat_uc    138 "^ 8388608 +100 " ib_send_lat -c UC -a -n 100)
long_test(long_send_bw_uc     140 "^ 1048576 +20 " ib_send_bw -c UC -s 1048576 -n 20)
long_test(long_write_lat_uc   141 "^ 8388608 +100 " ib_write_lat -c UC -a -n 100)
upper_test(long_fabric        139 "^1.5m +100 " -B -P fi_pingpong -p "verbs$<SEMICOLON>ofi_rxd" -e rdm -c -I 100 -S all)
set_tests_properties(softroce.long_fabric PROPERTIES LABELS "softroce;foreign;long")
