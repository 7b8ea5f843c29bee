/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A small profiler plugin for NCCL, interface version 6, in our own words: it takes the network's
 * events, and writes what they were to the file PROFILER_OUT.PID, as JSON, when the last
 * communicator ends.
 */
#include "include/hawser/profiler.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PROFILE_PROXY_OP = 8, PROFILE_PROXY_STEP = 16, PROFILE_NET_PLUGIN = 128 };
enum { STATE_NET_PLUGIN_UPDATE = 21 };

struct descriptor {
	uint64_t type;
	void *parent;
	int rank;
	struct {
		int64_t id;
		void *data;
	} net;
};

struct state_args {
	void *data;
};

struct profiler_v6 {
	const char *name;
	int (*init)(void **context, uint64_t comm, int *mask, const char *comm_name, int nodes,
		    int ranks, int rank, void (*log)(void));
	int (*start)(void *context, void **handle, struct descriptor *descriptor);
	int (*stop)(void *handle);
	int (*record)(void *handle, int state, struct state_args *args);
	int (*finalize)(void *context);
};

enum kind { KIND_STEP, KIND_QP, KIND_FAILOVER };

struct event {
	enum kind kind;
	bool updated;
	struct ha_profiler_failover failover;
};

#define FAILOVERS_MOST 4096

static struct {
	pthread_mutex_t lock;
	int comms;
	uint64_t qp_started, qp_stopped, qp_bytes, qp_without_number, orphans, strange;
	uint64_t failovers_started, failovers_stopped, updates;
	uint32_t seen; /* of failovers[] */
	struct ha_profiler_failover failovers[FAILOVERS_MOST];
} all = { .lock = PTHREAD_MUTEX_INITIALIZER };

static char context_word;

static int init(void **context, uint64_t comm, int *mask, const char *comm_name, int nodes,
		int ranks, int rank, void (*log)(void))
{
	pthread_mutex_lock(&all.lock);
	all.comms++;
	pthread_mutex_unlock(&all.lock);
	*context = &context_word;
	*mask = PROFILE_PROXY_OP | PROFILE_PROXY_STEP | PROFILE_NET_PLUGIN;
	return 0;
}

static void start_qp(const struct ha_profiler_qp *qp)
{
	all.qp_started++;
	all.qp_bytes += qp->length;
	all.qp_without_number += !qp->qp_num;
	all.strange += qp->type != HA_PROFILE_QP;
}

static int start_net(void **handle, const struct descriptor *descriptor)
{
	struct event *event = calloc(1, sizeof(*event));

	if (!event)
		return 0;
	all.orphans += !descriptor->parent;
	if (descriptor->net.id == HA_PROFILER_IB_ID) {
		event->kind = KIND_QP;
		start_qp(descriptor->net.data);
	} else if (descriptor->net.id == HA_PROFILER_FAILOVER_ID) {
		event->kind = KIND_FAILOVER;
		all.failovers_started++;
	} else {
		all.strange++;
	}
	*handle = event;
	return 0;
}

static int start(void *context, void **handle, struct descriptor *descriptor)
{
	struct event *event;

	if (descriptor->type == PROFILE_NET_PLUGIN) {
		pthread_mutex_lock(&all.lock);
		start_net(handle, descriptor);
		pthread_mutex_unlock(&all.lock);
		return 0;
	}
	event = calloc(1, sizeof(*event));
	*handle = event;
	return 0;
}

static void failover_stopped(const struct event *event)
{
	all.failovers_stopped++;
	all.strange += !event->updated;
	if (all.seen < FAILOVERS_MOST)
		all.failovers[all.seen++] = event->failover;
}

static int stop(void *handle)
{
	struct event *event = handle;

	if (!event)
		return 0;
	pthread_mutex_lock(&all.lock);
	all.qp_stopped += event->kind == KIND_QP;
	if (event->kind == KIND_FAILOVER)
		failover_stopped(event);
	pthread_mutex_unlock(&all.lock);
	/* A step's children may name it after its end: it stays. */
	if (event->kind != KIND_STEP)
		free(event);
	return 0;
}

static int record(void *handle, int state, struct state_args *args)
{
	struct event *event = handle;

	if (!event || state != STATE_NET_PLUGIN_UPDATE)
		return 0;
	pthread_mutex_lock(&all.lock);
	all.updates++;
	all.strange += event->kind != KIND_FAILOVER;
	event->failover = *(struct ha_profiler_failover *)args->data;
	event->updated = true;
	pthread_mutex_unlock(&all.lock);
	return 0;
}

static void put_failovers(FILE *out)
{
	for (uint32_t i = 0; i < all.seen; i++) {
		const struct ha_profiler_failover *f = &all.failovers[i];

		fprintf(out,
			"%s{\"send\": %d, \"settled\": %d, \"from\": [%d, %u], \"to\": [%d, %u], "
			"\"bytes\": %llu}",
			i ? ", " : "", f->is_send, f->settled, f->from_device, f->from_qp,
			f->to_device, f->to_qp, (unsigned long long)f->bytes);
	}
}

static void write_report(void)
{
	const char *prefix = getenv("PROFILER_OUT");
	char path[512];
	FILE *out;

	snprintf(path, sizeof(path), "%s.%d", prefix ? prefix : "/dev/null", (int)getpid());
	out = fopen(path, "w");
	if (!out)
		return;
	fprintf(out,
		"{\"qp_started\": %llu, \"qp_stopped\": %llu, \"qp_bytes\": %llu, "
		"\"qp_without_number\": %llu, \"orphans\": %llu, \"strange\": %llu, "
		"\"failovers_started\": %llu, \"failovers_stopped\": %llu, \"failovers\": [",
		(unsigned long long)all.qp_started, (unsigned long long)all.qp_stopped,
		(unsigned long long)all.qp_bytes, (unsigned long long)all.qp_without_number,
		(unsigned long long)all.orphans, (unsigned long long)all.strange,
		(unsigned long long)all.failovers_started,
		(unsigned long long)all.failovers_stopped);
	put_failovers(out);
	fprintf(out, "]}\n");
	fclose(out);
}

static int finalize(void *context)
{
	pthread_mutex_lock(&all.lock);
	if (!--all.comms)
		write_report();
	pthread_mutex_unlock(&all.lock);
	return 0;
}

__attribute__((visibility("default"))) const struct profiler_v6 ncclProfiler_v6 = {
	.name = "probe",
	.init = init,
	.start = start,
	.stop = stop,
	.record = record,
	.finalize = finalize,
};
