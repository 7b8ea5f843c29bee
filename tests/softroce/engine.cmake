# SPDX-License-Identifier: BSD-3-Clause
# The protocol engine's tests: each a program over the in-memory wire in virtual time.
add_library(engine_pair STATIC engine_pair.c)
target_link_libraries(engine_pair PUBLIC softroce_engine)
function(engine_test name)
  add_executable(${name} ${name}.c)
  target_link_libraries(${name} engine_pair)
  add_test(NAME softroce.${name} COMMAND ${name})
  set_tests_properties(softroce.${name} PROPERTIES LABELS softroce TIMEOUT 120)
endfunction()

foreach(name ops loss rnr retry nak state srq cq mr atomic port icrc hostile parts repair)
  engine_test(test_engine_${name})
endforeach()

if(HAWSER_FUZZ)
  add_executable(fuzz_packet fuzz_packet.c)
  target_link_libraries(fuzz_packet PRIVATE softroce_engine)
  target_compile_options(fuzz_packet PRIVATE -fsanitize=fuzzer)
  target_link_options(fuzz_packet PRIVATE -fsanitize=fuzzer)
  set_target_properties(fuzz_packet PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
endif()
