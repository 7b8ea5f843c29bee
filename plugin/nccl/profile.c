/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugin/nccl/profile.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/queue.h>

#include "base/config.h"
#include "include/hawser/profiler.h"
#include "plugin/nccl/net.h"

#define BUCKETS 1024

/* One path of a request. In this order, but that LOST may lead back to RUNS. */
enum path_state {
	PATH_NONE, /* not posted yet */
	PATH_RUNS, /* its queue pair's event is open */
	PATH_LOST, /* that one is closed, the failover's is open */
	PATH_OVER,
};

struct path {
	enum path_state state;
	void *event;             /* of the queue pair or of the failover; NULL: nobody wants it */
	struct ha_carried since; /* what carried it when the state began */
};

/* A request that NCCL holds. */
struct record {
	LIST_ENTRY(record) entry;
	void *request, *comm;
	int buffers;
	bool is_send;
	void *parent[HA_MAX_RECVS];
	struct path path[HA_MAX_RECVS][HA_MAX_RAILS];
};

LIST_HEAD(records, record);

/* Connections are driven by several threads; who profiles pays for a lock. */
static struct {
	pthread_mutex_t lock;
	struct records bucket[BUCKETS];
	_Atomic(ncclProfilerCallback_t) profiler;
} profile = { .lock = PTHREAD_MUTEX_INITIALIZER };

_Static_assert(sizeof(struct ha_profiler_qp) == 40, "as ncclProfilerNetIbDescr_v1_t");
_Static_assert(offsetof(struct ha_profiler_qp, wr_id) == 16, "as there");
_Static_assert(offsetof(struct ha_profiler_qp, qp_num) == 28, "as there");
_Static_assert(sizeof(struct ha_profiler_failover) == 32, "part of the interface");

/* ---- whether ---- */

static const char *own_variable(void *user, const char *name)
{
	return strcmp(name, "HA_NCCL_PROFILER") ? NULL : getenv(name);
}

bool ha_profile_wanted(void)
{
	static struct ha_config config;
	const char *plugin = getenv("NCCL_PROFILER_PLUGIN");

	ha_config_load(&config, own_variable, NULL);
	if (config.profiler >= 0)
		return config.profiler;
	return plugin && *plugin && strcasecmp(plugin, "none") != 0;
}

void ha_profile_report_to(ncclProfilerCallback_t profiler)
{
	atomic_store_explicit(&profile.profiler, profiler, memory_order_relaxed);
}

/* ---- events ---- */

static void event_call(void **event, int type, void *parent, int64_t id, void *data)
{
	ncclProfilerCallback_t profiler =
		atomic_load_explicit(&profile.profiler, memory_order_relaxed);

	/* A start that nobody has taken has no stop. */
	if (profiler && (type == ncclProfilerNetEventStart || *event))
		(void)profiler(event, type, parent, id, data);
}

static void run_begin(struct path *path, void *parent, const struct ha_carried *now)
{
	struct ha_profiler_qp qp = {
		.type = HA_PROFILE_QP,
		.device = now->dev,
		.wr_id = now->wr_id,
		.opcode = now->opcode,
		.qp_num = (int32_t)now->qp_num,
		.length = now->bytes,
	};

	path->state = PATH_RUNS;
	path->since = *now;
	path->event = NULL;
	event_call(&path->event, ncclProfilerNetEventStart, parent, HA_PROFILER_IB_ID, &qp);
}

static void run_end(struct path *path)
{
	event_call(&path->event, ncclProfilerNetEventStop, NULL, HA_PROFILER_IB_ID, NULL);
	path->event = NULL;
	path->state = PATH_OVER;
}

static struct ha_profiler_failover failover_of(const struct record *r, const struct path *path)
{
	return (struct ha_profiler_failover) {
		.type = HA_PROFILE_FAILOVER,
		.is_send = r->is_send,
		.from_device = path->since.dev,
		.from_qp = path->since.qp_num,
		.bytes = path->since.bytes,
	};
}

static void failover_begin(const struct record *r, struct path *path, void *parent)
{
	struct ha_profiler_failover data = failover_of(r, path);

	path->state = PATH_LOST;
	event_call(&path->event, ncclProfilerNetEventStart, parent, HA_PROFILER_FAILOVER_ID, &data);
}

/* to NULL: no path carries it any more. */
static void failover_end(const struct record *r, struct path *path, const struct ha_carried *to)
{
	struct ha_profiler_failover data = failover_of(r, path);

	data.settled = !to;
	if (to) {
		data.to_device = to->dev;
		data.to_qp = to->qp_num;
	}
	event_call(&path->event, ncclProfilerNetEventUpdate, NULL, HA_PROFILER_FAILOVER_ID, &data);
	event_call(&path->event, ncclProfilerNetEventStop, NULL, HA_PROFILER_FAILOVER_ID, NULL);
	path->event = NULL;
	path->state = PATH_OVER;
}

/* ---- paths ---- */

static bool has_moved(const struct path *path, const struct ha_carried *now)
{
	return now->rail != path->since.rail || now->epoch != path->since.epoch;
}

static void path_follow(const struct record *r, struct path *path, void *parent,
			const struct ha_carried *now)
{
	if (path->state == PATH_NONE)
		run_begin(path, parent, now);
	if (path->state == PATH_RUNS && !now->over && (now->lost || has_moved(path, now))) {
		run_end(path);
		failover_begin(r, path, parent);
	}
	if (path->state == PATH_LOST && now->over)
		failover_end(r, path, NULL);
	if (path->state == PATH_LOST && !now->lost && has_moved(path, now)) {
		failover_end(r, path, now);
		run_begin(path, parent, now);
	}
	if (path->state == PATH_RUNS && now->over)
		run_end(path);
}

static void record_follow(struct record *r)
{
	struct ha_carried list[HA_MAX_RAILS];

	for (int b = 0; b < r->buffers; b++) {
		int n = ha_carried(r->request, (unsigned)b, list);

		for (int i = 0; i < n; i++)
			path_follow(r, &r->path[b][i], r->parent[b], &list[i]);
	}
}

static void record_end(struct record *r)
{
	for (int b = 0; b < r->buffers; b++)
		for (int i = 0; i < HA_MAX_RAILS; i++) {
			if (r->path[b][i].state == PATH_RUNS)
				run_end(&r->path[b][i]);
			else if (r->path[b][i].state == PATH_LOST)
				failover_end(r, &r->path[b][i], NULL);
		}
	free(r);
}

/* ---- requests ---- */

static struct records *bucket_of(const void *request)
{
	return &profile.bucket[(uintptr_t)request / sizeof(void *) % BUCKETS];
}

/* Out of the table, where it is the caller's; NULL: there is none. */
static struct record *record_take(const void *request)
{
	struct record *r;

	pthread_mutex_lock(&profile.lock);
	LIST_FOREACH(r, bucket_of(request), entry)
		if (r->request == request)
			break;
	if (r)
		LIST_REMOVE(r, entry);
	pthread_mutex_unlock(&profile.lock);
	return r;
}

static void record_put(struct record *r)
{
	pthread_mutex_lock(&profile.lock);
	LIST_INSERT_HEAD(bucket_of(r->request), r, entry);
	pthread_mutex_unlock(&profile.lock);
}

/* Without memory the request is not profiled. */
static void record_make(void *comm, void *request, bool is_send, int buffers, void **parents)
{
	struct record *r = calloc(1, sizeof(*r));

	if (!r)
		return;
	r->request = request;
	r->comm = comm;
	r->is_send = is_send;
	r->buffers = buffers;
	memcpy(r->parent, parents, (size_t)buffers * sizeof(*parents));
	record_follow(r);
	record_put(r);
}

static struct record *record_take_of(const void *comm)
{
	struct record *r = NULL;

	pthread_mutex_lock(&profile.lock);
	for (int i = 0; i < BUCKETS && !r; i++)
		LIST_FOREACH(r, &profile.bucket[i], entry)
			if (r->comm == comm)
				break;
	if (r)
		LIST_REMOVE(r, entry);
	pthread_mutex_unlock(&profile.lock);
	return r;
}

/* Requests that were never tested to their end. */
static void records_forget(const void *comm)
{
	struct record *r;

	while ((r = record_take_of(comm)) != NULL)
		record_end(r);
}

/* ---- the calls ---- */

ncclResult_t ha_profile_isend(void *send_comm, void *data, size_t size, int tag, void *mhandle,
			      void *phandle, void **request)
{
	ncclResult_t result = ha_net_isend(send_comm, data, size, tag, mhandle, request);

	if (result == ncclSuccess && *request && phandle)
		record_make(send_comm, *request, true, 1, &phandle);
	return result;
}

ncclResult_t ha_profile_irecv(void *recv_comm, int n, void **data, size_t *sizes, int *tags,
			      void **mhandles, void **phandles, void **request)
{
	ncclResult_t result = ha_net_irecv(recv_comm, n, data, sizes, tags, mhandles,
					   ha_net_is_optional(request), request);

	if (result == ncclSuccess && *request && phandles)
		record_make(recv_comm, *request, false, n, phandles);
	return result;
}

ncclResult_t ha_profile_test(void *request, int *done, int *sizes)
{
	struct record *r = record_take(request);
	ncclResult_t result;

	/* Before the test too: what moved while nobody looked is over after it. */
	if (r)
		record_follow(r);
	result = ha_net_test(request, done, sizes);
	if (!r)
		return result;
	if (result != ncclSuccess || *done) {
		record_end(r);
		return result;
	}
	record_follow(r);
	record_put(r);
	return result;
}

ncclResult_t ha_profile_close_send(void *send_comm)
{
	records_forget(send_comm);
	return ha_net_close_send(send_comm);
}

ncclResult_t ha_profile_close_recv(void *recv_comm)
{
	records_forget(recv_comm);
	return ha_net_close_recv(recv_comm);
}
