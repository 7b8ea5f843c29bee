/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/ina_perf/rank.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAUSE_US 20000    /* between two looks for a ticket, or a backend */
#define LOOK_NS 100000000 /* and of one that waits for an operation, whether it is to end */

static int stopping; /* SIGTERM or SIGINT has come; the library looks at it too */

static void on_signal(int number)
{
	__atomic_store_n(&stopping, 1, __ATOMIC_RELEASE);
}

static bool is_stopped(void)
{
	return __atomic_load_n(&stopping, __ATOMIC_ACQUIRE);
}

struct run {
	const struct ina_perf *perf;
	struct ha_ina *ina;
	struct ha_ina_group *group;
	unsigned incarnation; /* which group */
	void *in, *out;
	size_t wrong, at; /* elements; the step */
	bool alone;       /* the backend is a loopback: nothing is verified */
	double worst;
	uint64_t *ns; /* of the run's timed steps */
	size_t timed;
};

static const char *name_of(enum ha_ina_coll coll)
{
	static const char *const names[] = { "",          "all_reduce",     "reduce",
					     "broadcast", "reduce_scatter", "all_gather",
					     "barrier" };

	return names[coll];
}

static int report_error(const struct run *r, const char *what, int err)
{
	if (!is_stopped())
		fprintf(stderr, "rank %u: %s: %s (%s)\n", r->perf->rank, what,
			r->ina ? ha_ina_error(r->ina) : "", strerror(-err));
	return err;
}

/* ---- a group ---- */

/* One that has other groups to come waits for what may come back. */
static bool can_wait(const struct run *r)
{
	return r->incarnation || r->perf->again;
}

static int open_backend(struct run *r)
{
	int64_t until = ha_monotonic_ns() + r->perf->timeout_s * INT64_C(1000000000);
	struct ha_ina_options options = { .backend = r->perf->backend,
					  .loopback = r->perf->loopback,
					  .give_up = &stopping };
	char why[300];
	int err;

	if (r->ina)
		return 0;
	while ((err = ha_ina_open(&r->ina, &options, why, sizeof(why))) == -ENOTCONN &&
	       can_wait(r) && ha_monotonic_ns() < until && !is_stopped())
		usleep(PAUSE_US);
	if (err && !is_stopped())
		fprintf(stderr, "rank %u: %s\n", r->perf->rank, why);
	return err;
}

static void close_backend(struct run *r)
{
	ha_ina_close(r->ina);
	r->ina = NULL;
}

static void ticket_path(const struct run *r, char *path, size_t size)
{
	if (r->incarnation)
		snprintf(path, size, "%s.%u", r->perf->ticket, r->incarnation);
	else
		snprintf(path, size, "%s", r->perf->ticket);
}

/* Whole or not there. */
static int ticket_write(const char *path, const uint8_t ticket[HA_INA_TICKET])
{
	char part[520];
	int fd, err = 0;

	snprintf(part, sizeof(part), "%s.part", path);
	fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, ticket, HA_INA_TICKET) != HA_INA_TICKET || rename(part, path))
		err = -errno;
	if (fd >= 0)
		close(fd);
	return err;
}

static int ticket_read(const char *path, uint8_t ticket[HA_INA_TICKET], unsigned timeout_s)
{
	int64_t until = ha_monotonic_ns() + timeout_s * INT64_C(1000000000);

	while (ha_monotonic_ns() < until && !is_stopped()) {
		int fd = open(path, O_RDONLY | O_CLOEXEC);

		if (fd >= 0) {
			ssize_t n = read(fd, ticket, HA_INA_TICKET);

			close(fd);
			return n == HA_INA_TICKET ? 0 : -EPROTO;
		}
		usleep(PAUSE_US);
	}
	return -ETIMEDOUT;
}

/*
 * Worth another try: the backend is away, or the controller has nothing at the moment, as while a
 * switch comes up.
 */
static bool is_transient(int err)
{
	return err == -ENOTCONN || err == -EAGAIN || err == -ETIMEDOUT;
}

static int create_group(struct run *r, const char *path, uint8_t ticket[HA_INA_TICKET])
{
	const struct ina_perf *p = r->perf;
	int64_t until = ha_monotonic_ns() + p->timeout_s * INT64_C(1000000000);
	uint32_t member[HA_INA_RANKS];
	int err;

	for (unsigned i = 0; i < p->ranks; i++)
		member[i] = p->members ? p->member[i] : ha_ina_address(r->ina);
	while ((err = ha_ina_group_create(r->ina, member, p->ranks, "ha ina-perf", ticket))) {
		if (!can_wait(r) || !is_transient(err) || ha_monotonic_ns() >= until ||
		    is_stopped())
			return report_error(r, "no group", err);
		if (err == -ENOTCONN)
			close_backend(r);
		usleep(PAUSE_US);
		err = open_backend(r);
		if (err)
			return err;
	}
	err = ticket_write(path, ticket);
	if (err)
		fprintf(stderr, "%s: %s\n", path, strerror(-err));
	return err;
}

static int join_group(struct run *r)
{
	uint8_t ticket[HA_INA_TICKET];
	char path[512];
	int err = open_backend(r);

	if (err)
		return err;
	ticket_path(r, path, sizeof(path));
	if (!r->perf->rank) {
		err = create_group(r, path, ticket);
	} else {
		err = ticket_read(path, ticket, r->perf->timeout_s);
		if (err)
			fprintf(stderr, "rank %u: %s: no ticket from rank 0: %s\n", r->perf->rank,
				path, strerror(-err));
	}
	if (err)
		return err;
	/* Before it may have joined: a rank joins a group once, and who starts this one again,
	 * however early it was killed, must know which one comes next. */
	if (r->perf->each)
		printf("group %u\n", r->incarnation);
	err = ha_ina_group_join(r->ina, ticket, r->perf->rank, &r->group);
	return err ? report_error(r, "cannot join", err) : 0;
}

static void leave_group(struct run *r, int err)
{
	ha_ina_group_leave(r->group);
	r->group = NULL;
	if (err == -ENOTCONN && r->ina)
		close_backend(r);
}

/* ---- a step ---- */

static int run_operation(struct run *r, const struct ha_ina_request *q, uint64_t *ns)
{
	int64_t start = ha_monotonic_ns();
	struct ha_ina_op *op;
	int64_t until = start + r->perf->timeout_s * INT64_C(1000000000);
	int err = ha_ina_post(r->group, q, &op);

	if (!err) {
		while ((err = ha_ina_wait(op, LOOK_NS)) == -ETIME && !is_stopped() &&
		       ha_monotonic_ns() < until)
			;
		*ns = (uint64_t)(ha_monotonic_ns() - start);
		if (!err && ha_ina_op_met(op))
			r->wrong++; /* these numbers neither saturate nor have no value */
		if (err)
			report_error(r, name_of(q->coll), err);
		ha_ina_op_free(op);
	} else {
		report_error(r, name_of(q->coll), err);
	}
	return err;
}

/* All are where the one is that has come least far: it may lack a result that others have. */
static int agree_on_step(struct run *r)
{
	int32_t at[HA_INA_RANKS], least;
	struct ha_ina_request q = { .coll = HA_INA_ALL_GATHER,
				    .type = HA_INA_INT32,
				    .bytes = 4 * r->perf->ranks,
				    .in = &at[r->perf->rank],
				    .out = at };
	uint64_t ns;
	int err;

	for (unsigned i = 0; i < r->perf->ranks; i++)
		at[i] = (int32_t)r->at; /* loopback receives itself only */
	err = run_operation(r, &q, &ns);
	least = at[0];
	for (unsigned i = 1; !err && i < r->perf->ranks; i++)
		least = at[i] < least ? at[i] : least;
	if (!err) {
		r->at = (size_t)least;
		r->timed = 0;
	}
	return err;
}

/*
 * Nothing else keeps the ranks of a loopback together: its group would be gone before the last of
 * them has joined.
 */
static void wait_for_ranks(struct run *r)
{
	int64_t until = ha_monotonic_ns() + r->perf->timeout_s * INT64_C(1000000000);

	if (!r->perf->joined)
		return;
	atomic_fetch_add(r->perf->joined, 1);
	while (atomic_load(r->perf->joined) < r->perf->ranks && ha_monotonic_ns() < until &&
	       !is_stopped())
		usleep(PAUSE_US);
}

/*
 * A backend in one of its loopback modes answers as if every rank had brought what this one did, so
 * that every sum is wrong. Two sums distinguish it from the network: for two and more ranks not
 * both can come out right by chance.
 */
static int look_for_loopback(struct run *r)
{
	const int32_t ranks = (int32_t)r->perf->ranks, number = (int32_t)r->perf->rank + 1;
	int32_t in[2] = { number, number * number }, out[2] = { 0, 0 };
	struct ha_ina_request q = { .coll = HA_INA_ALL_REDUCE,
				    .type = HA_INA_INT32,
				    .bytes = sizeof(in),
				    .in = in,
				    .out = out };
	uint64_t ns;
	int err = run_operation(r, &q, &ns);

	if (err)
		return err;
	r->alone = out[0] == ranks * in[0] && out[1] == ranks * in[1];
	if (r->alone && !r->perf->rank)
		fprintf(stderr, "ha ina-perf: this backend is a loopback: it answers with this "
				"rank's own data (--net=loopback, or one of NETCCL_*_LOOPBACK "
				"is set for it). Times are measured, results are not verified; "
				"start ha-backend on a network to verify them\n");
	if (r->alone)
		wait_for_ranks(r);
	return 0;
}

/* A loopback's results are not those of all ranks. */
static bool is_loopback(const struct run *r)
{
	return r->perf->loopback || r->alone;
}

static bool is_verified(const struct run *r, const struct ina_step *s)
{
	return !is_loopback(r) && ina_values_come(s, r->perf->rank);
}

static void print_step(const struct run *r, const struct ina_step *s, uint64_t ns, size_t wrong)
{
	char verdict[40] = "not verified";

	if (is_verified(r, s))
		snprintf(verdict, sizeof(verdict), "%zu wrong", wrong);
	printf("step %zu: %zu bytes, %.3f ms, %s, at %.6f s\n", r->at, s->bytes, (double)ns / 1e6,
	       verdict, (double)ha_monotonic_ns() / 1e9);
}

static int run_step(struct run *r)
{
	const struct ina_step *s = &r->perf->step[r->at];
	struct ha_ina_request barrier = { .coll = HA_INA_BARRIER };
	struct ha_ina_request q = { .coll = s->coll,
				    .type = s->type,
				    .root = s->root,
				    .bytes = s->bytes,
				    .in = r->in,
				    .out = r->out };
	uint64_t ns = 0;
	size_t wrong = r->wrong;
	int err;

	if (s->coll == HA_INA_BROADCAST && r->perf->rank != s->root)
		q.in = NULL;
	ina_values_fill(s, r->perf->rank, r->perf->ranks, r->in);
	memset(r->out, 0xa5, s->bytes);
	err = run_operation(r, &barrier, &ns);
	if (!err)
		err = run_operation(r, &q, &ns);
	if (err)
		return err;
	if (is_verified(r, s))
		r->wrong += ina_values_wrong(s, r->perf->rank, r->perf->ranks, r->out, &r->worst);
	if (r->at % r->perf->iterations)
		r->ns[r->timed++] = ns;
	if (r->perf->each)
		print_step(r, s, ns, r->wrong - wrong);
	return 0;
}

/* ---- the table ---- */

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* The two last columns. */
static void print_verdict(const struct run *r, const struct ina_step *s)
{
	if (is_verified(r, s))
		printf(" %8zu %8.2f\n", r->wrong, r->worst);
	else
		printf(" %8s %8s\n", "N/A", "N/A");
}

static void print_run(struct run *r)
{
	static const char *const types[] = { "bytes", "int32", "float32" };
	const struct ina_step *s = &r->perf->step[r->at - 1];
	size_t middle;
	double median;

	if (r->perf->rank || !r->timed)
		return;
	qsort(r->ns, r->timed, sizeof(*r->ns), by_size);
	middle = r->timed / 2;
	median = (double)r->ns[middle];
	printf("%-14s %-8s %12zu %12.1f %12.1f %9.3f", name_of(s->coll), types[s->type], s->bytes,
	       median / 1e3, (double)r->ns[0] / 1e3, (double)s->bytes / median);
	print_verdict(r, s);
	fflush(stdout);
}

static int run_steps(struct run *r)
{
	while (r->at < r->perf->steps && !is_stopped()) {
		int err = run_step(r);

		if (err)
			return err;
		r->at++;
		if (r->at % r->perf->iterations == 0) {
			print_run(r);
			r->timed = 0;
			r->worst = 0;
		}
	}
	return 0;
}

/* Whether anything was wrong anywhere. */
static int report_wrong(struct run *r)
{
	int32_t wrong = r->wrong > 1 << 20 ? 1 << 20 : (int32_t)r->wrong;
	struct ha_ina_request q = { .coll = HA_INA_ALL_REDUCE,
				    .type = HA_INA_INT32,
				    .bytes = 4,
				    .in = &wrong,
				    .out = &wrong };
	uint64_t ns;
	int err = run_operation(r, &q, &ns);

	if (!err && !r->perf->rank && is_loopback(r))
		printf("not verified; groups: %u\n", r->incarnation + 1);
	else if (!err && !r->perf->rank)
		printf("wrong: %" PRId32 " elements on all ranks; groups: %u\n", wrong,
		       r->incarnation + 1);
	if (r->wrong)
		fprintf(stderr, "rank %u: %zu elements are wrong\n", r->perf->rank, r->wrong);
	return err;
}

static int run_incarnation(struct run *r)
{
	int err = join_group(r);

	if (!err && !r->incarnation && !r->perf->loopback)
		err = look_for_loopback(r);
	if (!err && r->incarnation)
		err = agree_on_step(r);
	if (!err)
		err = run_steps(r);
	return err || is_stopped() ? err : report_wrong(r);
}

static size_t find_largest(const struct ina_perf *perf)
{
	size_t most = 64;

	for (size_t i = 0; i < perf->steps; i++)
		most = perf->step[i].bytes > most ? perf->step[i].bytes : most;
	return most;
}

/* One incarnation after the other, until all is done or no other would do better. */
static int run_incarnations(struct run *r)
{
	unsigned last = r->perf->incarnation + r->perf->again;
	int err;

	for (;; r->incarnation++) {
		err = r->ns && r->in && r->out ? run_incarnation(r) : -ENOMEM;
		leave_group(r, err);
		if (!err || err == -EINVAL || err == -ENOMEM)
			return err;
		if (is_stopped() || r->incarnation == last)
			return err;
	}
}

int ina_perf_rank(const struct ina_perf *perf)
{
	struct run r = { .perf = perf,
			 .incarnation = perf->incarnation,
			 .at = perf->first,
			 .ns = calloc(perf->iterations, sizeof(*r.ns)) };
	const struct sigaction end = { .sa_handler = on_signal };
	size_t most = find_largest(perf);
	int err;

	sigaction(SIGTERM, &end, NULL);
	sigaction(SIGINT, &end, NULL);
	if (perf->each)
		setvbuf(stdout, NULL, _IOLBF, 0);
	r.in = malloc(most);
	r.out = malloc(most);
	if (!perf->rank)
		printf("%-14s %-8s %12s %12s %12s %9s %8s %8s\n", "collective", "type", "bytes",
		       "median us", "best us", "GB/s", "wrong", "of bound");
	err = run_incarnations(&r);
	ha_ina_close(r.ina);
	free(r.in);
	free(r.out);
	free(r.ns);
	if (r.wrong)
		return 1;
	return err && !is_stopped() ? 3 : 0;
}
