/* SPDX-License-Identifier: BSD-3-Clause */
/* nic.c - the NIC: packets in, packets out, time, port and death */
#include "softroce/engine/nic.h"
#include "softroce/engine/cq.h"
#include "softroce/engine/mr.h"
#include "softroce/engine/packet.h"
#include "softroce/engine/qp.h"
#include "softroce/engine/qp_state.h"
#include "softroce/engine/rc.h"
#include "softroce/engine/service.h"
#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static void no_completion(void *user, struct sr_cq *cq)
{
}

static void no_async(void *user, enum ibv_event_type type, void *object)
{
}

static void no_placing(void *user, void *to, const void *from, uint32_t len)
{
}

/* For the queue pairs, below: one that owes acknowledgements which wait is about to go. */
static void end_wait(struct sr_nic *nic);

struct sr_nic *sr_nic_create(const struct sr_nic_config *config, int *err)
{
	struct sr_nic *nic;

	*err = -EINVAL;
	if (!config->wire_ops || config->active_mtu < IBV_MTU_256 ||
	    config->active_mtu > IBV_MTU_4096)
		return NULL;
	*err = -ENOMEM;
	nic = calloc(1, sizeof(*nic));
	if (!nic)
		return NULL;
	nic->config = *config;
	if (!nic->config.max_inflight || nic->config.max_inflight > 1u << 20)
		nic->config.max_inflight = SR_DEFAULT_INFLIGHT;
	nic->events = (struct sr_event_ops) { .completion = no_completion,
					      .async = no_async,
					      .placing = no_placing };
	if (config->event_ops && config->event_ops->completion)
		nic->events.completion = config->event_ops->completion;
	if (config->event_ops && config->event_ops->async)
		nic->events.async = config->event_ops->async;
	if (config->event_ops && config->event_ops->placing)
		nic->events.placing = config->event_ops->placing;
	nic->rng.state = config->seed;
	nic->link_up = true;
	nic->end_wait = end_wait;
	sr_table_init(&nic->qps, SR_QPN_INDEX_BITS, 24);
	sr_table_init(&nic->mrs, SR_KEY_INDEX_BITS, 32);
	TAILQ_INIT(&nic->owing);
	TAILQ_INIT(&nic->active);
	TAILQ_INIT(&nic->all_qps);
	TAILQ_INIT(&nic->cqs);
	TAILQ_INIT(&nic->srqs);
	TAILQ_INIT(&nic->pds);
	*err = 0;
	return nic;
}

void sr_nic_destroy(struct sr_nic *nic)
{
	while (!TAILQ_EMPTY(&nic->all_qps))
		sr_qp_destroy(TAILQ_FIRST(&nic->all_qps));
	while (!TAILQ_EMPTY(&nic->srqs))
		sr_srq_destroy(TAILQ_FIRST(&nic->srqs));
	while (!TAILQ_EMPTY(&nic->cqs))
		sr_cq_destroy(TAILQ_FIRST(&nic->cqs));
	for (int windows = 1; windows >= 0; windows--) /* a region with a window cannot go */
		for (uint32_t i = 0; i < nic->mrs.n; i++) {
			struct sr_mr *mr = nic->mrs.slot[i].object;

			if (mr && windows == !!mr->window)
				(windows ? sr_mw_destroy : sr_mr_destroy)(mr);
		}
	while (!TAILQ_EMPTY(&nic->pds))
		sr_pd_destroy(TAILQ_FIRST(&nic->pds));
	sr_timers_fini(&nic->timers);
	sr_table_fini(&nic->qps);
	sr_table_fini(&nic->mrs);
	free(nic);
}

static bool from_peer(const struct sr_qp *qp, const struct sr_path *path)
{
	return !memcmp(path->dst, qp->path.dst, 16) && !memcmp(path->src, qp->path.src, 16);
}

void sr_nic_receive(struct sr_nic *nic, uint64_t now, const struct sr_path *path, const void *data,
		    uint32_t len)
{
	struct sr_packet packet;
	struct sr_qp *qp;

	nic->now = now;
	if (nic->dead)
		return;
	if (!nic->link_up) {
		nic->counters.dropped_link_down++;
		return;
	}
	nic->counters.rcvd_pkts++;
	if (sr_packet_parse(&packet, data, len)) {
		nic->counters.dropped_bad_header++;
		return;
	}
	nic->counters.rcvd_bytes += packet.payload_len;
	qp = packet.qpn == SR_QPN_GSI ? nic->gsi : sr_table_find(&nic->qps, packet.qpn);
	if (!qp || qp->state < IBV_QPS_RTR ||
	    qp->service->opcode_class != packet.opcode >> SR_OPCODE_CLASS_SHIFT) {
		nic->counters.dropped_no_qp++;
		return;
	}
	if (!qp->service->anyone && !from_peer(qp, path)) {
		nic->counters.dropped_wrong_peer++;
		return;
	}
	packet.path = path;
	qp->service->receive(qp, &packet);
	sr_nic_settle(nic);
}

/*
 * Lets the queue pair send a quantum, or as much as the wire takes at once: where a packet takes
 * long, a turn must not take many times as long, or what is small and urgent waits for it. A queue
 * pair that could send nothing keeps its turn.
 */
static unsigned take_turn(struct sr_nic *nic, struct sr_qp *qp, unsigned most)
{
	unsigned n = qp->service->transmit(qp, most < SR_QUANTUM ? most : SR_QUANTUM);

	if (nic->wire_full && !n)
		return 0;
	TAILQ_REMOVE(&nic->active, qp, active_link);
	qp->active = qp->service->pending(qp);
	if (qp->active)
		TAILQ_INSERT_TAIL(&nic->active, qp, active_link);
	return n;
}

/* An acknowledgement is late behind a turn of somebody else's data, and the peer would take that
 * for the way's length: as in hardware they go first, at every packet. */
static unsigned send_acks(struct sr_nic *nic, unsigned most)
{
	unsigned n = 0;

	while (n < most && !nic->wire_full && !TAILQ_EMPTY(&nic->owing))
		n += sr_responder_acknowledge(TAILQ_FIRST(&nic->owing));
	return n;
}

static void end_wait(struct sr_nic *nic)
{
	if (nic->dead)
		return;
	nic->acks_until = 0;
	send_acks(nic, UINT_MAX);
	if (nic->config.wire_ops->flush)
		nic->config.wire_ops->flush(nic->config.wire);
}

static bool nothing_to_send(const struct sr_nic *nic)
{
	return TAILQ_EMPTY(&nic->owing) && TAILQ_EMPTY(&nic->active);
}

bool sr_nic_let_acks_wait(struct sr_nic *nic, uint64_t now, uint64_t until)
{
	if (nic->dead || nic->acks_until || nic->urgent || nic->wire_full ||
	    TAILQ_EMPTY(&nic->owing) || !TAILQ_EMPTY(&nic->active) ||
	    sr_timers_next(&nic->timers) <= now)
		return false;
	nic->acks_until = until;
	nic->counters.ack_waited++;
	return true;
}

bool sr_nic_acks_wait(const struct sr_nic *nic)
{
	return nic->acks_until && !nic->urgent && TAILQ_EMPTY(&nic->active);
}

/* One packet that goes before the acknowledgements: of data where these alone fill the wire and
 * each lets the peer send what asks for the next, or one that they have waited for: they are
 * smaller, and the wire has the last packet of a run smaller for nothing. */
static unsigned take_first_turn(struct sr_nic *nic, unsigned most)
{
	bool data = nic->data_waits, request = nic->acks_until;
	unsigned n;

	nic->acks_until = 0;
	if ((!data && !request) || TAILQ_EMPTY(&nic->active))
		return 0;
	nic->data_first = request;
	n = take_turn(nic, TAILQ_FIRST(&nic->active), most);
	nic->data_first = false;
	return n;
}

/* At most `acks` acknowledgements; those left go on waiting for as long as they would have. */
static bool make_progress(struct sr_nic *nic, uint64_t now, unsigned budget, unsigned acks)
{
	unsigned left = budget ? budget : UINT_MAX, n;
	uint64_t until = nic->acks_until;
	struct sr_timer *timer;

	nic->now = now;
	if (nic->dead)
		return false;
	while ((timer = sr_timers_expired(&nic->timers, now))) {
		struct sr_qp *qp = (void *)((char *)timer - offsetof(struct sr_qp, timer));

		qp->service->expired(qp);
	}
	nic->wire_full = false;
	left -= take_first_turn(nic, 1);
	n = send_acks(nic, left < acks ? left : acks);
	left -= n;
	if (acks < UINT_MAX && !nic->wire_full && !TAILQ_EMPTY(&nic->owing))
		nic->acks_until = until;
	nic->urgent = nic->urgent && !TAILQ_EMPTY(&nic->owing);
	nic->data_waits = n && nic->wire_full;
	while (left && !nic->wire_full && !TAILQ_EMPTY(&nic->active)) {
		struct sr_qp *qp = TAILQ_FIRST(&nic->active);

		left -= take_turn(nic, qp, left);
	}
	sr_nic_settle(nic);
	if (nic->config.wire_ops->flush)
		nic->config.wire_ops->flush(nic->config.wire);
	return !nic->wire_full && !nothing_to_send(nic);
}

bool sr_nic_progress(struct sr_nic *nic, uint64_t now, unsigned budget)
{
	return make_progress(nic, now, budget, UINT_MAX);
}

/* A run takes one smaller packet along, at its end. */
void sr_nic_send_posted(struct sr_nic *nic, uint64_t now)
{
	bool wait = nic->acks_until > now && !nic->urgent;

	make_progress(nic, now, 0, wait ? 1 : UINT_MAX);
	nic->acks_left = sr_nic_acks_wait(nic);
}

bool sr_nic_acks_left(struct sr_nic *nic, uint64_t now)
{
	bool left = nic->acks_left && sr_nic_acks_wait(nic) && nic->acks_until > now &&
		    sr_timers_next(&nic->timers) > now;

	nic->acks_left = false;
	return left;
}

uint64_t sr_nic_deadline(const struct sr_nic *nic)
{
	uint64_t next = sr_timers_next(&nic->timers);

	if (nic->dead)
		return SR_NEVER;
	if (!nic->wire_full && !nothing_to_send(nic) && !sr_nic_acks_wait(nic))
		return 0;
	return next < nic->acks_until || !nic->acks_until ? next : nic->acks_until;
}

void sr_nic_set_link(struct sr_nic *nic, bool up)
{
	if (nic->dead || nic->link_up == up)
		return;
	nic->link_up = up;
	sr_nic_async(nic, up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR, NULL);
}

void sr_nic_set_gid(struct sr_nic *nic, unsigned index, const union ibv_gid *gid)
{
	if (index >= SR_GIDS || !memcmp(&nic->config.gid[index], gid, sizeof(*gid)))
		return;
	nic->config.gid[index] = *gid;
	sr_nic_async(nic, IBV_EVENT_GID_CHANGE, NULL);
}

void sr_nic_fail_srqs(struct sr_nic *nic)
{
	struct sr_srq *srq;

	TAILQ_FOREACH(srq, &nic->srqs, link) {
		if (srq->failed)
			continue;
		srq->failed = true;
		sr_nic_async(nic, IBV_EVENT_SRQ_ERR, srq->user);
	}
}

void sr_nic_kill(struct sr_nic *nic)
{
	sr_nic_async(nic, IBV_EVENT_DEVICE_FATAL, NULL);
	nic->dead = true;
	nic->link_up = false;
}

const struct sr_counters *sr_nic_counters(const struct sr_nic *nic)
{
	return &nic->counters;
}
