/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugin/nccl/collnet.h"

#include "base/clock.h"
#include "base/config.h"
#include "base/log.h"
#include "plugin/collnet/collnet.h"
#include "plugin/collnet/ops.h"
#include "plugin/nccl/net.h"
#include "plugin/nccl/plugin.h"
#include "plugin/nccl/result.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <time.h>
#include <unistd.h>

struct ha_collnet_context {
	LIST_ENTRY(ha_collnet_context) entry;
	struct ha_plugin_comm *comm; /* NULL: given back */
};

/* What NCCL holds. A connect that failed has ended what its listener stands for; NCCL never closes
 * that one. */
struct held {
	LIST_ENTRY(held) entry;
	pid_t owner; /* a forked child inherits the list, and nothing that is in it */
	struct ha_collnet_listen *listen;
	struct ha_collnet *comm;
};

/* A registered buffer. The backend copies, so nothing is registered anywhere; what is out of it is
 * refused. */
struct region {
	uint8_t *data;
	size_t size;
};

enum verdict { UNASKED, THERE, ABSENT };

static struct {
	pthread_mutex_t lock; /* all of it */
	enum verdict verdict; /* asked once: NCCL counts devices again for every communicator */
	LIST_HEAD(, ha_collnet_context) contexts;
	LIST_HEAD(, held) held;
} collnet = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* ---- contexts ---- */

int ha_collnet_context_new(ncclDebugLogger_t logger, uint64_t comm_id,
			   struct ha_collnet_context **out)
{
	struct ha_collnet_context *context = calloc(1, sizeof(*context));
	int err;

	*out = NULL;
	if (!context)
		return -ENOMEM;
	err = ha_plugin_comm_init(logger, comm_id, -1, &context->comm);
	if (err) {
		free(context);
		return err;
	}
	pthread_mutex_lock(&collnet.lock);
	LIST_INSERT_HEAD(&collnet.contexts, context, entry);
	pthread_mutex_unlock(&collnet.lock);
	*out = context;
	return 0;
}

void ha_collnet_context_end(struct ha_collnet_context *context)
{
	const struct ha_collnet_context *c;
	struct ha_plugin_comm *comm = NULL;

	pthread_mutex_lock(&collnet.lock);
	LIST_FOREACH(c, &collnet.contexts, entry)
		if (c == context)
			break;
	if (c) {
		LIST_REMOVE(context, entry);
		comm = context->comm;
		free(context);
	}
	pthread_mutex_unlock(&collnet.lock);
	ha_plugin_comm_finalize(comm);
}

static void give_back_references(void)
{
	for (;;) {
		struct ha_plugin_comm *comm = NULL;
		struct ha_collnet_context *c;

		pthread_mutex_lock(&collnet.lock);
		for (c = LIST_FIRST(&collnet.contexts); c && !comm; c = LIST_NEXT(c, entry)) {
			comm = c->comm;
			c->comm = NULL;
		}
		pthread_mutex_unlock(&collnet.lock);
		if (!comm)
			return;
		ha_plugin_comm_finalize(comm);
	}
}

/* True once. */
static bool let_go(struct held *h)
{
	const struct held *listed;

	pthread_mutex_lock(&collnet.lock);
	LIST_FOREACH(listed, &collnet.held, entry)
		if (listed == h)
			break;
	if (listed)
		LIST_REMOVE(h, entry);
	pthread_mutex_unlock(&collnet.lock);
	if (listed)
		ha_plugin_count_comm(-1);
	return listed != NULL;
}

static void close_held(struct held *h)
{
	ha_collnet_close(h->comm);
	ha_collnet_close_listen(h->listen);
	free(h);
}

/* Closes what NCCL has left open; the core is about to go. */
static void close_all_held(void)
{
	struct held *h;

	while ((h = LIST_FIRST(&collnet.held)) != NULL) {
		if (h->owner != getpid())
			LIST_REMOVE(h, entry);
		else if (let_go(h))
			close_held(h);
	}
}

static struct held *add_held(void)
{
	struct held *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	ha_plugin_on_teardown(close_all_held);
	pthread_mutex_lock(&collnet.lock);
	h->owner = getpid();
	LIST_INSERT_HEAD(&collnet.held, h, entry);
	pthread_mutex_unlock(&collnet.lock);
	ha_plugin_count_comm(1);
	return h;
}

__attribute__((destructor)) static void forget_contexts(void)
{
	struct ha_collnet_context *c;

	while ((c = LIST_FIRST(&collnet.contexts)) != NULL) {
		LIST_REMOVE(c, entry);
		free(c);
	}
}

/* ---- is there a switch ---- */

static enum verdict find_verdict(const struct ha_config *config)
{
	struct ha_ina_options options = { 0 };
	struct ha_ina *ina;
	char why[256] = "";

	if (config->collnet == HA_COLLNET_NEVER)
		return ABSENT;
	if (config->collnet == HA_COLLNET_ALWAYS)
		return THERE;
	if (!config->collnet_enable) {
		HA_INFO(NULL, "collnet: off, as NCCL_COLLNET_ENABLE is not 1 (HA_NCCL_COLLNET=1 "
			      "offers it to communicators that ask by their configuration)");
		return ABSENT;
	}
	if (ha_ina_ops_live.open(&ina, &options, why, sizeof(why))) {
		HA_WARN(NULL, "collnet: no device, so NCCL goes without: %s", why);
		return ABSENT;
	}
	ha_ina_ops_live.close(ina);
	return THERE;
}

ncclResult_t ha_nccl_collnet_devices(int *ndev)
{
	struct ha_ctx *core = ha_plugin_core();
	enum verdict verdict;

	*ndev = 0;
	if (!core)
		return ncclSuccess;
	pthread_mutex_lock(&collnet.lock);
	if (collnet.verdict == UNASKED)
		collnet.verdict = find_verdict(ha_plugin_config());
	verdict = collnet.verdict;
	pthread_mutex_unlock(&collnet.lock);
	if (verdict == THERE)
		*ndev = ha_vdevice_count(core, HA_VDEVICE_COLLNET);
	else
		give_back_references();
	return ncclSuccess;
}

ncclResult_t ha_nccl_collnet_reduce_support(ncclDataType_t type, ncclRedOp_t op, int *supported)
{
	/* int32 too could be added, but a switch holds sums at their ends where NCCL's own wrap
	 * around. */
	*supported = type == ncclFloat32 && op == ncclSum;
	return ncclSuccess;
}

/* ---- connections ---- */

ncclResult_t ha_nccl_collnet_listen(int dev, void *handle, void **listen_comm)
{
	const struct ha_config *config = ha_plugin_config();
	struct ha_collnet_params params = {
		.core = ha_plugin_core(),
		.opts = { .traffic_class = -1 },
		.ina = &ha_ina_ops_live,
		.always = config->collnet == HA_COLLNET_ALWAYS,
		.timeout_ns = (uint64_t)config->connect_timeout_ms * HA_NS_PER_MS,
		.silence_ns = (uint64_t)config->collnet_timeout_ms * HA_NS_PER_MS,
	};
	struct held *h;
	int err = -ENOMEM;

	*listen_comm = NULL;
	if (!params.core)
		return ha_result(-ENODEV);
	h = add_held();
	if (h)
		err = ha_collnet_listen(&params, dev, handle, &h->listen);
	if (err && h && let_go(h))
		free(h);
	if (!err)
		*listen_comm = h;
	return ha_result(err);
}

static int wait_until_connected(struct ha_collnet *comm)
{
	int err;

	while ((err = ha_collnet_connect_step(comm)) == -EAGAIN)
		nanosleep(&(struct timespec) { .tv_nsec = 50000 }, NULL);
	return err;
}

ncclResult_t ha_nccl_collnet_connect(void *handles[], int nranks, int rank, void *listen_comm,
				     void **coll_comm)
{
	struct held *listen = listen_comm, *h;
	int err;

	*coll_comm = NULL;
	if (!listen)
		return ncclInvalidArgument;
	h = add_held();
	if (!h)
		return ha_result(-ENOMEM);
	err = ha_collnet_connect(listen->listen, handles, nranks, rank, &h->comm);
	if (!err)
		err = wait_until_connected(h->comm);
	if (!err) {
		*coll_comm = h;
		return ncclSuccess;
	}
	if (let_go(h))
		close_held(h);
	/* NCCL forgets the listener of a connect that failed. */
	ha_collnet_close_listen(listen->listen);
	listen->listen = NULL;
	return ha_result(err);
}

ncclResult_t ha_nccl_collnet_close(void *coll_comm)
{
	struct held *h = coll_comm;

	if (h && let_go(h))
		close_held(h);
	return ncclSuccess;
}

ncclResult_t ha_nccl_collnet_close_listen(void *listen_comm)
{
	return ha_nccl_collnet_close(listen_comm);
}

/* ---- memory ---- */

ncclResult_t ha_nccl_collnet_reg_mr(void *coll_comm, void *data, size_t size, int type,
				    void **mhandle)
{
	struct region *region;

	*mhandle = NULL;
	if (!coll_comm || type != NCCL_PTR_HOST)
		return ncclInvalidArgument;
	region = malloc(sizeof(*region));
	if (!region)
		return ha_result(-ENOMEM);
	*region = (struct region) { data, size };
	*mhandle = region;
	return ncclSuccess;
}

ncclResult_t ha_nccl_collnet_reg_mr_dmabuf(void *coll_comm, void *data, size_t size, int type,
					   uint64_t offset, int fd, void **mhandle)
{
	*mhandle = NULL; /* ptrSupport has no such bit */
	return ncclInvalidArgument;
}

ncclResult_t ha_nccl_collnet_dereg_mr(void *coll_comm, void *mhandle)
{
	free(mhandle);
	return ncclSuccess;
}

static bool is_inside(const struct region *region, const uint8_t *data, size_t bytes)
{
	return region && data >= region->data && (size_t)(data - region->data) <= region->size &&
	       bytes <= region->size - (size_t)(data - region->data);
}

/* ---- operations ---- */

ncclResult_t ha_nccl_collnet_iallreduce(void *coll_comm, void *send, void *recv, size_t count,
					ncclDataType_t type, ncclRedOp_t op, void *send_mhandle,
					void *recv_mhandle, void **request)
{
	struct held *h = coll_comm;
	struct ha_collnet_op *collnet_op = NULL;
	size_t bytes = count * sizeof(float);
	int err;

	*request = NULL;
	if (!h || type != ncclFloat32 || op != ncclSum ||
	    count > HA_COLLNET_BYTES / sizeof(float) || !is_inside(send_mhandle, send, bytes) ||
	    !is_inside(recv_mhandle, recv, bytes))
		return ncclInvalidArgument;
	err = ha_collnet_iallreduce(h->comm, send, recv, bytes, &collnet_op);
	*request = err ? NULL : collnet_op;
	return ha_result(err);
}

ncclResult_t ha_nccl_collnet_iflush(void *coll_comm, void *data, int size, void *mhandle,
				    void **request)
{
	*request = NULL; /* host memory: it is there */
	return ncclSuccess;
}

ncclResult_t ha_nccl_collnet_test(void *request, int *done, int *size)
{
	size_t bytes = 0;
	int err;

	if (!request)
		return ncclInvalidArgument;
	err = ha_collnet_test(request, done, &bytes);
	if (!err && *done && size)
		*size = bytes > INT_MAX ? INT_MAX : (int)bytes;
	return ha_result(err);
}
