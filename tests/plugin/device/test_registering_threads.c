/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * NCCL registers from one thread while another flushes, and several connections register at once
 * with no descriptor left for their dma-bufs. ThreadSanitizer looks at what they share.
 */
#include "base/check.h"
#include "tests/plugin/pair.h"

#include "plugin/bundle.h"
#include "plugin/device/mr.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define SIZE 4096
#define TURNS 50
#define CONNECTIONS 4

struct end {
	struct pair p;
	pthread_t thread;
	int file; /* its dma-buf */
	char *data;
};

static atomic_int ready;

static void exchange_keys(struct end *e)
{
	struct ha_bundle *b = (struct ha_bundle *)e->p.recv;
	struct ha_mr *mr;

	for (int i = 0; i < TURNS; i++) {
		CHECK_INT(ha_reg_mr(b, e->data, SIZE, HA_MEM_CUDA, 0, e->file, 0, &mr), 0);
		CHECK_INT(ha_dereg_mr(b, mr), 0);
	}
}

static void *register_all(void *arg)
{
	atomic_fetch_add(&ready, 1);
	while (atomic_load(&ready) < CONNECTIONS)
		;
	exchange_keys(arg);
	return NULL;
}

static void open_end(struct end *e, struct ha_ctx *ctx)
{
	if (ctx)
		pair_connect(&e->p, ctx, 0);
	else
		pair_open(&e->p, 0);
	e->file = memfd_create("gpu", MFD_CLOEXEC);
	CHECK(e->file >= 0);
	CHECK_INT(ftruncate(e->file, SIZE), 0);
	e->data = pair_alloc(SIZE);
}

/* One descriptor more: one thread's dma-buf is kept, and the others say that there are no more. */
static void limit_files(struct rlimit *before)
{
	struct rlimit limit;
	int next = dup(0);

	CHECK(next >= 0);
	close(next);
	CHECK_INT(getrlimit(RLIMIT_NOFILE, before), 0);
	limit = (struct rlimit) { (rlim_t)next + 1, before->rlim_max };
	CHECK_INT(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void test_descriptors(void)
{
	struct end e[CONNECTIONS];
	struct rlimit before;

	for (int i = 0; i < CONNECTIONS; i++)
		open_end(&e[i], i ? e[0].p.ctx : NULL);
	limit_files(&before);
	for (int i = 0; i < CONNECTIONS; i++)
		CHECK_INT(pthread_create(&e[i].thread, NULL, register_all, &e[i]), 0);
	for (int i = 0; i < CONNECTIONS; i++)
		pthread_join(e[i].thread, NULL);
	CHECK_INT(setrlimit(RLIMIT_NOFILE, &before), 0);
	for (int i = CONNECTIONS - 1; i > 0; i--)
		pair_disconnect(&e[i].p);
	pair_close(&e[0].p);
	for (int i = 0; i < CONNECTIONS; i++)
		close(e[i].file);
}

static atomic_bool over;

static void *register_until_over(void *arg)
{
	while (!atomic_load(&over))
		exchange_keys(arg);
	return NULL;
}

static void flush_once(struct end *e, struct ha_mr *mr)
{
	struct ha_request *flush;
	void *data = e->data;
	int size = SIZE, done = 0;

	CHECK_INT(ha_iflush(e->p.recv, 1, &data, &size, &mr, &flush), 0);
	for (int k = 0; flush && !done; k++) {
		CHECK(k < PAIR_TRIES_MAX);
		CHECK_INT(ha_test(flush, &done, NULL), 0);
		pair_idle(&e->p, k);
	}
}

static void test_flush(void)
{
	struct ha_mr *mr;
	struct end e;

	open_end(&e, NULL);
	CHECK_INT(ha_reg_mr((struct ha_bundle *)e.p.recv, e.data, SIZE, HA_MEM_CUDA, 0, -1, 0, &mr),
		  0);
	CHECK_INT(pthread_create(&e.thread, NULL, register_until_over, &e), 0);
	for (int i = 0; i < TURNS; i++)
		flush_once(&e, mr);
	atomic_store(&over, true);
	pthread_join(e.thread, NULL);
	CHECK_INT(ha_dereg_mr((struct ha_bundle *)e.p.recv, mr), 0);
	pair_close(&e.p);
	close(e.file);
}

int main(int argc, char **argv)
{
	if (argc < 2 || !strcmp(argv[1], "descriptors"))
		test_descriptors();
	if (argc < 2 || !strcmp(argv[1], "flush"))
		test_flush();
	return 0;
}
