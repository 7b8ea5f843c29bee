/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/plugin/nccl/rig.h"

#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/clock.h"
#include "plugin/nccl/abi/net_v12.h"
#include "plugin/nccl/abi/net_v6.h"
#include "plugin/nccl/abi/net_v7.h"
#include "plugin/nccl/abi/net_v8.h"
#include "plugin/nccl/abi/net_v9.h"
#include "tests/base/share.h"

#ifndef RIG_PLUGIN
#define RIG_PLUGIN "libnccl-net-ha.so"
#endif

#define LINES 512
static struct {
	pthread_mutex_t lock;
	char line[LINES][1024]; /* a ring of the last lines */
	unsigned n;
	int warnings;
	char warning[1024]; /* the last of them */
} kept = { .lock = PTHREAD_MUTEX_INITIALIZER };

void rig_fail(const char *file, int line, const char *what, const char *format, ...)
{
	va_list args;

	fflush(stdout);
	fprintf(stderr, "%s:%d: does not hold: %s: ", file, line, what);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, "\n");
	pthread_mutex_lock(&kept.lock); /* for good: nothing is logged behind the verdict */
	for (unsigned i = kept.n > 20 ? kept.n - 20 : 0; i < kept.n; i++)
		fprintf(stderr, "  log: %s\n", kept.line[i % LINES]);
	_exit(1);
}

/*
 * Warnings that say nothing of the plugin. That a standby needs more than five seconds is the
 * machine's; what comes of it is shown in tests/plugin/failover. Who dials a port that was its
 * listener's a moment ago is another test's connector (nccl.close beside nccl.many).
 */
static bool somebody_elses(const char *text)
{
	return strstr(text, "the standby did not come up; it is tried again") ||
	       strstr(text, "its nonce is not this listener's");
}

/* A child has none of the threads of which one may be in rig_logger() now. */
static void lock_log(void)
{
	pthread_mutex_lock(&kept.lock);
}

static void unlock_log(void)
{
	pthread_mutex_unlock(&kept.lock);
}

__attribute__((constructor)) static void keep_log_over_fork(void)
{
	CHECK(!pthread_atfork(lock_log, unlock_log, unlock_log), "no memory");
}

void rig_logger(ncclDebugLogLevel level, unsigned long subsys, const char *file, int line,
		const char *format, ...)
{
	va_list args;
	char *text;

	pthread_mutex_lock(&kept.lock);
	text = kept.line[kept.n++ % LINES];
	va_start(args, format);
	vsnprintf(text, sizeof(kept.line[0]), format, args);
	va_end(args);
	if (level == NCCL_LOG_WARN && !somebody_elses(text)) {
		kept.warnings++;
		memcpy(kept.warning, text, sizeof(kept.warning));
	}
	if (getenv("RIG_VERBOSE"))
		fprintf(stderr, "[%d] %s\n", level, text);
	pthread_mutex_unlock(&kept.lock);
}

int rig_warnings(void)
{
	int n;

	pthread_mutex_lock(&kept.lock);
	n = kept.warnings;
	pthread_mutex_unlock(&kept.lock);
	return n;
}

/* The plugin's threads log while the test reads: what is handed out is the caller's own copy, until
 * its next call. */
static const char *copy_of_last(bool warning)
{
	static __thread char copy[sizeof(kept.warning)];

	pthread_mutex_lock(&kept.lock);
	if (warning)
		memcpy(copy, kept.warning, sizeof(copy));
	else
		snprintf(copy, sizeof(copy), "%s",
			 kept.n ? kept.line[(kept.n - 1) % LINES] : "nothing was logged");
	pthread_mutex_unlock(&kept.lock);
	return copy;
}

const char *rig_last_log(void)
{
	return copy_of_last(false);
}

const char *rig_last_warning(void)
{
	return copy_of_last(true);
}

unsigned rig_log_lines(const char *text)
{
	unsigned found = 0;

	pthread_mutex_lock(&kept.lock);
	for (unsigned i = kept.n > LINES ? kept.n - LINES : 0; i < kept.n; i++)
		found += strstr(kept.line[i % LINES], text) != NULL;
	pthread_mutex_unlock(&kept.lock);
	return found;
}

bool rig_logged(const char *text)
{
	return rig_log_lines(text) != 0;
}

void rig_forget_log(void)
{
	pthread_mutex_lock(&kept.lock);
	kept.n = 0;
	kept.warnings = 0;
	pthread_mutex_unlock(&kept.lock);
}

unsigned rig_count_events(const char *path, const char *text)
{
	FILE *f = fopen(path, "r");
	unsigned found = 0;
	char *line = NULL;
	size_t size = 0;

	while (f && getline(&line, &size, f) > 0)
		found += strstr(line, text) != NULL;
	free(line);
	if (f)
		fclose(f);
	return found;
}

double rig_now(void)
{
	return ha_monotonic_s();
}

/* As NCCL's proxy at first; what takes longer than a message waits for time-outs, and leaves the
 * processor to other tests. */
#define QUICK_S 0.002
#define WAIT_US 100

struct rig_deadline rig_deadline(const char *what)
{
	return (struct rig_deadline) { .at = rig_now() + RIG_WAIT_S, .what = what };
}

void rig_pause(struct rig_deadline *deadline)
{
	double left = deadline->at - rig_now();

	CHECK(left > 0, "%s: %d s without an end", deadline->what, RIG_WAIT_S);
	if (RIG_WAIT_S - left < QUICK_S)
		sched_yield();
	else
		usleep(WAIT_US);
}

const char *rig_plugin_path(void)
{
	const char *path = getenv("RIG_PLUGIN");

	return path ? path : RIG_PLUGIN;
}

/* Last resort, when a call itself does not return. */
static void on_alarm(int signal)
{
	static const char text[] = "a call into the plugin does not return\n";

	if (write(2, text, sizeof(text) - 1) < 0)
		_exit(2);
	_exit(1);
}

static void *no_op(void *arg)
{
	return arg;
}

void rig_prepare(struct rig *rig, int argc, char **argv)
{
	pthread_t thread;

	memset(rig, 0, sizeof(*rig));
	/* A sanitizer starts a thread of its own with the first one: let it be there before anybody
	 * counts. */
	CHECK(!pthread_create(&thread, NULL, no_op, NULL) && !pthread_join(thread, NULL), "thread");
	rig->version = argc > 1 ? atoi(argv[1]) : 12;
	setenv("HA_NCCL_VERBS", "soft", 0);
	setenv("NCCL_DEBUG", "INFO", 0);
	setenv("NCCL_SOCKET_IFNAME", "lo", 0);
	/* Then dlclose unloads the library; test_again.c is about where it does not. */
	setenv("NCCL_NET_PLUGIN_REF_COUNT", "1", 0);
	/* The contract is tested here, not the failover; the software NIC of a loaded machine may
	 * stand still for seconds. */
	setenv("HA_NCCL_HEARTBEAT_MS", "10000", 0);
	setenv("HA_NCCL_RTO_MS", "40000", 0);
	setenv("HA_NCCL_SILENCE_MS", "0", 0);
	signal(SIGALRM, on_alarm);
	signal(SIGPIPE, SIG_IGN);
	alarm(2 * RIG_WAIT_S);
}

const char *rig_device(int n)
{
	static char names[2][32] = { "soft0", "soft1" };
	const char *given = getenv("RIG_DEVICES");

	CHECK(!given || sscanf(given, "%31[^,],%31[^,]", names[0], names[1]) == 2, "RIG_DEVICES=%s",
	      given);
	return names[n];
}

void rig_load(struct rig *rig, const char *path)
{
	struct ha_plugin *p = &rig->plugin;

	CHECK(rig->version >= 6 && rig->version <= 12, "version %d", rig->version);
	p->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	CHECK(p->library, "%s", dlerror());
	p->abi = ha_plugin_abis[12 - rig->version]; /* the highest first */
	CHECK(p->abi->version == rig->version, "version %d", rig->version);
	p->table = dlsym(p->library, p->abi->symbol);
	CHECK(p->table, "%s is not in %s", p->abi->symbol, path);
	p->abi->bind(p);
}

ncclResult_t rig_init(struct rig *rig)
{
	ncclResult_t result = rig->plugin.abi->init(&rig->plugin, 0x1234, rig_logger);

	rig->plugin.initialized = result == ncclSuccess;
	return result;
}

static struct share calm_since;

void rig_expect_calm(void)
{
	calm_since = share_read();
	setenv("HA_NCCL_SILENCE_MS", "0", 1);
	setenv("HA_NCCL_QP_TIMEOUT", "19", 1);
	setenv("HA_NCCL_RTO_MS", "60000", 1);
	setenv("HA_NCCL_HEARTBEAT_MS", "60000", 1);
}

void rig_check_calm(void)
{
	double others = share_of_others(&calm_since);

	if (!rig_warnings())
		return;
	fflush(stdout);
	CHECK(others > SHARE_OTHERS_MAX, "%s", rig_last_warning());
	fprintf(stderr, "machine too busy: others had %.0f %% of the processors: %s\n",
		others * 100, rig_last_warning());
	_exit(SHARE_BUSY_STATUS);
}

void rig_open(struct rig *rig, int argc, char **argv)
{
	rig_prepare(rig, argc, argv);
	rig_load(rig, rig_plugin_path());
	OK(rig_init(rig));
	OK(rig->plugin.count(&rig->plugin.devices));
	CHECK(rig->plugin.devices > 0, "no device: %s", rig_last_log());
}

void rig_close(struct rig *rig)
{
	if (rig->plugin.initialized && rig->plugin.abi->finalize)
		OK(rig->plugin.abi->finalize(&rig->plugin));
	rig->plugin.initialized = false;
	CHECK(dlclose(rig->plugin.library) == 0, "%s", dlerror());
	rig->plugin.library = NULL;
}

void rig_pair_connect(struct rig *rig, struct rig_pair *pair, int dev)
{
	struct rig_deadline deadline = rig_deadline("connect and accept");
	const struct ha_plugin_abi *abi = rig->plugin.abi;

	pair->send = pair->recv = NULL;
	while (!pair->send || !pair->recv) {
		if (!pair->send)
			OK(abi->connect(&rig->plugin, dev, pair->handle, &pair->send));
		if (!pair->recv)
			OK(abi->accept(&rig->plugin, pair->listen, &pair->recv));
		rig_pause(&deadline);
	}
}

void rig_pairs_open(struct rig *rig, struct rig_pair *pair, int n, int dev, int devices)
{
	struct rig_deadline deadline = rig_deadline("connections opened at once");
	const struct ha_plugin_abi *abi = rig->plugin.abi;
	int ready = 0;

	for (int i = 0; i < n; i++)
		OK(abi->listen(&rig->plugin, dev + i % devices, pair[i].handle, &pair[i].listen));
	while (ready < n) {
		ready = 0;
		for (int i = 0; i < n; i++) {
			struct rig_pair *p = &pair[i];

			if (!p->send)
				OK(abi->connect(&rig->plugin, dev + i % devices, p->handle,
						&p->send));
			if (!p->recv)
				OK(abi->accept(&rig->plugin, p->listen, &p->recv));
			ready += p->send && p->recv;
		}
		rig_pause(&deadline);
	}
}

void rig_pair_open(struct rig *rig, struct rig_pair *pair)
{
	rig_pair_open_on(rig, pair, 0);
}

void rig_pair_open_on(struct rig *rig, struct rig_pair *pair, int dev)
{
	memset(pair, 0, sizeof(*pair));
	OK(rig->plugin.abi->listen(&rig->plugin, dev, pair->handle, &pair->listen));
	CHECK(pair->listen, "listen gave no comm");
	rig_pair_connect(rig, pair, dev);
}

void rig_pair_close(struct rig *rig, struct rig_pair *pair)
{
	OK(rig->plugin.close_send(pair->send));
	OK(rig->plugin.close_recv(pair->recv));
	OK(rig->plugin.close_listen(pair->listen));
	memset(pair, 0, sizeof(*pair));
}

void *rig_reg(struct rig *rig, void *comm, void *data, size_t size)
{
	void *mhandle = NULL;

	OK(rig->plugin.abi->reg(&rig->plugin, comm, data, size, &mhandle));
	CHECK(mhandle, "regMr succeeded without a handle");
	return mhandle;
}

ncclResult_t rig_reg_type(struct rig *rig, void *comm, void *data, size_t size, int type,
			  void **mhandle)
{
	/* regMr lies at the same place in every table; its size is an int up to v7. */
	if (rig->version < 8)
		return ((const ncclNet_v7_t *)rig->plugin.table)
			->regMr(comm, data, (int)size, type, mhandle);
	return ((const ncclNet_v8_t *)rig->plugin.table)->regMr(comm, data, size, type, mhandle);
}

ncclResult_t rig_raw_isend(struct rig *rig, void *comm, void *data, long size, int tag,
			   void *mhandle, void **request)
{
	const void *table = rig->plugin.table;

	if (rig->version < 9)
		return ((const ncclNet_v8_t *)table)
			->isend(comm, data, (int)size, tag, mhandle, request);
	if (rig->version == 9)
		return ((const ncclNet_v9_t *)table)
			->isend(comm, data, (size_t)size, tag, mhandle, request);
	return ((const ncclNet_v12_t *)table)
		->isend(comm, data, (size_t)size, tag, mhandle, NULL, request);
}

ncclResult_t rig_raw_irecv(struct rig *rig, void *comm, int n, void **data, long *sizes, int *tags,
			   void **mhandles, void **request)
{
	const void *table = rig->plugin.table;
	size_t wide[64];
	int narrow[64];

	for (int i = 0; i < n && i < 64; i++) {
		wide[i] = (size_t)sizes[i];
		narrow[i] = (int)sizes[i];
	}
	if (rig->version < 9)
		return ((const ncclNet_v8_t *)table)
			->irecv(comm, n, data, narrow, tags, mhandles, request);
	if (rig->version == 9)
		return ((const ncclNet_v9_t *)table)
			->irecv(comm, n, data, wide, tags, mhandles, request);
	return ((const ncclNet_v12_t *)table)
		->irecv(comm, n, data, wide, tags, mhandles, NULL, request);
}

void *rig_isend(struct rig *rig, void *comm, void *data, size_t size, int tag, void *mhandle)
{
	struct rig_deadline deadline = rig_deadline("isend");
	void *request = NULL;

	for (;;) {
		OK(rig->plugin.abi->isend(&rig->plugin, comm, data, size, tag, mhandle, &request));
		if (request)
			return request;
		rig_pause(&deadline);
	}
}

void *rig_irecvs(struct rig *rig, void *comm, int n, void **data, size_t *sizes, int *tags,
		 void **mhandles)
{
	struct rig_deadline deadline = rig_deadline("irecv");
	void *request = NULL;

	for (;;) {
		OK(rig->plugin.abi->irecv(&rig->plugin, comm, n, data, sizes, tags, mhandles,
					  &request));
		if (request)
			return request;
		rig_pause(&deadline);
	}
}

void *rig_irecv(struct rig *rig, void *comm, void *data, size_t size, int tag, void *mhandle)
{
	return rig_irecvs(rig, comm, 1, &data, &size, &tag, &mhandle);
}

ncclResult_t rig_wait_any(struct rig *rig, void *request, int *sizes)
{
	struct rig_deadline deadline = rig_deadline("test");
	ncclResult_t result;
	int done = 0;

	for (;;) {
		result = rig->plugin.test(request, &done, sizes);
		if (result != ncclSuccess || done)
			return result;
		rig_pause(&deadline);
	}
}

void rig_wait(struct rig *rig, void *request, int *sizes)
{
	OK(rig_wait_any(rig, request, sizes));
}

/* Eight bytes at a time: a sanitizer looks at every access. */
static uint64_t word_at(uint32_t seed, size_t at)
{
	uint64_t x =
		(seed * UINT64_C(0x9e3779b97f4a7c15) + at / 8 + 1) * UINT64_C(0xbf58476d1ce4e5b9);

	return (x ^ x >> 31) * UINT64_C(0x94d049bb133111eb);
}

void rig_fill(void *data, size_t size, uint32_t seed)
{
	size_t i = 0;

	for (; i + 8 <= size; i += 8)
		memcpy((char *)data + i, &(uint64_t) { word_at(seed, i) }, 8);
	memcpy((char *)data + i, &(uint64_t) { word_at(seed, i) }, size - i);
}

size_t rig_differ(const void *data, size_t size, uint32_t seed)
{
	const char *p = data;
	size_t i = 0;

	while (i < size) {
		size_t n = size - i < 8 ? size - i : 8;
		uint64_t right = word_at(seed, i);

		if (memcmp(p + i, &right, n)) {
			while (p[i] == ((const char *)&right)[i % 8])
				i++;
			return i;
		}
		i += n;
	}
	return size;
}

void rig_exchange(struct rig *rig, struct rig_pair *pair, size_t size)
{
	static atomic_uint exchanges; /* several threads may exchange at once */
	uint32_t seed = atomic_fetch_add(&exchanges, 1) + 1;
	uint8_t *from = malloc(size + 1), *to = calloc(1, size + 1);
	void *from_mr, *to_mr, *send, *recv;
	int sent = -1, got = -1;

	CHECK(from && to, "memory");
	rig_fill(from, size, seed);
	from_mr = rig_reg(rig, pair->send, from, size + 1);
	to_mr = rig_reg(rig, pair->recv, to, size + 1);
	recv = rig_irecv(rig, pair->recv, to, size, 7, to_mr);
	send = rig_isend(rig, pair->send, from, size, 7, from_mr);
	rig_wait(rig, send, &sent);
	rig_wait(rig, recv, &got);
	CHECK((size_t)sent == size && (size_t)got == size, "sizes %d and %d of %zu", sent, got,
	      size);
	CHECK(rig_differ(to, size, seed) == size, "byte %zu of %zu", rig_differ(to, size, seed),
	      size);
	CHECK(to[size] == 0, "a byte behind the buffer was written");
	OK(rig->plugin.dereg(pair->send, from_mr));
	OK(rig->plugin.dereg(pair->recv, to_mr));
	free(from);
	free(to);
}

static int count_entries(const char *path)
{
	DIR *dir = opendir(path);
	int n = -1; /* the stream's own descriptor, or nothing */

	CHECK(dir, "%s", path);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n - 2; /* . and .. */
}

/*
 * But for those that a context starts when it needs them: threads that connect queue pairs, which
 * it keeps for ten seconds after their last one, and one that destroys them, which stays.
 */
static int count_lasting_threads(void)
{
	int reapers = 0;
	DIR *dir = opendir("/proc/self/task");
	struct dirent *entry;
	char path[300], name[32];
	int n = 0;
	FILE *file;

	CHECK(dir, "/proc/self/task");
	while ((entry = readdir(dir))) {
		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", entry->d_name);
		file = entry->d_name[0] == '.' ? NULL : fopen(path, "r");
		if (!file)
			continue; /* it has ended meanwhile */
		if (fgets(name, sizeof(name), file)) {
			reapers += !strncmp(name, "hawser-reaper", 13);
			n += strncmp(name, "hawser-connect", 14) &&
			     strncmp(name, "hawser-reaper", 13);
		}
		fclose(file);
	}
	closedir(dir);
	return n + (reapers > 1 ? reapers - 1 : 0);
}

int rig_count_lasting_threads(int expected)
{
	int n = 0;

	for (int i = 0; i < 200; i++) {
		n = count_lasting_threads();
		if (n <= expected)
			break;
		usleep(1000);
	}
	return n;
}

int rig_count_threads(int expected)
{
	int n = 0;

	for (int i = 0; i < 200; i++) {
		n = count_entries("/proc/self/task") + 1;
		if (n == expected)
			break;
		usleep(1000);
	}
	return n;
}

int rig_count_fds(void)
{
	return count_entries("/proc/self/fd");
}

static int count_own_threads(const struct rig *rig)
{
	return rig->version < 11 ? count_lasting_threads() : count_entries("/proc/self/task") + 1;
}

void rig_await_threads(const struct rig *rig, int threads)
{
	struct rig_deadline deadline = rig_deadline("the end of the plugin's threads");

	while (count_own_threads(rig) > threads) {
		CHECK(rig_now() < deadline.at, "%d threads are left, %d before",
		      count_own_threads(rig), threads);
		rig_pause(&deadline);
	}
}

void rig_shrink_to(int threads, int fds)
{
	struct rig_deadline deadline = rig_deadline("the end of closed connections");

	while (rig_count_lasting_threads(threads) > threads || rig_count_fds() > fds) {
		CHECK(rig_now() < deadline.at,
		      "%d threads instead of %d, %d descriptors instead of %d",
		      count_lasting_threads(), threads, rig_count_fds(), fds);
		rig_pause(&deadline);
	}
}

bool rig_islands(void)
{
	return !unshare(CLONE_NEWNET) &&
	       !system("ip link set lo up && ip link add ha_i1 type veth peer name ha_i2 && "
		       "ip addr add 10.77.1.1/24 dev ha_i1 && ip addr add 10.77.2.1/24 dev ha_i2 "
		       "&& "
		       "ip link set ha_i1 up && ip link set ha_i2 up");
}
