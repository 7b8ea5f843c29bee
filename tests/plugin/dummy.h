/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dummy.h - verbs whose objects exist and do nothing
 *
 * For what happens around the data path: set-up, failures, registrations. Counts what is alive.
 * Data is moved in the tests on the software NIC.
 */
#ifndef HA_TESTS_CORE_DUMMY_H
#define HA_TESTS_CORE_DUMMY_H

#include "base/clock.h"
#include "base/config.h"
#include "plugin/core.h"
#include "tests/plugin/oob_mem.h"
#include "tests/rdma/verbs/fake.h"

#define DUMMY_EVENTS 8

struct dummy {
	struct fake_verbs fake; /* first: its ops are the table */
	struct fake_device devices[2];
	/* What reg_mr refuses: these access bits with this error; more than so many registrations
	 * with -ENOMEM. */
	unsigned refused_access;
	int refused_error;
	int mr_limit;  /* 0 = none */
	int mrs;       /* alive */
	int ece;       /* query_ece offers options */
	int flush_qps; /* queue pairs without a shared receive queue ever made */
	uint32_t next_number;
	unsigned last_access;
	int relaxed_mrs; /* ever registered with relaxed ordering */
	int direct_mrs;  /* ever registered for data direct */
	uint64_t last_offset;
	struct ibv_qp_attr last_init, last_rtr, last_rts;
	uint32_t last_ece;
	struct ibv_async_event events[DUMMY_EVENTS]; /* to come, from the first; type -1 = none */
	int nevents;
	uint32_t inline_limit; /* create_qp refuses more; 0 = anything goes */
	/* It says that its queue pairs may take messages in any order; making one fails with this
	 * error, 0 = it does not; how many were ever made. */
	bool unordered, first_alone; /* first_alone: its second device cannot */
	int unordered_error, unordered_qps;
};

/* Two RoCE devices, dummy0 and dummy1. */
void dummy_init(struct dummy *d);
/* Checks that nothing is left. */
void dummy_done(struct dummy *d);
/* An event of device 0, port 1, or of a queue pair. */
void dummy_event(struct dummy *d, enum ibv_event_type type, struct ibv_qp *qp);

/* Two hosts on one network with virtual time, driven by hand. */
struct world {
	struct dummy dummy[2]; /* of a and of b */
	struct oob_mem net;
	struct ha_clock_virtual clock;
	struct ha_config config;
	struct ha_ctx *a, *b; /* a listens, b connects */
};

/* Everything but the contexts, so that the test can change it first. */
void world_prepare(struct world *w);
void world_open(struct world *w);
/* verbs_a, verbs_b: other tables over the dummies', or NULL. */
int world_open_over(struct world *w, const struct ha_verbs_ops *verbs_a,
		    const struct ha_verbs_ops *verbs_b);
void world_close(struct world *w);
/* A connection from b to a. */
void world_connect(struct world *w, struct ha_listen **listen, struct ha_send **send,
		   struct ha_recv **recv);
/* Let `ms` pass in steps, both hosts at work. */
void world_run(struct world *w, unsigned ms);

#endif
