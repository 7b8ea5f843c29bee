/* SPDX-License-Identifier: BSD-3-Clause */
/* host.c - from the list of ports to devices with keys, and the end in a fixed order */
#include "gpu/host/state.h"

#include "base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- which devices ---- */

static int check_config(const struct ha_gpu_host_config *c)
{
	size_t chunk;

	if (ha_gpu_settings_check(&c->settings))
		return -EINVAL;
	chunk = (size_t)1 << c->settings.chunk_log;
	if (!c->heap || !c->heap_bytes || c->mr_bytes % chunk || c->nports < 0 ||
	    c->nports > HA_GPU_PORTS_MAX) {
		HA_WARN("heap",
			"needs an address, a size, and registrations of a multiple of %zu bytes "
			"(HA_GPU_CHUNK_LOG)",
			chunk);
		return -EINVAL;
	}
	return 0;
}

static bool is_wanted(const struct ha_gpu_host_config *c, int port)
{
	if (!c->ports)
		return true;
	for (int i = 0; i < c->nports; i++)
		if (c->ports[i] == port)
			return true;
	return false;
}

/*
 * Primaries: ports that are wanted and up. A port that is down at the start carries nothing and
 * backs up nobody.
 */
static int choose_primaries(struct ha_gpu_host *h, int primary[], int *n)
{
	int r = h->ops->ports(h->config.hw, h->port, HA_GPU_PORTS_MAX);

	*n = 0;
	if (r < 0)
		return r;
	h->nports = r;
	for (int i = 0; i < h->nports; i++) {
		if (!is_wanted(&h->config, i))
			continue;
		if (h->port[i].up)
			primary[(*n)++] = i;
		else
			HA_WARN(h->port[i].name,
				"is down: left out; bring it up before the start to use it");
	}
	if (!*n) {
		HA_WARN(h->ops->name, "no port is up (%d listed): bring one up, or name others",
			h->nports);
		return -ENODEV;
	}
	return ha_gpu_backup_map(h->port, h->nports, h->config.order, h->config.order_self,
				 &h->map);
}

static int open_device(struct ha_gpu_host *h, int port)
{
	return h->device[port] ? 0 : ha_gpu_device_open(h, port, &h->device[port]);
}

/* A backup that does not open is none; a primary that does not ends the start. */
static int open_devices(struct ha_gpu_host *h, const int primary[], int n)
{
	int r = 0;

	for (int i = 0; i < n && !r; i++)
		r = open_device(h, primary[i]);
	for (int i = 0; i < n && !r && h->config.settings.backup; i++)
		if (h->map.of[primary[i]] >= 0 && open_device(h, h->map.of[primary[i]]))
			h->map.of[primary[i]] = HA_GPU_NO_BACKUP;
	for (int p = 0; p < h->nports && !r; p++)
		if (h->device[p])
			r = ha_gpu_device_register(h->device[p]);
	return r;
}

/* ---- what the processes exchange ---- */

static int compare_setting(const char *variable, uint32_t here, uint32_t there, int pe)
{
	if (here == there)
		return 0;
	HA_WARN(variable, "is %u here and %u at rank %d: give all ranks the same", here, there, pe);
	return -EINVAL;
}

/* A proof of it is a read of eight bytes. */
static bool is_heap_apart(const struct ha_gpu_host *h)
{
	return h->ops->is_apart && h->config.heap_bytes >= 8 &&
	       h->ops->is_apart(h->config.hw, h->config.heap);
}

static int exchange_heaps(struct ha_gpu_host *h, int n, int status)
{
	const struct ha_gpu_settings *s = &h->config.settings;
	struct ha_gpu_peer_heap me = { (uint64_t)(uintptr_t)h->config.heap,
				       h->config.heap_bytes,
				       h->chunks,
				       status,
				       n,
				       (uint32_t)s->chunk_log,
				       (uint32_t)s->backup,
				       is_heap_apart(h),
				       0 };
	int r;

	h->heap = calloc((size_t)h->pes, sizeof(*h->heap));
	if (!h->heap)
		return -ENOMEM;
	r = ha_gpu_bootstrap_allgather(h->config.bootstrap, &me, h->heap, sizeof(me));
	for (int pe = 0; pe < h->pes && !r; pe++)
		r = h->heap[pe].status;
	for (int pe = 0; pe < h->pes && !r; pe++) {
		r = compare_setting("HA_GPU_CHUNK_LOG", me.chunk_log, h->heap[pe].chunk_log, pe);
		if (!r)
			r = compare_setting("HA_GPU_ENABLE_BACKUP", me.backup, h->heap[pe].backup,
					    pe);
		if (h->heap[pe].nslots > h->nslots)
			h->nslots = h->heap[pe].nslots;
	}
	return r;
}

static int make_slots(struct ha_gpu_host *h, const int primary[], int n)
{
	h->slot = calloc((size_t)h->nslots, sizeof(*h->slot));
	if (!h->slot)
		return -ENOMEM;
	for (int s = 0; s < h->nslots; s++) {
		int port = primary[s % n],
		    backup = h->config.settings.backup ? h->map.of[port] : HA_GPU_NO_BACKUP;

		h->slot[s].device[HA_GPU_PRIMARY] = h->device[port];
		h->slot[s].device[HA_GPU_BACKUP] = backup < 0 ? NULL : h->device[backup];
	}
	return 0;
}

static size_t table_bytes(const struct ha_gpu_host *h, const struct ha_gpu_keys *k)
{
	return (size_t)k->stride * (size_t)h->pes * sizeof(uint32_t);
}

/*
 * Each path's table by itself: a slot's backup may be a NIC whose keys have nothing in common with
 * the primary's.
 */
static int make_tables(struct ha_gpu_host *h)
{
	unsigned most = 0;
	int r = 0;

	for (int pe = 0; pe < h->pes; pe++)
		most = h->heap[pe].chunks > most ? (unsigned)h->heap[pe].chunks : most;
	for (int s = 0; s < h->nslots && !r; s++)
		for (int role = 0; role < HA_GPU_ROLES && !r; role++) {
			struct ha_gpu_keys *k = &h->slot[s].keys[role];
			void *memory;

			k->stride = most;
			r = h->ops->mem_alloc(h->config.hw, table_bytes(h, k), &memory);
			k->rkey = r ? NULL : memory;
		}
	return r;
}

static void own_keys(const struct ha_gpu_host *h, const struct ha_gpu_device *d, uint32_t *to)
{
	size_t chunk = (size_t)1 << h->config.settings.chunk_log,
	       each = h->config.mr_bytes ? h->config.mr_bytes : h->config.heap_bytes;

	for (unsigned i = 0; d && i < h->chunks; i++)
		to[i] = d->mr[i * chunk / each].rkey;
}

static int exchange_keys(struct ha_gpu_host *h)
{
	unsigned stride = h->slot[0].keys[0].stride,
		 each = stride * (unsigned)h->nslots * HA_GPU_ROLES;
	uint32_t *mine = calloc((size_t)each * (size_t)(h->pes + 1), sizeof(*mine)),
		 *all = mine + each;
	int r;

	if (!mine)
		return -ENOMEM;
	for (int s = 0; s < h->nslots; s++)
		for (int role = 0; role < HA_GPU_ROLES; role++)
			own_keys(h, h->slot[s].device[role],
				 mine + (unsigned)(s * HA_GPU_ROLES + role) * stride);
	r = ha_gpu_bootstrap_allgather(h->config.bootstrap, mine, all, each * sizeof(*mine));
	for (int pe = 0; pe < h->pes && !r; pe++)
		for (int s = 0; s < h->nslots; s++)
			for (int role = 0; role < HA_GPU_ROLES; role++) {
				struct ha_gpu_keys *k = &h->slot[s].keys[role];

				memcpy(k->rkey + (size_t)pe * k->stride,
				       all + (size_t)pe * each +
					       (unsigned)(s * HA_GPU_ROLES + role) * stride,
				       h->heap[pe].chunks * sizeof(uint32_t));
			}
	free(mine);
	return r;
}

/* ---- open ---- */

static void release_host(struct ha_gpu_host *h);

static int make_world(struct ha_gpu_host *h)
{
	void *memory;
	int r = h->ops->mem_alloc(h->config.hw, sizeof(*h->world), &memory);

	if (r)
		return r;
	h->world = memory;
	h->world->pe = (uint32_t)h->pe;
	h->world->pes = (uint32_t)h->pes;
	return 0;
}

static int prepare_host(struct ha_gpu_host *h)
{
	struct ha_gpu_bootstrap *b = h->config.bootstrap;
	int primary[HA_GPU_PORTS_MAX], n = 0, r = check_config(&h->config);

	if (!r)
		r = choose_primaries(h, primary, &n);
	if (!r)
		h->chunks = (unsigned)((h->config.heap_bytes +
					(UINT64_C(1) << h->config.settings.chunk_log) - 1) >>
				       h->config.settings.chunk_log);
	if (!r)
		r = open_devices(h, primary, n);
	r = exchange_heaps(h, n, r);
	if (r)
		return r;
	r = make_slots(h, primary, n);
	if (!r)
		r = make_tables(h);
	if (!r)
		r = make_world(h);
	r = ha_gpu_bootstrap_agree(b, r);
	if (!r)
		r = exchange_keys(h);
	r = ha_gpu_bootstrap_agree(b, r);
	return r ? r
		 : ha_gpu_messages_open(b, (unsigned)h->config.settings.connect_timeout_ms,
					&h->messages);
}

int ha_gpu_host_open(const struct ha_gpu_host_config *config, struct ha_gpu_host **out)
{
	struct ha_gpu_host *h = calloc(1, sizeof(*h));
	int r;

	if (!h)
		return -ENOMEM;
	h->config = *config;
	h->ops = config->ops;
	h->pe = config->bootstrap->rank;
	h->pes = config->bootstrap->size;
	r = prepare_host(h);
	if (r) {
		release_host(h);
		return r;
	}
	*out = h;
	return 0;
}

struct ha_gpu_world *ha_gpu_host_world(struct ha_gpu_host *h)
{
	return h->world;
}

const struct ha_gpu_backup_map *ha_gpu_host_backups(const struct ha_gpu_host *h)
{
	return &h->map;
}

void ha_gpu_host_stats(struct ha_gpu_host *h, struct ha_gpu_host_stats *s)
{
	memset(s, 0, sizeof(*s));
	for (int p = 0; p < h->nports; p++)
		s->devices += h->device[p] != NULL;
	s->rows = (unsigned)h->nrows;
	s->dc = h->world->dc;
	s->copied = h->copied;
	for (unsigned r = 0; r < s->rows; r++)
		s->backed_up += h->row[r].registered[HA_GPU_BACKUP];
	for (int i = 0; i < h->nslots; i++) {
		s->switches += ha_gpu_load(&h->slot[i].switches);
		s->replayed += ha_gpu_load(&h->slot[i].replayed);
		s->suspicions += ha_gpu_load(&h->slot[i].suspicions);
	}
}

/* ---- launches ---- */

static void sleep_one_ms(void)
{
	const struct timespec ms = { 0, 1000000 };

	nanosleep(&ms, NULL);
}

int ha_gpu_host_launch(struct ha_gpu_host *h, unsigned limit_ms)
{
	uint64_t end = ha_gpu_now() + (uint64_t)limit_ms * 1000000, in;

	for (;;) {
		in = ha_gpu_load(&h->world->entered) - ha_gpu_load(&h->world->left);
		if (!in)
			return 0;
		if (ha_gpu_now() >= end)
			break;
		sleep_one_ms();
	}
	HA_WARN("launch",
		"%llu kernels of before have not left: wait for the stream; if one has died, end "
		"it and call ha_gpu_host_repair()",
		(unsigned long long)in);
	return -EBUSY;
}

int ha_gpu_host_repair(struct ha_gpu_host *h)
{
	uint64_t before = ha_gpu_load(&h->filled), target = ha_gpu_load(&h->repaired);

	for (int s = 0; s < h->nslots; s++)
		target += h->slot[s].running;
	ha_gpu_store(&h->world->left, ha_gpu_load(&h->world->entered));
	ha_gpu_add(&h->repair, 1);
	while (ha_gpu_load(&h->repaired) < target)
		sleep_one_ms();
	return (int)(ha_gpu_load(&h->filled) - before);
}

/* ---- the end ---- */

#define SLICE_MS 100

/* Until every entry that was reserved is published, which an agent may be about to do. False: a
 * thread that died holds one. */
static bool await_published(const struct ha_gpu_conn *c, unsigned *left_ms)
{
	while (ha_gpu_load(&c->ready) != (ha_gpu_load(&c->resv) & HA_GPU_INDEX)) {
		if (!*left_ms)
			return false;
		sleep_one_ms();
		--*left_ms;
	}
	return true;
}

/* In slices: while the process or the machine is stopped one of them passes, and not the limit. */
static enum ha_gpu_result await_quiet(struct ha_gpu_conn *c, unsigned *left_ms)
{
	enum ha_gpu_result r = HA_GPU_TIMEOUT;
	unsigned slice;

	do {
		slice = *left_ms < SLICE_MS ? *left_ms : SLICE_MS;
		r = ha_gpu_quiet(c, slice * UINT64_C(1000000));
		if (r == HA_GPU_TIMEOUT)
			*left_ms -= slice;
	} while (r == HA_GPU_TIMEOUT && *left_ms);
	return r;
}

/* NULL, or why something is still outstanding. The host is one more GPU thread. */
static const char *drain_conn(struct ha_gpu_conn *c, unsigned *left_ms)
{
	if (!await_published(c, left_ms))
		return "a thread reserved entries and never published them";
	switch (await_quiet(c, left_ms)) {
	case HA_GPU_DONE:
		return NULL;
	case HA_GPU_BOTH_DOWN:
		return "no path is left";
	default:
		return "the time has passed";
	}
}

/* What is outstanding on any connection, within the limit. */
static int drain_conns(struct ha_gpu_host *h, unsigned limit_ms)
{
	const char *why, *first_why = NULL;
	unsigned given_up = 0, left_ms = limit_ms;
	int first_pe = 0;

	for (unsigned r = 0; r < h->nrows; r++)
		for (int pe = 0; pe < h->pes; pe++) {
			if (pe == h->pe)
				continue;
			why = drain_conn(&h->row[r].conn[pe], &left_ms);
			if (!why)
				continue;
			if (!given_up++) {
				first_why = why;
				first_pe = pe;
			}
		}
	if (!given_up)
		return 0;
	HA_WARN("finalize",
		"%u connections had work outstanding, which is given up after %u ms at most; the "
		"first, to process %d: %s",
		given_up, limit_ms, first_pe, first_why);
	return -ETIMEDOUT;
}

static void each_ep(struct ha_gpu_host *h, int role, void (*f)(struct ha_gpu_ep *, uint64_t),
		    uint64_t argument)
{
	for (int s = 0; h->slot && s < h->nslots; s++) {
		struct ha_gpu_rc *rc = &h->slot[s].rc[role];

		for (unsigned k = 0; k < rc->num_eps_per_pe * (unsigned)h->pes; k++)
			if (rc->eps[k])
				f(rc->eps[k], argument);
	}
}

static void free_ep(struct ha_gpu_ep *e, uint64_t unused)
{
	ha_gpu_ep_free(e);
}

/* Nobody does anything any more, whoever still looks gets an error, and nothing can land. */
static void quiesce_host(struct ha_gpu_host *h)
{
	uint64_t deadline = ha_gpu_now() + HA_GPU_DRAIN_NS;

	if (h->slot)
		ha_gpu_agents_stop(h);
	for (unsigned r = 0; r < h->nrows; r++)
		for (int pe = 0; pe < h->pes; pe++)
			ha_gpu_or(&h->row[r].conn[pe].resv, HA_GPU_CLOSED | HA_GPU_DOWN);
	for (int role = 0; role < HA_GPU_ROLES; role++)
		each_ep(h, role, ha_gpu_ep_fence, deadline);
}

static void free_tables(struct ha_gpu_host *h)
{
	for (int s = 0; h->slot && s < h->nslots; s++)
		for (int role = 0; role < HA_GPU_ROLES; role++)
			if (h->slot[s].keys[role].rkey)
				h->ops->mem_free(h->config.hw, h->slot[s].keys[role].rkey,
						 table_bytes(h, &h->slot[s].keys[role]));
	for (int p = 0; p < h->nports; p++)
		if (h->device[p])
			ha_gpu_device_deregister(h->device[p]);
}

static void free_slots(struct ha_gpu_host *h)
{
	for (int s = 0; h->slot && s < h->nslots; s++)
		for (int role = 0; role < HA_GPU_ROLES; role++)
			free(h->slot[s].rc[role].eps);
	free(h->slot);
}

/* In this order: key tables, what kernels see, queue pairs (primaries, backups), shared control
 * memory, protection domains, devices, and the transport itself; after all of it has been made
 * quiet. */
static void release_host(struct ha_gpu_host *h)
{
	quiesce_host(h);
	free_tables(h);
	ha_gpu_rows_free(h, 0);
	if (h->world)
		h->ops->mem_free(h->config.hw, h->world, sizeof(*h->world));
	for (int role = 0; role < HA_GPU_ROLES; role++)
		each_ep(h, role, free_ep, 0);
	for (int p = 0; p < h->nports; p++)
		while (h->device[p] && !LIST_EMPTY(&h->device[p]->pools))
			ha_gpu_pool_free(LIST_FIRST(&h->device[p]->pools));
	for (int p = 0; p < h->nports; p++)
		if (h->device[p])
			ha_gpu_device_close(h->device[p]);
	if (h->messages)
		ha_gpu_messages_close(h->messages);
	free_slots(h);
	free(h->heap);
	free(h);
}

int ha_gpu_host_finalize(struct ha_gpu_host *h, unsigned limit_ms)
{
	int r = ha_gpu_host_launch(h, limit_ms);

	/* Both times all processes: nobody goes while another still waits for an answer. */
	if (ha_gpu_bootstrap_agree(h->config.bootstrap, r) == -EBUSY)
		return -EBUSY;
	r = drain_conns(h, limit_ms);
	ha_gpu_bootstrap_agree(h->config.bootstrap, r);
	release_host(h);
	return r;
}
