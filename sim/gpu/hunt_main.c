/* SPDX-License-Identifier: BSD-3-Clause */
/* hunt_main.c - gpu-hunt [--start N] [--seeds N] [--kind K|none] [--mutate NAME] [--enough] [--dc] [--moves] [--verbose]: seed after seed; exit status 1 when one
 * is bad, with --mutate when none is; --enough: it ends with the first that is; --dc: dynamically connected;
 * --moves: a port that comes back has another address. */
#include "sim/gpu/hunt.h"
#include "sim/gpu/mutation.h"

#include "base/number.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROGRAM "gpu-hunt"

static const struct {
	const char *name;
	enum ha_gpu_mutation id;
} mutations[] = {
#define X(id, name, help) { name, HA_GPU_MUTATE_##id },
	HA_GPU_MUTATION_LIST(X)
#undef X
};

static int usage(void)
{
	fprintf(stderr, "gpu-hunt [--start N] [--seeds N] [--kind K|none] [--mutate NAME] [--enough] [--dc] [--moves] [--verbose]\nkinds:\n");
	for (int i = 0; i < hunt_nkinds; i++)
		fprintf(stderr, "  %2d %s\n", i, hunt_kinds[i].name);
	fprintf(stderr, "mutations:");
	for (unsigned i = 0; i < sizeof(mutations) / sizeof(mutations[0]); i++)
		fprintf(stderr, " %s", mutations[i].name);
	fprintf(stderr, "\n");
	return 2;
}

static bool choose_mutation(const char *name)
{
	for (unsigned i = 0; i < sizeof(mutations) / sizeof(mutations[0]); i++)
		if (!strcmp(mutations[i].name, name)) {
			ha_gpu_mutation = mutations[i].id;
			return true;
		}
	return false;
}

#define REASONS 16

struct total {
	const char *why[REASONS];
	uint64_t times[REASONS];
	uint64_t verdict[4], struck, switches, replayed, skipped, late, timeouts, entries;
};

static void count(struct total *t, const struct hunt_result *r)
{
	t->verdict[r->verdict]++;
	for (unsigned i = 0; r->verdict >= HUNT_CORRUPT && i < REASONS; i++)
		if (!t->why[i] || t->why[i] == r->why) {
			t->why[i] = r->why;
			t->times[i]++;
			break;
		}
	t->struck += r->struck;
	t->switches += r->switches;
	t->replayed += r->replayed;
	t->skipped += r->skipped;
	t->late += r->landed_late;
	t->timeouts += r->timeouts;
	t->entries += r->entries;
}

static void print(const struct total *t, uint64_t seeds)
{
	printf("%llu runs, %llu faults struck: %llu corrupt, %llu hung, %llu without any path; %llu switches of path, %llu entries posted again, "
	       "%llu known landed, %llu landed late, %llu time limits passed, %llu entries\n",
	       (unsigned long long)seeds, (unsigned long long)t->struck, (unsigned long long)t->verdict[HUNT_CORRUPT],
	       (unsigned long long)t->verdict[HUNT_HANG], (unsigned long long)t->verdict[HUNT_DARK], (unsigned long long)t->switches,
	       (unsigned long long)t->replayed, (unsigned long long)t->skipped, (unsigned long long)t->late,
	       (unsigned long long)t->timeouts, (unsigned long long)t->entries);
	for (unsigned i = 0; i < REASONS && t->why[i]; i++)
		printf("%6llu times: %s\n", (unsigned long long)t->times[i], t->why[i]);
}

/* "none", or the number of a kind. */
static bool kind_take(const char *text, int *kind)
{
	unsigned number;

	*kind = -2;
	if (!strcmp(text, "none"))
		return true;
	if (!ha_number_take_unsigned(PROGRAM, "--kind", text, 0, (unsigned)hunt_nkinds - 1, &number))
		return false;
	*kind = (int)number;
	return true;
}

int main(int argc, char **argv)
{
	struct hunt_options o = { .kind = -1 };
	uint64_t start = 1, seeds = 1000, done = 0, bad;
	struct soft_fabric *fabric = soft_fabric_open(4, 2 << 20);
	struct total total = { 0 };
	struct hunt_result r;
	bool enough = false, good;

	for (int i = 1; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : "";

		if (!strcmp(argv[i], "--verbose") || !strcmp(argv[i], "--enough")) {
			*(argv[i][2] == 'v' ? &o.verbose : &enough) = true;
			continue;
		}
		if (!strcmp(argv[i], "--dc") || !strcmp(argv[i], "--moves")) {
			*(argv[i][2] == 'd' ? &o.dc : &o.moves) = true;
			continue;
		}
		i++;
		good = true;
		if (!strcmp(argv[i - 1], "--start"))
			good = ha_number_take(PROGRAM, "--start", value, 0, UINT64_MAX, &start);
		else if (!strcmp(argv[i - 1], "--seeds"))
			good = ha_number_take(PROGRAM, "--seeds", value, 1, UINT64_MAX, &seeds);
		else if (!strcmp(argv[i - 1], "--kind"))
			good = kind_take(value, &o.kind);
		else if (strcmp(argv[i - 1], "--mutate") || !choose_mutation(value))
			return usage();
		if (!good)
			return 2;
	}
	if (!fabric)
		return usage();
	for (uint64_t s = start; s < start + seeds; s++) {
		hunt_run(fabric, s, &o, &r);
		count(&total, &r);
		done++;
		if (o.verbose || (r.verdict >= HUNT_CORRUPT && total.verdict[HUNT_CORRUPT] + total.verdict[HUNT_HANG] <= 5))
			printf("seed %llu: %s%s (%llu struck, %llu switches, %llu us)\n", (unsigned long long)s,
			       (const char *[]){ "good", "no path is left", "CORRUPT: ", "HUNG: " }[r.verdict], r.why ? r.why : "",
			       (unsigned long long)r.struck, (unsigned long long)r.switches, (unsigned long long)r.ns / 1000);
		if (enough && r.verdict >= HUNT_CORRUPT)
			break;
	}
	print(&total, done);
	bad = total.verdict[HUNT_CORRUPT] + total.verdict[HUNT_HANG];
	soft_fabric_close(fabric);
	if (ha_gpu_mutation)
		return bad ? 0 : 1;
	return bad ? 1 : 0;
}
