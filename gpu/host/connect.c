/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * connect.c - connections to all peers: the first, and more of them later
 *
 * A growth makes its queue pairs, exchanges their handles (primaries and backups apart, each by its
 * own count), takes them to RTS, puts the new rows together and only then counts them. Nothing that
 * exists is moved, so kernels that run notice nothing; only what is new is copied. Any step may
 * fail here or at another process: then everybody takes his part back.
 */
#include "gpu/host/state.h"

#include "base/log.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

struct growth {
	struct ha_gpu_host *h;
	bool dc;
	unsigned n[HA_GPU_ROLES]; /* per slot and peer */
	unsigned first_row, rows;
	unsigned *had[HA_GPU_ROLES]; /* [slot]: num_eps_per_pe before */
	struct ha_gpu_pool **pool;   /* [slot * ROLES + role] */
};

/* ---- queue pairs ---- */

static int grow_array(struct ha_gpu_host *h, struct ha_gpu_rc *rc, unsigned n)
{
	size_t had = (size_t)rc->num_eps_per_pe * (size_t)h->pes, more = (size_t)n * (size_t)h->pes;
	struct ha_gpu_ep **eps = realloc(rc->eps, (had + more) * sizeof(*eps));

	if (!eps)
		return -ENOMEM;
	memset(eps + had, 0, more * sizeof(*eps));
	rc->eps = eps;
	return 0;
}

/*
 * Not to myself; each process begins with the next one, so that they do not all begin with the
 * same.
 */
static int make_role(struct growth *g, int s, int role)
{
	struct ha_gpu_host *h = g->h;
	struct ha_gpu_rc *rc = &h->slot[s].rc[role];
	struct ha_gpu_device *d = h->slot[s].device[role];
	struct ha_gpu_pool **pool = &g->pool[s * HA_GPU_ROLES + role];
	unsigned n = g->n[role];
	int r = n ? grow_array(h, rc, n) : 0;

	if (r || !n)
		return r;
	rc->num_eps_per_pe += n;
	if (!d || h->pes == 1)
		return 0;
	r = ha_gpu_pool_make(d, n * (unsigned)(h->pes - 1), g->dc, pool);
	for (unsigned i = 0; i < n && !r; i++)
		for (int j = 1; j < h->pes && !r; j++) {
			unsigned pe = (unsigned)(h->pe + j) % (unsigned)h->pes;

			r = ha_gpu_ep_make(*pool,
					   &rc->eps[(g->had[role][s] + i) * (unsigned)h->pes + pe]);
		}
	return r;
}

static int make_queue_pairs(struct growth *g)
{
	int r = 0;

	for (int s = 0; s < g->h->nslots && !r; s++)
		for (int role = 0; role < HA_GPU_ROLES && !r; role++)
			r = make_role(g, s, role);
	return r;
}

/* ---- rows ---- */

static size_t conn_bytes(const struct ha_gpu_host *h)
{
	return sizeof(struct ha_gpu_conn) * (size_t)h->pes;
}

static struct ha_gpu_mailbox *mailbox_of(const struct ha_gpu_host *h, const struct ha_gpu_row *row,
					 int pe)
{
	return (struct ha_gpu_mailbox *)((char *)row->memory + conn_bytes(h)) + pe;
}

static uint64_t *scratch_of(const struct ha_gpu_host *h, const struct ha_gpu_row *row, int pe)
{
	return (uint64_t *)((char *)row->memory + conn_bytes(h) +
			    sizeof(struct ha_gpu_mailbox) * (size_t)h->pes) +
	       8 * pe;
}

static struct ha_gpu_device *device_of(const struct ha_gpu_row *row, int role)
{
	return row->i[role] == UINT_MAX ? NULL : row->slot->device[role];
}

/* Mailboxes and scratches are registered; the connections before them are nobody's but ours. */
static int make_row(struct ha_gpu_host *h, struct ha_gpu_row *row)
{
	size_t shared = (sizeof(struct ha_gpu_mailbox) + 64) * (size_t)h->pes;
	int r;

	row->bytes = conn_bytes(h) + shared;
	r = h->ops->mem_alloc(h->config.hw, row->bytes, &row->memory);
	row->conn = row->memory;
	for (int role = 0; role < HA_GPU_ROLES && !r; role++) {
		struct ha_gpu_device *d = device_of(row, role);

		if (!d)
			continue;
		r = h->ops->mr_reg(d->pd, (char *)row->memory + conn_bytes(h), shared, true,
				   &row->mr[role]);
		row->registered[role] = !r;
		if (r)
			HA_WARN(d->name, "does not register the signals of a row: %s",
				strerror(-r));
	}
	return r;
}

static int make_rows(struct growth *g)
{
	struct ha_gpu_host *h = g->h;
	unsigned r = g->first_row;
	int result = 0;

	for (int s = 0; s < h->nslots; s++)
		for (unsigned i = 0; i < g->n[HA_GPU_PRIMARY]; i++, r++) {
			struct ha_gpu_row *row = &h->row[r];

			memset(row, 0, sizeof(*row));
			row->slot = &h->slot[s];
			row->i[HA_GPU_PRIMARY] = g->had[HA_GPU_PRIMARY][s] + i;
			row->i[HA_GPU_BACKUP] =
				i < g->n[HA_GPU_BACKUP] ? g->had[HA_GPU_BACKUP][s] + i : UINT_MAX;
		}
	for (r = g->first_row; r < g->first_row + g->rows && !result; r++)
		result = make_row(h, &h->row[r]);
	return result;
}

static struct ha_gpu_ep *ep_of(const struct ha_gpu_host *h, const struct ha_gpu_row *row, int role,
			       int pe)
{
	return row->i[role] == UINT_MAX
		       ? NULL
		       : row->slot->rc[role].eps[row->i[role] * (unsigned)h->pes + (unsigned)pe];
}

void ha_gpu_rows_free(struct ha_gpu_host *h, unsigned from)
{
	for (unsigned r = from; r < HA_GPU_ROWS_MAX && h->row[r].slot; r++) {
		struct ha_gpu_row *row = &h->row[r];

		ha_gpu_agents_free(h, r);
		for (int role = HA_GPU_ROLES - 1; role >= 0; role--)
			if (row->registered[role])
				h->ops->mr_dereg(&row->mr[role]);
		if (row->memory)
			h->ops->mem_free(h->config.hw, row->memory, row->bytes);
		memset(row, 0, sizeof(*row));
	}
}

/* ---- handles ---- */

/* One role's handles, [pe][slot][i], of rows that have it. */
static int exchange_handles(struct growth *g, int role)
{
	struct ha_gpu_host *h = g->h;
	unsigned n = g->n[role], each = n * (unsigned)h->nslots, per = g->n[HA_GPU_PRIMARY];
	struct ha_gpu_rc_handle *mine, *theirs;
	int r;

	if (!each)
		return 0;
	mine = calloc((size_t)each * (size_t)h->pes * 2, sizeof(*mine));
	if (!mine)
		return -ENOMEM;
	theirs = mine + each * (unsigned)h->pes;
	for (unsigned k = 0; k < each * (unsigned)h->pes; k++) {
		int pe = (int)(k / each);
		struct ha_gpu_row *row = &h->row[g->first_row + k % each / n * per + k % n];
		struct ha_gpu_ep *e = ep_of(h, row, role, pe);

		if (!e)
			continue;
		e->link.local.mailbox = (uint64_t)(uintptr_t)mailbox_of(h, row, pe);
		e->link.local.mailbox_key = row->mr[role].rkey;
		mine[k] = e->link.local;
	}
	r = h->config.bootstrap->alltoall(h->config.bootstrap->self, mine, theirs,
					  each * sizeof(*mine));
	for (unsigned k = 0; k < each * (unsigned)h->pes && !r; k++) {
		struct ha_gpu_row *row = &h->row[g->first_row + k % each / n * per + k % n];
		struct ha_gpu_ep *e = ep_of(h, row, role, (int)(k / each));

		if (e && theirs[k].qpn)
			e->link.peer = theirs[k];
	}
	free(mine);
	return r;
}

/*
 * A backup that does not come up is no backup, at both ends; a primary that does not ends the
 * growth.
 */
static int connect_role(struct growth *g, int role)
{
	struct ha_gpu_host *h = g->h;
	int r;

	for (unsigned k = g->first_row; k < g->first_row + g->rows; k++)
		for (int pe = 0; pe < h->pes; pe++) {
			struct ha_gpu_ep *e = ep_of(h, &h->row[k], role, pe);

			if (!e)
				continue;
			if (!e->link.peer.qpn) {
				if (role == HA_GPU_PRIMARY)
					return -EPROTO;
				continue;
			}
			r = ha_gpu_ep_connect(e, 0);
			if (r) {
				HA_WARN(e->device->name, "does not connect to rank %d: %s", pe,
					strerror(-r));
				return r;
			}
			e->connected = true;
		}
	return 0;
}

/* ---- what kernels see ---- */

static void describe_path(struct ha_gpu_host *h, const struct ha_gpu_row *row, int role, int pe,
			  struct ha_gpu_path *p)
{
	const struct ha_gpu_ep *e = ep_of(h, row, role, pe);
	const struct ha_gpu_keys *keys = &row->slot->keys[role];

	if (!e || !e->connected)
		return;
	ha_gpu_ep_describe(e, p);
	p->lkey = row->slot->device[role]->lkey;
	p->nlkey = h->chunks;
	p->rkey = keys->rkey + (size_t)pe * keys->stride;
	p->nrkey = (uint32_t)h->heap[pe].chunks;
	p->mailbox = e->link.peer.mailbox;
	p->mailbox_key = e->link.peer.mailbox_key;
	p->scratch_key = row->mr[role].lkey;
}

static void describe_conn(struct ha_gpu_host *h, const struct ha_gpu_row *row, int pe,
			  struct ha_gpu_conn *c)
{
	const struct ha_gpu_settings *s = &h->config.settings;

	memset(c, 0, sizeof(*c));
	if (pe == h->pe) {
		c->resv = HA_GPU_CLOSED | HA_GPU_DOWN;
		return;
	}
	c->nwqes = (uint32_t)s->qp_depth;
	c->proof_every = (uint32_t)s->proof_every;
	c->proxied = (uint32_t)s->proxied;
	c->chunk = (uint32_t)s->chunk_log;
	c->apart = h->heap[pe].apart;
	c->local = (uint64_t)(uintptr_t)h->config.heap;
	c->local_bytes = h->config.heap_bytes;
	c->remote = h->heap[pe].address;
	c->remote_bytes = h->heap[pe].bytes;
	c->mailbox = mailbox_of(h, row, pe);
	c->scratch = scratch_of(h, row, pe);
	for (int role = 0; role < HA_GPU_ROLES; role++)
		describe_path(h, row, role, pe, &c->path[role]);
	ha_gpu_use_path(c, 0);
}

/* Put together here, and copied in one piece: the new row alone. */
static int populate_rows(struct growth *g)
{
	struct ha_gpu_host *h = g->h;
	struct ha_gpu_conn *staged = aligned_alloc(64, (conn_bytes(h) + 63) & ~(size_t)63);
	int result = staged ? 0 : -ENOMEM;

	for (unsigned r = g->first_row; r < g->first_row + g->rows && !result; r++) {
		for (int pe = 0; pe < h->pes; pe++)
			describe_conn(h, &h->row[r], pe, &staged[pe]);
		memcpy(h->row[r].conn, staged, conn_bytes(h));
		ha_gpu_store(&h->world->row[r], (uint64_t)(uintptr_t)h->row[r].conn);
		result = ha_gpu_agents_make(h, r);
	}
	free(staged);
	return result;
}

/* ---- one growth ---- */

static void undo_growth(struct growth *g)
{
	struct ha_gpu_host *h = g->h;
	uint64_t deadline = ha_gpu_now() + HA_GPU_DRAIN_NS;

	for (int s = h->nslots - 1; s >= 0; s--)
		for (int role = HA_GPU_ROLES - 1; role >= 0; role--) {
			struct ha_gpu_rc *rc = &h->slot[s].rc[role];

			for (unsigned k = g->had[role][s] * (unsigned)h->pes;
			     k < rc->num_eps_per_pe * (unsigned)h->pes; k++)
				if (rc->eps[k]) {
					ha_gpu_ep_fence(rc->eps[k], deadline);
					ha_gpu_ep_free(rc->eps[k]);
				}
			rc->num_eps_per_pe = g->had[role][s];
			if (!rc->num_eps_per_pe) {
				free(rc->eps);
				rc->eps = NULL;
			}
			if (g->pool[s * HA_GPU_ROLES + role])
				ha_gpu_pool_free(g->pool[s * HA_GPU_ROLES + role]);
		}
	ha_gpu_rows_free(h, g->first_row);
	for (unsigned r = g->first_row; r < g->first_row + g->rows; r++)
		ha_gpu_store(&h->world->row[r], 0);
	if (g->dc)
		h->world->dc = 0;
	ha_gpu_messages_drop(h->messages, g->first_row);
}

/* Steps between which all processes agree. */
static int take_steps(struct growth *g)
{
	struct ha_gpu_bootstrap *b = g->h->config.bootstrap;
	int r = make_queue_pairs(g);

	if (!r)
		r = make_rows(g);
	r = ha_gpu_bootstrap_agree(b, r);
	for (int role = 0; role < HA_GPU_ROLES && !r; role++)
		r = exchange_handles(g, role);
	for (int role = 0; role < HA_GPU_ROLES && !r; role++)
		r = connect_role(g, role);
	if (!r)
		r = populate_rows(g);
	if (!r)
		r = ha_gpu_agents_start(g->h);
	return ha_gpu_bootstrap_agree(b, r);
}

static int save_counts(struct growth *g)
{
	struct ha_gpu_host *h = g->h;

	for (int role = 0; role < HA_GPU_ROLES; role++) {
		g->had[role] = calloc((size_t)h->nslots, sizeof(unsigned));
		if (!g->had[role])
			return -ENOMEM;
		for (int s = 0; s < h->nslots; s++)
			g->had[role][s] = h->slot[s].rc[role].num_eps_per_pe;
	}
	g->pool = calloc((size_t)h->nslots * HA_GPU_ROLES, sizeof(*g->pool));
	return g->pool ? 0 : -ENOMEM;
}

static void count_rows(struct growth *g)
{
	struct ha_gpu_host *h = g->h;

	h->copied += g->rows * (conn_bytes(h) + sizeof(uint64_t));
	ha_gpu_store(&h->nrows, g->first_row + g->rows);
	ha_gpu_store(&h->world->nrows, g->first_row + g->rows);
}

/* What a process adds, as it sends it to the others. */
struct plan {
	uint32_t n[HA_GPU_ROLES], dc;
	int32_t status;
};

/* All add the same, and all can: 0, or an error that all get. */
static int agree_on(struct ha_gpu_host *h, const struct plan *mine)
{
	struct plan *of = calloc((size_t)h->pes, sizeof(*of));
	int r = of ? ha_gpu_bootstrap_allgather(h->config.bootstrap, mine, of, sizeof(*mine))
		   : -ENOMEM;

	for (int pe = 0; pe < h->pes && !r; pe++)
		r = of[pe].status;
	for (int pe = 0; pe < h->pes && !r; pe++)
		if (memcmp(of[pe].n, mine->n, sizeof(mine->n)) != 0 || of[pe].dc != mine->dc) {
			HA_WARN("connect",
				"%u connections to each peer here, %u with a backup, and %u, %u at "
				"rank %d: give all ranks the same numbers or HA_GPU_RC_PER_PE",
				mine->n[HA_GPU_PRIMARY], mine->n[HA_GPU_BACKUP],
				of[pe].n[HA_GPU_PRIMARY], of[pe].n[HA_GPU_BACKUP], pe);
			r = -EINVAL;
		}
	free(of);
	return r;
}

/* 0; -EINVAL; -ENOSPC, with a line. */
static int check_limits(const struct ha_gpu_host *h, const struct growth *g)
{
	if (g->n[HA_GPU_BACKUP] > g->n[HA_GPU_PRIMARY])
		return -EINVAL;
	if (g->n[HA_GPU_PRIMARY] <= HA_GPU_ROWS_MAX && g->first_row + g->rows <= HA_GPU_ROWS_MAX)
		return 0;
	HA_WARN("connect", "%u rows on %d devices and %u that there are: at most %d",
		g->n[HA_GPU_PRIMARY], h->nslots, g->first_row, HA_GPU_ROWS_MAX);
	return -ENOSPC;
}

static int grow_rows(struct ha_gpu_host *h, unsigned n, unsigned nbackup, bool dc)
{
	struct growth g = { .h = h, .dc = dc, .first_row = (unsigned)h->nrows };
	struct plan mine;
	int r;

	if (!n)
		n = nbackup = (unsigned)h->config.settings.rc_per_pe;
	if (!h->config.settings.backup)
		nbackup = 0;
	g.rows = n * (unsigned)h->nslots;
	g.n[HA_GPU_PRIMARY] = n;
	g.n[HA_GPU_BACKUP] = nbackup;
	r = check_limits(h, &g);
	mine = (struct plan) { { n, nbackup }, dc, r ? r : save_counts(&g) };
	r = agree_on(h, &mine);
	if (!r) {
		if (dc)
			h->world->dc = g.rows; /* nobody looks before there are rows */
		r = take_steps(&g);
		if (r)
			undo_growth(&g);
		else
			count_rows(&g);
	}
	for (int role = 0; role < HA_GPU_ROLES; role++)
		free(g.had[role]);
	free(g.pool);
	return r;
}

int ha_gpu_host_connect(struct ha_gpu_host *h, unsigned n, unsigned nbackup)
{
	return grow_rows(h, n, nbackup, false);
}

int ha_gpu_host_connect_dc(struct ha_gpu_host *h, unsigned n, unsigned nbackup)
{
	if (h->nrows) {
		HA_WARN("connect",
			"dynamic connections are made once, before any other: %llu rows are there "
			"already",
			(unsigned long long)h->nrows);
		return -EALREADY;
	}
	if (!h->ops->dct_create || h->config.settings.qp_depth > 16384) {
		HA_WARN("connect", "no dynamic connections with %s: %s", h->ops->name,
			h->ops->dct_create ? "HA_GPU_QP_DEPTH must be at most 16384, for entries "
					     "take two blocks"
					   : "it makes none");
		return -EOPNOTSUPP;
	}
	return grow_rows(h, n, nbackup, true);
}
