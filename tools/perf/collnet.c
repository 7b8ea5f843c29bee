/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * collnet.c - `ha perf collnet`: drives a collnet table as the proxy of NCCL 2.30.7 does
 * (src/transport/coll_net.cc)
 *
 * One region of host memory, registered twice, holds a sending and a receiving half of `steps`
 * slots each. A slot is filled (the GPU kernel's part), posted in order, tested in order, flushed,
 * emptied; what was not taken is posted again in the next pass.
 *
 * Every element of every iteration is compared with the sum in float64. It may differ by what a
 * switch with block exponents and what a ring of float32 additions may lose (docs/ina.md), and it
 * must have the same bits in all ranks.
 */
#include "tools/perf/collnet.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/rng.h"
#include "tools/job/cues.h"
#include "tools/job/failure.h"
#include "tools/job/fault.h"
#include "tools/job/interrupt.h"
#include "tools/job/rendezvous.h"
#include "tools/perf/collnet_table.h"
#include "tools/perf/logger.h"
#include "tools/perf/options.h"

#define STEPS_MAX 64
#define BUFFER (4UL << 20) /* NCCL's default NCCL_BUFFSIZE */
#define SETS 3             /* of data, in turn: the last iteration's result is no right one */
#define LOOK_NS 5000000
#define NS 1000000000.0

struct set {
	float *in;
	double *sum;
	float *bound;
};

struct drive {
	const struct perf_options *options;
	const struct ha_place *place;
	struct ha_rendezvous *rendezvous;
	struct ha_plugin plugin;
	struct ha_collnet_table table;
	void *comm, *send_mhandle, *recv_mhandle;
	char *region;
	size_t slot;
	int steps;
	size_t count; /* words of an operation */
	struct set set[SETS];
	float *out;
	uint64_t digest, wrong, verified;
	int64_t looked, moved;
};

/* ---- data ---- */

/* Of all sizes from 2^-12 to 2^4, like gradients. */
static float value_of(uint64_t seed, int set, int rank, size_t i)
{
	uint64_t x = ha_mix64(seed * 1000003 + (uint64_t)set * 101 + (uint64_t)rank * 7919 +
			      i * 0x9e3779b97f4a7c15ull);

	return (float)(int32_t)(uint32_t)x * 0x1p-31f * (float)(1 << (x >> 40) % 17) * 0x1p-12f;
}

#define NEAR 63 /* words on either side that may share a word's block */
#define WINDOW (2 * NEAR + 1)

/* fmaxf() is a call, for the sake of NaN, which no magnitude is. */
static float take_larger(float a, float b)
{
	return a > b ? a : b;
}

/* near[i]: the largest of most[] within NEAR words of i. Of any WINDOW words in a row, the first
 * ones end a stretch of as many, and the others begin the next: each stretch is gone through once
 * from either end. */
static void find_largest(const float *most, size_t n, float *near)
{
	float largest = 0;

	for (size_t i = n; i-- > 0;) {
		largest = i % WINDOW == WINDOW - 1 ? most[i] : take_larger(largest, most[i]);
		near[i] = largest; /* to the end of the stretch */
	}
	for (size_t i = n; i-- > 0;)
		near[i] = i >= NEAR ? near[i - NEAR] : 0;
	for (size_t k = 0; k < n + NEAR; k++) {
		float here = k < n ? most[k] : 0;

		largest = k % WINDOW ? take_larger(largest, here) : here;
		if (k >= NEAR)
			near[k - NEAR] = take_larger(near[k - NEAR], largest);
	}
}

/*
 * A block is of 64 words, but where it begins is the backend's to choose: the largest within 63
 * words on either side bounds it. A rank's word is off by 2^-(31-h) of its block's largest at most,
 * aligning costs as much again; h = log2 of the ranks, rounded up. most[] has each word's largest
 * of all ranks, size[] the sum of the magnitudes.
 */
static void bounds_make(struct drive *d, struct set *set, const float *most, const double *size)
{
	int ranks = d->place->ranks, h = 0;
	double of_block, of_word = ranks * 0x1p-24;

	while (1 << h < ranks)
		h++;
	of_block = 2.0 * ranks * ldexp(1.0, h - 31);
	find_largest(most, d->count, set->bound);
	for (size_t i = 0; i < d->count; i++)
		set->bound[i] = (float)(of_block * (double)set->bound[i] + of_word * size[i]);
}

/* Set s: this rank's values and the sum of all ranks' with its bound. */
static int set_make(struct drive *d, int s)
{
	struct set *set = &d->set[s];
	size_t n = d->count;
	float *most = calloc(n + 1, sizeof(*most));
	double *size = calloc(n + 1, sizeof(*size));
	int err = 0;

	set->in = calloc(n + 1, sizeof(*set->in));
	set->sum = calloc(n + 1, sizeof(*set->sum));
	set->bound = calloc(n + 1, sizeof(*set->bound));
	if (!most || !size || !set->in || !set->sum || !set->bound) {
		err = ha_fault(-ENOMEM, "out of memory");
		goto out;
	}
	for (int r = 0; r < d->place->ranks; r++) {
		for (size_t i = 0; i < n; i++) {
			float x = value_of(d->options->run.seed, s, r, i);

			set->sum[i] += (double)x;
			size[i] += fabs((double)x);
			most[i] = fabsf(x) > most[i] ? fabsf(x) : most[i];
			if (r == d->place->rank)
				set->in[i] = x;
		}
	}
	bounds_make(d, set, most, size);
out:
	free(most);
	free(size);
	return err;
}

static void sets_free(struct drive *d)
{
	for (int s = 0; s < SETS; s++) {
		free(d->set[s].in);
		free(d->set[s].sum);
		free(d->set[s].bound);
		d->set[s] = (struct set) { 0 };
	}
	free(d->out);
	d->out = NULL;
}

static void verify_result(struct drive *d, int s)
{
	const struct set *set = &d->set[s];
	uint64_t digest = d->digest;

	for (size_t i = 0; i < d->count; i++) {
		uint32_t bits;

		/* NaN is wrong */
		d->wrong += !(fabs((double)d->out[i] - set->sum[i]) <= (double)set->bound[i]);
		memcpy(&bits, &d->out[i], sizeof(bits));
		digest = (digest ^ bits) * 0x100000001b3ull;
	}
	d->digest = digest;
	d->verified++;
}

/* ---- as the proxy ---- */

static int look_around(struct drive *d)
{
	int64_t now = ha_monotonic_ns();
	int err = 0;

	sched_yield();
	if (now - d->looked < LOOK_NS)
		return 0;
	d->looked = now;
	err = ha_rendezvous_poll(d->rendezvous);
	if (!err && now - d->moved > (int64_t)d->options->run.launch.timeout_s * 1000000000)
		err = ha_fault(-ETIMEDOUT, "nothing has moved for %d s",
			       d->options->run.launch.timeout_s);
	return err;
}

static size_t step_bytes(const struct drive *d, size_t k)
{
	size_t rest = d->count * sizeof(float) - k * d->slot;

	return rest < d->slot ? rest : d->slot;
}

static int post_step(struct drive *d, size_t k, void **request)
{
	char *send = d->region + (k % (size_t)d->steps) * d->slot,
	     *recv = send + (size_t)d->steps * d->slot;

	return ha_collnet_table_check(
		&d->table,
		ha_collnet_table_iallreduce(&d->table, d->comm, send, recv,
					    (long)(step_bytes(d, k) / sizeof(float)), ncclFloat32,
					    ncclSum, d->send_mhandle, d->recv_mhandle, request),
		"iallreduce");
}

static int flush_step(struct drive *d, size_t k, void **request)
{
	char *recv = d->region + ((size_t)d->steps + k % (size_t)d->steps) * d->slot;

	return ha_collnet_table_check(&d->table,
				      ha_collnet_table_iflush(&d->table, d->comm, recv,
							      (int)step_bytes(d, k),
							      d->recv_mhandle, request),
				      "iflush");
}

static int test_request(struct drive *d, void *request, int *done)
{
	int size = -1;

	*done = 1;
	if (!request)
		return 0;
	*done = 0;
	return ha_collnet_table_check(
		&d->table, ha_collnet_table_test(&d->table, request, done, &size), "test");
}

/* One all-reduce on its way: how many segments have come how far, and what is asked for them. */
struct pipeline {
	size_t filled, sent, done, flushing, emptied;
	void *request[STEPS_MAX], *flushes[STEPS_MAX];
};

/* The sum of all, which grows with each step forward. */
static size_t find_progress(const struct pipeline *p)
{
	return p->filled + p->sent + p->done + p->flushing + p->emptied;
}

/* Into the region, and out to the others. */
static int send_next(struct drive *d, struct pipeline *p, const float *in, size_t n)
{
	size_t steps = (size_t)d->steps;
	int err = 0;

	if (p->filled < n && p->filled < p->emptied + steps) {
		memcpy(d->region + p->filled % steps * d->slot,
		       (const char *)in + p->filled * d->slot, step_bytes(d, p->filled));
		p->filled++;
	}
	if (p->sent < p->filled) {
		err = post_step(d, p->sent, &p->request[p->sent % steps]);
		p->sent += p->request[p->sent % steps] != NULL;
	}
	return err;
}

/* What has come is flushed, and read when that is done. */
static int take_next(struct drive *d, struct pipeline *p)
{
	size_t steps = (size_t)d->steps;
	int err = 0, ended;

	if (p->done < p->sent) {
		err = test_request(d, p->request[p->done % steps], &ended);
		if (!err && ended)
			p->request[p->done++ % steps] = NULL;
	}
	if (!err && p->flushing < p->done) {
		err = flush_step(d, p->flushing, &p->flushes[p->flushing % steps]);
		p->flushing++;
	}
	if (err || p->emptied == p->flushing)
		return err;
	err = test_request(d, p->flushes[p->emptied % steps], &ended);
	if (!err && ended) {
		memcpy((char *)d->out + p->emptied * d->slot,
		       d->region + (steps + p->emptied % steps) * d->slot,
		       step_bytes(d, p->emptied));
		p->flushes[p->emptied++ % steps] = NULL;
	}
	return err;
}

static int run_pipeline(struct drive *d, const float *in)
{
	size_t n = (d->count * sizeof(float) + d->slot - 1) / d->slot;
	struct pipeline p = { 0 };
	int err = 0;

	while (p.emptied < n && !err) {
		size_t before = find_progress(&p);

		err = send_next(d, &p, in, n);
		if (!err)
			err = take_next(d, &p);
		if (find_progress(&p) != before)
			d->moved = ha_monotonic_ns();
		else if (!err)
			err = look_around(d);
	}
	return err;
}

static int run_iteration(struct drive *d, uint64_t i, bool check, double *us)
{
	int64_t begin;
	int err;

	if (check)
		memset(d->out, 0xff, d->count * sizeof(float));
	d->moved = begin = ha_monotonic_ns();
	err = run_pipeline(d, d->set[i % SETS].in);
	if (us)
		*us = (double)(ha_monotonic_ns() - begin) / 1000;
	if (!err && check)
		verify_result(d, (int)(i % SETS));
	return err;
}

/* ---- connecting ---- */

static int comm_connect(struct drive *d)
{
	const struct ha_place *p = d->place;
	char mine[NCCL_NET_HANDLE_MAXSIZE] = { 0 }, *all = calloc((size_t)p->ranks, sizeof(mine));
	void **handles = calloc((size_t)p->ranks, sizeof(*handles)), *listen = NULL;
	int dev = d->options->dev >= 0 ? d->options->dev : p->local_rank % d->table.devices;
	int err = all && handles ? 0 : ha_fault(-ENOMEM, "out of memory");

	if (!err)
		err = ha_collnet_table_check(&d->table,
					     ha_collnet_table_listen(&d->table, dev, mine, &listen),
					     "listen");
	if (!err)
		err = ha_rendezvous_allgather(d->rendezvous, mine, sizeof(mine), all);
	for (int r = 0; r < p->ranks && !err; r++)
		handles[r] = all + (size_t)r * sizeof(mine);
	if (!err)
		err = ha_collnet_table_check(&d->table,
					     ha_collnet_table_connect(&d->table, handles, p->ranks,
								      p->rank, listen, &d->comm),
					     "connect");
	if (!err && !d->comm)
		err = ha_fault(-EIO, "connect gave no communicator");
	if (!err)
		err = ha_collnet_table_check(
			&d->table, ha_collnet_table_close_listen(&d->table, listen), "closeListen");
	free(all);
	free(handles);
	return err;
}

static int region_make(struct drive *d)
{
	size_t bytes = 2 * (size_t)d->steps * d->slot;
	int err;

	d->region = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
	if (!d->region)
		return ha_fault(-ENOMEM, "out of memory");
	err = ha_collnet_table_check(&d->table,
				     ha_collnet_table_reg(&d->table, d->comm, d->region, bytes,
							  NCCL_PTR_HOST, &d->send_mhandle),
				     "regMr");
	if (!err)
		err = ha_collnet_table_check(&d->table,
					     ha_collnet_table_reg(&d->table, d->comm, d->region,
								  bytes, NCCL_PTR_HOST,
								  &d->recv_mhandle),
					     "regMr");
	return err;
}

static int drive_open(struct drive *d)
{
	const struct perf_options *o = d->options;
	/* NCCL posts 8 channels as one */
	int channels = o->channels < 8 ? o->channels : 8, supported = 0, ptr_support = 0;
	int err = ha_plugin_open(&d->plugin, o->plugin, o->net_version, 1);

	if (!err)
		err = ha_collnet_table_open(&d->table, &d->plugin, o->net_version, ha_logger_print);
	d->steps = o->steps;
	d->slot = (o->buffer_bytes ? o->buffer_bytes : BUFFER) / (size_t)o->steps / 64 * 64 *
		  (size_t)channels;
	if (!err)
		err = ha_collnet_table_check(
			&d->table,
			ha_collnet_table_max_bytes(&d->table, 0, &d->table.max_bytes, &ptr_support),
			"getProperties");
	if (!err && d->slot > d->table.max_bytes)
		d->slot = d->table.max_bytes / 64 * 64;
	if (!err)
		err = ha_collnet_table_check(&d->table,
					     ha_collnet_table_support(&d->table, ncclFloat32,
								      ncclSum, &supported),
					     "reduceSupport");
	if (!err && (!supported || !(ptr_support & NCCL_PTR_HOST)))
		err = ha_fault(-ENOTSUP, "plugin '%s' has no collnet for float sums in host memory",
			       d->table.name);
	if (!err)
		err = comm_connect(d);
	if (!err)
		err = region_make(d);
	return err;
}

static int drive_close(struct drive *d)
{
	int err = ha_collnet_table_check(
		&d->table, ha_collnet_table_dereg(&d->table, d->comm, d->send_mhandle), "deregMr");

	if (!err)
		err = ha_collnet_table_check(
			&d->table, ha_collnet_table_dereg(&d->table, d->comm, d->recv_mhandle),
			"deregMr");
	if (!err)
		err = ha_collnet_table_check(
			&d->table, ha_collnet_table_close_coll(&d->table, d->comm), "closeColl");
	/* NCCL finalizes the net table first. */
	if (!err && d->plugin.abi->finalize)
		err = ha_plugin_check(&d->plugin, d->plugin.abi->finalize(&d->plugin), "finalize");
	d->plugin.initialized = false;
	if (!err)
		err = ha_collnet_table_close(&d->table);
	if (!err)
		err = ha_plugin_close(&d->plugin);
	free(d->region);
	return err;
}

/* ---- sizes ---- */

struct result {
	uint64_t iterations, wrong, verified, digest;
	double us, longest; /* of all iterations; of one */
};

/* Every few iterations rank 0 says whether there are more; all[] has room for each rank's answer.
 */
static int ask_for_more(struct drive *d, int64_t begin, uint64_t *all, uint64_t *more)
{
	int64_t duration_ns = d->options->run.duration_ns;
	int err;

	*more = 0;
	if (!duration_ns)
		return 0;
	*more = ha_monotonic_ns() - begin < duration_ns && !ha_interrupted();
	err = ha_rendezvous_allgather(d->rendezvous, more, sizeof(*more), all);
	*more = all[0];
	return err;
}

/* By number, or for a time. */
static int measure_iterations(struct drive *d, struct result *r)
{
	const struct perf_options *o = d->options;
	int64_t begin = ha_monotonic_ns();
	bool check = o->run.check_all || o->run.duration_ns;
	uint64_t more = o->run.duration_ns ? 1 : (uint64_t)o->run.iters,
		 *all = calloc((size_t)d->place->ranks, sizeof(*all));
	int err = all ? ha_rendezvous_barrier(d->rendezvous) : ha_fault(-ENOMEM, "out of memory");

	if (!err && !d->place->rank && o->run.duration_ns)
		ha_cues_start(d->place->cues, begin);
	while (more && !err) {
		for (uint64_t i = 0; i < more && !err; i++) {
			double us = 0;

			err = run_iteration(d, r->iterations++, check, &us);
			r->us += us;
			r->longest = us > r->longest ? us : r->longest;
		}
		if (!err)
			err = ask_for_more(d, begin, all, &more);
	}
	free(all);
	return err;
}

/* Warms up, measures and checks; *mine gets what this rank saw. */
static int sets_run(struct drive *d, struct result *mine)
{
	const struct perf_options *o = d->options;
	int err = 0;

	for (int s = 0; s < SETS && !err; s++)
		err = set_make(d, s);
	for (int i = 0; i < o->run.warmup && !err; i++)
		err = run_iteration(d, (uint64_t)i, false, NULL);
	if (!err)
		err = measure_iterations(d, mine);
	for (int i = 0; i < o->run.checks && !err; i++)
		err = run_iteration(d, (uint64_t)i, true, NULL);
	mine->wrong = d->wrong;
	mine->verified = d->verified;
	mine->digest = d->digest;
	return err;
}

/* Of all ranks: us is the mean of an iteration, longest the longest of any. */
static int results_join(const struct drive *d, const struct result *all, struct result *joined)
{
	int err = 0;

	for (int r = 0; r < d->place->ranks && !err; r++) {
		joined->us += all[r].us / (double)(all[r].iterations ? all[r].iterations : 1) /
			      d->place->ranks;
		joined->longest =
			all[r].longest > joined->longest ? all[r].longest : joined->longest;
		joined->verified += all[r].verified;
		joined->wrong += all[r].wrong;
		if (all[r].digest != all[0].digest)
			err = ha_fault(
				-EBADMSG,
				"rank %d has other bits than rank 0 in an operation of %zu bytes",
				r, d->count * sizeof(float));
	}
	return err;
}

static void row_print(const struct drive *d, const struct result *joined, uint64_t iterations)
{
	size_t bytes = d->count * sizeof(float);
	double gbs = joined->us > 0 ? (double)bytes / joined->us / 1000 : 0;

	printf("%12zu %12zu %10.1f %9.3f %9.3f %10.1f %10llu %10llu %8llu\n", bytes, d->count,
	       joined->us, gbs, gbs * 2 * (d->place->ranks - 1) / d->place->ranks,
	       joined->longest / 1000, (unsigned long long)iterations,
	       (unsigned long long)joined->verified, (unsigned long long)joined->wrong);
	fflush(stdout);
}

static int size_run(struct drive *d, size_t bytes)
{
	struct result mine = { 0 }, joined = { 0 },
		      *all = calloc((size_t)d->place->ranks, sizeof(*all));
	int err = all ? 0 : ha_fault(-ENOMEM, "out of memory");

	d->count = bytes / sizeof(float);
	d->digest = 0xcbf29ce484222325ull;
	d->wrong = d->verified = 0;
	d->out = calloc(d->count + 1, sizeof(float));
	if (!err)
		err = sets_run(d, &mine);
	if (!err)
		err = ha_rendezvous_allgather(d->rendezvous, &mine, sizeof(mine), all);
	if (!err)
		err = results_join(d, all, &joined);
	if (!err && !d->place->rank)
		row_print(d, &joined, mine.iterations);
	d->wrong = joined.wrong;
	sets_free(d);
	free(all);
	return err;
}

static void print_header(const struct drive *d)
{
	printf("# plugin: %s, collnet v%d, %s, %d device%s\n", d->table.name, d->table.version,
	       d->plugin.path, d->table.devices, d->table.devices == 1 ? "" : "s");
	printf("# %d ranks, %d slots of %zu bytes, float, sum; every element within the error of "
	       "block exponents (docs/ina.md), the same bits in all ranks\n",
	       d->place->ranks, d->steps, d->slot);
	printf("%12s %12s %10s %9s %9s %10s %10s %10s %8s\n", "# bytes", "count", "time us",
	       "algbw", "busbw", "longest ms", "iterations", "verified", "#wrong");
	fflush(stdout);
}

static int drive_all(struct drive *d, uint64_t *wrong)
{
	const struct perf_options *o = d->options;
	int err = drive_open(d);

	if (!err && !d->place->rank)
		print_header(d);
	for (size_t b = o->run.min_bytes; b <= o->run.max_bytes && !err;) {
		size_t next = o->run.step_bytes ? b + o->run.step_bytes
						: (size_t)((double)b * o->run.step_factor);

		err = size_run(d, b < sizeof(float) ? sizeof(float) : b);
		*wrong += d->wrong;
		b = next > b ? next : b + sizeof(float);
	}
	if (!err)
		err = ha_rendezvous_barrier(d->rendezvous);
	if (!err)
		err = drive_close(d);
	if (!err)
		err = ha_rendezvous_barrier(d->rendezvous);
	if (!err && !d->place->rank)
		printf("# Out of bounds values : %llu %s\n", (unsigned long long)*wrong,
		       *wrong ? "FAILED" : "OK");
	return err;
}

enum ha_exit ha_collnet_rank(const void *context, const struct ha_place *place)
{
	const struct perf_options *options = context;
	struct drive d = { .options = options, .place = place };
	enum ha_exit status;
	uint64_t wrong = 0;
	int err;

	ha_logger_open(place->rank);
	if (options->run.duration_ns)
		ha_interrupt_take(place);
	err = ha_rendezvous_open(&d.rendezvous, place, options->run.launch.timeout_s);
	if (!err)
		err = drive_all(&d, &wrong);
	status = wrong ? HA_EXIT_WRONG : HA_EXIT_OK;
	if (err) { /* the plugin may be in any state */
		status = ha_failure_report(d.rendezvous, place, options->run.launch.program);
		fflush(NULL);
		_exit(place->forked ? status : HA_EXIT_WRONG);
	}
	ha_rendezvous_close(d.rendezvous);
	return status;
}
