# SPDX-License-Identifier: BSD-3-Clause
# The protocol engine's tests: each a program over the in-memory wire in virtual time.
add_library(engine_pair STATIC engine_pair.c engine_lone.c)
target_link_libraries(engine_pair PUBLIC ha_sim_kit Threads::Threads)
function(engine_test name)
  add_executable(${name} ${name}.c)
  target_link_libraries(${name} engine_pair)
  add_test(NAME softroce.${name} COMMAND ${name})
  set_tests_properties(softroce.${name} PROPERTIES LABELS "softroce;${ARGN}" TIMEOUT 900)
endfunction()

foreach(name ops loss rnr retry nak state srq atomic port icrc hostile parts repair datagram uc window mutated
    placing ack_waits)
  engine_test(test_engine_${name} one-thread)
endforeach()
engine_test(test_engine_cq)
engine_test(test_engine_mr)

add_test(NAME softroce.million_mutated COMMAND test_engine_mutated 1000000 7)
set_tests_properties(softroce.million_mutated PROPERTIES LABELS "softroce;long" TIMEOUT 900)

hawser_fuzzer(packet softroce_engine)

add_executable(perf_engine perf_engine.c)
target_link_libraries(perf_engine PRIVATE softroce_engine)
add_test(NAME softroce.perf_engine COMMAND perf_engine)
set_tests_properties(softroce.perf_engine PROPERTIES LABELS softroce TIMEOUT 900)
