/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HAWSER_PERF_PROXY_H
#define HAWSER_PERF_PROXY_H

#include <stdbool.h>

struct ha_mesh;

/*
 * proxy - what NCCL's proxy thread does with the network: posts, tests, flushes, all without
 * blocking
 *
 * The order of calls and the state of the *request words on entry are NCCL's
 * (src/transport/net.cc): a send's word holds whatever the last use of the slot left there, a
 * receive's is NULL or the optional-completion sentinel. A refused request (NULL) is tried again in
 * the next pass. With shuffle, any posted request may be tested, not only the oldest.
 */

/*
 * One pass over all connections; *moved is set when something was posted or completed. 0 or -EIO,
 * fault recorded.
 */
int ha_proxy_progress(struct ha_mesh *mesh, bool *moved);

/* Whether all the steps of the operation are posted, complete and read. */
bool ha_proxy_idle(const struct ha_mesh *mesh);

/* Prepares the connections for an operation whose lanes have their totals set. */
void ha_proxy_start(struct ha_mesh *mesh);

/* After the operation: moves the bases on. */
void ha_proxy_finish(struct ha_mesh *mesh);

/* Names the first thing the rank waits for, for the line that ends a stuck run. */
void ha_proxy_describe(const struct ha_mesh *mesh, char *text, int size);

#endif
