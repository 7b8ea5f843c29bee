/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stands in for libnccl.so.2 in the tests of `ha nccl`; see README.md. A communicator is a file in
 * TESTNCCL_FOLDER that all ranks map, with a part for each. An operation is: everybody writes what
 * it sends into its part, a barrier, everybody computes its result from all parts, a barrier. Sends
 * and receives must be in one group per rank, in all ranks at a time.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tools/job/datatype.h"

#define EXPORT __attribute__((visibility("default")))
#define RANKS_MOST 16
#define PART (2u << 20) /* bytes that a rank sends at most, to all together */
#define CALLS_MOST 4096
#define REGISTERED_MOST 64

struct shared {
	pthread_mutex_t lock; /* protects the next three */
	pthread_cond_t moved;
	int waiting, here;
	unsigned round; /* counts barriers */
	char part[RANKS_MOST][PART];
	struct {
		size_t at, size;
	} box[RANKS_MOST][RANKS_MOST]; /* [sender][receiver]: where in the sender's part */
};

enum kind { ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, BROADCAST, REDUCE, SEND, RECV };

struct range {
	const char *start; /* NULL: free */
	size_t size;
};

struct comm {
	struct shared *shared;
	struct range registered[REGISTERED_MOST];
	int rank, ranks, operations, async;
	atomic_bool aborted; /* set by another thread than the one that meets */
	char net[32];
};

struct call {
	enum kind kind;
	struct comm *comm;
	const char *send;
	char *recv;
	size_t count;
	int type, op, peer; /* peer or root */
};

struct unique_id {
	char internal[128];
};

struct config {
	size_t size;
	unsigned magic, version;
	int blocking, cga, min_ctas, max_ctas;
	const char *net_name;
	int split_share;
};

static __thread int group_depth;
static __thread struct call queue[CALLS_MOST];
static __thread int queued;
static struct call captured[CALLS_MOST];
static int captured_count;
static int mulsum_factor[RANKS_MOST];
static char last_error[200];

extern void *testcudart_capture;
extern void (*testcudart_replay)(void);
extern void (*testcudart_forget)(void);

/* ---- faults ---- */

/* TESTNCCL_FAULT is "name:rank" or "name:rank:number", and this is the rank and the operation's
 * number. */
static bool is_fault_due(const char *name, int rank, int number)
{
	const char *text = getenv("TESTNCCL_FAULT");
	size_t n = strlen(name);
	int r, k = -1;

	if (!text || strncmp(text, name, n) || text[n] != ':' ||
	    sscanf(text + n + 1, "%d:%d", &r, &k) < 1)
		return false;
	return r == rank && (k < 0 || k == number);
}

/* ---- the meeting ---- */

/* False: the communicator was aborted meanwhile. */
static bool wait_for_ranks(struct comm *c)
{
	struct shared *s = c->shared;
	struct timespec until;
	unsigned round;

	pthread_mutex_lock(&s->lock);
	round = s->round;
	if (++s->waiting == c->ranks) {
		s->waiting = 0;
		s->round++;
		pthread_cond_broadcast(&s->moved);
	}
	while (s->round == round && !c->aborted) {
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += 10000000;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		pthread_cond_timedwait(&s->moved, &s->lock, &until);
	}
	pthread_mutex_unlock(&s->lock);
	return !c->aborted;
}

static void reduce_all(const struct comm *c, const struct ha_datatype *type, enum ha_redop op,
		       size_t at, size_t count, char *result)
{
	size_t bytes = count * type->size;
	/* Parts lie one behind the other, whatever their types: they are copied to where elements
	 * are aligned. */
	char *part = malloc(bytes + 1), *scaled = malloc(bytes + 1);

	for (int r = 0; r < c->ranks; r++) {
		memcpy(part, c->shared->part[r] + at * type->size, bytes);
		memcpy(scaled, part, bytes);
		for (int f = 1; op == HA_MULSUM && f < mulsum_factor[r]; f++)
			type->reduce(HA_SUM, scaled, scaled, part, count);
		if (r)
			type->reduce(op == HA_MULSUM ? HA_SUM : op, result, result, scaled, count);
		else
			memcpy(result, scaled, bytes);
	}
	if (op == HA_AVG)
		type->divide(result, count, c->ranks);
	free(part);
	free(scaled);
}

static size_t sent_elements(const struct call *call)
{
	if (call->kind == REDUCE_SCATTER)
		return call->count * (size_t)call->comm->ranks;
	return call->kind == BROADCAST && call->comm->rank != call->peer ? 0 : call->count;
}

static void run_collective(const struct call *call)
{
	const struct ha_datatype *type = &ha_datatypes[call->type];
	struct comm *c = call->comm;
	size_t bytes = call->count * type->size;

	switch (call->kind) {
	case REDUCE:
		if (c->rank != call->peer)
			break;
		/* fall through */
	case ALL_REDUCE:
		reduce_all(c, type, (enum ha_redop)call->op, 0, call->count, call->recv);
		break;
	case REDUCE_SCATTER:
		reduce_all(c, type, (enum ha_redop)call->op, (size_t)c->rank * call->count,
			   call->count, call->recv);
		break;
	case ALL_GATHER:
		for (int r = 0; r < c->ranks; r++)
			memcpy(call->recv + (size_t)r * bytes, c->shared->part[r], bytes);
		break;
	case BROADCAST:
		memcpy(call->recv, c->shared->part[call->peer], bytes);
		break;
	case RECV:
		memcpy(call->recv,
		       c->shared->part[call->peer] + c->shared->box[call->peer][c->rank].at, bytes);
		break;
	default:
		break;
	}
	if (call->recv && bytes && is_fault_due("corrupt", c->rank, -1))
		call->recv[0] ^= 1;
}

/* One collective, or a group of sends and receives, of one communicator. */
static void run_operation(struct call *calls, int n)
{
	struct comm *c = calls[0].comm;
	size_t at = 0;

	c->operations++;
	if (is_fault_due("die", c->rank, c->operations))
		kill(getpid(), SIGKILL);
	if (is_fault_due("async", c->rank, c->operations))
		__atomic_store_n(&c->async, 6, __ATOMIC_RELAXED);
	if (c->async || is_fault_due("hang", c->rank, c->operations))
		while (!c->aborted)
			usleep(1000);
	for (int i = 0; i < n && !c->aborted; i++) {
		size_t bytes = sent_elements(&calls[i]) * ha_datatypes[calls[i].type].size;

		if (calls[i].kind == RECV)
			continue;
		memcpy(c->shared->part[c->rank] + at, calls[i].send, bytes);
		if (calls[i].kind == SEND)
			c->shared->box[c->rank][calls[i].peer].at = at;
		at += bytes;
	}
	if (!wait_for_ranks(c))
		return;
	for (int i = 0; i < n; i++)
		run_collective(&calls[i]);
	(void)wait_for_ranks(c);
}

/* ---- calls ---- */

/* What belongs to one communicator, on a thread of its own: several ranks may be in one process. */
struct crew {
	struct call *calls;
	int n;
	pthread_t thread;
};

static void *crew_work(void *argument)
{
	struct crew *crew = argument;
	int at = 0;

	while (at < crew->n) {
		int together = 1;

		while (crew->calls[at].kind >= SEND && at + together < crew->n &&
		       crew->calls[at + together].kind >= SEND)
			together++;
		run_operation(crew->calls + at, together);
		at += together;
	}
	return NULL;
}

static void run_calls(const struct call *calls, int n)
{
	struct crew crews[RANKS_MOST] = { 0 };
	int count = 0;

	for (int i = 0; i < n; i++) {
		int k = 0;

		while (k < count && crews[k].calls[0].comm != calls[i].comm)
			k++;
		if (k == count)
			crews[count++].calls = calloc((size_t)n, sizeof(*calls));
		crews[k].calls[crews[k].n++] = calls[i];
	}
	for (int k = 0; k < count; k++)
		pthread_create(&crews[k].thread, NULL, crew_work, &crews[k]);
	for (int k = 0; k < count; k++) {
		pthread_join(crews[k].thread, NULL);
		free(crews[k].calls);
	}
}

static void replay_captured(void)
{
	run_calls(captured, captured_count);
}

static void forget_captured(void)
{
	captured_count = 0;
}

EXPORT int ncclGroupStart(void)
{
	group_depth++;
	return 0;
}

EXPORT int ncclGroupEnd(void)
{
	int n = queued;

	if (--group_depth)
		return 0;
	queued = 0;
	if (testcudart_capture) {
		testcudart_replay = replay_captured;
		testcudart_forget = forget_captured;
		memcpy(captured + captured_count, queue, (size_t)n * sizeof(queue[0]));
		captured_count += n;
		return 0;
	}
	if (n)
		run_calls(queue, n);
	return 0;
}

static bool is_registered(const struct comm *comm, const char *memory)
{
	for (int i = 0; i < REGISTERED_MOST; i++) {
		const struct range *range = &comm->registered[i];

		if (range->start && memory >= range->start && memory < range->start + range->size)
			return true;
	}
	return false;
}

static bool registers_any(const struct comm *comm)
{
	for (int i = 0; i < REGISTERED_MOST; i++)
		if (comm->registered[i].start)
			return true;
	return false;
}

/*
 * NCCL wants the buffers at both ends of a connection registered, or none: its kernels wait for
 * each other for ever where they are mixed (a sender that does not say where it is to be read).
 */
static bool mixes_buffers(const struct call *call)
{
	if (!registers_any(call->comm))
		return false;
	if (call->send && !is_registered(call->comm, call->send))
		return true;
	return call->recv && !is_registered(call->comm, call->recv);
}

static int call_add(struct call call)
{
	if (mixes_buffers(&call)) {
		snprintf(last_error, sizeof(last_error),
			 "a buffer that is not registered, beside some that are");
		return 5;
	}
	if (is_fault_due("call", call.comm->rank, call.comm->operations + 1)) {
		snprintf(last_error, sizeof(last_error), "the test wants this call to fail");
		return 3;
	}
	ncclGroupStart();
	queue[queued++] = call;
	return ncclGroupEnd();
}

EXPORT int ncclAllReduce(const void *s, void *r, size_t n, int type, int op, void *c, void *stream)
{
	return call_add((struct call) { ALL_REDUCE, c, s, r, n, type, op, 0 });
}

EXPORT int ncclAllGather(const void *s, void *r, size_t n, int type, void *c, void *stream)
{
	return call_add((struct call) { ALL_GATHER, c, s, r, n, type, 0, 0 });
}

EXPORT int ncclReduceScatter(const void *s, void *r, size_t n, int type, int op, void *c,
			     void *stream)
{
	return call_add((struct call) { REDUCE_SCATTER, c, s, r, n, type, op, 0 });
}

EXPORT int ncclBroadcast(const void *s, void *r, size_t n, int type, int root, void *c,
			 void *stream)
{
	return call_add((struct call) { BROADCAST, c, s, r, n, type, 0, root });
}

EXPORT int ncclReduce(const void *s, void *r, size_t n, int type, int op, int root, void *c,
		      void *stream)
{
	return call_add((struct call) { REDUCE, c, s, r, n, type, op, root });
}

EXPORT int ncclSend(const void *s, size_t n, int type, int peer, void *c, void *stream)
{
	return call_add((struct call) { SEND, c, s, NULL, n, type, 0, peer });
}

EXPORT int ncclRecv(void *r, size_t n, int type, int peer, void *c, void *stream)
{
	return call_add((struct call) { RECV, c, NULL, r, n, type, 0, peer });
}

/* ---- communicators ---- */

EXPORT int ncclGetVersion(int *version)
{
	*version = 22907;
	return 0;
}

EXPORT int ncclGetUniqueId(struct unique_id *id)
{
	pthread_mutexattr_t mutex;
	pthread_condattr_t condition;
	struct shared *s;
	static int number;
	int fd;

	snprintf(id->internal, sizeof(id->internal), "%s/testnccl-%d-%d", getenv("TESTNCCL_FOLDER"),
		 (int)getpid(), number++);
	fd = open(id->internal, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, sizeof(*s)))
		return 2;
	s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	pthread_mutexattr_init(&mutex);
	pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(&s->lock, &mutex);
	pthread_condattr_init(&condition);
	pthread_condattr_setpshared(&condition, PTHREAD_PROCESS_SHARED);
	pthread_cond_init(&s->moved, &condition);
	munmap(s, sizeof(*s));
	return 0;
}

/* Each process that loads this library leaves a line. */
__attribute__((constructor)) static void note_load(void)
{
	const char *folder = getenv("TESTNCCL_FOLDER");
	char path[512];
	FILE *file;

	snprintf(path, sizeof(path), "%s/loaded", folder ? folder : "");
	file = folder ? fopen(path, "ae") : NULL;
	if (!file)
		return;
	fprintf(file, "%d\n", (int)getpid());
	fclose(file);
}

/* NCCL's own log, as far as the report looks for it. */
static void log_line(const char *network)
{
	const char *pattern = getenv("NCCL_DEBUG_FILE");
	char path[512];
	FILE *file;

	if (!pattern || !getenv("NCCL_DEBUG") || !strstr(pattern, "%p"))
		return;
	snprintf(path, sizeof(path), "%.*s%d%s", (int)(strstr(pattern, "%p") - pattern), pattern,
		 (int)getpid(), strstr(pattern, "%p") + 2);
	file = fopen(path, "ae");
	if (!file)
		return;
	fprintf(file, "host:%d:1 [0] NCCL INFO Using network %s\n", (int)getpid(), network);
	fclose(file);
}

EXPORT int ncclCommInitRankConfig(void **comm, int ranks, struct unique_id id, int rank,
				  struct config *config)
{
	struct comm *c = calloc(1, sizeof(*c));
	int fd = open(id.internal, O_RDWR | O_CLOEXEC);

	*comm = c;
	if (is_fault_due("init", rank, -1) || fd < 0 || ranks > RANKS_MOST ||
	    config->magic != 0xcafebeef) {
		snprintf(last_error, sizeof(last_error), "no network for the test");
		return 2;
	}
	c->rank = rank;
	c->ranks = ranks;
	snprintf(c->net, sizeof(c->net), "%s", config->net_name ? config->net_name : "Test");
	c->shared = mmap(NULL, sizeof(*c->shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (__atomic_add_fetch(&c->shared->here, 1, __ATOMIC_RELAXED) == ranks)
		unlink(id.internal);
	log_line(c->net);
	return 0;
}

EXPORT int ncclCommDestroy(void *comm)
{
	struct comm *c = comm;

	munmap(c->shared, sizeof(*c->shared));
	free(c);
	return 0;
}

EXPORT int ncclCommAbort(void *comm)
{
	((struct comm *)comm)->aborted = true;
	return 0;
}

EXPORT int ncclCommGetAsyncError(void *comm, int *error)
{
	*error = __atomic_load_n(&((struct comm *)comm)->async, __ATOMIC_RELAXED);
	return 0;
}

EXPORT const char *ncclGetErrorString(int result)
{
	static const char *const names[] = { "no error",
					     "unhandled cuda error",
					     "unhandled system error",
					     "internal error",
					     "invalid argument",
					     "invalid usage",
					     "remote process exited or there was a network error" };

	return result < 7 ? names[result] : "unknown result code";
}

EXPORT const char *ncclGetLastError(void *comm)
{
	return last_error;
}

/* ---- operations and memory ---- */

EXPORT int ncclRedOpCreatePreMulSum(int *op, void *scalar, int type, int residence, void *comm)
{
	struct comm *c = comm;

	/* every rank's factor: those of other processes follow the same rule */
	for (int r = 0; r < c->ranks; r++)
		mulsum_factor[r] = 1 + (r & 1);
	*op = HA_MULSUM;
	return residence == 1 ? 0 : 4;
}

EXPORT int ncclRedOpDestroy(int op, void *comm)
{
	return op == HA_MULSUM ? 0 : 4;
}

EXPORT int ncclMemAlloc(void **memory, size_t size)
{
	*memory = malloc(size);
	return 0;
}

EXPORT int ncclMemFree(void *memory)
{
	free(memory);
	return 0;
}

EXPORT int ncclCommRegister(void *comm, void *memory, size_t size, void **handle)
{
	struct comm *c = comm;

	for (int i = 0; i < REGISTERED_MOST; i++) {
		if (c->registered[i].start)
			continue;
		c->registered[i] = (struct range) { memory, size };
		*handle = &c->registered[i];
		return 0;
	}
	return 3;
}

EXPORT int ncclCommDeregister(void *comm, void *handle)
{
	struct range *range = handle;

	if (!range || !range->start)
		return 4;
	range->start = NULL;
	return 0;
}
