# SPDX-License-Identifier: BSD-3-Clause
# cmake -DSOURCE=... -DVERSION=... -DOUT=... [-DTEMPLATE=...] -P version.cmake: writes the C file of base/version.h, or TEMPLATE with
# @HAWSER_VERSION@ filled in, and leaves it alone when it would be the same.
set(HAWSER_VERSION ${VERSION})
execute_process(COMMAND git -C ${SOURCE} rev-parse --show-toplevel --short HEAD
  OUTPUT_VARIABLE answer ERROR_QUIET RESULT_VARIABLE failed OUTPUT_STRIP_TRAILING_WHITESPACE)
if(NOT failed AND answer MATCHES "^(.*)\n([0-9a-f]+)$")
  set(commit ${CMAKE_MATCH_2})
  file(REAL_PATH ${CMAKE_MATCH_1} top)
  file(REAL_PATH ${SOURCE} source)
  if(top STREQUAL source) # not another project's repository that we were unpacked in
    execute_process(COMMAND git -C ${SOURCE} diff --quiet HEAD -- RESULT_VARIABLE changed ERROR_QUIET)
    if(changed)
      string(APPEND commit "+")
    endif()
    set(HAWSER_VERSION "${VERSION} (g${commit})")
  endif()
endif()
if(TEMPLATE)
  configure_file(${TEMPLATE} ${OUT} @ONLY)
  return()
endif()
file(CONFIGURE OUTPUT ${OUT} @ONLY CONTENT [[/* written by base/version.cmake */
#include "base/version.h"

const char ha_version[] = "@HAWSER_VERSION@";
]])
