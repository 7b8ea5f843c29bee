/* SPDX-License-Identifier: BSD-3-Clause */
/* idle_cq.h - a completion queue in which nothing ever is, for connections in memory alone */
#ifndef HA_TESTS_PLUGIN_IDLE_CQ_H
#define HA_TESTS_PLUGIN_IDLE_CQ_H

#include <infiniband/verbs.h>

static inline int poll_nothing(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	(void)cq;
	(void)n;
	(void)wc;
	return 0;
}

#endif
