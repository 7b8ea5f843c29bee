/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/perf/onesided_side.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tools/job/fault.h"
#include "tools/job/rendezvous.h"
#include "tools/perf/logger.h"

#define FORCE_SO 1 /* NCCL_NET_MR_FLAG_FORCE_SO */

enum { HERE, AWAY, OVER };

static int check_result(const struct ha_side *side, ncclResult_t result, const char *what)
{
	return ha_plugin_check(&side->plugin, result, what);
}

/* ---- the thread that stands in ---- */

static void *keep_progress(void *context)
{
	struct ha_side *side = context;
	int state;

	while ((state = atomic_load(&side->keeping)) != OVER) {
		if (state == AWAY) {
			ncclResult_t result = ha_gin_table_progress(&side->gin, &side->comm);

			if (result != ncclSuccess)
				atomic_store(&side->kept, result);
		}
		usleep(state == AWAY ? 50 : 1000);
	}
	return NULL;
}

void ha_side_leave(struct ha_side *side)
{
	atomic_store(&side->keeping, AWAY);
}

int ha_side_return(struct ha_side *side)
{
	atomic_store(&side->keeping, HERE);
	return check_result(side, (ncclResult_t)atomic_load(&side->kept), "progress");
}

/* ---- opening ---- */

static int find_table(struct ha_side *side, const struct ha_side_setting *s)
{
	int err, devices = 0;

	if (!ha_gin_find(&side->gin, side->plugin.library, s->version))
		return ha_fault(-ENOENT,
				"plugin %s exports no one-sided table (ncclGinPlugin_v11 to _v13, "
				"ncclRmaPlugin_v14 to _v17)%s",
				side->plugin.path, s->version ? " of this version" : "");
	err = check_result(side, ha_gin_table_init(&side->gin, 1, ha_logger_print), "init");
	if (!err)
		err = check_result(side, ha_gin_devices(&side->gin, &devices), "devices");
	if (!err && devices <= 0)
		err = ha_fault(-ENODEV, "plugin '%s' has no device for one-sided operations",
			       side->plugin.name);
	return err;
}

static int connect_all(struct ha_side *side, const struct ha_side_setting *s)
{
	const struct ha_place *p = s->place;
	char mine[NCCL_NET_HANDLE_MAXSIZE] = { 0 }, *all = calloc((size_t)p->ranks, sizeof(mine));
	void **handles = calloc((size_t)p->ranks, sizeof(*handles)), *listen = NULL;
	int dev = s->options->dev >= 0 ? s->options->dev : p->local_rank % side->plugin.devices;
	int err = all && handles ? 0 : ha_fault(-ENOMEM, "out of memory");

	if (!err)
		err = check_result(side, ha_gin_table_listen(&side->gin, dev, mine, &listen),
				   "listen");
	if (!err)
		err = ha_rendezvous_allgather(s->rendezvous, mine, sizeof(mine), all);
	for (int r = 0; r < p->ranks && !err; r++)
		handles[r] = all + (size_t)r * sizeof(mine);
	if (!err)
		err = check_result(side,
				   ha_gin_table_connect(&side->gin, handles, p->ranks, p->rank, 1,
							listen, &side->comm),
				   "connect");
	if (!err)
		err = check_result(side, ha_gin_table_close_listen(&side->gin, listen),
				   "closeListen");
	free(all);
	free(handles);
	return err;
}

static void *map_pages(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static int register_windows(struct ha_side *side, const struct ha_side_setting *s)
{
	int err;

	side->data_bytes = s->data_bytes;
	side->counters = s->counters;
	side->data = map_pages(side->data_bytes);
	side->signals = map_pages(side->counters * sizeof(uint64_t));
	if (!side->data || !side->signals)
		return ha_fault(-ENOMEM, "no memory for a window of %zu bytes", side->data_bytes);
	err = check_result(side,
			   ha_gin_register(&side->gin, &side->comm, side->signals,
					   side->counters * sizeof(uint64_t), NCCL_PTR_HOST,
					   FORCE_SO, &side->signal_memory),
			   "regMrSym");
	if (!err)
		err = check_result(side,
				   ha_gin_register(&side->gin, &side->comm, side->data,
						   side->data_bytes, NCCL_PTR_HOST, 0,
						   &side->data_memory),
				   "regMrSym");
	return err;
}

int ha_side_open(struct ha_side *side, const struct ha_side_setting *s)
{
	int err;

	setenv("HA_NCCL_GIN", "1", 0); /* hawser's own refuses else */
	err = ha_plugin_open(&side->plugin, s->name, 0, 1);
	if (!err)
		err = find_table(side, s);
	if (!err)
		err = connect_all(side, s);
	if (!err)
		err = register_windows(side, s);
	if (!err && pthread_create(&side->keeper, NULL, keep_progress, side))
		err = ha_fault(-EAGAIN, "no thread");
	side->has_keeper = !err;
	return err;
}

int ha_side_close(struct ha_side *side)
{
	int err;

	atomic_store(&side->keeping, OVER);
	if (side->has_keeper)
		pthread_join(side->keeper, NULL);
	err = check_result(side, ha_gin_deregister(&side->gin, &side->comm, &side->data_memory),
			   "deregMrSym");
	if (!err)
		err = check_result(side,
				   ha_gin_deregister(&side->gin, &side->comm, &side->signal_memory),
				   "deregMrSym");
	if (!err)
		err = check_result(side, ha_gin_table_close(&side->gin, &side->comm), "closeColl");
	if (!err)
		err = check_result(side, ha_gin_table_finalize(&side->gin), "finalize");
	if (!err)
		err = ha_plugin_close(&side->plugin);
	munmap(side->data, side->data_bytes);
	munmap(side->signals, side->counters * sizeof(uint64_t));
	free(side->request);
	return err;
}

/* ---- operations ---- */

static void **new_request(struct ha_side *side)
{
	if (side->inflight == side->room) {
		unsigned room = side->room ? 2 * side->room : 64;
		void **more = realloc(side->request, room * sizeof(*more));

		if (!more)
			return NULL;
		side->request = more;
		side->room = room;
	}
	side->request[side->inflight] = NULL;
	return &side->request[side->inflight++];
}

static int post_request(struct ha_side *side, struct ha_gin_put *put, const char *what,
			ncclResult_t (*call)(const struct ha_gin_table *,
					     const struct ha_gin_comm *, const struct ha_gin_put *,
					     void **))
{
	void **request = new_request(side);
	int err;

	if (!request)
		return ha_fault(-ENOMEM, "out of memory");
	put->source = put->size ? side->data_memory.handle : NULL;
	put->target = put->source;
	put->signals = put->signal_op ? side->signal_memory.handle : NULL;
	err = check_result(side, call(&side->gin, &side->comm, put, request), what);
	if (!err && !*request)
		err = ha_fault(-EIO, "plugin '%s': %s returned no request", side->plugin.name,
			       what);
	return err;
}

int ha_side_put(struct ha_side *side, struct ha_gin_put *put)
{
	return post_request(side, put, put->signal_op ? "iputSignal" : "iput", ha_gin_post);
}

int ha_side_get(struct ha_side *side, struct ha_gin_put *get)
{
	if (side->gin.version < HA_GIN_GETS)
		return ha_fault(-ENOTSUP, "plugin '%s': version %d of the table has no iget",
				side->plugin.name, side->gin.version);
	return post_request(side, get, "iget", ha_gin_post_get);
}

int ha_side_step(struct ha_side *side, bool *moved)
{
	int err = check_result(side, ha_gin_table_progress(&side->gin, &side->comm), "progress");

	for (unsigned i = 0; i < side->inflight && !err;) {
		int done = 0;

		err = check_result(side,
				   ha_gin_done(&side->gin, &side->comm, side->request[i], &done),
				   "test");
		if (!done) {
			i++;
			continue;
		}
		*moved = true;
		side->request[i] = side->request[--side->inflight];
	}
	return err;
}

uint64_t ha_side_counter(const struct ha_side *side, unsigned which)
{
	return __atomic_load_n(&side->signals[which], __ATOMIC_ACQUIRE);
}
