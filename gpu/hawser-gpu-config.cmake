# SPDX-License-Identifier: BSD-3-Clause
# find_package(hawser-gpu): the target hawser::gpu, headers and the host's library, wherever the tree was installed.
get_filename_component(hawser_gpu_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
find_package(Threads REQUIRED)
if(NOT TARGET hawser::gpu)
  add_library(hawser::gpu STATIC IMPORTED)
  set_target_properties(hawser::gpu PROPERTIES
    IMPORTED_LOCATION "${CMAKE_CURRENT_LIST_DIR}/../../libhawser-gpu.a"
    INTERFACE_INCLUDE_DIRECTORIES "${hawser_gpu_prefix}/include/hawser"
    INTERFACE_LINK_LIBRARIES "Threads::Threads;${CMAKE_DL_LIBS}")
endif()
