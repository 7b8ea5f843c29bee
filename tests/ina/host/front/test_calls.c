/* SPDX-License-Identifier: BSD-3-Clause */
/* test_calls.c - what a caller may do and what not: refusals, order, notices, threads, contexts,
 * fork, ends in the middle */
#include "base/clock.h"
#include "tests/ina/host/front/rig.h"
#include "tests/ina/switch/named.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static struct ha_ina *ina;
static struct ha_ina_group *group;

static void open_loopback(unsigned ranks, unsigned rank)
{
	setenv("NETCCL_FRONTEND_LOOPBACK", "1", 1);
	ina = open_or_die();
	group = group_or_die(ina, ranks, rank);
}

static void close_loopback(void)
{
	ha_ina_group_leave(group);
	ha_ina_close(ina);
	unsetenv("NETCCL_FRONTEND_LOOPBACK");
}

/* ---- refusals ---- */

static void expect_refused(struct ha_ina_request q, const char *text)
{
	struct ha_ina_op *op = (struct ha_ina_op *)&q;

	CHECK_INT(ha_ina_post(group, &q, &op), -EINVAL);
	CHECK(!op);
	if (!strstr(ha_ina_error(ina), text))
		fprintf(stderr, "said: %s\n", ha_ina_error(ina));
	CHECK(strstr(ha_ina_error(ina), text));
}

static void wrong_calls_are_refused(void)
{
	static int32_t a[64], b[64];
	const struct ha_ina_request good = {
		.coll = HA_INA_ALL_REDUCE, .type = HA_INA_INT32, .bytes = 64, .in = a, .out = b
	};
	struct ha_ina_request q;
	uint8_t ticket[HA_INA_TICKET];
	uint32_t member[40] = { 0 };
	struct ha_ina_group *other;

	open_loopback(4, 1);
#define REFUSED(change, text) \
	q = good;             \
	change;               \
	expect_refused(q, text)
	REFUSED(q.coll = 0, "coll");
	REFUSED(q.coll = 7, "coll");
	REFUSED(q.type = HA_INA_BYTES, "type");
	REFUSED(q.type = 9, "type");
	REFUSED(q.coll = HA_INA_REDUCE; q.root = 4, "root");
	REFUSED(q.bytes = 63, "bytes");
	REFUSED(q.coll = HA_INA_REDUCE_SCATTER; q.bytes = 8, "bytes");
	REFUSED(q.bytes = SIZE_MAX - 3, "more than there can be");
	REFUSED(q.in = NULL, "in is NULL");
	REFUSED(q.out = NULL, "out is NULL");
	REFUSED(q.out = a + 1, "overlap");
	REFUSED(q.coll = HA_INA_REDUCE_SCATTER; q.out = a, "overlap");
	REFUSED(q.coll = HA_INA_ALL_GATHER; q.in = b, "overlap");
	REFUSED(q.memory = 2, "memory");
	CHECK_INT(ha_ina_group_create(ina, member, 1, "x", ticket), -EINVAL);
	CHECK_INT(ha_ina_group_create(ina, member, 33, "x", ticket), -EINVAL);
	CHECK_INT(ha_ina_group_create(ina, NULL, 3, "x", ticket), -EINVAL);
	CHECK_INT(ha_ina_group_create(ina, member, 3, "x", ticket), 0);
	CHECK_INT(ha_ina_group_join(ina, ticket, 3, &other), -EINVAL);
	CHECK_INT(ha_ina_group_join(ina, ticket, 32, &other), -EINVAL);
	CHECK(!other);
	ticket[0]++;
	CHECK_INT(ha_ina_group_join(ina, ticket, 1, &other), -EINVAL);
	/* What is in place, and what a rank brings and gets nothing of, is taken. */
	q = good;
	q.coll = HA_INA_REDUCE_SCATTER;
	q.out = a + 4;
	CHECK_INT(run_request(ina, group, &q), 0);
	q = (struct ha_ina_request) {
		.coll = HA_INA_REDUCE, .type = HA_INA_INT32, .bytes = 64, .in = a, .root = 0
	};
	CHECK_INT(run_request(ina, group, &q), 0);
	close_loopback();
}

static void open_refused(const char *backend, size_t buffer, int err, const char *text)
{
	char why[200] = "";

	CHECK_INT(ha_ina_open(&ina,
			      &(struct ha_ina_options) { .backend = backend, .buffer = buffer },
			      why, sizeof(why)),
		  err);
	if (!strstr(why, text))
		fprintf(stderr, "said: %s\n", why);
	CHECK(!ina && strstr(why, text));
}

static void no_backend(void)
{
	char path[300];

	memset(path, 'x', sizeof(path));
	path[299] = 0;
	open_refused("/tmp/nobody-is-here.sock", 0, -ENOTCONN, "start ha-backend");
	open_refused(path, 0, -EINVAL, "too long");
	open_refused(NULL, SIZE_MAX, -EINVAL, "NETCCL_COPY_BUFFER");
	setenv("NETCCL_COPY_BUFFER", "64 MB", 1);
	open_refused(NULL, 0, -EINVAL, "NETCCL_COPY_BUFFER");
	unsetenv("NETCCL_COPY_BUFFER");
}

/* A backend that hangs, with so many waiting that no more can: an error after a while, as from one
 * that does not answer. */
static void hung_backend(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), waits[8], n = 0;

	snprintf(address.sun_path, sizeof(address.sun_path), "/tmp/ina-hung-%d.sock",
		 (int)getpid());
	unlink(address.sun_path); /* of a process that was killed and had this number */
	CHECK(!bind(fd, (struct sockaddr *)&address, sizeof(address)) && !listen(fd, 0));
	do
		waits[n] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	while (!connect(waits[n++], (struct sockaddr *)&address, sizeof(address)) && n < 8);
	CHECK(n < 8);
	open_refused(address.sun_path, 0, -ENOTCONN, "has not answered");
	while (n)
		close(waits[--n]);
	close(fd);
	unlink(address.sun_path);
}

struct giver {
	struct timespec after;
	int flag;
};

static void *give_up_later(void *arg)
{
	struct giver *g = arg;

	nanosleep(&g->after, NULL);
	__atomic_store_n(&g->flag, 1, __ATOMIC_RELEASE);
	return NULL;
}

#define GIVEN_UP 15 /* seconds; a backend that does not answer has longer */

/* full: it cannot even connect; else it waits for an answer to its first word. */
static void give_up_open(int fd, const struct sockaddr_un *address, bool full)
{
	struct giver g = { .after.tv_nsec = 200000000 };
	struct ha_ina_options o = { .backend = address->sun_path, .give_up = &g.flag };
	int first = full ? socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0) : -1;
	double begin = ha_monotonic_s();
	pthread_t thread;
	char why[300];

	CHECK(!full || !connect(first, (const struct sockaddr *)address, sizeof(*address)));
	CHECK(!pthread_create(&thread, NULL, give_up_later, &g));
	CHECK_INT(ha_ina_open(&ina, &o, why, sizeof(why)), -ECANCELED);
	CHECK(strstr(why, "given up"));
	CHECK(ha_monotonic_s() - begin < GIVEN_UP);
	pthread_join(thread, NULL);
	if (full)
		close(first);
	else
		close(accept(fd, NULL, NULL));
}

static void give_up_group(bool join)
{
	struct giver g = { .after.tv_nsec = 200000000 };
	struct ha_ina_options o = { .give_up = &g.flag };
	uint8_t ticket[HA_INA_TICKET] = { 0 };
	uint32_t member[2] = { 1, 1 };
	pthread_t thread;
	char why[300];
	double begin;

	CHECK_INT(ha_ina_open(&ina, &o, why, sizeof(why)), 0);
	CHECK(!pthread_create(&thread, NULL, give_up_later, &g));
	begin = ha_monotonic_s();
	CHECK_INT(join ? ha_ina_group_join(ina, ticket, 0, &group)
		       : ha_ina_group_create(ina, member, 2, "g", ticket),
		  -ECANCELED);
	CHECK(strstr(ha_ina_error(ina), "given up"));
	CHECK(ha_monotonic_s() - begin < GIVEN_UP);
	pthread_join(thread, NULL);
	ha_ina_close(ina);
}

/* Another thread wants this one back, which waits for a backend that hangs: to attach, when no more
 * can even connect, and for a group. */
static void given_up(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd;

	snprintf(address.sun_path, sizeof(address.sun_path), "/tmp/ina-hung-%d.sock",
		 (int)getpid());
	unlink(address.sun_path); /* of a process that was killed and had this number */
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	CHECK(!bind(fd, (struct sockaddr *)&address, sizeof(address)) && !listen(fd, 0));
	give_up_open(fd, &address, false);
	give_up_open(fd, &address, true);
	close(fd);
	unlink(address.sun_path);

	backend_start((const char *const[]) { "--mute", NULL });
	give_up_group(false);
	give_up_group(true);
	backend_kill();
}

/* ---- order and notices ---- */

#define MANY 3000

static atomic_uint notices;
static unsigned noticed[MANY];

static void record_notice(void *arg, int result)
{
	CHECK_INT(result, 0);
	noticed[(uintptr_t)arg] = 1 + atomic_load(&notices);
	atomic_fetch_add(&notices, 1); /* one thread calls */
}

static void wait_notices(unsigned n)
{
	for (unsigned i = 0; i < 20000 && atomic_load(&notices) < n; i++)
		usleep(5000);
	CHECK_INT(atomic_load(&notices), n);
}

/* More operations than rings and buffer hold, of all sizes and of none: they end in order, and each
 * says so once. */
static void operations_end_in_order(void)
{
	static struct ha_ina_op *op[MANY];
	static int32_t a[MANY];
	int result = 1;

	open_loopback(3, 0);
	for (unsigned i = 0; i < MANY; i++) {
		struct ha_ina_request q = { .coll = HA_INA_ALL_REDUCE,
					    .type = HA_INA_INT32,
					    .bytes = i % 10 ? 4 : 0,
					    .in = &a[i],
					    .out = &a[i] };

		a[i] = (int32_t)i;
		op[i] = post_or_die(ina, group, &q);
		CHECK_INT(ha_ina_notify(op[i], record_notice, (void *)(uintptr_t)i), 0);
	}
	CHECK_INT(ha_ina_notify(op[0], record_notice, NULL), -EINVAL);
	wait_notices(MANY);
	for (unsigned i = 0; i < MANY; i++) {
		CHECK_INT(noticed[i], i + 1);
		CHECK_INT(a[i], i % 10 ? 3 * i : i);
		CHECK(ha_ina_test(op[i], &result) && !result);
		ha_ina_op_free(op[i]);
	}
	/* Late: at once. */
	op[0] = post_or_die(ina, group, &(struct ha_ina_request) { .coll = HA_INA_BARRIER });
	CHECK_INT(ha_ina_wait(op[0], TIME_LIMIT), 0);
	atomic_store(&notices, 0);
	CHECK_INT(ha_ina_notify(op[0], record_notice, (void *)5), 0);
	wait_notices(1);
	CHECK_INT(noticed[5], 1);
	ha_ina_op_free(op[0]);
	close_loopback();
}

/* ---- two contexts, threads ---- */

static struct ha_ina *contexts[2];
static uint8_t tickets[4][HA_INA_TICKET];
static pthread_barrier_t both;

/* One rank of two groups on one context, in two threads each; sums are checked. */
static void *in_thread(void *arg)
{
	unsigned rank = (unsigned)(uintptr_t)arg % 2, which = (unsigned)(uintptr_t)arg / 2;
	struct ha_ina *ctx = contexts[rank];
	struct ha_ina_group *g;
	static int32_t data[8][1 << 18];
	int32_t *x = data[(uintptr_t)arg];

	CHECK_INT(ha_ina_group_join(ctx, tickets[which], rank, &g), 0);
	pthread_barrier_wait(&both);
	for (unsigned round = 0; round < 40; round++) {
		size_t n = round % 4 ? round * 50 : 1u << 18;

		for (size_t i = 0; i < n; i++)
			x[i] = (int32_t)(i + rank + round + which);
		CHECK_INT(run_request(ctx, g,
				      &(struct ha_ina_request) { .coll = HA_INA_ALL_REDUCE,
								 .type = HA_INA_INT32,
								 .bytes = 4 * n,
								 .in = x,
								 .out = x }),
			  0);
		for (size_t i = 0; i < n; i++)
			CHECK_INT(x[i], 2 * (i + round + which) + 1);
	}
	pthread_barrier_wait(&both);
	ha_ina_group_leave(g);
	return NULL;
}

static void threads_share_contexts(void)
{
	pthread_t thread[8];
	uint32_t member[2] = { 1, 2 };

	backend_start(NULL);
	pthread_barrier_init(&both, NULL, 8);
	contexts[0] = open_or_die();
	contexts[1] = open_or_die();
	for (unsigned i = 0; i < 4; i++)
		CHECK_INT(ha_ina_group_create(contexts[i % 2], member, 2, "t", tickets[i]), 0);
	for (uintptr_t i = 0; i < 8; i++)
		CHECK_INT(pthread_create(&thread[i], NULL, in_thread, (void *)i), 0);
	for (unsigned i = 0; i < 8; i++)
		pthread_join(thread[i], NULL);
	ha_ina_close(contexts[0]);
	ha_ina_close(contexts[1]);
	backend_stop();
}

/* ---- one group that waits holds up no other ---- */

static int32_t stuck_data[4][1 << 20];

static struct ha_ina_request sum_of(int32_t *in, int32_t *out)
{
	return (struct ha_ina_request) { .coll = HA_INA_ALL_REDUCE,
					 .type = HA_INA_INT32,
					 .bytes = sizeof(stuck_data[0]),
					 .in = in,
					 .out = out };
}

/* An operation of both ranks of a group. */
static void run_both(struct ha_ina_group *const g[2], const struct ha_ina_request *first,
		     const struct ha_ina_request *second)
{
	struct ha_ina_op *op = post_or_die(contexts[0], g[0], first);

	CHECK_INT(run_request(contexts[1], g[1], second), 0);
	CHECK_INT(ha_ina_wait(op, TIME_LIMIT), 0);
	ha_ina_op_free(op);
}

/* An operation that is freed before its end ends its group; its memory is the caller's again. */
static void free_before_the_end(struct ha_ina_group *stuck, struct ha_ina_op *const wait[30])
{
	const struct ha_ina_request barrier = { .coll = HA_INA_BARRIER };
	struct ha_ina_op *op;

	ha_ina_op_free(wait[3]);
	CHECK_INT(ha_ina_group_state(stuck), -ECANCELED);
	CHECK_INT(ha_ina_wait(wait[0], 0), -ECANCELED);
	CHECK(strstr(ha_ina_error(contexts[0]), "freed before"));
	memset(stuck_data[0], 1, sizeof(stuck_data[0]));
	for (unsigned i = 0; i < 30; i++)
		if (i != 3)
			ha_ina_op_free(wait[i]);
	CHECK_INT(ha_ina_post(stuck, &barrier, &op), -ECANCELED);
	ha_ina_group_leave(stuck);
}

static void stuck_group(void)
{
	const struct ha_ina_request waiting = sum_of(stuck_data[0], stuck_data[0]),
				    first = sum_of(stuck_data[1], stuck_data[1]),
				    second = sum_of(stuck_data[2], stuck_data[3]),
				    barrier = { .coll = HA_INA_BARRIER };
	uint32_t member[2] = { 1, 2 };
	struct ha_ina_group *stuck, *g[2];
	struct ha_ina_op *wait[30];

	setenv("NETCCL_COPY_BUFFER", "8M", 1);
	backend_start(NULL);
	contexts[0] = open_or_die();
	contexts[1] = open_or_die();
	CHECK_INT(ha_ina_group_create(contexts[0], member, 2, "a", tickets[0]), 0);
	CHECK_INT(ha_ina_group_create(contexts[0], member, 2, "b", tickets[1]), 0);
	CHECK_INT(ha_ina_group_join(contexts[0], tickets[0], 0, &stuck), 0);
	for (unsigned r = 0; r < 2; r++)
		CHECK_INT(ha_ina_group_join(contexts[r], tickets[1], r, &g[r]), 0);
	for (unsigned i = 0; i < 30; i++) /* the other rank never joins */
		wait[i] = post_or_die(contexts[0], stuck, &waiting);
	for (unsigned i = 0; i < 4; i++)
		run_both(g, &first, &second);
	free_before_the_end(stuck, wait);
	run_both(g, &barrier, &barrier); /* the other group goes on */
	ha_ina_group_leave(g[0]);
	ha_ina_group_leave(g[1]);
	ha_ina_close(contexts[0]);
	ha_ina_close(contexts[1]);
	backend_stop();
	unsetenv("NETCCL_COPY_BUFFER");
}

/* More groups than the buffer has segments: a sentence, and room again when one has been left. */
static void groups_full(void)
{
	struct ha_ina_group *g[3];
	uint32_t member[2] = { 1, 2 };

	setenv("NETCCL_COPY_BUFFER", "4M", 1);
	setenv("NETCCL_FRONTEND_LOOPBACK", "1", 1);
	ina = open_or_die();
	CHECK_INT(ha_ina_group_create(ina, member, 2, NULL, tickets[0]), 0);
	CHECK_INT(ha_ina_group_join(ina, tickets[0], 0, &g[0]), 0);
	CHECK_INT(ha_ina_group_join(ina, tickets[0], 1, &g[1]), 0);
	CHECK_INT(ha_ina_group_join(ina, tickets[0], 0, &g[2]), -EAGAIN);
	CHECK(strstr(ha_ina_error(ina), "NETCCL_COPY_BUFFER"));
	ha_ina_group_leave(g[1]);
	CHECK_INT(ha_ina_group_join(ina, tickets[0], 0, &g[2]), 0);
	ha_ina_group_leave(g[0]);
	ha_ina_group_leave(g[2]);
	ha_ina_close(ina);
}

/* ---- the end in the middle ---- */

/* Closed with operations in flight: they end, and can be freed afterwards. */
static void close_in_flight(void)
{
	static int32_t big[1 << 20];
	uint32_t member[2] = { 1, 2 };
	struct ha_ina_op *op[20];
	int result;

	backend_start(NULL);
	ina = open_or_die();
	CHECK_INT(ha_ina_group_create(ina, member, 2, "c", tickets[0]), 0);
	CHECK_INT(ha_ina_group_join(ina, tickets[0], 0, &group), 0);
	for (unsigned i = 0; i < 20; i++)
		op[i] = post_or_die(ina, group,
				    &(struct ha_ina_request) { .coll = HA_INA_ALL_REDUCE,
							       .type = HA_INA_INT32,
							       .bytes = sizeof(big),
							       .in = big,
							       .out = big });
	ha_ina_close(ina);
	for (unsigned i = 0; i < 20; i++) {
		CHECK(ha_ina_test(op[i], &result));
		CHECK_INT(result, -ECANCELED);
		ha_ina_op_free(op[i]);
	}
	ha_ina_group_leave(group);
	backend_stop();
}

/* A forked child's copy is dead, harmlessly; the parent's incarnations, and its end is seen
 * although the child goes on. */
static void forked_child_is_harmless(void)
{
	static int32_t a[64], b[64];
	struct ha_ina_request q = { .coll = HA_INA_ALL_REDUCE,
				    .type = HA_INA_INT32,
				    .bytes = sizeof(a),
				    .in = a,
				    .out = a };
	uint32_t member[2] = { 1, 2 };
	struct ha_ina_group *other;
	struct ha_ina_op *op;
	int status;
	pid_t child;

	backend_start(NULL);
	ina = open_or_die();
	contexts[1] = open_or_die();
	CHECK_INT(ha_ina_group_create(ina, member, 2, "f", tickets[0]), 0);
	CHECK_INT(ha_ina_group_join(ina, tickets[0], 0, &group), 0);
	CHECK_INT(ha_ina_group_join(contexts[1], tickets[0], 1, &other), 0);
	op = post_or_die(ina, group, &q);
	child = fork();
	if (!child) {
		alarm(850);
		CHECK_INT(ha_ina_wait(op, SECOND), -ENOTCONN);
		CHECK(strstr(ha_ina_error(ina), "forked"));
		ha_ina_op_free(op);
		CHECK_INT(ha_ina_post(group, &q, &op), -ENOTCONN);
		CHECK_INT(ha_ina_group_create(ina, member, 2, "f", tickets[1]), -ENOTCONN);
		ha_ina_group_leave(group);
		ha_ina_close(ina);
#ifndef __SANITIZE_THREAD__          /* which knows no threads in a forked child */
		ina = open_or_die(); /* its own */
		ha_ina_close(ina);
#endif
		_exit(0);
	}
	CHECK_INT(waitpid(child, &status, 0), child);
	CHECK_INT(status, 0);
	q.in = q.out = b;
	CHECK_INT(run_request(contexts[1], other, &q), 0);
	CHECK_INT(ha_ina_wait(op, TIME_LIMIT), 0);
	ha_ina_op_free(op);
	ha_ina_group_leave(group);
	ha_ina_group_leave(other);
	ha_ina_close(ina);
	ha_ina_close(contexts[1]);
	backend_stop();
}

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
/* in a forked child they know no threads, or not the stacks of those that are not there */
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

static atomic_int notice_runs, notice_may_end;
static pid_t from_notice;

static void hold_notice(void *arg, int result)
{
	atomic_store(&notice_runs, 1);
	while (!atomic_load(&notice_may_end))
		usleep(1000);
}

static void fork_too(void *arg, int result)
{
	from_notice = fork();
	if (!from_notice) {
		alarm(850);
		/* as a program's function may: the thread that called it must end in the child */
		return;
	}
	atomic_store(&notice_runs, 2);
}

/* While a notify function runs: the child does not wait for the parent's call; and one that forks
 * itself is called once, in the parent. */
static void forked_in_notice(void)
{
	struct ha_ina_op *op;
	int status;
	pid_t child;

	open_loopback(2, 0);
	op = post_or_die(ina, group, &(struct ha_ina_request) { .coll = HA_INA_BARRIER });
	CHECK_INT(ha_ina_notify(op, hold_notice, NULL), 0);
	while (!atomic_load(&notice_runs))
		usleep(1000);
	child = fork();
	if (!child) {
		alarm(850);
		ha_ina_op_free(op);
		ha_ina_group_leave(group);
		ha_ina_close(ina);
		_exit(0);
	}
	CHECK_INT(waitpid(child, &status, 0), child);
	CHECK_INT(status, 0);
	atomic_store(&notice_may_end, 1);
	ha_ina_op_free(op);
	if (SANITIZED) {
		close_loopback();
		return;
	}
	op = post_or_die(ina, group, &(struct ha_ina_request) { .coll = HA_INA_BARRIER });
	CHECK_INT(ha_ina_notify(op, fork_too, NULL), 0);
	while (atomic_load(&notice_runs) != 2)
		usleep(1000);
	CHECK_INT(waitpid(from_notice, &status, 0), from_notice);
	CHECK_INT(status, 0);
	ha_ina_op_free(op);
	close_loopback();
}

static const struct named_test tests[] = {
	{ "refusals", wrong_calls_are_refused },
	{ "no_backend", no_backend },
	{ "hung_backend", hung_backend },
	{ "order", operations_end_in_order },
	{ "threads", threads_share_contexts },
	{ "stuck_group", stuck_group },
	{ "groups_full", groups_full },
	{ "close_in_flight", close_in_flight },
	{ "forked", forked_child_is_harmless },
	{ "forked_in_notice", forked_in_notice },
	{ "given_up", given_up },
};

int main(int argc, char **argv)
{
	alarm(850);
	return NAMED_TESTS_RUN(tests, argc, argv);
}
