/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The hot path makes no allocation, lock or system call of its own: between posting and completion
 * the plugin's object calls nothing outside itself but the verbs provider (through the pointers
 * that the provider gave) and the compiler's memory functions. test_object.sh shows the rest of the
 * argument: there is no system call instruction in the object.
 */
#include "tests/plugin/nccl/imports.h"
#include "tests/plugin/nccl/rig.h"

#define ROUNDS 20
/* that a loaded machine may need until the driver was never in the way for one of them */
#define ROUNDS_MAX 2000
#define MESSAGES 75 /* in a round */
#define GROUPS 15
#define DEPTH 8
#define BYTES 65536

static bool is_harmless(const char *name)
{
	static const char *const allowed
		[] = { "memcpy",       "memmove", "memset", "memcmp", "__memcpy_chk",
		       "__memset_chk", "htonl",   "ntohl" /* calls without optimisation only */ };
	/* What a sanitizer adds to every memory access and function. */
	static const char *const prefixes[] = { "__asan_", "__ubsan_", "__tsan_", "__sanitizer_" };

	for (size_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++)
		if (!strcmp(name, allowed[i]))
			return true;
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (!strncmp(name, prefixes[i], strlen(prefixes[i])))
			return true;
	return false;
}

static void make_traffic(struct rig *rig, struct rig_pair *pair, uint8_t *from, uint8_t *to,
			 void *from_mr, void *to_mr)
{
	static const size_t sizes[] = { 8, 0, BYTES, 128, 4096 };
	void *send[DEPTH] = { NULL }, *recv[DEPTH], *group, *data[4], *mhandles[4], *members[4];
	size_t each[4] = { 8, 100, 0, 4096 };
	int tags[4] = { 1, 2, 3, 4 };

	for (unsigned m = 0; m < MESSAGES; m++) {
		unsigned i = m % DEPTH;

		if (send[i]) {
			rig_wait(rig, recv[i], NULL);
			rig_wait(rig, send[i], NULL);
		}
		recv[i] = rig_irecv(rig, pair->recv, to, BYTES, 0, to_mr);
		send[i] = rig_isend(rig, pair->send, from, sizes[m % 5], 0, from_mr);
	}
	for (unsigned i = 0; i < DEPTH; i++) {
		rig_wait(rig, recv[i], NULL);
		rig_wait(rig, send[i], NULL);
	}
	for (unsigned m = 0; m < GROUPS; m++) {
		for (int i = 0; i < 4; i++) {
			data[i] = to + i * 8192;
			mhandles[i] = to_mr;
		}
		group = rig_irecvs(rig, pair->recv, 4, data, each, tags, mhandles);
		for (int i = 3; i >= 0; i--)
			members[i] = rig_isend(rig, pair->send, from, each[i], tags[i], from_mr);
		for (int i = 0; i < 4; i++)
			rig_wait(rig, members[i], NULL);
		rig_wait(rig, group, NULL);
	}
}

/* A call that finds the driver inside lets it have the processor (plugin/transfer/guard.c), again
 * and again while something else has the driver's own; one that finds a message of the peer, as a
 * busy machine brings them, wakes the driver. */
static bool is_disturbance(const char *name)
{
	return !strcmp(name, "sched_yield") || !strcmp(name, "write");
}

static unsigned long count_disturbances(int hooked)
{
	unsigned long n = 0;

	for (int i = 0; i < hooked; i++)
		if (is_disturbance(imports[i].name))
			n += imports[i].calls;
	return n;
}

static int count_harmful(int hooked)
{
	int bad = 0;

	for (int i = 0; i < hooked; i++) {
		if (!imports[i].calls || is_harmless(imports[i].name) ||
		    is_disturbance(imports[i].name))
			continue;
		printf("%8lu calls of %s\n", imports[i].calls, imports[i].name);
		bad++;
	}
	return bad;
}

/* Both ends; until then their messages wake the driver. */
static void await_protection(struct rig *rig, struct rig_pair *pair, uint8_t *from, uint8_t *to,
			     void *from_mr, void *to_mr)
{
	struct rig_deadline deadline = rig_deadline("a standby for both ends");

	while (rig_log_lines(": protected:") < 2) {
		make_traffic(rig, pair, from, to, from_mr, to_mr);
		rig_pause(&deadline);
	}
}

int main(int argc, char **argv)
{
	static uint8_t from[BYTES], to[BYTES];
	void *from_mr, *to_mr;
	struct rig rig;
	struct rig_pair pair;
	bool undisturbed = false;
	int hooked, bad;

	rig_open(&rig, argc, argv);
	rig_pair_open(&rig, &pair);
	from_mr = rig_reg(&rig, pair.send, from, BYTES);
	to_mr = rig_reg(&rig, pair.recv, to, BYTES);
	await_protection(&rig, &pair, from, to, from_mr, to_mr);
	hooked = imports_hook(rig.plugin.library);
	if (!hooked) {
		printf("imports cannot be hooked on this architecture\n");
		return RIG_SKIP;
	}
	CHECK(hooked > 20, "only %d imports were found", hooked);
	for (int round = 0; round < ROUNDS || !undisturbed; round++) {
		unsigned long before = count_disturbances(hooked);

		CHECK(round < ROUNDS_MAX, "each of %d rounds yields, or wakes the driver", round);
		make_traffic(&rig, &pair, from, to, from_mr, to_mr);
		undisturbed |= count_disturbances(hooked) == before;
	}
	bad = count_harmful(hooked);
	CHECK(!bad, "the hot path calls %d functions outside the plugin", bad);
	OK(rig.plugin.dereg(pair.send, from_mr));
	/* The counter works: releasing a registration cannot be done without a lock or an
	 * allocator. */
	OK(rig.plugin.dereg(pair.recv, to_mr));
	rig_pair_close(&rig, &pair);
	CHECK(count_harmful(hooked) > 0,
	      "closing a connection made no call that was seen: the counter is broken");
	rig_close(&rig);
	return 0;
}
