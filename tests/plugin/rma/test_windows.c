/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Windows that come and go while something else happens: the port that the communicator listens on
 * comes back or its device dies before one is registered; one is given back while a read behind
 * data goes through it, or before a get of it has its answer. One is refused at one rank: the next
 * has the same number everywhere all the same, or puts would go to another buffer. Each number is
 * given once.
 */
#include "plugin/rma/comm.h"
#include "rdma/topo/device.h"

#include "base/check.h"
#include "base/config.h"
#include "plugin/ctx.h"
#include "plugin/device/device.h"
#include "plugin/report/journal.h"
#include "rdma/verbs/dlopen.h"
#include "tests/base/lines.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define RANKS 2
#define SIZE 4096
#define ROUNDS 2000000 /* fruitless, after which a test gives up */
#define LATE 50        /* looks of this thread at its completions, then the read is on its way */

static struct ha_verbs_ops below, *library;
static struct ha_verbs_hot hot_below;
static atomic_bool port_away, device_dead; /* of soft0 */

static struct ha_ctx *ctx;
static struct ha_rma *rma[RANKS];

/* A read that has been posted and does not go before it is released. */
static struct {
	pthread_mutex_t lock;
	atomic_bool wanted, held, counting;
	unsigned looks;
	struct ibv_qp *qp;
	struct ibv_send_wr wr;
	struct ibv_sge sge;
} flush = { .lock = PTHREAD_MUTEX_INITIALIZER };
static _Thread_local bool ours;
static _Thread_local bool refuse; /* what this thread registers */

static bool is_first(const struct ibv_context *context)
{
	return !strcmp(context->device->name, "soft0");
}

static int query_port(const struct ha_verbs_ops *v, struct ibv_context *context, uint8_t port,
		      struct ha_port_attr *attr)
{
	int err = below.query_port(v, context, port, attr);

	if (atomic_load(&device_dead) && is_first(context))
		return -EIO;
	if (!err && atomic_load(&port_away) && is_first(context))
		attr->attr.state = IBV_PORT_DOWN;
	return err;
}

static int reg_mr(const struct ha_verbs_ops *v, struct ibv_pd *pd, void *addr, size_t length,
		  uint64_t iova, unsigned access, struct ibv_mr **mr)
{
	if (atomic_load(&device_dead) && is_first(pd->context))
		return -EIO;
	if (refuse)
		return -ENOMEM;
	return below.reg_mr(v, pd, addr, length, iova, access, mr);
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	if (wr->opcode != IBV_WR_RDMA_READ || !atomic_exchange(&flush.wanted, false))
		return hot_below.post_send(qp, wr, bad);
	pthread_mutex_lock(&flush.lock);
	flush.qp = qp;
	flush.wr = *wr;
	flush.sge = *wr->sg_list;
	flush.wr.sg_list = &flush.sge;
	atomic_store(&flush.held, true);
	pthread_mutex_unlock(&flush.lock);
	return 0;
}

static void release_flush(void)
{
	struct ibv_send_wr *bad;

	pthread_mutex_lock(&flush.lock);
	if (atomic_exchange(&flush.held, false))
		CHECK_INT(hot_below.post_send(flush.qp, &flush.wr, &bad), 0);
	pthread_mutex_unlock(&flush.lock);
}

static int poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	if (ours && atomic_load(&flush.counting) && ++flush.looks == LATE)
		release_flush();
	return hot_below.poll_cq(cq, n, wc);
}

static int take_hot(const struct ha_verbs_ops *v, struct ibv_context *context,
		    struct ha_verbs_hot *hot)
{
	int err = below.hot(v, context, hot);

	hot_below = *hot;
	hot->post_send = post_send;
	hot->poll_cq = poll_cq;
	return err;
}

static void open_ranks(int n)
{
	static const struct ha_topo_known known[] = { { "soft0:1", 0 }, { "soft1:1", 0 } };
	static struct ha_config config;
	static uint8_t handle[RANKS][HA_HANDLE_MAX];
	struct ha_ctx_params params = {
		.config = &config, .verbs = library, .known = known, .nknown = 2
	};
	const void *handles[RANKS] = { handle[0], handle[1] };
	struct ha_rma_listen *listen[RANKS];

	ha_config_load_env(&config);
	CHECK_INT(ha_ctx_create(&params, &ctx), 0);
	for (int i = 0; i < n; i++)
		CHECK_INT(ha_rma_listen(ctx, 0, NULL, handle[i], &listen[i]), 0);
	for (int i = 0; i < n; i++) {
		CHECK_INT(ha_rma_connect(listen[i], handles, n, i, &rma[i]), 0);
		ha_rma_close_listen(listen[i]);
	}
}

static void close_ranks(int n)
{
	for (int i = 0; i < n; i++)
		ha_rma_close(rma[i]);
	ha_ctx_destroy(ctx);
}

static void *map_pages(void)
{
	void *p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

static struct ha_rma_window *register_window(int rank, void *data, int type)
{
	struct ha_rma_window *w;

	CHECK_INT(ha_rma_register(rma[rank], data, SIZE, type, 0, -1, 1, &w), 0);
	return w;
}

static struct ha_rma_op *signal_oneself(struct ha_rma_window *counters)
{
	struct ha_rma_put put = { .rank = 0, .signal = HA_RMA_INC, .signals = counters };
	struct ha_rma_op *op;

	CHECK_INT(ha_rma_put(rma[0], &put, &op), 0);
	return op;
}

static void idle_step(int k)
{
	CHECK(k < ROUNDS);
	if (k > 100)
		usleep(k > 10000 ? 100 : 1);
}

static void await_count(const uint64_t *counter, uint64_t count)
{
	for (int k = 0; __atomic_load_n(counter, __ATOMIC_ACQUIRE) != count; k++) {
		CHECK_INT(ha_rma_progress(rma[0]), 0);
		idle_step(k);
	}
}

/* The listener was made on the port that stood in, so nothing has used this one. */
static void test_port_back(void)
{
	uint64_t *counter = map_pages();

	atomic_store(&port_away, true);
	open_ranks(1);
	atomic_store(&port_away, false);
	pthread_mutex_lock(&ctx->drive);
	ha_device_refresh(&ctx->devices[0]);
	pthread_mutex_unlock(&ctx->drive);
	CHECK(ha_device_usable(&ctx->devices[0]));
	(void)signal_oneself(register_window(0, counter, HA_MEM_HOST));
	await_count(counter, 1);
	close_ranks(1);
}

/* The connection goes on over the other device, and so do windows that come now. */
static void test_dead_device(void)
{
	uint64_t *first = map_pages(), *second = map_pages();

	open_ranks(1);
	(void)signal_oneself(register_window(0, first, HA_MEM_HOST));
	await_count(first, 1);
	for (int k = 0; ha_journal_count(ctx, HA_EVENT_PROTECTED) < 2; k++) {
		CHECK_INT(ha_rma_progress(rma[0]), 0);
		idle_step(k);
	}
	atomic_store(&device_dead, true);
	(void)signal_oneself(register_window(0, second, HA_MEM_HOST));
	await_count(second, 1);
	close_ranks(1);
}

/* No operation names that window; only the plugin itself reads it. */
static void test_flush(void)
{
	uint64_t *counter = map_pages();
	struct ha_rma_window *first, *counters;

	open_ranks(1);
	ours = true;
	first = register_window(0, map_pages(), HA_MEM_CUDA);
	counters = register_window(0, counter, HA_MEM_CUDA);
	atomic_store(&flush.wanted, true);
	(void)signal_oneself(counters);
	for (int k = 0; !atomic_load(&flush.held); k++) {
		CHECK_INT(ha_rma_progress(rma[0]), 0);
		idle_step(k);
	}
	atomic_store(&flush.counting, true);
	CHECK_INT(ha_rma_deregister(rma[0], first), 0);
	await_count(counter, 1);
	(void)signal_oneself(counters);
	await_count(counter, 2);
	CHECK_INT(ha_journal_count(ctx, HA_EVENT_SUSPECTED), 0);
	close_ranks(1);
}

/* The answer has not left, and there is nothing to send any more: the one who asked learns it. */
static void test_answer(void)
{
	struct ha_rma_window *target[RANKS], *here;
	struct ha_rma_put get = { .rank = 1, .size = 64 };
	struct ha_rma_op *op;
	int err = 0;

	open_ranks(2);
	for (int i = 0; i < RANKS; i++)
		target[i] = register_window(i, map_pages(), HA_MEM_HOST);
	here = register_window(0, map_pages(), HA_MEM_HOST);
	(void)register_window(1, map_pages(), HA_MEM_HOST);
	get.target = target[0];
	get.source = here;
	CHECK_INT(ha_rma_get(rma[0], &get, &op), 0);
	for (int k = 0; op->state == HA_RMA_WAITING; k++) {
		CHECK_INT(ha_rma_progress(rma[0]), 0);
		CHECK_INT(ha_rma_progress(rma[1]), 0);
		idle_step(k);
	}
	/* It needs a window of rank 0, which sends nobody its windows meanwhile. */
	for (int k = 0; STAILQ_EMPTY(&rma[1]->peer[0].waiting); k++) {
		CHECK_INT(ha_rma_progress(rma[1]), 0);
		idle_step(k);
	}
	CHECK_INT(ha_rma_deregister(rma[1], target[1]), 0);
	for (int k = 0; !err; k++) {
		err = ha_rma_progress(rma[0]);
		CHECK_INT(ha_rma_progress(rma[1]), 0);
		idle_step(k);
	}
	CHECK_INT(err, -ERANGE);
	close_ranks(2);
}

/* Two more windows at each rank, of which the first is the one that is put into. */
static void put_after_refusal(uint8_t *const memory[RANKS])
{
	struct ha_rma_window *w[RANKS];
	struct ha_rma_put put = { .rank = 1, .size = 64, .signal = HA_RMA_INC };
	uint8_t *other;
	struct ha_rma_op *op;

	for (int i = 0; i < RANKS; i++)
		w[i] = register_window(i, memory[i], HA_MEM_HOST);
	(void)register_window(0, map_pages(), HA_MEM_HOST);
	other = map_pages();
	(void)register_window(1, other, HA_MEM_HOST);
	memset(memory[0], 0x5a, 64);
	put.source = put.target = put.signals = w[0];
	put.signal_offset = 64;
	CHECK_INT(ha_rma_put(rma[0], &put, &op), 0);
	for (int k = 0; !__atomic_load_n((uint64_t *)(memory[1] + 64), __ATOMIC_ACQUIRE); k++) {
		CHECK_INT(ha_rma_progress(rma[0]), 0);
		CHECK_INT(ha_rma_progress(rma[1]), 0);
		CHECK(!__atomic_load_n((uint64_t *)(other + 64), __ATOMIC_ACQUIRE));
		idle_step(k);
	}
	for (int i = 0; i < 64; i++)
		CHECK_INT(memory[1][i], 0x5a);
}

/* By the NIC, or because this process cannot write it. */
static void test_refused_at_one(void)
{
	uint8_t *memory[RANKS], *sealed = map_pages();
	struct ha_rma_window *none;

	CHECK_INT(mprotect(sealed, SIZE, PROT_READ), 0);
	for (int nic = 0; nic < 2; nic++) {
		open_ranks(RANKS);
		for (int i = 0; i < RANKS; i++)
			memory[i] = map_pages();
		(void)register_window(0, map_pages(), HA_MEM_HOST);
		refuse = nic;
		CHECK_INT(ha_rma_register(rma[1], nic ? map_pages() : sealed, SIZE, HA_MEM_HOST, 0,
					  -1, 1, &none),
			  nic ? -ENOMEM : -EOPNOTSUPP);
		CHECK(!none);
		refuse = false;
		put_after_refusal(memory);
		close_ranks(RANKS);
	}
}

/* Numbers are not given a second time, which an operator can read. Empty windows are refused, and
 * counted, in no time. */
static void test_all_numbers(void)
{
	struct ha_rma_window *w;
	void *data = map_pages();

	lines_catch();
	open_ranks(1);
	for (int i = 0; i < 65535; i++)
		CHECK_INT(ha_rma_register(rma[0], data, 0, HA_MEM_HOST, 0, -1, 0, &w), -EINVAL);
	CHECK_INT(ha_rma_deregister(rma[0], register_window(0, data, HA_MEM_HOST)), 0);
	CHECK_INT(lines_warnings(), 0);
	CHECK_INT(ha_rma_register(rma[0], data, SIZE, HA_MEM_HOST, 0, -1, 1, &w), -ENOSPC);
	CHECK(!w);
	CHECK_INT(lines_warnings(), 1);
	CHECK(lines_contain("numbers 65536 windows"));
	CHECK(lines_contain("make a new communicator"));
	close_ranks(1);
}

static const struct {
	const char *name;
	void (*run)(void);
} tests[] = {
	{ "port_back", test_port_back },
	{ "dead_device", test_dead_device },
	{ "given_back_beside_a_flush", test_flush },
	{ "given_back_before_an_answer", test_answer },
	{ "refused_at_one", test_refused_at_one },
	{ "all_numbers", test_all_numbers },
};

int main(int argc, char **argv)
{
	setenv("HA_NCCL_SILENCE_MS", "0", 1); /* a busy machine breaks no path */
	setenv("HA_NCCL_RTO_MS", "60000", 1);
	setenv("HA_NCCL_HEARTBEAT_MS", "60000", 1);
	CHECK_INT(ha_verbs_open_library(getenv("HA_NCCL_VERBS"), &library), 0);
	below = *library;
	library->query_port = query_port;
	library->reg_mr = reg_mr;
	library->hot = take_hot;
	for (unsigned i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		if (argc < 2 || !strcmp(argv[1], tests[i].name))
			tests[i].run();
	ha_verbs_close_library(library);
	return 0;
}
