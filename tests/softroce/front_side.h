/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * front_side.h - one end of an RC connection through the public verbs, for tests with two processes
 *
 * The test forks before it opens a device; the two ends exchange their parameters over a socket
 * pair.
 */
#ifndef TESTS_SOFTROCE_FRONT_SIDE_H
#define TESTS_SOFTROCE_FRONT_SIDE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"

struct side {
	int fd; /* to the other end */
	struct ibv_device **list;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	union ibv_gid gid;
	unsigned char *buf;
	size_t size;
	uint64_t peer_addr;
	uint32_t peer_rkey;
};

struct side_options {
	int device;       /* index in the list */
	size_t size;      /* of the buffer; 0 = 64 KiB */
	enum ibv_mtu mtu; /* of the path; 0 = 1024 */
	/* of the queue pair; 0 = 19 and 7: 17 s, since NICs are threads */
	uint8_t timeout, retry_cnt;
};

/* Open the device and make everything up to the queue pair in INIT. */
void side_open(struct side *side, int fd, const struct side_options *options);
/* Exchange parameters with the other end, to RTS. */
void side_connect(struct side *side, const struct side_options *options);
void side_close(struct side *side);
void side_post_recv(struct side *side, uint64_t wr_id, size_t offset, uint32_t len);
void side_post_send(struct side *side, enum ibv_wr_opcode opcode, uint64_t wr_id, size_t offset,
		    uint32_t len);
/* Poll until a completion comes, `ms` at most: true and *wc, or false. */
bool side_wait(struct side *side, struct ibv_wc *wc, int ms);
/* Both ends meet here. */
void side_meet(struct side *side);
/* Run `two` in a child and `one` here, each with its end of a socket pair; ends the program when
 * either failed. */
void side_run(void (*one)(int fd), void (*two)(int fd));
/* Give this test its own devices and its own folder of control pages, removed at the end. */
void side_isolate(const char *devices);

#endif
