/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "tools/job/fault.h"
#include "tools/job/timeline.h"
#include "tools/perf/calls.h"
#include "tools/perf/mesh.h"
#include "tools/perf/options.h"
#include "tools/perf/proxy.h"

/* Stands for "what the slot's last request was": NULL or a request must replace it. */
#define STALE ((void *)(uintptr_t)0x57a1e)
#define SENTINEL ((void *)(uintptr_t)NCCL_NET_OPTIONAL_RECV_COMPLETION)

/* xorshift64* (Vigna 2014): which request to test next. */
static uint64_t random_below(struct ha_mesh *mesh, uint64_t bound)
{
	uint64_t x = mesh->random;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	mesh->random = x;
	return (x * 0x2545f4914f6cdd1du >> 32) % bound;
}

static size_t slot_of(const struct ha_mesh *mesh, const struct ha_lane *lane, uint64_t step)
{
	return (size_t)((lane->base + step) % (uint64_t)mesh->steps);
}

static char *memory_of(const struct ha_mesh *mesh, const struct ha_lane *lane, uint64_t step)
{
	const struct ha_bank *bank = &lane->banks[mesh->protocol];

	return bank->memory + slot_of(mesh, lane, step) * bank->slot;
}

static ncclResult_t request_test(struct ha_mesh *mesh, void *request, int *done, int *sizes)
{
	ncclResult_t result;
	int64_t start;

	if (!mesh->calls)
		return mesh->plugin.test(request, done, sizes);
	start = ha_monotonic_ns();
	result = mesh->plugin.test(request, done, sizes);
	ha_calls_add(mesh->calls, (uint64_t)(ha_monotonic_ns() - start));
	return result;
}

/* ---- sending ---- */

static int send_post(struct ha_mesh *mesh, struct ha_conn *conn, struct ha_lane *lane, bool *moved)
{
	size_t slot = slot_of(mesh, lane, lane->posted);
	void *request = STALE;
	ncclResult_t result =
		mesh->plugin.abi->isend(&mesh->plugin, conn->comm,
					memory_of(mesh, lane, lane->posted), lane->sizes[slot],
					lane->tag, lane->banks[mesh->protocol].mhandle, &request);

	if (result != ncclSuccess)
		return ha_plugin_check(&mesh->plugin, result, "isend");
	if (request == STALE)
		return ha_fault(-EPROTO,
				"isend: plugin '%s' returned success and left *request as it was; "
				"NCCL would test "
				"an old request again",
				mesh->plugin.name);
	if (!request) {
		mesh->refused++;
		return 0;
	}
	lane->requests[slot] = request;
	lane->complete[slot] = false;
	lane->posted++;
	mesh->sent++;
	*moved = true;
	return 0;
}

static int send_test(struct ha_mesh *mesh, struct ha_lane *lane, bool *moved)
{
	uint64_t step = lane->consumed;
	size_t slot;
	int done = 0, size = 0, err;

	if (mesh->options->shuffle)
		step += random_below(mesh, lane->posted - lane->consumed);
	slot = slot_of(mesh, lane, step);
	if (lane->complete[slot])
		return 0;
	err = ha_plugin_check(&mesh->plugin, request_test(mesh, lane->requests[slot], &done, &size),
			      "test of a send");
	if (err || !done)
		return err;
	lane->complete[slot] = true;
	ha_timeline_progress(mesh->timeline, 0);
	while (lane->consumed < lane->posted && lane->complete[slot_of(mesh, lane, lane->consumed)])
		lane->consumed++;
	*moved = true;
	return 0;
}

static int sender_progress(struct ha_mesh *mesh, struct ha_conn *conn, bool *moved)
{
	for (int l = 0; l < conn->lanes_count; l++) {
		struct ha_lane *lane = &conn->lanes[l];
		bool posted = false;
		int err = 0;

		if (lane->posted < lane->produced)
			err = send_post(mesh, conn, lane, &posted);
		if (!err && !posted && lane->consumed < lane->posted)
			err = send_test(mesh, lane, &posted);
		if (err)
			return err;
		*moved |= posted;
	}
	return 0;
}

/* ---- receiving ---- */

/* Whether every lane that has this step has a free slot for it. */
static bool receive_ready(const struct ha_mesh *mesh, const struct ha_conn *conn, uint64_t step)
{
	for (int l = 0; l < conn->lanes_count; l++)
		if (conn->lanes[l].total > step &&
		    step >= conn->lanes[l].consumed + (uint64_t)mesh->steps)
			return false;
	return true;
}

/* Collects what irecv and iflush want to know of a step: returns the number of buffers. */
static int receive_gather(struct ha_mesh *mesh, struct ha_conn *conn, uint64_t step, void **data,
			  size_t *sizes, int *tags, void **mhandles)
{
	int n = 0;

	for (int l = 0; l < conn->lanes_count; l++) {
		struct ha_lane *lane = &conn->lanes[l];

		if (lane->total <= step)
			continue;
		data[n] = memory_of(mesh, lane, step);
		sizes[n] = lane->banks[mesh->protocol].slot;
		tags[n] = lane->tag;
		mhandles[n++] = lane->banks[mesh->protocol].mhandle;
	}
	return n;
}

static int receive_post(struct ha_mesh *mesh, struct ha_conn *conn, bool *moved)
{
	void *data[HA_PLUGIN_MAX_GROUP], *mhandles[HA_PLUGIN_MAX_GROUP], *request = NULL;
	size_t sizes[HA_PLUGIN_MAX_GROUP], slot = conn->posted % (uint64_t)mesh->steps;
	int tags[HA_PLUGIN_MAX_GROUP],
		n = receive_gather(mesh, conn, conn->posted, data, sizes, tags, mhandles);
	ncclResult_t result;

	/* NCCL: the LL protocols, one buffer */
	if (mesh->optional && mesh->protocol == HA_LL && n == 1)
		request = SENTINEL;
	result = mesh->plugin.abi->irecv(&mesh->plugin, conn->comm, n, data, sizes, tags, mhandles,
					 &request);
	if (result != ncclSuccess)
		return ha_plugin_check(&mesh->plugin, result, "irecv");
	if (request == SENTINEL)
		return ha_fault(-EPROTO,
				"irecv: plugin '%s' returned success and left the "
				"optional-completion sentinel in "
				"*request; NCCL would take it for a request",
				mesh->plugin.name);
	if (!request) {
		mesh->refused++;
		return 0;
	}
	conn->requests[slot] = conn->cached[slot] = request;
	conn->states[slot] = HA_RECEIVE_POSTED;
	conn->posted++;
	*moved = true;
	return 0;
}

static int receive_flush(struct ha_mesh *mesh, struct ha_conn *conn, uint64_t step)
{
	void *data[HA_PLUGIN_MAX_GROUP], *mhandles[HA_PLUGIN_MAX_GROUP], *request = NULL;
	size_t slots[HA_PLUGIN_MAX_GROUP], slot = step % (uint64_t)mesh->steps;
	int tags[HA_PLUGIN_MAX_GROUP], sizes[HA_PLUGIN_MAX_GROUP] = { 0 }, k = 0, total = 0, err;
	int n = receive_gather(mesh, conn, step, data, slots, tags, mhandles);

	for (int l = 0; l < conn->lanes_count; l++)
		if (conn->lanes[l].total > step)
			sizes[k++] =
				(int)conn->lanes[l].sizes[slot_of(mesh, &conn->lanes[l], step)];
	for (k = 0; k < n; k++)
		total += sizes[k];
	if (!total || !mesh->plugin.iflush) {
		conn->states[slot] = HA_RECEIVE_DONE;
		return 0;
	}
	err = ha_plugin_check(&mesh->plugin,
			      mesh->plugin.iflush(conn->comm, n, data, sizes, mhandles, &request),
			      "iflush");
	conn->requests[slot] = request;
	/* no request: nothing to wait for */
	conn->states[slot] = request ? HA_RECEIVE_FLUSHING : HA_RECEIVE_DONE;
	return err;
}

static int receive_test(struct ha_mesh *mesh, struct ha_conn *conn, bool *moved)
{
	uint64_t step = conn->arrived;
	size_t slot, bytes = 0;
	int sizes[HA_PLUGIN_MAX_GROUP] = { 0 }, done = 0, n = 0, err;

	if (mesh->options->shuffle)
		step += random_below(mesh, conn->posted - conn->arrived);
	slot = step % (uint64_t)mesh->steps;
	if (conn->states[slot] == HA_RECEIVE_DONE)
		return 0;
	err = ha_plugin_check(&mesh->plugin, request_test(mesh, conn->requests[slot], &done, sizes),
			      conn->states[slot] == HA_RECEIVE_FLUSHING ? "test of a flush"
									: "test of a receive");
	if (err || !done)
		return err;
	*moved = true;
	if (conn->states[slot] == HA_RECEIVE_FLUSHING) {
		ha_timeline_progress(mesh->timeline, 0);
		conn->states[slot] = HA_RECEIVE_DONE;
		return 0;
	}
	for (int l = 0; l < conn->lanes_count; l++) {
		if (conn->lanes[l].total <= step)
			continue;
		conn->lanes[l].sizes[slot_of(mesh, &conn->lanes[l], step)] = (size_t)sizes[n];
		bytes += (size_t)sizes[n++];
	}
	ha_timeline_progress(mesh->timeline, bytes);
	conn->states[slot] = HA_RECEIVE_DONE;
	return mesh->flush && mesh->protocol == HA_SIMPLE ? receive_flush(mesh, conn, step) : 0;
}

/* Hands arrived steps to the lanes, in order. */
static void receive_arrive(struct ha_mesh *mesh, struct ha_conn *conn)
{
	for (; conn->arrived < conn->posted; conn->arrived++) {
		if (conn->states[conn->arrived % (uint64_t)mesh->steps] != HA_RECEIVE_DONE)
			return;
		for (int l = 0; l < conn->lanes_count; l++)
			if (conn->lanes[l].total > conn->arrived)
				conn->lanes[l].produced = conn->arrived + 1;
	}
}

/* irecvConsumed, where the plugin has it, once per request whose buffers have all been read. */
static int receive_release(struct ha_mesh *mesh, struct ha_conn *conn)
{
	for (; conn->released < conn->arrived; conn->released++) {
		int n = 0, err;

		for (int l = 0; l < conn->lanes_count; l++) {
			if (conn->lanes[l].total <= conn->released)
				continue;
			if (conn->lanes[l].consumed <= conn->released)
				return 0;
			n++;
		}
		if (!mesh->plugin.consumed)
			continue;
		err = ha_plugin_check(
			&mesh->plugin,
			mesh->plugin.consumed(conn->comm, n,
					      conn->cached[conn->released % (uint64_t)mesh->steps]),
			"irecvConsumed");
		if (err)
			return err;
	}
	return 0;
}

static int receiver_progress(struct ha_mesh *mesh, struct ha_conn *conn, bool *moved)
{
	int err = receive_release(mesh, conn);

	if (!err && conn->posted < conn->total &&
	    conn->posted < conn->released + (uint64_t)mesh->steps &&
	    receive_ready(mesh, conn, conn->posted))
		err = receive_post(mesh, conn, moved);
	if (!err && conn->arrived < conn->posted)
		err = receive_test(mesh, conn, moved);
	receive_arrive(mesh, conn);
	return err;
}

/* ---- the pass ---- */

int ha_proxy_progress(struct ha_mesh *mesh, bool *moved)
{
	int err = 0;

	for (int i = 0; i < mesh->receivers_count && !err; i++)
		err = receiver_progress(mesh, &mesh->receivers[i], moved);
	for (int i = 0; i < mesh->senders_count && !err; i++)
		err = sender_progress(mesh, &mesh->senders[i], moved);
	return err;
}

bool ha_proxy_idle(const struct ha_mesh *mesh)
{
	for (int i = 0; i < mesh->receivers_count; i++)
		if (mesh->receivers[i].released < mesh->receivers[i].total)
			return false;
	for (int i = 0; i < mesh->senders_count; i++)
		for (int l = 0; l < mesh->senders[i].lanes_count; l++)
			if (mesh->senders[i].lanes[l].consumed < mesh->senders[i].lanes[l].total)
				return false;
	return true;
}

static void conns_start(struct ha_conn *conns, int count)
{
	for (int i = 0; i < count; i++) {
		conns[i].posted = conns[i].arrived = conns[i].released = conns[i].total = 0;
		for (int l = 0; l < conns[i].lanes_count; l++) {
			struct ha_lane *lane = &conns[i].lanes[l];

			lane->produced = lane->posted = lane->consumed = 0;
			if (lane->total > conns[i].total)
				conns[i].total = lane->total;
		}
	}
}

void ha_proxy_start(struct ha_mesh *mesh)
{
	conns_start(mesh->senders, mesh->senders_count);
	conns_start(mesh->receivers, mesh->receivers_count);
}

static void conns_finish(struct ha_conn *conns, int count)
{
	for (int i = 0; i < count; i++)
		for (int l = 0; l < conns[i].lanes_count; l++)
			conns[i].lanes[l].base += conns[i].lanes[l].total;
}

void ha_proxy_finish(struct ha_mesh *mesh)
{
	conns_finish(mesh->senders, mesh->senders_count);
	conns_finish(mesh->receivers, mesh->receivers_count);
}

void ha_proxy_describe(const struct ha_mesh *mesh, char *text, int size)
{
	for (int i = 0; i < mesh->receivers_count; i++) {
		const struct ha_conn *c = &mesh->receivers[i];

		if (c->arrived < c->total) {
			snprintf(
				text, (size_t)size,
				"waiting for message %lu of %lu from rank %d (%lu receives posted)",
				c->arrived + 1, c->total, c->peer, c->posted - c->arrived);
			return;
		}
	}
	for (int i = 0; i < mesh->senders_count; i++) {
		const struct ha_conn *c = &mesh->senders[i];

		for (int l = 0; l < c->lanes_count; l++) {
			const struct ha_lane *lane = &c->lanes[l];

			if (lane->consumed < lane->total) {
				snprintf(text, (size_t)size, "message %lu of %lu to rank %d is %s",
					 lane->consumed + 1, lane->total, c->peer,
					 lane->posted > lane->consumed ? "not completed"
								       : "not accepted");
				return;
			}
		}
	}
	snprintf(text, (size_t)size,
		 "all messages are through, but not all of their data (flags in it are missing)");
}
