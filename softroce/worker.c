/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * worker.c - the thread that is the NIC when the application is not
 *
 * One worker per open adapter receives, transmits, runs the engine's timers and follows the link
 * and the control page.
 * When nothing is due it sleeps. An application that polls a completion queue does the same work
 * itself inside ibv_poll_cq(), on its own core and without a switch of threads; a worker that woke
 * for each packet would only steal time from it. So the worker is in one of three modes:
 *
 *   serving   it sleeps on the sockets and wakes for packets.
 *   trying    it leaves the packets to the application for FRESH_NS at most.
 *   away      it leaves the sockets to the application and looks in every SR_AWAY_NS.
 *
 * It goes away after CEDED_MAX wake-ups in a row at which an application had polled within the last
 * ACTIVE_NS: a thread that polls in a loop will find the packets sooner than we would. It serves
 * again when, on looking in, the last poll is older than FRESH_NS: the application computes,
 * sleeps, or spins on its memory instead of on a completion queue (ib_write_lat does).
 *
 * A poll between ACTIVE_NS and FRESH_NS ago says neither: where more threads poll than there are
 * processors, each polls when it has one, and a worker that wakes takes it from them. So the worker
 * tries. If the application has polled by the end of that, it counts as a wake-up at which it had
 * just polled. If not, the worker tries again after twice as many wake-ups, 1 to UNTRIED_MAX.
 *
 * It never waits for the lock of one who polls: he is the NIC at that moment, and a waiter would
 * cost him a system call and a wake-up for each look.
 */
#include "softroce/adapter.h"
#include "softroce/udp.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FRESH_NS 50000
#define ACTIVE_NS 4000
#define CEDED_MAX 4
#define UNTRIED_MAX 1024
#define LOOKS_MAX 64 /* looks in a row that found the lock taken; then it is waited for */
/* time slice asked of the scheduler: short slices are scheduled early */
#define SLICE_NS 100000

/* Where each descriptor lies in the worker's poll set. */
enum { FD_KICK, FD_BELL, FD_WATCH, FD_UDP, FD_COUNT = FD_UDP + SR_GIDS };

enum mode { SERVING, TRYING, AWAY };

struct worker {
	struct sr_adapter *adapter;
	struct pollfd fds[FD_COUNT];
	int udp_fds;
	enum mode mode;
	bool packets;                 /* the last sleep ended because a socket was readable */
	int ceded;                    /* wake-ups in a row left to an application that polls */
	int looks;                    /* of them, those that found it in the NIC */
	uint64_t try_from, try_until; /* the last poll when the try began, and when it ends */
	int untried;                  /* chances left to pass before the next try */
	int untried_next;             /* so many after the next one that fails */
};

/*
 * Kernel's struct sched_attr up to what we set (sched_setattr(2)); glibc of Debian 12 does not
 * declare it.
 */
struct slice_attr {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

/* A request only: kernels before 6.12 ignore or refuse a slice for ordinary threads. */
static void slice_ask(void)
{
	struct slice_attr attr = { .size = sizeof(attr) };

	if (syscall(SYS_sched_getattr, 0, &attr, sizeof(attr), 0) || attr.policy != SCHED_OTHER)
		return;
	attr.runtime = SLICE_NS;
	syscall(SYS_sched_setattr, 0, &attr, 0);
}

/* Whether an application has polled within the last `ns`, or pauses between two polls. */
static bool application_polls(const struct worker *worker, uint64_t now, uint64_t ns)
{
	return atomic_load_explicit(&worker->adapter->polled_at, memory_order_relaxed) + ns > now;
}

/* It has not polled for a moment, and may be about to. */
static bool begin_try(struct worker *worker, uint64_t now)
{
	if (!application_polls(worker, now, FRESH_NS))
		return false;
	if (worker->untried > 0) {
		worker->untried--;
		return false;
	}
	worker->try_from = atomic_load_explicit(&worker->adapter->polled_at, memory_order_relaxed);
	worker->try_until = now + FRESH_NS;
	worker->mode = TRYING;
	return true;
}

/* A wake-up whose packets were left to the application. */
static void leave_packets(struct worker *worker)
{
	worker->mode = ++worker->ceded >= CEDED_MAX ? AWAY : SERVING;
	if (worker->mode == AWAY)
		worker->untried_next = 0;
}

static void try_failed(struct worker *worker)
{
	worker->mode = SERVING;
	worker->ceded = 0;
	worker->untried_next =
		worker->untried_next < UNTRIED_MAX / 2 ? worker->untried_next * 2 + 1 : UNTRIED_MAX;
	worker->untried = worker->untried_next;
}

/* Whether the packets are still left to it: until it has polled, or the time is over. */
static bool try_goes_on(struct worker *worker, uint64_t now)
{
	if (application_polls(worker, worker->try_from, 0)) {
		leave_packets(worker);
		return true;
	}
	if (now < worker->try_until)
		return true;
	try_failed(worker);
	return false;
}

static bool stays_away(struct worker *worker, uint64_t now)
{
	worker->ceded = 0;
	if (!application_polls(worker, now, FRESH_NS))
		worker->mode = SERVING;
	return worker->mode == AWAY;
}

/* Whether those that have just come are left to it. */
static bool leaves_new_packets(struct worker *worker, uint64_t now)
{
	if (worker->packets && application_polls(worker, now, ACTIVE_NS)) {
		leave_packets(worker);
		return true;
	}
	if (worker->packets && begin_try(worker, now))
		return true;
	worker->ceded = 0;
	return false;
}

/*
 * Whether the packets, if any, are left to an application that polls; chooses the mode. Under the
 * lock.
 */
static bool packets_cede(struct worker *worker, uint64_t now)
{
	switch (worker->mode) {
	case TRYING:
		return try_goes_on(worker, now);
	case AWAY:
		return stays_away(worker, now);
	default:
		return leaves_new_packets(worker, now);
	}
}

/* A timer of the engine, a delayed packet or a full socket does not wait for the application. */
static bool turn_due(const struct sr_adapter *adapter, uint64_t now)
{
	return sr_nic_deadline(adapter->nic) <= now || sr_udp_deadline(adapter->udp) <= now ||
	       sr_udp_blocked(adapter->udp);
}

/* Fill the poll set and return when to wake at the latest; under the lock. */
static uint64_t sleep_plan(struct worker *worker, uint64_t now)
{
	struct sr_adapter *adapter = worker->adapter;
	uint64_t at = sr_nic_deadline(adapter->nic), held = sr_udp_deadline(adapter->udp);

	worker->udp_fds =
		sr_udp_pollfds(adapter->udp, &worker->fds[FD_UDP], worker->mode == SERVING);
	if (held < at)
		at = held;
	if (worker->mode == AWAY && now + SR_AWAY_NS < at)
		at = now + SR_AWAY_NS;
	if (worker->mode == TRYING && worker->try_until < at)
		at = worker->try_until;
	adapter->wake_at = at;
	return at;
}

static void sleep_until(struct worker *worker, uint64_t at, uint64_t now)
{
	uint64_t ns = at > now ? at - now : 0;
	struct timespec ts = { ns / 1000000000, ns % 1000000000 };

	worker->packets = false;
	if (ppoll(worker->fds, FD_UDP + worker->udp_fds, at == UINT64_MAX ? NULL : &ts, NULL) <= 0)
		return;
	for (int i = 0; i < worker->udp_fds; i++)
		worker->packets |= worker->fds[FD_UDP + i].revents != 0;
}

/* Look at what woke us besides packets; under the lock. */
static void outside_follow(struct worker *worker)
{
	struct sr_adapter *adapter = worker->adapter;
	eventfd_t value;

	if (worker->fds[FD_KICK].revents)
		eventfd_read(adapter->kick, &value);
	if (worker->fds[FD_BELL].revents)
		sr_adapter_follow_control(adapter);
	if (worker->fds[FD_WATCH].revents && sr_netif_watch_drain(adapter->watch))
		sr_adapter_follow_link(adapter);
	for (int i = 0; i < FD_UDP; i++)
		worker->fds[i].revents = 0;
}

/* Application threads waiting for the lock go before us. */
static void lock_take(struct sr_adapter *adapter)
{
	for (int i = 0; i < 100 && atomic_load_explicit(&adapter->wanted, memory_order_relaxed);
	     i++)
		sched_yield();
	pthread_mutex_lock(&adapter->lock);
}

/* An application that polls holds the lock, and nothing but packets may want us. */
static bool lock_ceded(struct worker *worker, uint64_t now)
{
	bool called = worker->fds[FD_KICK].revents || worker->fds[FD_BELL].revents ||
		      worker->fds[FD_WATCH].revents;

	if (!pthread_mutex_trylock(&worker->adapter->lock)) {
		worker->looks = 0;
		return false;
	}
	if (called || worker->looks++ >= LOOKS_MAX || !application_polls(worker, now, FRESH_NS)) {
		lock_take(worker->adapter);
		worker->looks = 0;
		return false;
	}
	worker->mode = AWAY;
	worker->udp_fds = 0;
	return true;
}

static void *worker_run(void *arg)
{
	struct worker worker = { .adapter = arg };
	struct sr_adapter *adapter = arg;

	worker.fds[FD_KICK] = (struct pollfd) { adapter->kick, POLLIN, 0 };
	worker.fds[FD_BELL] = (struct pollfd) { adapter->control.bell, POLLIN, 0 };
	worker.fds[FD_WATCH] = (struct pollfd) { adapter->watch, POLLIN, 0 };
	slice_ask();
	pthread_mutex_lock(&adapter->lock);
	while (!adapter->stop) {
		uint64_t now = sr_now(), at;

		adapter->wake_at = 0;
		outside_follow(&worker);
		if (!packets_cede(&worker, now) || turn_due(adapter, now)) {
			if (sr_nic_acks_wait(adapter->nic))
				sr_adapter_acks_overdue(adapter);
			if (sr_adapter_turn(adapter, now) && !adapter->stop) {
				/* Work often comes in runs: look again before sleeping, but let
				 * others have the lock. */
				pthread_mutex_unlock(&adapter->lock);
				lock_take(adapter);
				now = sr_now();
				sr_adapter_turn(adapter, now);
			}
		}
		at = sleep_plan(&worker, now);
		pthread_mutex_unlock(&adapter->lock);
		do {
			sleep_until(&worker, at, now);
			now = sr_now();
			at = now + SR_AWAY_NS;
		} while (lock_ceded(&worker, now));
	}
	pthread_mutex_unlock(&adapter->lock);
	return NULL;
}

int sr_worker_start(struct sr_adapter *adapter)
{
	sigset_t all, old;
	int err;

	adapter->kick = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (adapter->kick < 0)
		return -errno;
	adapter->watch = sr_netif_watch_open();
	/* Without netlink (a sandbox) the link's state is the one at the start. The poll set
	 * ignores the negative number. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old); /* signals are the application's */
	err = -pthread_create(&adapter->worker, NULL, worker_run, adapter);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err) {
		close(adapter->kick);
		if (adapter->watch >= 0)
			close(adapter->watch);
		adapter->kick = adapter->watch = -1;
		return err;
	}
	pthread_setname_np(adapter->worker, adapter->spec.name);
	return 0;
}

void sr_worker_stop(struct sr_adapter *adapter)
{
	pthread_mutex_lock(&adapter->lock);
	adapter->stop = true;
	pthread_mutex_unlock(&adapter->lock);
	eventfd_write(adapter->kick, 1);
	pthread_join(adapter->worker, NULL);
	close(adapter->kick);
	if (adapter->watch >= 0)
		close(adapter->watch);
	adapter->kick = adapter->watch = -1;
}
