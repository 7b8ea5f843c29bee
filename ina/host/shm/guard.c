/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/host/shm/guard.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>

#define PAGE 4096u

static struct ina_shm_guard guards[INA_SHM_GUARDS];
static _Atomic unsigned used; /* all beyond have never been taken */
static struct sigaction before;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool ready;

/* ---- in the signal's handler: nothing but atomics and system calls ---- */

static bool replace_pages(uintptr_t at, uint64_t bytes)
{
	void *to = (void *)at; // NOLINT(performance-no-int-to-ptr)
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;

	return mmap(to, bytes, PROT_READ | PROT_WRITE, flags, -1, 0) != MAP_FAILED;
}

/*
 * Said before it is done: whoever reads zeros finds it said. All of the mapping is replaced, so
 * that the client's further doings change nothing here; where the system is too short of memory for
 * that, the one page.
 */
static bool made_good(uintptr_t at)
{
	unsigned n = atomic_load_explicit(&used, memory_order_acquire);

	for (unsigned i = 0; i < n; i++) {
		struct ina_shm_guard *g = &guards[i];
		uintptr_t begin = atomic_load_explicit(&g->begin, memory_order_acquire);
		uint64_t bytes = atomic_load_explicit(&g->bytes, memory_order_relaxed);

		if (!begin || at < begin || at - begin >= bytes)
			continue;
		atomic_store_explicit(&g->lost, true, memory_order_seq_cst);
		return replace_pages(begin, bytes) ||
		       replace_pages(at & ~(uintptr_t)(PAGE - 1), PAGE);
	}
	return false;
}

static void on_bus(int sig, siginfo_t *info, void *context)
{
	int err = errno;

	if (made_good((uintptr_t)info->si_addr))
		;
	else if (before.sa_flags & SA_SIGINFO)
		before.sa_sigaction(sig, info, context);
	else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
		before.sa_handler(sig);
	else
		signal(SIGBUS, SIG_DFL); /* and it comes again */
	errno = err;
}

/* ---- guards ---- */

static void install_handler(void)
{
	struct sigaction ours = { .sa_sigaction = on_bus,
				  .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK };

	sigemptyset(&ours.sa_mask);
	ready = !sigaction(SIGBUS, NULL, &before) && !sigaction(SIGBUS, &ours, NULL);
}

static void raise_used(unsigned n)
{
	unsigned was = atomic_load_explicit(&used, memory_order_relaxed);

	while (was < n && !atomic_compare_exchange_weak_explicit(
				  &used, &was, n, memory_order_release, memory_order_relaxed))
		;
}

struct ina_shm_guard *ina_shm_guard_put(void *map, uint64_t bytes)
{
	pthread_once(&once, install_handler);
	for (unsigned i = 0; ready && i < INA_SHM_GUARDS; i++) {
		struct ina_shm_guard *g = &guards[i];

		if (atomic_exchange_explicit(&g->taken, true, memory_order_acquire))
			continue;
		atomic_store_explicit(&g->lost, false, memory_order_relaxed);
		atomic_store_explicit(&g->bytes, bytes, memory_order_relaxed);
		atomic_store_explicit(&g->begin, (uintptr_t)map, memory_order_release);
		raise_used(i + 1);
		return g;
	}
	return NULL;
}

void ina_shm_guard_remove(struct ina_shm_guard *g)
{
	atomic_store_explicit(&g->begin, 0, memory_order_relaxed);
	atomic_store_explicit(&g->taken, false, memory_order_release);
}
