/* SPDX-License-Identifier: BSD-3-Clause */
/* verbs_object.h - what the files of the simulated verbs have in common: their objects */
#ifndef HA_SIM_VERBS_OBJECT_H
#define HA_SIM_VERBS_OBJECT_H

#include "sim/plugin/verbs_engine.h"

#include <sys/queue.h>

struct sim_reorder;

/* What every object of ours begins with behind the verbs' own part. */
struct sim_object {
	/* in sim_verbs.objects: the newest first, so users before what they use */
	LIST_ENTRY(sim_object) entry;
	struct sim_device *dev;
	enum sim_kind kind;
	void *engine; /* NULL: taken away from a process that died */
};

/* clang-format off */
struct sim_context { struct ibv_context ibv; struct sim_object o; };
struct sim_pd { struct ibv_pd ibv; struct sim_object o; };
struct sim_mr { struct ibv_mr ibv; struct sim_object o; };
/* unordered: one of its queue pairs is */
struct sim_cq { struct ibv_cq ibv; struct sim_object o; bool unordered; };
struct sim_srq { struct ibv_srq ibv; struct sim_object o; };
struct sim_qp { struct ibv_qp ibv; struct sim_object o; struct sim_reorder *reorder; };
/* clang-format on */

/* verbs_hot.c: posts and polls. */
extern const struct ha_verbs_hot sim_verbs_hot;

#endif
