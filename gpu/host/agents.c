/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * agents.c - the failover agents of a device's connections, stepped by one thread per primary
 * device
 *
 * The thread sleeps while nothing moves, at most a tenth of the check interval. It also repairs
 * what kernels that died left behind, because only it may change a connection's words while an
 * agent looks after them.
 */
#include "gpu/host/state.h"

#include "base/log.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <time.h>

/*
 * A connection without a backup has one path; the other is over and never tried again, at both ends
 * alike.
 */
static void without_backup(struct ha_gpu_agent *a)
{
	a->path[1].state = HA_GPU_PATH_OVER;
	a->path[1].retry_at = UINT64_MAX;
	ha_gpu_store(&a->conn->health[1], HA_GPU_FAILED);
}

static struct ha_gpu_ep *end_of(const struct ha_gpu_row *row, int role, int pes, int pe)
{
	struct ha_gpu_ep *e;

	if (row->i[role] == UINT_MAX)
		return NULL;
	e = row->slot->rc[role].eps[row->i[role] * (unsigned)pes + (unsigned)pe];
	return e && e->connected ? e : NULL;
}

int ha_gpu_agents_make(struct ha_gpu_host *h, unsigned r)
{
	struct ha_gpu_row *row = &h->row[r];
	struct ha_gpu_agent_config config;
	struct ha_gpu_channel channel;
	int result = 0;

	ha_gpu_settings_agent(&h->config.settings, &config);
	row->agent = calloc((size_t)h->pes, sizeof(*row->agent));
	row->has_agent = calloc((size_t)h->pes, sizeof(*row->has_agent));
	if (!row->agent || !row->has_agent)
		return -ENOMEM;
	for (int pe = 0; pe < h->pes && !result; pe++) {
		struct ha_gpu_ep *backup = end_of(row, HA_GPU_BACKUP, h->pes, pe);

		if (pe == h->pe)
			continue;
		result = ha_gpu_messages_lane(h->messages, pe, r, &channel);
		if (!result)
			result = ha_gpu_agent_init(
				&row->agent[pe], &row->conn[pe],
				r < h->world->dc ? &ha_gpu_dc_path_ops : &ha_gpu_ep_path_ops,
				end_of(row, HA_GPU_PRIMARY, h->pes, pe), backup, &channel, &config);
		if (result)
			break;
		row->has_agent[pe] = true;
		if (!backup)
			without_backup(&row->agent[pe]);
	}
	return result;
}

void ha_gpu_agents_free(struct ha_gpu_host *h, unsigned r)
{
	struct ha_gpu_row *row = &h->row[r];

	for (int pe = 0; pe < h->pes && row->has_agent; pe++)
		if (row->has_agent[pe])
			ha_gpu_agent_end(&row->agent[pe]);
	free(row->agent);
	free(row->has_agent);
	row->agent = NULL;
	row->has_agent = NULL;
}

/* ---- repair: no thread is in the connection, an agent may be in the middle of a switch ---- */

static void fill_entry(struct ha_gpu_conn *c, const struct ha_gpu_path *p, uint64_t index)
{
	struct ha_gpu_wqe e;

	if (c->proof_every && (index & (c->proof_every - 1)) == c->proof_every - 1) {
		ha_gpu_write_fixed_proof(c, p, index);
		return;
	}
	ha_gpu_wqe_nop(&e, p->qpn, ha_gpu_hw_index(p, index), HA_GPU_WQE_SIGNALED);
	ha_gpu_write_entry(c, p, index, &e);
}

/* The signal of a request that was written and never published: its sum goes back, or the peer
 * would serve the next request twice. Only one that is not counted in `asked`: what lies in a slot
 * may be of an older incarnation. */
static void take_back_request(struct ha_gpu_conn *c, const struct ha_gpu_path *p, uint64_t index)
{
	struct ha_gpu_wqe e;

	if (c->sent[HA_GPU_SIGNAL_ASK] == ha_gpu_load(&c->asked))
		return;
	ha_gpu_read_entry(c, p, index, &e);
	if (ha_gpu_wqe_opcode(&e) == HA_GPU_OP_WRITE &&
	    ha_gpu_wqe_index(&e) == ha_gpu_hw_index(p, index) && ha_gpu_wqe_is_inline(&e) &&
	    ha_gpu_wqe_raddr(&e) == ha_gpu_slot_address(c, p, HA_GPU_SIGNAL_ASK) &&
	    ha_gpu_wqe_inline64(&e) == c->sent[HA_GPU_SIGNAL_ASK])
		c->sent[HA_GPU_SIGNAL_ASK]--;
}

static unsigned repair_conn(struct ha_gpu_agent *a)
{
	struct ha_gpu_conn *c = a->conn;
	const struct ha_gpu_path *p = ha_gpu_active_path(c);
	uint64_t ready = ha_gpu_load(&c->ready), end = ha_gpu_load(&c->resv) & HA_GPU_INDEX;

	for (uint64_t i = ready; i < end; i++)
		take_back_request(c, p, i);
	for (uint64_t i = ready; i < end; i++)
		fill_entry(c, p, i);
	ha_gpu_store(&c->asked, c->sent[HA_GPU_SIGNAL_ASK]);
	ha_gpu_store(&c->asking, 0);
	if (a->carrying || a->path[ha_gpu_load(&c->active)].state == HA_GPU_PATH_CLOSING)
		ha_gpu_store_sc(&c->bell, 0);
	ha_gpu_store_sc(&c->ready, end);
	if (a->carrying)
		ha_gpu_ring(c);
	return (unsigned)(end - ready);
}

/* ---- the thread ---- */

struct task {
	struct ha_gpu_host *host;
	struct ha_gpu_slot_state *slot;
	uint64_t seen; /* repairs before its time */
};

static bool step_rows(struct ha_gpu_host *h, struct ha_gpu_slot_state *slot, bool mend)
{
	uint64_t n = ha_gpu_load(&h->nrows);
	bool moved = false;

	for (uint64_t r = 0; r < n; r++) {
		struct ha_gpu_row *row = &h->row[r];

		for (int pe = 0; row->slot == slot && pe < h->pes; pe++) {
			if (pe == h->pe)
				continue;
			if (mend)
				ha_gpu_add(&h->filled, repair_conn(&row->agent[pe]));
			moved |= ha_gpu_agent_step(&row->agent[pe]);
		}
	}
	return moved;
}

/* What others may read while the agents are at work. */
static void publish_counts(struct ha_gpu_host *h, struct ha_gpu_slot_state *slot)
{
	uint64_t n = ha_gpu_load(&h->nrows), switches = 0, replayed = 0, suspicions = 0;

	for (uint64_t r = 0; r < n; r++)
		for (int pe = 0; h->row[r].slot == slot && pe < h->pes; pe++) {
			switches += h->row[r].agent[pe].count.switches;
			replayed += h->row[r].agent[pe].count.replayed;
			suspicions += h->row[r].agent[pe].count.suspicions;
		}
	ha_gpu_store(&slot->switches, switches);
	ha_gpu_store(&slot->replayed, replayed);
	ha_gpu_store(&slot->suspicions, suspicions);
}

static void *run_agents(void *arg)
{
	struct task t = *(struct task *)arg;
	uint64_t nap = t.host->config.settings.check_ms * 100000, seen = t.seen, want;
	struct timespec pause = { 0, (long)(nap < 500000 ? nap : 500000) };
	bool moved;

	free(arg);
	while (!ha_gpu_load(&t.host->stop)) {
		want = ha_gpu_load(&t.host->repair);
		moved = step_rows(t.host, t.slot, want != seen);
		publish_counts(t.host, t.slot);
		if (want != seen)
			ha_gpu_add(&t.host->repaired, 1);
		seen = want;
		if (!moved && !t.host->config.settings.proxied)
			nanosleep(&pause, NULL);
		else
			ha_gpu_pause();
	}
	return NULL;
}

int ha_gpu_agents_start(struct ha_gpu_host *h)
{
	struct task *t;
	int r = 0;

	for (int s = 0; s < h->nslots && !r; s++) {
		if (h->slot[s].running)
			continue;
		t = malloc(sizeof(*t));
		if (!t)
			return -ENOMEM;
		*t = (struct task) { h, &h->slot[s], ha_gpu_load(&h->repair) };
		r = -pthread_create(&h->slot[s].thread, NULL, run_agents, t);
		h->slot[s].running = !r;
		if (r)
			free(t);
	}
	return r;
}

void ha_gpu_agents_stop(struct ha_gpu_host *h)
{
	ha_gpu_store(&h->stop, 1);
	for (int s = 0; s < h->nslots; s++)
		if (h->slot[s].running) {
			pthread_join(h->slot[s].thread, NULL);
			h->slot[s].running = false;
		}
	ha_gpu_store(&h->stop, 0);
}
