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
front_test(test_front_addresses)

add_executable(test_front_dropin test_front_dropin.c)
target_link_libraries(test_front_dropin PRIVATE ${CMAKE_DL_LIBS})
add_test(NAME softroce.test_front_dropin COMMAND test_front_dropin $<TARGET_FILE:shape_ibverbs>)
find_package(Python3 COMPONENTS Interpreter REQUIRED)
add_test(NAME softroce.symbols COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/symbols.py
  $<TARGET_FILE:shape_softroce> $<TARGET_FILE:shape_ibverbs>)
set_tests_properties(softroce.test_front_dropin softroce.symbols PROPERTIES LABELS softroce SKIP_RETURN_CODE 77)

if(HAWSER_FUZZ)
  add_executable(fuzz_devices fuzz_devices.c)
  target_link_libraries(fuzz_devices PRIVATE softroce_front)
  target_compile_options(fuzz_devices PRIVATE -fsanitize=fuzzer)
  target_link_options(fuzz_devices PRIVATE -fsanitize=fuzzer)
  set_target_properties(fuzz_devices PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
endif()
