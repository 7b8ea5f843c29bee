/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HAWSER_PERF_LOGGER_H
#define HAWSER_PERF_LOGGER_H

#include "plugin/nccl/abi/types.h"

/*
 * The logger a plugin gets, with NCCL's manners: NCCL_DEBUG sets the level (nothing when unset),
 * NCCL_DEBUG_SUBSYS selects subsystems (default INIT,BOOTSTRAP,ENV, and NET besides, as the plugin
 * is the subject here; ^ excludes),
 * NCCL_DEBUG_FILE redirects (%h host, %p pid). Lines go to standard error otherwise: standard
 * output is the report's.
 */
void ha_logger_print(ncclDebugLogLevel level, unsigned long subsys, const char *file, int line,
		     const char *format, ...) __attribute__((format(printf, 5, 6)));

/*
 * The last warning that a plugin has logged, whether NCCL_DEBUG shows it or not; "" when there is
 * none. A copy, which lasts until this thread asks again.
 */
const char *ha_logger_last_warning(void);

/* Names the rank in the lines to come (NCCL's lines name the GPU at that place). */
void ha_logger_open(int rank);

#endif
