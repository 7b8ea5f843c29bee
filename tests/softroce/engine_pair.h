/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine_pair.h - two NICs on the in-memory wire, one connected queue pair on each: what most
 * engine tests start from
 */
#ifndef TESTS_SOFTROCE_ENGINE_PAIR_H
#define TESTS_SOFTROCE_ENGINE_PAIR_H

#include "base/check.h"
#include "sim/kit/memwire.h"
#include "softroce/engine/engine.h"
#include <stdio.h>
#include <stdlib.h>

#define ALL_ACCESS                                                                   \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)
#define MAX_EVENTS 256

/* One end. */
struct end {
	struct sr_nic *nic;
	struct sr_memwire_port *port;
	union ibv_gid gid;
	struct sr_pd *pd;
	struct sr_mr *mr;
	struct sr_cq *scq, *rcq;
	struct sr_srq *srq;
	struct sr_qp *qp;
	uint8_t *buf;
	enum ibv_event_type events[MAX_EVENTS];
	void *objects[MAX_EVENTS];
	int n_events, n_completions;
};

struct options {
	uint64_t seed;
	enum ibv_mtu mtu;
	size_t buf_size;
	uint32_t psn[2]; /* of end 0's and end 1's sends */
	uint8_t timeout, retry_cnt, rnr_retry, min_rnr_timer, rd_atomic, dest_rd_atomic;
	int qp_access, mr_access;
	uint32_t max_inflight;
	uint32_t max_wr;
	int cqe;
	bool sig_all, use_srq, ipv6;
	/* called before a peer's write is placed; may be NULL */
	void (*placing)(void *user, void *to, const void *from, uint32_t len);
};

struct pair {
	struct options opt;
	struct sr_memwire *mw;
	struct end end[2];
};

extern const struct options default_options;

void pair_open(struct pair *p, const struct options *opt);
/* Queue pairs of both ends from RESET to the given state. */
void pair_connect(struct pair *p, enum ibv_qp_state to);
void pair_close(struct pair *p);

/* Attributes and mask of the transition into a state, as pair_connect() uses them. */
int pair_attr(const struct pair *p, int e, enum ibv_qp_state to, struct ibv_qp_attr *attr);
struct sr_qp *pair_new_qp(struct pair *p, int e, int *err);
void pair_to_state(struct pair *p, int e, struct sr_qp *qp, uint32_t dest_qpn,
		   enum ibv_qp_state to);

/* One buffer entry inside the end's buffer. */
struct ibv_sge make_sge(const struct end *end, size_t offset, uint32_t length);
uint64_t address_of(const struct end *end, size_t offset);
struct ibv_send_wr send_wr(enum ibv_wr_opcode opcode, uint64_t wr_id, struct ibv_sge *list, int n);
/* Fills in the remote address of a write, read or atomic. */
void set_remote_address(struct ibv_send_wr *wr, const struct end *at, size_t offset);
int post_wr(struct pair *p, int e, struct ibv_send_wr *wr);
int post_recv(struct end *end, uint64_t wr_id, size_t offset, uint32_t length);

/* Runs until the queue has a completion and takes it; false when limit_ns pass without. */
bool wait_cq(struct pair *p, struct sr_cq *cq, struct ibv_wc *wc, uint64_t limit_ns);
/* As above, and the completion must have this status. */
struct ibv_wc expect_status(struct pair *p, struct sr_cq *cq, uint64_t wr_id,
			    enum ibv_wc_status status);
void run_for(struct pair *p, uint64_t ns);
int count_events(const struct end *end, enum ibv_event_type type);

/* A packet with a BTH, for injection; payload follows at the returned place. */
uint8_t *make_packet(uint8_t *packet, uint8_t opcode, uint32_t qpn, uint32_t psn, bool ack_request,
		     unsigned pad);
void inject_packet(struct pair *p, int from, const uint8_t *packet, uint32_t len);

void fill_random(uint8_t *buf, size_t len, uint64_t seed);

#endif
