/* SPDX-License-Identifier: BSD-3-Clause */
/* The allocator against a map of who has which slot: it finds a block exactly when there is one. */
#include "ina/controller/buddy.h"

#include "base/check.h"

#define RANGES 512

static uint32_t dice_state;

static uint32_t draw_random(uint32_t n)
{
	dice_state = dice_state * 1664525u + 1013904223u;
	return (uint32_t)((uint64_t)(dice_state >> 4) * n >> 28);
}

static uint8_t map[HA_BUDDY_SLOTS];

static bool map_free(uint32_t base, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		if (map[base + i])
			return false;
	return true;
}

static void map_set(uint32_t base, uint32_t len, uint32_t slots, uint8_t to)
{
	for (uint32_t i = base; i < base + len && i < slots; i++)
		map[i] = to;
}

static uint32_t map_longest(uint32_t slots)
{
	for (uint32_t len = HA_BUDDY_LONGEST; len >= HA_BUDDY_UNIT; len /= 2)
		for (uint32_t base = 0; base + len <= slots; base += len)
			if (map_free(base, len))
				return len;
	return 0;
}

struct given {
	struct {
		uint32_t base, len;
	} range[RANGES];
	uint32_t n;
};

static void range_add(struct given *g, uint32_t base, uint32_t len, uint32_t slots)
{
	g->range[g->n].base = base;
	g->range[g->n++].len = len;
	map_set(base, len, slots, 1);
}

static void give_one(struct ha_buddy *b, struct given *g, uint32_t slots)
{
	uint32_t i = draw_random(g->n);

	ha_buddy_give(b, g->range[i].base, g->range[i].len);
	map_set(g->range[i].base, g->range[i].len, slots, 0);
	g->range[i] = g->range[--g->n];
}

/* It gives what is free, aligned, if the map has that much in one piece. */
static void take_one(struct ha_buddy *b, struct given *g, uint32_t len, uint32_t slots)
{
	int32_t base = ha_buddy_take(b, len);

	CHECK_INT(base >= 0, map_longest(slots) >= len);
	if (base < 0)
		return;
	CHECK(!(base % (int32_t)len) && (uint32_t)base + len <= slots &&
	      map_free((uint32_t)base, len));
	range_add(g, (uint32_t)base, len, slots);
}

static void reserve_one(struct ha_buddy *b, struct given *g, uint32_t len, uint32_t slots)
{
	uint32_t base = draw_random(slots / len + 2) * len,
		 end = base + len < slots ? base + len : slots;
	bool got, want = base >= slots || map_free(base, end - base);

	if (base + len > HA_BUDDY_SLOTS)
		return;
	got = ha_buddy_reserve(b, base, len);
	CHECK_INT(got, want);
	if (got)
		range_add(g, base, len, slots);
}

static void check_map(const struct ha_buddy *b, uint32_t slots)
{
	uint32_t used = 0;

	for (uint32_t i = 0; i < slots; i++)
		used += map[i];
	CHECK_INT(b->free, slots - used);
	CHECK_INT(ha_buddy_longest(b), map_longest(slots));
}

static void against_a_map(uint32_t seed)
{
	static struct ha_buddy b;
	struct given g = { .n = 0 };
	uint32_t slots;

	dice_state = seed;
	slots = seed == 1 ? HA_BUDDY_SLOTS : HA_BUDDY_UNIT + draw_random(6000);
	ha_buddy_open(&b, slots);
	slots = slots / HA_BUDDY_UNIT * HA_BUDDY_UNIT;
	memset(map, 0, sizeof(map));
	CHECK_INT(b.slots, slots);
	for (int step = 0; step < 600; step++) {
		uint32_t len = HA_BUDDY_UNIT << draw_random(8);

		if (draw_random(2) && g.n)
			give_one(&b, &g, slots);
		else if (g.n < RANGES && draw_random(4))
			take_one(&b, &g, len, slots);
		else if (g.n < RANGES)
			reserve_one(&b, &g, len, slots);
		check_map(&b, slots);
	}
	while (g.n--)
		ha_buddy_give(&b, g.range[g.n].base, g.range[g.n].len);
	memset(map, 0, sizeof(map));
	check_map(&b, slots);
}

static void wrong_lengths_are_refused(void)
{
	static const uint32_t wrong[] = { 0, 1, 8, 17, 48, 65536, 1u << 31, UINT32_MAX };
	static struct ha_buddy b;

	ha_buddy_open(&b, HA_BUDDY_SLOTS);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		CHECK_INT(ha_buddy_take(&b, wrong[i]), -1);
		CHECK(!ha_buddy_reserve(&b, 0, wrong[i]));
	}
	CHECK(!ha_buddy_reserve(&b, 16, 32));
	CHECK_INT(ha_buddy_take(&b, 32768), 0);
	CHECK_INT(ha_buddy_take(&b, 32768), 32768);
	CHECK_INT(ha_buddy_take(&b, 16), -1);
	CHECK(!ha_buddy_reserve(&b, 1024, 16));
	ha_buddy_open(&b, 15);
	CHECK_INT(ha_buddy_take(&b, 16), -1);
	CHECK_INT(ha_buddy_longest(&b), 0);
}

/* The smallest block that will do is cut: 64 wanted beside a hole of 64 leaves the long one
 * whole. */
static void best_fit(void)
{
	static struct ha_buddy b;

	ha_buddy_open(&b, 1024);
	CHECK_INT(ha_buddy_take(&b, 64), 0);
	CHECK_INT(ha_buddy_take(&b, 64), 64);
	CHECK_INT(ha_buddy_take(&b, 512), 512);
	ha_buddy_give(&b, 0, 64);
	CHECK_INT(ha_buddy_take(&b, 64), 0);
	CHECK_INT(ha_buddy_longest(&b), 256);
}

int main(void)
{
	wrong_lengths_are_refused();
	best_fit();
	for (uint32_t seed = 1; seed <= 60; seed++)
		against_a_map(seed);
	return 0;
}
