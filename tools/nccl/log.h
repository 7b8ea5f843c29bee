/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HAWSER_TOOL_NCCL_LOG_H
#define HAWSER_TOOL_NCCL_LOG_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* log - what NCCL has written into the log of this process, where that goes to a file */

/* Calls `take` for each line, without what comes before the message; false when there is no log. */
bool nccl_log_read(void (*take)(void *context, const char *message), void *context);

/* The last warning, "" when there was none; and the last one that a network plugin has logged
 * ("NET/HA: ..."), of which NCCL's own may only be the consequence. */
void nccl_log_warning(char *text, size_t size);
void nccl_log_plugin_warning(char *text, size_t size);

#endif
