/* SPDX-License-Identifier: BSD-3-Clause */
/* dlopen.h - a libibverbs found at run time, as a table of verbs */
#ifndef HA_VERBS_DLOPEN_H
#define HA_VERBS_DLOPEN_H

#include "rdma/verbs/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Open the library that `choice` (HA_NCCL_VERBS) names:
 *
 * - "system" or "": libibverbs.so, else libibverbs.so.1, as NCCL's own transport looks for it
 * - "soft": the software NIC: softroce/libsoftroce.so beside the file that holds this code (plugin
 *   or program), then libsoftroce.so on the loader's path
 * - a path: that file
 *
 * The library's symbols stay its own (RTLD_LOCAL), so both may live in one process; it is never
 * unloaded, because drivers keep threads and fork handlers. A failure is one line in the log that
 * says what to install or set. -ENOENT: no such library. -ENOSYS: it lacks functions that we need.
 * -ENOMEM.
 */
int ha_verbs_open_library(const char *choice, struct ha_verbs_ops **ops);

/* Contexts and objects made through the table must be gone. NULL is fine. */
void ha_verbs_close_library(struct ha_verbs_ops *ops);

#ifdef __cplusplus
}
#endif

#endif
