/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The one-sided tables as NCCL calls them: who gets them, what their devices are, requests for
 * everything that is posted, listeners that are closed at once, two threads of progress, what is
 * refused, and an end with operations in flight.
 */
#include "tests/plugin/nccl/rig.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tools/perf/gin_table.h"

#define RANKS 3
#define BYTES (1u << 20)
#define MANY 300 /* more than 32 requests of maxRecvs, as far as NCCL's queue goes */

static struct ha_gin_table gin;
static void *library;
static int version;

struct node {
	struct ha_gin_table gin;
	void *listen;
	struct ha_gin_comm comm;
	uint8_t *data;
	uint64_t *signals;
	struct ha_gin_memory data_memory, signal_memory;
};

static struct node node[RANKS];

static ncclResult_t init_with(const char *choice, const char *type)
{
	struct ha_gin_table one = gin;
	ncclResult_t result;

	unsetenv("HA_NCCL_GIN");
	unsetenv("NCCL_GIN_TYPE");
	if (choice)
		setenv("HA_NCCL_GIN", choice, 1);
	if (type)
		setenv("NCCL_GIN_TYPE", type, 1);
	result = ha_gin_table_init(&one, 1, rig_logger);
	if (result == ncclSuccess)
		OK(ha_gin_table_finalize(&one));
	return result;
}

/* NCCL's own transport serves unless somebody wants ours, or a proxy. */
static void who_gets_it(void)
{
	CHECK(init_with(NULL, NULL) != ncclSuccess, "nobody asked");
	CHECK(init_with(NULL, "3") != ncclSuccess, "the GPU is to post itself");
	CHECK(init_with("0", "2") != ncclSuccess, "it was forbidden");
	OK(init_with(NULL, "2"));
	OK(init_with("1", NULL));
	setenv("HA_NCCL_GIN", "1", 1);
}

static void *map_pages(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(memory != MAP_FAILED, "memory");
	return memory;
}

static void open_nodes(void)
{
	static uint8_t handle[RANKS][NCCL_NET_HANDLE_MAXSIZE];
	void *handles[RANKS];

	for (int r = 0; r < RANKS; r++) {
		node[r] = (struct node) { .gin = gin,
					  .data = map_pages(BYTES),
					  .signals = map_pages(4096) };
		OK(ha_gin_table_init(&node[r].gin, 7, rig_logger));
		OK(ha_gin_table_listen(&node[r].gin, 0, handle[r], &node[r].listen));
		handles[r] = handle[r];
	}
	for (int r = 0; r < RANKS; r++) {
		struct node *n = &node[r];

		OK(ha_gin_table_connect(&n->gin, handles, RANKS, r, 2, n->listen, &n->comm));
		OK(ha_gin_table_close_listen(&n->gin, n->listen));
		OK(ha_gin_register(&n->gin, &n->comm, n->signals, 4096, NCCL_PTR_CUDA, 1,
				   &n->signal_memory));
		OK(ha_gin_register(&n->gin, &n->comm, n->data, BYTES, NCCL_PTR_HOST, 0,
				   &n->data_memory));
	}
}

static void close_nodes(void)
{
	for (int r = 0; r < RANKS; r++) {
		OK(ha_gin_deregister(&node[r].gin, &node[r].comm, &node[r].data_memory));
		OK(ha_gin_deregister(&node[r].gin, &node[r].comm, &node[r].signal_memory));
		OK(ha_gin_table_close(&node[r].gin, &node[r].comm));
		OK(ha_gin_table_finalize(&node[r].gin));
		munmap(node[r].data, BYTES);
		munmap(node[r].signals, 4096);
	}
}

static struct ha_gin_put put_to(int from, int to, size_t size)
{
	return (struct ha_gin_put) { .rank = to,
				     .source = node[from].data_memory.handle,
				     .target = node[from].data_memory.handle,
				     .signals = node[from].signal_memory.handle,
				     .target_offset = BYTES / 2,
				     .size = size };
}

static void *post_operation(int from, const struct ha_gin_put *put)
{
	void *request = NULL;

	OK(ha_gin_post(&node[from].gin, &node[from].comm, put, &request));
	CHECK(request, "every operation has a request");
	return request;
}

static void progress_all(void)
{
	for (int r = 0; r < RANKS; r++)
		OK(ha_gin_table_progress(&node[r].gin, &node[r].comm));
}

static void finish_operation(int from, void *request)
{
	struct rig_deadline wait = rig_deadline("an operation");
	int done = 0;

	for (;;) {
		OK(ha_gin_done(&node[from].gin, &node[from].comm, request, &done));
		if (done)
			return;
		progress_all();
		rig_pause(&wait);
	}
}

static void await_signal(int at, int which, uint64_t value)
{
	struct rig_deadline wait = rig_deadline("a signal");

	while (__atomic_load_n(&node[at].signals[which], __ATOMIC_ACQUIRE) != value) {
		progress_all();
		rig_pause(&wait);
	}
}

/* From each rank to each, itself too: a put, a put with INC, a put with ADD, a signal alone. */
static void operations_between_all(void)
{
	for (int from = 0; from < RANKS; from++)
		for (int to = 0; to < RANKS; to++) {
			struct ha_gin_put put = put_to(from, to, 5000);

			memset(node[from].data, from * RANKS + to + 1, 5000);
			put.target_offset += (uint64_t)from * 8192;
			finish_operation(from, post_operation(from, &put));
			put.signal_op = HA_GIN_INC;
			put.signal_offset = (uint64_t)from * 8;
			put.size = 100;
			finish_operation(from, post_operation(from, &put));
			put.signal_op = HA_GIN_ADD;
			put.value = 1ull << 40;
			put.context = 1;
			finish_operation(from, post_operation(from, &put));
			put.size = 0;
			put.source = put.target = NULL;
			put.value = 5;
			finish_operation(from, post_operation(from, &put));
			await_signal(to, from, (1ull << 40) + 6);
			for (int i = 0; i < 5000; i++)
				CHECK(node[to].data[BYTES / 2 + from * 8192 + i] ==
					      from * RANKS + to + 1,
				      "byte %d from rank %d at rank %d", i, from, to);
		}
}

/* From each rank to each, itself too: what was put there before; then a flush. */
static void gets_between_all(void)
{
	for (int at = 0; at < RANKS; at++)
		for (int from = 0; from < RANKS; from++) {
			struct ha_gin_put get = put_to(at, from, 3000);
			void *request = &get;

			get.target_offset += (uint64_t)at * 8192 + 100;
			get.source_offset = BYTES / 4;
			memset(node[at].data + BYTES / 4, 0xee, 3001);
			OK(ha_gin_post_get(&node[at].gin, &node[at].comm, &get, &request));
			CHECK(request, "every get has a request");
			finish_operation(at, request);
			for (int i = 0; i <= 3000; i++)
				CHECK(node[at].data[BYTES / 4 + i] ==
					      (i < 3000 ? at * RANKS + from + 1 : 0xee),
				      "byte %d from rank %d at rank %d", i, from, at);
			request = &get;
			OK(ha_gin_post_flush(&node[at].gin, &node[at].comm, &node[at].signal_memory,
					     from, &request));
			if (request)
				finish_operation(at, request);
		}
}

/* NCCL's graph mode puts to its own rank and waits by test alone, with progress behind it. */
static void to_oneself_without_progress(void)
{
	struct rig_deadline wait = rig_deadline("a put to oneself that only test moves");
	struct ha_gin_put put = put_to(0, 0, 64);
	void *request = post_operation(0, &put);
	int done = 0;

	while (!done) {
		OK(ha_gin_done(&node[0].gin, &node[0].comm, request, &done));
		rig_pause(&wait);
	}
}

/* A weak signal may be a strong one. */
static void weak_signal(void)
{
	struct ha_gin_put put = put_to(0, 1, 64);

	put.signal_op = HA_GIN_ADD;
	put.value = 3;
	put.signal_offset = 8 * 20;
	put.is_weak = true;
	finish_operation(0, post_operation(0, &put));
	await_signal(1, 20, 3);
}

static void no_error(void)
{
	bool has_error = true;

	for (int r = 0; r < RANKS; r++) {
		OK(ha_gin_last_error(&node[r].gin, &node[r].comm, &has_error));
		CHECK(!has_error, "rank %d", r);
	}
}

static atomic_bool over;

static void *make_progress(void *arg)
{
	while (!atomic_load(&over))
		progress_all();
	return NULL;
}

/* As many as NCCL's queue has, while two threads make progress. */
static void many_operations(void)
{
	static void *request[MANY];
	struct ha_gin_device device;
	pthread_t thread[2];

	OK(ha_gin_device(&gin, 0, &device));
	CHECK(NCCL_NET_MAX_REQUESTS * device.max_receives <= MANY, "%d", device.max_receives);
	for (int i = 0; i < 2; i++)
		CHECK(!pthread_create(&thread[i], NULL, make_progress, NULL), "thread");
	for (int i = 0; i < MANY; i++) {
		struct ha_gin_put put = put_to(0, 1, 64);

		put.signal_op = HA_GIN_INC;
		put.signal_offset = 8 * 10;
		request[i] = post_operation(0, &put);
	}
	for (int i = MANY - 1; i >= 0; i--)
		finish_operation(0, request[i]);
	await_signal(1, 10, MANY);
	atomic_store(&over, true);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	atomic_store(&over, false);
	usleep(1000);
	CHECK(node[1].signals[10] == MANY, "%lu", node[1].signals[10]);
}

static void refused_operations(void)
{
	struct ha_gin_put put = put_to(0, 1, 64);
	struct ha_gin_memory memory;
	void *request = &put;
	void *sealed = mmap(NULL, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	put.signal_op = 3;
	CHECK(ha_gin_post(&node[0].gin, &node[0].comm, &put, &request) != ncclSuccess,
	      "no such signal");
	put = put_to(0, RANKS, 64);
	CHECK(ha_gin_post(&node[0].gin, &node[0].comm, &put, &request) != ncclSuccess,
	      "no such rank");
	CHECK(ha_gin_register(&node[0].gin, &node[0].comm, sealed, 8192, NCCL_PTR_CUDA, 1,
			      &memory) != ncclSuccess,
	      "nobody here can write it");
	munmap(sealed, 8192);
}

/* The devices are the net table's, in the same order. */
static void check_devices(struct rig *rig)
{
	struct ha_plugin_props props;
	struct ha_gin_device device;
	int n;

	OK(ha_gin_devices(&gin, &n));
	CHECK(n == rig->plugin.devices, "%d and %d", n, rig->plugin.devices);
	for (int i = 0; i < n; i++) {
		OK(ha_gin_device(&gin, i, &device));
		OK(rig->plugin.abi->props(&rig->plugin, i, &props));
		CHECK(!strcmp(device.name, props.name), "%s", device.name);
		CHECK(device.type == NCCL_NET_DEVICE_GIN_PROXY, "%d", device.type);
	}
	CHECK(ha_gin_device(&gin, n, &device) != ncclSuccess, "no such device");
}

/* The other ends go while operations are under way; then everything anew. */
static void in_flight(void)
{
	for (int i = 0; i < 20; i++) {
		struct ha_gin_put put = put_to(i % RANKS, (i + 1) % RANKS, 50000);

		post_operation(i % RANKS, &put);
		if (i > 10)
			progress_all();
	}
}

int main(int argc, char **argv)
{
	char *net_argv[] = { argv[0], "12", NULL };
	struct rig rig;

	version = argc > 1 ? atoi(argv[1]) : HA_GIN_NEWEST;
	if (version == 11)
		net_argv[1] = "11";
	rig_open(&rig, 2, net_argv);
	library = dlopen(rig_plugin_path(), RTLD_NOW);
	CHECK(library, "%s", dlerror());
	CHECK(ha_gin_find(&gin, library, version), "no table of version %d", version);
	rig_close(&rig); /* so that settings are read anew */
	who_gets_it();
	rig_open(&rig, 2, net_argv);
	check_devices(&rig);
	for (int i = 0; i < 3; i++) {
		open_nodes();
		to_oneself_without_progress();
		operations_between_all();
		if (version >= HA_GIN_GETS)
			gets_between_all();
		weak_signal();
		many_operations();
		if (version >= HA_GIN_GETS)
			no_error();
		refused_operations();
		in_flight();
		close_nodes();
	}
	rig_close(&rig);
	dlclose(library);
	return 0;
}
