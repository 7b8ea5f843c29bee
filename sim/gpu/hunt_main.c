/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hunt_main.c - gpu-hunt: seed after seed; exit status 1 when one is bad, with --mutate when none
 * is
 */
#include "sim/gpu/hunt.h"
#include "sim/gpu/mutation.h"

#include "base/number.h"
#include "base/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *name;
	enum ha_gpu_mutation id;
} mutations[] = {
#define X(id, name, help) { name, HA_GPU_MUTATE_##id },
	HA_GPU_MUTATION_LIST(X)
#undef X
};

struct options {
	struct hunt_options hunt;
	uint64_t start, seeds;
	bool enough;
};

static void print_names(FILE *out)
{
	fprintf(out, "\nkinds:\n");
	for (int i = 0; i < hunt_nkinds; i++)
		fprintf(out, "  %2d %s\n", i, hunt_kinds[i].name);
	fprintf(out, "mutations:");
	for (unsigned i = 0; i < sizeof(mutations) / sizeof(mutations[0]); i++)
		fprintf(out, " %s", mutations[i].name);
	fprintf(out, "\n");
}

static bool take_mutation(void *target, const struct ha_option_text *given)
{
	for (unsigned i = 0; i < sizeof(mutations) / sizeof(mutations[0]); i++)
		if (!strcmp(given->text, mutations[i].name)) {
			ha_gpu_mutation = mutations[i].id;
			return true;
		}
	return false;
}

/* "none", or the number of a kind. */
static bool take_kind(void *target, const struct ha_option_text *given)
{
	struct options *o = target;
	uint64_t number;

	o->hunt.kind = -2;
	if (!strcmp(given->text, "none"))
		return true;
	if (!ha_number_parse(given->text, 0, (uint64_t)hunt_nkinds - 1, &number))
		return ha_option_refuse(given, "none, or a whole number from 0 to %d",
					hunt_nkinds - 1);
	o->hunt.kind = (int)number;
	return true;
}

#define HA_TARGET struct options

static const struct ha_option rows[] = {
	{ "start", 0, "N", "the first seed (1)", HA_NUMBER(start, 0, UINT64_MAX) },
	{ "seeds", 0, "N", "so many (1000)", HA_NUMBER(seeds, 1, UINT64_MAX) },
	{ "kind", 0, "K|none", "faults of this kind only, or none", HA_CALL(take_kind, NULL) },
	{ "mutate", 0, "NAME", "a deliberate defect, which must be found",
	  HA_CALL(take_mutation, "the name of a mutation (--help)") },
	{ "enough", 0, NULL, "ends with the first that is bad", HA_FLAG(enough) },
	{ "dc", 0, NULL, "dynamically connected", HA_FLAG(hunt.dc) },
	{ "moves", 0, NULL, "a port that comes back has another address", HA_FLAG(hunt.moves) },
	{ "apart", 0, NULL, "what is written to the peer's memory comes late, as to a GPU's",
	  HA_FLAG(hunt.apart) },
	{ "verbose", 0, NULL, "a line for every seed", HA_FLAG(hunt.verbose) },
	{ 0 },
};

static const struct ha_program program = {
	.name = "gpu-hunt",
	.about = "Runs GPU-initiated traffic through random faults in virtual time, seed after "
		 "seed.",
	.options = { rows },
	.notes = "Exit status: 0 all good, 1 a seed is bad (with --mutate: none is), 2 called "
		 "wrongly.",
	.print_notes = print_names,
};

#define REASONS 16

struct total {
	const char *why[REASONS];
	uint64_t times[REASONS];
	uint64_t verdict[4], struck, switches, replayed, skipped, late, timeouts, entries;
};

static void count_result(struct total *t, const struct hunt_result *r)
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

static void print_total(const struct total *t, uint64_t seeds)
{
	printf("%llu runs, %llu faults struck: %llu corrupt, %llu hung, %llu without any path; "
	       "%llu switches of path, %llu entries posted again, "
	       "%llu known landed, %llu landed late, %llu time limits passed, %llu entries\n",
	       (unsigned long long)seeds, (unsigned long long)t->struck,
	       (unsigned long long)t->verdict[HUNT_CORRUPT],
	       (unsigned long long)t->verdict[HUNT_HANG],
	       (unsigned long long)t->verdict[HUNT_GAVE_UP], (unsigned long long)t->switches,
	       (unsigned long long)t->replayed, (unsigned long long)t->skipped,
	       (unsigned long long)t->late, (unsigned long long)t->timeouts,
	       (unsigned long long)t->entries);
	for (unsigned i = 0; i < REASONS && t->why[i]; i++)
		printf("%6llu times: %s\n", (unsigned long long)t->times[i], t->why[i]);
}

static void print_seed(uint64_t seed, const struct hunt_result *r)
{
	static const char *const verdicts[] = { "good", "no path is left", "CORRUPT: ", "HUNG: " };

	printf("seed %llu: %s%s (%llu struck, %llu switches, %llu us)\n", (unsigned long long)seed,
	       verdicts[r->verdict], r->why ? r->why : "", (unsigned long long)r->struck,
	       (unsigned long long)r->switches, (unsigned long long)r->ns / 1000);
}

int main(int argc, char **argv)
{
	struct options o = { .hunt.kind = -1, .start = 1, .seeds = 1000 };
	struct soft_fabric *fabric;
	struct total total = { 0 };
	struct hunt_result r;
	uint64_t done = 0, bad;
	int result = ha_options_parse(&program, argc, argv, &o);

	if (result)
		return result - 1;
	fabric = soft_fabric_open(4, 2 << 20);
	if (!fabric) {
		fprintf(stderr, "gpu-hunt: no memory for software NICs\n");
		return 2;
	}
	for (uint64_t s = o.start; s < o.start + o.seeds; s++) {
		hunt_run(fabric, s, &o.hunt, &r);
		count_result(&total, &r);
		done++;
		if (o.hunt.verbose || (r.verdict >= HUNT_CORRUPT &&
				       total.verdict[HUNT_CORRUPT] + total.verdict[HUNT_HANG] <= 5))
			print_seed(s, &r);
		if (o.enough && r.verdict >= HUNT_CORRUPT)
			break;
	}
	print_total(&total, done);
	bad = total.verdict[HUNT_CORRUPT] + total.verdict[HUNT_HANG];
	soft_fabric_close(fabric);
	if (ha_gpu_mutation)
		return bad ? 0 : 1;
	return bad ? 1 : 0;
}
