/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fake.h - a table of verbs for machines that are not here
 *
 * Describes devices and answers queries about them, nothing more: what moves data is tested on the
 * software NIC.
 */
#ifndef HA_TESTS_VERBS_FAKE_H
#define HA_TESTS_VERBS_FAKE_H

#include <stdbool.h>

#include "rdma/verbs/ops.h"

#define FAKE_GIDS 8

struct fake_port {
	enum ibv_port_state state;
	int link_layer;
	int width, speed, speed_ex; /* attribute values */
	uint64_t effective_mbps;    /* query_port_speed; 0: the library does not have it */
	uint16_t lid;
	int error; /* of query_port, negative errno */
	struct {
		const char *address; /* IPv4 or IPv6; NULL: empty */
		int version;         /* 1, 2; 0: unknown to the library */
	} gids[FAKE_GIDS];
};

struct fake_device {
	const char *name;
	const char *folder; /* what the library says of its place in sysfs, or NULL */
	uint64_t guid, card_guid;
	int nports; /* 1 or 2 */
	struct fake_port ports[2];
	bool away;                   /* not listed */
	int open_error, query_error; /* negative errno */
	int dma_buf_error;           /* what registering a dma-buf says */
	const char *data_direct;     /* path of the function that data takes, or NULL */
};

struct fake_verbs {
	struct ha_verbs_ops ops; /* first */
	struct fake_device *devices;
	int n;
	bool without_gid_ex;    /* as libraries before rdma-core 34, */
	bool without_gid_table; /* and where it must be asked for each entry */
	int gid_queries;        /* calls so far that ask for GIDs */
	int list_error;
	_Atomic int open_contexts, objects, lists; /* that nobody gave back */
	/* What poll_cq gives out: completions with wr_id 1, 2, ... */
	int completions;
	uint64_t next_wr_id;
	int posted;
};

void fake_verbs_init(struct fake_verbs *fake, struct fake_device *devices, int n);
void fake_verbs_done(struct fake_verbs *fake); /* checks that nothing is left open */

/* An active RoCE port of 400 Gb/s with the usual table: link-local and IPv4 of both versions. */
struct fake_port fake_roce_port(const char *ipv4);
/* An active InfiniBand port, NDR x4. */
struct fake_port fake_ib_port(uint16_t lid);

#endif
