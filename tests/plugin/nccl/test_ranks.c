/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What programs beside NCCL ask of a net plugin, each rank a process: connections on every device
 *by several threads, messages of unequal sizes, one listener for many connections, groups, a ring,
 *and both ends that give their buffers back and close with everything in flight. In normal
 *operation, with the cable of one NIC out, and with both of a rank's NICs away for two seconds.
 *
 *	test_nccl_ranks VERSION connection|transfer|reuse_listen|grouped|ring|inflight_close
 *calm|cut|away
 *
 * Every rank sends to the next and receives from the one before it. The ranks repeat the case until
 *the fault is over and has been followed by whole rounds.
 */
#include "tests/plugin/nccl/rig.h"

#include "softroce/control.h"
#include "tests/base/folder.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define RANKS_MAX 4
#define THREADS 2
#define DEVICES 2
#define GROUP 8
#define IN_FLIGHT 32 /* as many as NCCL has */
#define ROOM (1u << 20)
#define AWAY_S 2

/* What the processes share. */
static struct shared {
	pthread_barrier_t round;
	atomic_uint rounds; /* that all ranks have done */
	atomic_bool enough; /* the parent has seen what it wanted */
	bool last;          /* rank 0's copy of it, the same for all in one round */
	struct place {
		atomic_uint opened; /* how often a listener was opened here */
		uint8_t handle[NCCL_NET_HANDLE_MAXSIZE];
	} place[RANKS_MAX][THREADS][DEVICES];
} * shared;

static struct rig rig;
static int rank, ranks;

/* One thread's connections on one device: to the next rank, and from the one before. */
struct lane {
	unsigned thread, device, opened;
	void *listen, *send, *recv;
};

struct buffers {
	uint8_t *from[IN_FLIGHT], *to[IN_FLIGHT];
	void *from_mr[IN_FLIGHT], *to_mr[IN_FLIGHT];
};

/* ---- connections ---- */

/* Every second rank counts its devices from the other end, so that unlike NICs meet. */
static int device_of(const struct lane *l)
{
	return (int)(rank & 1 ? DEVICES - 1 - l->device : l->device);
}

static void lane_listen(struct lane *l)
{
	struct place *here = &shared->place[rank][l->thread][l->device];

	OK(rig.plugin.abi->listen(&rig.plugin, device_of(l), here->handle, &l->listen));
	atomic_fetch_add(&here->opened, 1);
}

/* Each time from a fresh copy of the handle: connect may write into it. */
static void lane_connect(struct lane *l)
{
	struct place *there = &shared->place[(rank + 1) % ranks][l->thread][l->device];
	struct rig_deadline deadline = rig_deadline("connect and accept");
	uint8_t handle[NCCL_NET_HANDLE_MAXSIZE];

	while (atomic_load(&there->opened) < l->opened)
		rig_pause(&deadline);
	memcpy(handle, there->handle, sizeof(handle));
	l->send = l->recv = NULL;
	while (!l->send || !l->recv) {
		if (!l->send)
			OK(rig.plugin.abi->connect(&rig.plugin, device_of(l), handle, &l->send));
		if (!l->recv)
			OK(rig.plugin.abi->accept(&rig.plugin, l->listen, &l->recv));
		rig_pause(&deadline);
	}
}

static void lane_open(struct lane *l)
{
	l->opened = atomic_load(&shared->place[rank][l->thread][l->device].opened) + 1;
	lane_listen(l);
	lane_connect(l);
}

static void lane_disconnect(struct lane *l)
{
	OK(rig.plugin.close_send(l->send));
	OK(rig.plugin.close_recv(l->recv));
}

static void lane_close(struct lane *l)
{
	lane_disconnect(l);
	OK(rig.plugin.close_listen(l->listen));
}

/* ---- buffers ---- */

static void *map_room(size_t size)
{
	void *data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(data != MAP_FAILED, "no memory");
	return data;
}

static void buffers_get(const struct lane *l, struct buffers *b, int n, size_t from, size_t to)
{
	for (int i = 0; i < n; i++) {
		b->from[i] = map_room(from);
		b->to[i] = map_room(to);
		b->from_mr[i] = rig_reg(&rig, l->send, b->from[i], from);
		b->to_mr[i] = rig_reg(&rig, l->recv, b->to[i], to);
	}
}

static void buffers_dereg(const struct lane *l, struct buffers *b, int n)
{
	for (int i = 0; i < n; i++) {
		OK(rig.plugin.dereg(l->send, b->from_mr[i]));
		OK(rig.plugin.dereg(l->recv, b->to_mr[i]));
	}
}

static void buffers_put(struct buffers *b, int n, size_t from, size_t to)
{
	for (int i = 0; i < n; i++) {
		munmap(b->from[i], from);
		munmap(b->to[i], to);
	}
}

/* What rank `sender` puts into message i: the receiver knows it without being told. */
static uint32_t seed_of(int sender, const struct lane *l, int i)
{
	return (uint32_t)(sender * 1000000 + (int)l->thread * 10000 + (int)l->device * 1000 + i);
}

static int previous_rank(void)
{
	return (rank + ranks - 1) % ranks;
}

/* ---- cases ---- */

/* n messages of `sent` bytes for receives of `posted`, all in flight at once. */
static void exchange_messages(const struct lane *l, int n, size_t sent, size_t posted)
{
	size_t want = sent < posted ? sent : posted;
	void *send[IN_FLIGHT], *recv[IN_FLIGHT];
	struct buffers b;
	int size;

	buffers_get(l, &b, n, sent, posted);
	for (int i = 0; i < n; i++) {
		rig_fill(b.from[i], sent, seed_of(rank, l, i));
		recv[i] = rig_irecv(&rig, l->recv, b.to[i], posted, 1, b.to_mr[i]);
	}
	for (int i = 0; i < n; i++)
		send[i] = rig_isend(&rig, l->send, b.from[i], sent, 1, b.from_mr[i]);
	for (int i = 0; i < n; i++) {
		rig_wait(&rig, send[i], &size);
		CHECK((size_t)size == want, "send %d reports %d of %zu", i, size, want);
	}
	for (int i = 0; i < n; i++) {
		rig_wait(&rig, recv[i], &size);
		CHECK((size_t)size == want, "receive %d reports %d of %zu", i, size, want);
		CHECK(rig_differ(b.to[i], want, seed_of(previous_rank(), l, i)) == want,
		      "message %d", i);
	}
	buffers_dereg(l, &b, n);
	buffers_put(&b, n, sent, posted);
}

static void open_and_close(struct lane *l)
{
	lane_open(l);
	lane_close(l);
}

static void transfer_sizes(struct lane *l)
{
	static const size_t sizes[][2] = {
		{ 512, 512 },   { 4096, 4096 },   { 16384, 16384 },
		{ ROOM, ROOM }, { 5120, 4096 },   { 17408, 16384 },
		{ 4096, 5120 }, { 16384, 17408 }, { ROOM / 2, ROOM },
	};

	lane_open(l);
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		exchange_messages(l, sizes[i][0] < ROOM / 2 ? IN_FLIGHT : 4, sizes[i][0],
				  sizes[i][1]);
	lane_close(l);
}

static void reuse_listen(struct lane *l)
{
	l->opened = atomic_load(&shared->place[rank][l->thread][l->device].opened) + 1;
	lane_listen(l);
	for (int i = 0; i < 5; i++) {
		lane_connect(l);
		exchange_messages(l, 4, ROOM / 4, ROOM / 4);
		lane_disconnect(l);
	}
	OK(rig.plugin.close_listen(l->listen));
}

/* One receive of n buffers, all with one tag, so that they are filled in order; sizes differ by
 * buffer. */
static void one_group(const struct lane *l, struct buffers *b, int n, size_t each)
{
	size_t sizes[GROUP], sent[GROUP];
	void *send[GROUP], *recv, *data[GROUP];
	int tags[GROUP], got[GROUP];

	for (int i = 0; i < n; i++) {
		sizes[i] = ROOM / 4;
		sent[i] = each + (size_t)i * 1000;
		tags[i] = 1;
		data[i] = b->to[i];
		rig_fill(b->from[i], sent[i], seed_of(rank, l, i));
	}
	recv = rig_irecvs(&rig, l->recv, n, data, sizes, tags, b->to_mr);
	for (int i = 0; i < n; i++)
		send[i] = rig_isend(&rig, l->send, b->from[i], sent[i], 1, b->from_mr[i]);
	for (int i = 0; i < n; i++)
		rig_wait(&rig, send[i], NULL);
	rig_wait(&rig, recv, got);
	for (int i = 0; i < n; i++) {
		CHECK((size_t)got[i] == sent[i], "buffer %d of %d reports %d of %zu", i, n, got[i],
		      sent[i]);
		CHECK(rig_differ(b->to[i], sent[i], seed_of(previous_rank(), l, i)) == sent[i],
		      "buffer %d of %d", i, n);
	}
}

static void grouped_receives(struct lane *l)
{
	static const int pattern[] = { 8, 8, 3, 8, 4, 1, 8, 7, 5, 8, 2, 1, 6 };
	struct buffers b;

	lane_open(l);
	buffers_get(l, &b, GROUP, ROOM / 4, ROOM / 4);
	for (unsigned i = 0; i < sizeof(pattern) / sizeof(*pattern); i++) {
		one_group(l, &b, pattern[i], 512);
		one_group(l, &b, pattern[i], 200000);
	}
	buffers_dereg(l, &b, GROUP);
	buffers_put(&b, GROUP, ROOM / 4, ROOM / 4);
	lane_close(l);
}

static void ring_of_ranks(struct lane *l)
{
	lane_open(l);
	exchange_messages(l, IN_FLIGHT, 5000, 5200);
	lane_close(l);
}

/* Nothing is tested; the posts are taken, whether the other end has closed by then or not. */
static void inflight_close(struct lane *l)
{
	struct buffers b;

	lane_open(l);
	buffers_get(l, &b, IN_FLIGHT, ROOM / 2, ROOM / 2);
	for (int i = 0; i < IN_FLIGHT; i++)
		rig_irecv(&rig, l->recv, b.to[i], ROOM / 2, 1, b.to_mr[i]);
	for (int i = 0; i < IN_FLIGHT; i++)
		rig_isend(&rig, l->send, b.from[i], ROOM / 2, 1, b.from_mr[i]);
	buffers_dereg(l, &b, IN_FLIGHT);
	lane_close(l);
	buffers_put(&b, IN_FLIGHT, ROOM / 2, ROOM / 2);
}

static const struct test_case {
	const char *name;
	void (*run)(struct lane *l);
	int ranks;
} cases[] = {
	{ "connection", open_and_close, 2 },  { "transfer", transfer_sizes, 2 },
	{ "reuse_listen", reuse_listen, 2 },  { "grouped", grouped_receives, 2 },
	{ "ring", ring_of_ranks, RANKS_MAX }, { "inflight_close", inflight_close, 2 },
};

/* ---- a rank ---- */

static const struct test_case *chosen;

static void *thread_main(void *arg)
{
	for (unsigned device = 0; device < DEVICES; device++) {
		struct lane l = { .thread = (unsigned)(uintptr_t)arg, .device = device };

		chosen->run(&l);
	}
	return NULL;
}

static void one_round(void)
{
	pthread_t thread[THREADS];

	for (uintptr_t i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&thread[i], NULL, thread_main, (void *)i), "thread");
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	pthread_barrier_wait(&shared->round);
	if (rank == 0) {
		shared->last = atomic_load(&shared->enough);
		atomic_fetch_add(&shared->rounds, 1);
	}
	pthread_barrier_wait(&shared->round);
}

static void rank_main(int argc, char **argv, bool calm)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	rig_open(&rig, argc, argv);
	CHECK(rig.plugin.devices >= DEVICES, "%d devices", rig.plugin.devices);
	do
		one_round();
	while (!shared->last);
	CHECK(!rig_logged(" lost: "), "%s", rig_last_warning());
	/* A port that is away is known before a NIC's time-outs find out, by connections that begin
	 * meanwhile, too. */
	CHECK(!rig_logged("transport retries exceeded"), "%s", rig_last_warning());
	CHECK(!calm || rig_warnings() == 0, "%s", rig_last_warning());
	rig_close(&rig);
	exit(0);
}

/* ---- the parent ---- */

static pid_t pid[RANKS_MAX];

static void set_cut(struct sr_faults *faults, void *arg)
{
	faults->cut = *(const bool *)arg;
}

static void set_cable(int nic, bool out)
{
	struct sr_control_entry *entry;
	char selector[64];
	int n;

	snprintf(selector, sizeof(selector), "soft%d:%d", nic, (int)pid[0]);
	entry = sr_control_list(selector, &n);
	CHECK(entry && n == 1, "%d devices are called %s", n, selector);
	CHECK(!sr_control_change(entry, set_cut, &out), "%s does not take its fault", selector);
	free(entry);
}

/* Until n more rounds are done; a rank that fails ends the test with what it said. */
static void await_rounds(unsigned n)
{
	unsigned goal = atomic_load(&shared->rounds) + n;
	struct rig_deadline deadline = rig_deadline("rounds");
	int status;

	while (atomic_load(&shared->rounds) < goal) {
		CHECK(waitpid(-1, &status, WNOHANG) == 0, "a rank ended with status 0x%x", status);
		rig_pause(&deadline);
		usleep(1000);
	}
}

static void one_cable(void)
{
	await_rounds(1);
	usleep(20000); /* somewhere within a round */
	set_cable(0, true);
	await_rounds(2);
	set_cable(0, false);
	await_rounds(2);
}

static void both_away(void)
{
	await_rounds(1);
	usleep(20000);
	set_cable(0, true);
	set_cable(1, true);
	sleep(AWAY_S);
	set_cable(0, false);
	set_cable(1, false);
	await_rounds(2);
}

static void normal_operation(void)
{
	await_rounds(4);
}

static void map_shared(int n)
{
	pthread_barrierattr_t attr;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	CHECK(shared != MAP_FAILED, "no memory");
	pthread_barrierattr_init(&attr);
	pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	CHECK(!pthread_barrier_init(&shared->round, &attr, (unsigned)n), "barrier");
}

/* Time-outs that only a defect reaches: what a busy machine does to a path is no news here. */
static void prepare_environment(char *dir)
{
	CHECK(mkdtemp(dir), "no folder");
	setenv("SOFTROCE_CONTROL", dir, 1);
	setenv("HA_NCCL_QP_TIMEOUT", "19", 1);
	setenv("HA_NCCL_HEARTBEAT_MS", "60000", 1);
	setenv("HA_NCCL_RTO_MS", "60000", 1);
	setenv("HA_NCCL_SILENCE_MS", "0", 1);
}

int main(int argc, char **argv)
{
	void (*weather)(void) = normal_operation;
	char dir[] = "/tmp/hawser-ranks-XXXXXX";
	int status;

	CHECK(argc == 4, "VERSION CASE calm|cut|away");
	if (!strcmp(argv[3], "cut"))
		weather = one_cable;
	else if (!strcmp(argv[3], "away"))
		weather = both_away;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		if (!strcmp(argv[2], cases[i].name))
			chosen = &cases[i];
	CHECK(chosen, "no case is called %s", argv[2]);
	ranks = chosen->ranks;
	map_shared(ranks);
	prepare_environment(dir);
	for (rank = 0; rank < ranks; rank++) {
		pid[rank] = fork();
		CHECK(pid[rank] >= 0, "fork");
		if (!pid[rank])
			rank_main(argc, argv, weather == normal_operation);
	}
	weather();
	atomic_store(&shared->enough, true);
	for (int i = 0; i < ranks; i++) {
		CHECK(waitpid(-1, &status, 0) > 0 && status == 0, "a rank ended with 0x%x", status);
	}
	CHECK(!folder_remove(dir), "%s cannot be removed", dir);
	printf("v%s %s, %s: %u rounds of %d ranks\n", argv[1], argv[2], argv[3],
	       atomic_load(&shared->rounds), ranks);
	return 0;
}
