/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/plugin/rma/team.h"

#include "base/check.h"
#include "base/config.h"
#include "plugin/ctx.h"
#include "plugin/failover/protection.h"
#include "softroce/control.h"

#include <sys/mman.h>
#include <unistd.h>

#define SPOILED 0xee
#define FIXED 8192    /* bytes that others get */
#define STEPS 4000000 /* fruitless steps after which a test gives up; see idle_step() */

uint64_t team_random(struct team *t, uint64_t below)
{
	t->random ^= t->random << 13;
	t->random ^= t->random >> 7;
	t->random ^= t->random << 17;
	return t->random % below;
}

static void idle_step(int k)
{
	if (k > 100)
		usleep(k > 10000 ? 100 : 1);
}

static void *map_pages(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

static size_t cells_size(const struct team *t)
{
	return (size_t)t->n * TEAM_CELLS * t->cell;
}

static uint8_t pattern_of(int from, int to, uint64_t k, size_t i)
{
	uint64_t x = (k * 64 + (unsigned)from * 8 + (unsigned)to + 1) * 0x9e3779b97f4a7c15ull + i;

	return (uint8_t)((x ^ x >> 29) * 0xbf58476d1ce4e5b9ull >> 56);
}

/* Different for each put, and known at both ends. */
static size_t put_size(const struct team *t, int from, int to, uint64_t k)
{
	uint64_t x = (k * 64 + (unsigned)from * 8 + (unsigned)to) * 0x94d049bb133111ebull;
	size_t most = x >> 60 ? t->cell / 16 : t->cell;

	return (size_t)((x >> 20) % (most + 1));
}

/* The page behind the other rank's counters says whose it is; nobody writes it. */
static uint8_t fixed_byte_of(int rank, size_t i)
{
	return (uint8_t)(rank * 37 + (int)i * 11 + 5);
}

/* What others write to, or gets do; *memory is where the test reaches it. */
static struct ha_rma_window *register_target(struct team *t, struct ha_rma *rma, size_t size,
					     unsigned flags, void *memory)
{
	uint64_t offset = t->gdr ? t->gdr->used : 0;
	struct ha_rma_window *w;
	uint8_t *at;

	if (t->gdr) {
		at = t->gdr->gpu + offset;
		*(void **)memory = t->gdr->view + offset;
		t->gdr->used += (size + 4095) & ~(size_t)4095;
		CHECK(t->gdr->used <= t->gdr->size);
	} else {
		at = *(void **)memory = map_pages(size);
	}
	CHECK_INT(ha_rma_register(rma, at, size, t->memory, offset, t->gdr ? t->gdr->fd : -1, flags,
				  &w),
		  0);
	return w;
}

static void register_all(struct team *t, struct team_rank *r)
{
	size_t size = cells_size(t);

	/* Flushes read the first byte of the first window: no counter, to which others may add at
	 * that moment. */
	(void)register_target(t, r->rma, 4096, 0, &r->flushed_memory);
	r->source_memory = map_pages(size);
	r->counters = register_target(t, r->rma, 4096 + FIXED, 1, &r->counter_memory);
	r->gotten = register_target(t, r->rma, TEAM_RANKS * FIXED, 0, &r->gotten_memory);
	r->cells = register_target(t, r->rma, size, 0, &r->cell_memory);
	memset(r->cell_memory, SPOILED, size);
	for (size_t i = 0; i < FIXED; i++)
		((uint8_t *)r->counter_memory)[4096 + i] = fixed_byte_of((int)(r - t->rank), i);
	CHECK_INT(ha_rma_register(r->rma, r->source_memory, size, HA_MEM_HOST, 0, -1, 0,
				  &r->sources),
		  0);
}

static void open_all(struct team *t)
{
	static struct ha_config config;
	struct ha_ctx_params params = { .config = &config };
	static uint8_t handle[TEAM_RANKS][HA_HANDLE_MAX];
	const void *handles[TEAM_RANKS];

	ha_config_load_env(&config);
	CHECK_INT(ha_ctx_create(&params, &t->ctx), 0);
	for (int i = 0; i < t->n; i++) {
		CHECK_INT(ha_rma_listen(t->ctx, 0, NULL, handle[i], &t->rank[i].listen), 0);
		handles[i] = handle[i];
	}
	for (int i = 0; i < t->n; i++) {
		struct team_rank *r = &t->rank[i];

		CHECK_INT(ha_rma_connect(r->listen, handles, t->n, i, &r->rma), 0);
		ha_rma_close_listen(r->listen); /* NCCL does so at once */
		register_all(t, r);
	}
}

void team_open(struct team *t, int ranks, size_t cell, int memory, uint64_t seed)
{
	memset(t, 0, sizeof(*t));
	t->n = ranks;
	t->cell = cell;
	t->memory = memory;
	t->random = seed * 0x9e3779b97f4a7c15ull | 1;
	open_all(t);
}

void team_open_gdr(struct team *t, int ranks, size_t cell, struct fake_gdr *gdr, uint64_t seed)
{
	memset(t, 0, sizeof(*t));
	t->n = ranks;
	t->cell = cell;
	t->memory = HA_MEM_CUDA;
	t->gdr = gdr;
	t->random = seed * 0x9e3779b97f4a7c15ull | 1;
	open_all(t);
}

static void set_faults(struct sr_faults *faults, void *arg)
{
	*faults = *(const struct sr_faults *)arg;
}

static void inject_faults(const char *nic, struct sr_faults faults)
{
	struct sr_control_entry *entry;
	char selector[64];
	int n;

	snprintf(selector, sizeof(selector), "%s:%d", nic, (int)getpid());
	entry = sr_control_list(selector, &n);
	CHECK_INT(n, 1);
	CHECK_INT(sr_control_change(entry, set_faults, &faults), 0);
	free(entry);
}

void team_cut(int nic, bool is_cut)
{
	char name[16];

	snprintf(name, sizeof(name), "soft%d", nic);
	inject_faults(name, (struct sr_faults) { .cut = is_cut });
}

void team_kill(const char *nic)
{
	inject_faults(nic, (struct sr_faults) { .kill = 1 });
}

void team_restore(const char *nic, const char *name)
{
	struct sr_faults faults = { .kill = 1, .restore = 1 };

	snprintf(faults.restore_as, sizeof(faults.restore_as), "%s", name);
	inject_faults(nic, faults);
}

static bool are_protected(struct team *t, bool wanted)
{
	bool all = true;
	const struct ha_bundle *b;

	pthread_mutex_lock(&t->ctx->drive);
	LIST_FOREACH(b, &t->ctx->bundles, entry)
		all &= (ha_protection(b, b->active) == HA_AGAINST_NIC) == wanted;
	pthread_mutex_unlock(&t->ctx->drive);
	return all;
}

void team_await_protection(struct team *t, bool all)
{
	for (int k = 0; !are_protected(t, all); k++) {
		CHECK(k < STEPS);
		team_begin(t);
		team_step(t);
		idle_step(k);
	}
}

/* ---- beginning ---- */

static uint8_t *cell_of(const struct team *t, uint8_t *memory, int from, uint64_t k)
{
	return memory + ((size_t)from * TEAM_CELLS + k % TEAM_CELLS) * t->cell;
}

static void add_in_flight(struct team_stream *s, struct ha_rma_op *op, uint8_t *source, size_t size,
			  const uint8_t *expected)
{
	CHECK(op);
	CHECK(s->n < TEAM_INFLIGHT);
	s->flight[s->n].op = op;
	s->flight[s->n].source = source;
	s->flight[s->n].expected = expected;
	s->flight[s->n++].size = size;
}

static void signal_with(struct team *t, int from, int to, struct ha_rma_put *put)
{
	struct team_rank *r = &t->rank[from];
	struct team_stream *s = &r->to[to];

	put->signals = r->counters;
	put->signal_offset = (uint64_t)from * 8;
	put->signal = HA_RMA_INC;
	s->cover[s->signals++ % (4 * TEAM_CELLS)] = s->covered = s->begun;
}

/* Onto one counter, from all. */
static void begin_sum(struct team *t, int from, int to)
{
	struct team_rank *r = &t->rank[from];
	uint64_t value = team_random(t, 1u << 20);
	struct ha_rma_put put = { .rank = to,
				  .signal = HA_RMA_ADD,
				  .value = value,
				  .signals = r->counters,
				  .signal_offset = 8 * TEAM_RANKS };
	struct ha_rma_op *op;

	r->to[to].added += value;
	CHECK_INT(ha_rma_put(r->rma, &put, &op), 0);
	add_in_flight(&r->to[to], op, NULL, 0, NULL);
}

static void begin_get(struct team *t, int from, int to)
{
	struct team_rank *r = &t->rank[from];
	struct team_stream *s = &r->to[to];
	size_t size = team_random(t, FIXED), at = team_random(t, FIXED - size);
	struct ha_rma_put get = {
		.rank = to,
		.size = size,
		.target = r->counters,
		.target_offset = 4096 + at,
		.source = r->gotten,
		.source_offset = (uint64_t)to * FIXED,
	};
	struct ha_rma_op *op;

	if (s->getting)
		return;
	s->getting = true;
	memset(r->gotten_memory + to * FIXED, SPOILED, FIXED);
	CHECK_INT(ha_rma_get(r->rma, &get, &op), 0);
	add_in_flight(s, op, NULL, size, r->gotten_memory + to * FIXED);
	s->flight[s->n - 1].at = at;
}

static void check_gotten(struct team_stream *s, unsigned i, int to)
{
	s->getting = false;
	for (size_t k = 0; k < FIXED; k++)
		CHECK_INT(s->flight[i].expected[k],
			  k < s->flight[i].size ? fixed_byte_of(to, s->flight[i].at + k) : SPOILED);
}

static void begin_put(struct team *t, int from, int to)
{
	struct team_rank *r = &t->rank[from];
	struct team_stream *s = &r->to[to];
	uint64_t k = s->begun++;
	size_t size = put_size(t, from, to, k);
	uint8_t *source = cell_of(t, r->source_memory, to, k);
	struct ha_rma_put put = {
		.rank = to,
		.size = size,
		.source = r->sources,
		.source_offset = (uint64_t)(source - r->source_memory),
		.target = r->cells,
		.target_offset = ((uint64_t)from * TEAM_CELLS + k % TEAM_CELLS) * t->cell,
	};
	struct ha_rma_op *op;

	for (size_t i = 0; i < size; i++)
		source[i] = pattern_of(from, to, k, i);
	if (team_random(t, 3))
		signal_with(t, from, to, &put);
	CHECK_INT(ha_rma_put(r->rma, &put, &op), 0);
	add_in_flight(s, op, source, size, NULL);
}

static void begin_signal(struct team *t, int from, int to)
{
	struct ha_rma_put put = { .rank = to };
	struct ha_rma_op *op;

	signal_with(t, from, to, &put);
	CHECK_INT(ha_rma_put(t->rank[from].rma, &put, &op), 0);
	add_in_flight(&t->rank[from].to[to], op, NULL, 0, NULL);
}

/*
 * A cell is written again when its last put was looked at for the second time; a source when its
 * last put is done.
 */
static bool cell_free(const struct team_stream *s)
{
	return s->begun < s->looked + TEAM_CELLS && s->n < TEAM_INFLIGHT / 2;
}

void team_begin(struct team *t)
{
	int from = (int)team_random(t, (uint64_t)t->n), to = (int)team_random(t, (uint64_t)t->n);
	struct team_stream *s = &t->rank[from].to[to];

	if (s->n == TEAM_INFLIGHT || s->signals - s->seen > 3 * TEAM_CELLS)
		return;
	switch (team_random(t, 12)) {
	case 0:
		begin_sum(t, from, to);
		break;
	case 1:
		begin_get(t, from, to);
		break;
	case 2:
		begin_signal(t, from, to);
		break;
	default:
		if (cell_free(s))
			begin_put(t, from, to);
		else if (s->covered < s->begun)
			begin_signal(t, from, to);
	}
}

/* ---- looking ---- */

static void check_cell(struct team *t, int from, int to, uint64_t k)
{
	uint8_t *cell = cell_of(t, t->rank[to].cell_memory, from, k);
	size_t size = put_size(t, from, to, k);

	for (size_t i = 0; i < t->cell; i++) {
		uint8_t want = i < size ? pattern_of(from, to, k, i) : SPOILED;

		if (cell[i] == want)
			continue;
		fprintf(stderr,
			"put %llu of rank %d to rank %d: byte %zu of %zu is %02x, not %02x\n",
			(unsigned long long)k, from, to, i, size, cell[i], want);
		exit(1);
	}
	memset(cell, SPOILED, size);
}

static void check_spoiled(struct team *t, int from, int to, uint64_t k)
{
	const uint8_t *cell = cell_of(t, t->rank[to].cell_memory, from, k);

	for (size_t i = 0; i < t->cell; i++)
		if (cell[i] != SPOILED) {
			fprintf(stderr,
				"put %llu of rank %d to rank %d: byte %zu was written after its "
				"signal\n",
				(unsigned long long)k, from, to, i);
			exit(1);
		}
}

static uint64_t read_counter(const struct team *t, int at, int which)
{
	return __atomic_load_n(&t->rank[at].counter_memory[which], __ATOMIC_ACQUIRE);
}

static void check_stream(struct team *t, int from, int to, bool all)
{
	struct team_stream *s = &t->rank[from].to[to];
	uint64_t count = read_counter(t, to, from);

	CHECK(count >= s->seen);
	CHECK(count <= s->signals); /* never ahead, never twice */
	s->seen = count;
	while (count && s->consumed < s->cover[(count - 1) % (4 * TEAM_CELLS)])
		check_cell(t, from, to, s->consumed++);
	while (s->looked + (all ? 0 : TEAM_CELLS / 2) < s->consumed)
		check_spoiled(t, from, to, s->looked++);
}

static void look_at_sum(struct team *t, int at, bool all)
{
	uint64_t most = 0, is = read_counter(t, at, TEAM_RANKS);

	for (int from = 0; from < t->n; from++)
		most += t->rank[from].to[at].added;
	CHECK(is <= most);
	if (all)
		CHECK_INT(is, most);
}

static void test_all(struct team_rank *r, struct team_stream *s, int to)
{
	for (unsigned i = 0; i < s->n; i++) {
		int done, err = ha_rma_test(r->rma, s->flight[i].op, &done);

		CHECK_INT(err, 0);
		if (!done)
			continue;
		if (s->flight[i].expected)
			check_gotten(s, i, to);
		if (s->flight[i].source)
			memset(s->flight[i].source, 0x11, s->flight[i].size);
		s->flight[i--] = s->flight[--s->n];
		s->finished++;
	}
}

void team_step(struct team *t)
{
	for (int i = 0; i < t->n; i++) {
		CHECK_INT(ha_rma_progress(t->rank[i].rma), 0);
		for (int k = 0; k < t->n; k++) {
			test_all(&t->rank[i], &t->rank[i].to[k], k);
			check_stream(t, i, k, false);
		}
		look_at_sum(t, i, false);
	}
}

static bool is_settled(const struct team *t)
{
	for (int i = 0; i < t->n; i++)
		for (int k = 0; k < t->n; k++)
			if (t->rank[i].to[k].n || t->rank[i].to[k].seen < t->rank[i].to[k].signals)
				return false;
	return true;
}

void team_finish(struct team *t)
{
	int k = 0;

	for (int i = 0; i < t->n; i++)
		for (int j = 0; j < t->n; j++) {
			while (t->rank[i].to[j].n == TEAM_INFLIGHT)
				team_step(t);
			begin_signal(t, i, j);
		}
	while (!is_settled(t)) {
		team_step(t);
		CHECK(k < STEPS);
		idle_step(k++);
	}
	for (int i = 0; i < t->n; i++) {
		for (int j = 0; j < t->n; j++) {
			check_stream(t, i, j, true);
			CHECK_INT(t->rank[i].to[j].looked, t->rank[i].to[j].begun);
		}
		look_at_sum(t, i, true);
	}
}

static uint64_t all_puts(const struct team *t)
{
	uint64_t n = 0;

	for (int i = 0; i < t->n; i++)
		for (int k = 0; k < t->n; k++)
			n += t->rank[i].to[k].consumed;
	return n;
}

void team_flow(struct team *t, unsigned puts)
{
	uint64_t end = all_puts(t) + puts, at = 0;

	for (int k = 0; all_puts(t) < end; k++) {
		for (int i = 0; i < 8; i++)
			team_begin(t);
		team_step(t);
		if (all_puts(t) != at)
			k = 0;
		at = all_puts(t);
		CHECK(k < STEPS);
		idle_step(k);
	}
}

void team_close(struct team *t)
{
	for (int i = 0; i < t->n; i++) {
		CHECK_INT(ha_rma_deregister(t->rank[i].rma, t->rank[i].sources), 0);
		ha_rma_close(t->rank[i].rma);
	}
	ha_ctx_destroy(t->ctx);
}
