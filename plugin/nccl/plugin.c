/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plugin.c - beginning and end of the process-wide context
 *
 * The library can end in two ways, and its destructor must tell them apart. dlclose: our code is
 * about to be unmapped, so every thread of ours must be gone when the destructor returns. exit():
 * if connections are still open (a program that never destroyed its communicators), NCCL's own
 * threads may be inside our calls right now, so nothing may be torn down; the kernel does it. The C
 * library runs what __cxa_atexit registered for an owner that is no library only at exit(), before
 * any destructor, but keeps it across a dlclose; so what is registered is a function of the C
 * library, sem_post, on memory that is never given back, and that memory is the owner. (Without an
 * owner, ThreadSanitizer's version of __cxa_atexit would drop the argument.)
 *
 * What was complete when it was posted (HA_NCCL_COPY_MAX) must not go with the process. exit()
 * runs finish_sends before any library's destructor, so the service thread and the NIC's library
 * still work, and before what was registered earlier; nothing is torn down, since that may still
 * use the connections. It is registered when there is a context, after whatever the NIC's library
 * has registered for itself; not by atexit, of which ThreadSanitizer's version forgets the library:
 * it would be called after a dlclose, too.
 */
#include "plugin/nccl/plugin.h"

#include "base/config.h"
#include "base/log.h"
#include "base/version.h"
#include "plugin/nccl/abi/net_v12.h"
#include "plugin/nccl/glibc_floor.h"
#include "plugin/nccl/resident.h"
#include "plugin/nccl/vdevice.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define LOCK_TRIES 100 /* of a millisecond */

HA_GLIBC_OWN(sem_post);
extern int __cxa_atexit(void (*function)(void *), void *argument, void *owner);
extern void *__dso_handle __attribute__((visibility("hidden"))); /* this library as an owner */

static struct {
	pthread_mutex_t lock; /* everything below, and the creation and destruction of core */
	_Atomic(struct ha_ctx *) core;
	struct ha_config config; /* core reads it as long as it exists */
	unsigned users;          /* communicators, plus one while `library` */
	bool library;            /* a version without finalize holds a reference until dlclose */
	_Atomic(pid_t) owner;    /* a forked child has core's memory but none of its threads */
	atomic_int comms;        /* that NCCL holds */
	_Atomic(void (*)(void)) teardown; /* of what stands on core and NCCL has not given back */
	sem_t *exiting;                   /* posted by exit(); a page of its own, for good */
} plugin = { .lock = PTHREAD_MUTEX_INITIALIZER };

static pthread_once_t exit_once = PTHREAD_ONCE_INIT;

static void use_logger(ncclDebugLogger_t logger)
{
	/* Same call in the C ABI: the level is an enum there and an int here. */
	ha_log_set_sink((ha_log_sink_fn)(void (*)(void))logger);
}

/* A forked child must not wait for its parent's lock, nor for its parent's sends. Whoever has the
 * lock for long begins or ends the context, and nothing is on its way; or it is the very thread
 * that exit() has interrupted. */
static bool lock_at_exit(void)
{
	const struct timespec step = { .tv_nsec = 1000000 };

	if (atomic_load_explicit(&plugin.owner, memory_order_relaxed) != getpid())
		return false;
	for (int i = 0; i < LOCK_TRIES; i++) {
		if (!pthread_mutex_trylock(&plugin.lock))
			return true;
		nanosleep(&step, NULL);
	}
	return false;
}

static void finish_sends(void *unused)
{
	if (!lock_at_exit())
		return;
	if (plugin.users)
		ha_ctx_drain(atomic_load_explicit(&plugin.core, memory_order_relaxed));
	pthread_mutex_unlock(&plugin.lock);
}

static void finish_sends_at_exit(void)
{
	if (__cxa_atexit(finish_sends, NULL, &__dso_handle))
		HA_WARN(NULL, "no memory for a function at exit(): a program that ends without "
			      "closing its connections may lose small sends (HA_NCCL_COPY_MAX)");
}

static void print_devices(struct ha_ctx *core)
{
	for (int dev = 0; dev < ha_ctx_ndevices(core); dev++) {
		struct ha_dev_props p;

		if (ha_ctx_device(core, dev, &p))
			continue;
		HA_INFO(p.name,
			"device %d, port %d, %d Mb/s, at most %d connections (maxComms) and %d "
			"buffers in a grouped receive "
			"(maxRecvs), %s",
			dev, p.port, p.speed_mbps, p.max_comms, p.max_recvs,
			p.ptr_support & HA_MEM_CUDA ? "GPU and host memory" : "host memory");
	}
}

/* A child after fork() has begun anew: the parent's context, whose threads and NICs are not here,
 * is left as it is. */
static void forget_parent(void)
{
	if (!plugin.users || plugin.owner == getpid())
		return;
	atomic_store_explicit(&plugin.core, NULL, memory_order_relaxed);
	atomic_store_explicit(&plugin.comms, 0, memory_order_relaxed);
	plugin.users = 0;
	plugin.library = false;
}

/* Called with the lock held. */
static int take_reference(ncclDebugLogger_t logger)
{
	struct ha_ctx_params params = { .config = &plugin.config };
	struct ha_ctx *core;
	int err;

	use_logger(logger);
	if (plugin.users) {
		plugin.users++;
		return 0;
	}
	ha_config_load_env(&plugin.config);
	HA_INFO(NULL, "hawser %s", ha_version);
	params.nknown = ha_vdevice_ports(&params.known);
	err = ha_ctx_create(&params, &core);
	if (err) {
		use_logger(NULL);
		return err;
	}
	print_devices(core);
	ha_vdevice_begin(core);
	atomic_store_explicit(&plugin.core, core, memory_order_release);
	atomic_store_explicit(&plugin.owner, getpid(), memory_order_relaxed);
	plugin.users = 1;
	pthread_once(&exit_once, finish_sends_at_exit);
	return 0;
}

/* Called with the lock held. When the count reaches zero no thread of ours is left. */
static void drop_reference(void)
{
	if (--plugin.users)
		return;
	if (plugin.owner == getpid()) {
		struct ha_ctx *core = atomic_load_explicit(&plugin.core, memory_order_relaxed);
		void (*teardown)(void) =
			atomic_load_explicit(&plugin.teardown, memory_order_acquire);

		ha_ctx_drain(core);
		if (teardown)
			teardown();
		ha_ctx_destroy(core);
	}
	atomic_store_explicit(&plugin.core, NULL, memory_order_relaxed);
	use_logger(NULL);
}

int ha_plugin_init(ncclDebugLogger_t logger)
{
	int err = 0;

	pthread_mutex_lock(&plugin.lock);
	forget_parent();
	if (plugin.library)
		use_logger(logger);
	else
		err = take_reference(logger);
	if (!err)
		plugin.library = true;
	pthread_mutex_unlock(&plugin.lock);
	if (!err)
		ha_resident_stay();
	return err;
}

static void hint_init(struct ha_traffic_hint *hint)
{
	atomic_init(&hint->send_peers, -1);
	atomic_init(&hint->send_flows, -1);
	atomic_init(&hint->recv_peers, -1);
	atomic_init(&hint->recv_flows, -1);
	atomic_init(&hint->op, ~0u);
	atomic_init(&hint->algo, ~0u);
	atomic_init(&hint->proto, ~0u);
}

int ha_plugin_comm_init(ncclDebugLogger_t logger, uint64_t id, int traffic_class,
			struct ha_plugin_comm **comm)
{
	struct ha_plugin_comm *c = calloc(1, sizeof(*c));
	int err;

	*comm = NULL;
	if (!c)
		return -ENOMEM;
	pthread_mutex_lock(&plugin.lock);
	forget_parent();
	err = take_reference(logger);
	pthread_mutex_unlock(&plugin.lock);
	if (err) {
		free(c);
		return err;
	}
	ha_resident_stay_by_default_name();
	c->core = ha_plugin_core();
	c->opts.traffic_class = traffic_class == NCCL_NET_TRAFFIC_CLASS_UNDEF ? -1 : traffic_class;
	c->id = id;
	hint_init(&c->hint);
	*comm = c;
	return 0;
}

int ha_plugin_comm_finalize(struct ha_plugin_comm *comm)
{
	if (!comm)
		return 0;
	pthread_mutex_lock(&plugin.lock);
	/* Of another context is what a forked child has from its parent. */
	if (comm->core == atomic_load_explicit(&plugin.core, memory_order_relaxed))
		drop_reference();
	pthread_mutex_unlock(&plugin.lock);
	free(comm);
	return 0;
}

struct ha_ctx *ha_plugin_core(void)
{
	return atomic_load_explicit(&plugin.core, memory_order_acquire);
}

const struct ha_config *ha_plugin_config(void)
{
	return &plugin.config;
}

void ha_plugin_on_teardown(void (*teardown)(void))
{
	atomic_store_explicit(&plugin.teardown, teardown, memory_order_release);
}

void ha_plugin_count_comm(int change)
{
	atomic_fetch_add_explicit(&plugin.comms, change, memory_order_relaxed);
}

__attribute__((constructor)) static void watch_for_exit(void)
{
	void *page = mmap(NULL, sizeof(*plugin.exiting), PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return; /* then the end of the process is taken for a dlclose */
	plugin.exiting = page;
	if (!sem_init(plugin.exiting, 0, 0))
		__cxa_atexit((void (*)(void *))(void (*)(void))sem_post, plugin.exiting,
			     plugin.exiting);
}

__attribute__((destructor)) static void unload_plugin(void)
{
	int exiting = 0;

	if (plugin.exiting)
		sem_getvalue(plugin.exiting, &exiting);
	if (exiting && atomic_load_explicit(&plugin.comms, memory_order_relaxed) > 0)
		return;
	/* Nobody can be inside a call; the lock is only for the memory model. */
	pthread_mutex_lock(&plugin.lock);
	if (plugin.users) {
		plugin.users = 1;
		plugin.library = false;
		drop_reference();
	}
	pthread_mutex_unlock(&plugin.lock);
}
