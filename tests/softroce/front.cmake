# SPDX-License-Identifier: BSD-3-Clause
# The front end's tests: programs over the public verbs (the drop-in library), and foreign programs over softroce-run.
add_library(front_side STATIC front_side.c)
target_link_libraries(front_side PUBLIC shape_ibverbs softroce_front)

function(front_test name)
  add_executable(${name} ${name}.c)
  target_link_libraries(${name} PRIVATE front_side ${CMAKE_DL_LIBS})
  add_test(NAME softroce.${name} COMMAND ${name} ${ARGN})
  set_tests_properties(softroce.${name} PROPERTIES LABELS softroce TIMEOUT 120 SKIP_RETURN_CODE 77)
endfunction()

front_test(test_front_events)
front_test(test_front_faults)
front_test(test_front_devices)
front_test(test_front_fork)
front_test(test_front_wr)
front_test(test_front_datagram)
front_test(test_front_addresses)
front_test(test_front_idle)
front_test(test_front_verbs)
front_test(test_front_wire)

add_executable(test_front_dropin test_front_dropin.c)
target_link_libraries(test_front_dropin PRIVATE ${CMAKE_DL_LIBS})
add_test(NAME softroce.test_front_dropin COMMAND test_front_dropin $<TARGET_FILE:shape_ibverbs>)
find_package(Python3 COMPONENTS Interpreter REQUIRED)
add_test(NAME softroce.symbols COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/symbols.py
  $<TARGET_FILE:shape_softroce> $<TARGET_FILE:shape_ibverbs>)
set_tests_properties(softroce.test_front_dropin softroce.symbols PROPERTIES
  LABELS softroce SKIP_RETURN_CODE 77)

hawser_fuzzer(devices softroce_front)

# Programs that nobody here wrote. The label `foreign` keeps them out of sanitizer builds: their own objects are not
# instrumented, and what they leak or race with is theirs.
function(foreign_test name number pattern)
  add_test(NAME softroce.${name}
    COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/foreign.sh ${CMAKE_BINARY_DIR} ${number} ${pattern} ${ARGN})
  set_tests_properties(softroce.${name} PROPERTIES LABELS "softroce;foreign" TIMEOUT 130 SKIP_RETURN_CODE 77)
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
foreign_test(write_bw_all       90 "^ 8388608 +20 " ib_write_bw -a -n 10 -b -q 2 -t 5)
foreign_test(write_lat          91 "^ 4096 +100 " ib_write_lat -n 100 -s 4096)
foreign_test(send_bw            92 "^ 65536 +500 " ib_send_bw -n 500)
foreign_test(send_bw_srq        93 "^ 4096 +1000 " ib_send_bw -n 500 -s 4096 --use-srq -q 2 -e)
foreign_test(read_bw            94 "^ 65536 +300 " ib_read_bw -n 300)
foreign_test(atomic_bw          95 "^ 8 +1000 " ib_atomic_bw -n 1000)
foreign_test(atomic_bw_swap     96 "^ 8 +1000 " ib_atomic_bw -n 1000 -A CMP_AND_SWAP)
add_test(NAME softroce.devinfo COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/devinfo.sh ${CMAKE_BINARY_DIR})
set_tests_properties(softroce.devinfo PROPERTIES LABELS "softroce;foreign" TIMEOUT 60 SKIP_RETURN_CODE 77)
add_test(NAME softroce.capture
  COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/capture.py ${CMAKE_BINARY_DIR})
add_test(NAME softroce.netns COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/netns.sh ${CMAKE_BINARY_DIR})
set_tests_properties(softroce.capture softroce.netns PROPERTIES LABELS "softroce;foreign" TIMEOUT 120 SKIP_RETURN_CODE 77)
add_test(NAME softroce.ha_cut COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/ha_cut.sh ${CMAKE_BINARY_DIR})
set_tests_properties(softroce.ha_cut PROPERTIES LABELS "softroce;foreign" TIMEOUT 60 SKIP_RETURN_CODE 77)
