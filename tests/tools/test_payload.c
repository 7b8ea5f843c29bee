/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Generated data reduced with the kernels, in orders of our own choice, is what the payload
 * expects; a changed element is found, and no other one is blamed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/job/payload.h"

#define COUNT 1500
#define MAX_RANKS 70

static int failures;

static void report_failure(const struct ha_payload *p, const char *what, unsigned long n)
{
	printf("%s %s with %d ranks: %s (%lu)\n", p->type->name, ha_redop_names[p->redop], p->ranks,
	       what, n);
	failures++;
}

/* Multiplies a rank's data by a factor that is a small integer or, of floating types, a fraction of
 * one. */
static void scale_data(const struct ha_payload *p, char *data, double factor)
{
	const struct ha_datatype *type = p->type;

	for (size_t i = 0; i < COUNT; i++) {
		uint16_t *small = (uint16_t *)data + i;

		if (!strcmp(type->name, "half"))
			*small = ha_half_encode(ha_half_decode(*small) * (float)factor);
		else if (!strcmp(type->name, "bfloat16"))
			*small = ha_bfloat16_encode(ha_bfloat16_decode(*small) * (float)factor);
		else if (!strcmp(type->name, "float"))
			((float *)data)[i] *= (float)factor;
		else if (!strcmp(type->name, "double"))
			((double *)data)[i] *= factor;
		else if (factor == 2)
			type->reduce(HA_SUM, data + i * type->size, data + i * type->size,
				     data + i * type->size, 1);
	}
}

/* Reduces the ranks' data pairwise in a random order, as no ring does. */
static void reduce_anyhow(const struct ha_payload *p, size_t first, char *result)
{
	char *parts[MAX_RANKS], *other;
	int left = p->ranks, i;

	for (i = 0; i < left; i++) {
		parts[i] = malloc(COUNT * 8);
		ha_payload_fill(p, i, first, COUNT, parts[i]);
		if (p->redop == HA_MULSUM)
			scale_data(p, parts[i], ha_payload_factor(i));
		if (p->redop == HA_AVG && p->divides_first)
			scale_data(p, parts[i], 1.0 / p->ranks);
	}
	while (left > 1) {
		i = rand() % (left - 1);
		other = parts[left - 1];
		p->type->reduce(p->redop, parts[i], other, parts[i], COUNT);
		free(other);
		left--;
	}
	if (p->redop == HA_AVG && !p->divides_first)
		p->type->divide(parts[0], COUNT, p->ranks);
	memcpy(result, parts[0], COUNT * p->type->size);
	free(parts[0]);
}

static void check_reduced(const struct ha_payload *p)
{
	size_t first = (size_t)(rand() % 1000), at = (size_t)(rand() % COUNT), size = p->type->size;
	char *result = malloc(COUNT * 8), *again = malloc(COUNT * 8);
	uint64_t wrong;

	reduce_anyhow(p, first, result);
	wrong = ha_payload_compare_reduced(p, first, COUNT, result);
	if (wrong)
		report_failure(p, "elements of a right result called wrong", wrong);
	if (p->divides_first) /* rounding errors are no fault: the exponent's highest bit */
		result[at * size + size - 1] ^= 0x40;
	else
		result[at * size + (size_t)rand() % size] ^= (char)(1 << rand() % 8);
	wrong = ha_payload_compare_reduced(p, first, COUNT, result);
	if (wrong != 1)
		report_failure(p, "elements found where one is wrong", wrong);
	/* the place counts, not only the value */
	ha_payload_fill(p, 0, first, COUNT, result);
	ha_payload_fill(p, 0, first + 1, COUNT - 1, again);
	if (memcmp(result + size, again, (COUNT - 1) * size))
		report_failure(p, "elements depend on where filling began", 0);
	wrong = ha_payload_compare(p, 0, first, COUNT, result) +
		ha_payload_compare(p, 0, first + 1, COUNT - 1, again);
	if (wrong)
		report_failure(p, "elements of a rank's own data called wrong", wrong);
	free(result);
	free(again);
}

/* Data that is only moved: different for every rank and seed, and not compressible into few
 * values. */
static void check_moved(const struct ha_datatype *type)
{
	struct ha_payload p = { .seed = 3, .type = type, .ranks = 4 }, q = p;
	char *data = malloc(COUNT * 8);
	uint64_t wrong;

	q.seed = 4;
	ha_payload_fill(&p, 2, 5, COUNT, data);
	wrong = ha_payload_compare(&p, 2, 5, COUNT, data);
	if (wrong)
		report_failure(&p, "moved elements called wrong", wrong);
	if (ha_payload_compare(&p, 1, 5, COUNT, data) < COUNT / 2 ||
	    ha_payload_compare(&q, 2, 5, COUNT, data) < COUNT / 2 ||
	    ha_payload_compare(&p, 2, 6, COUNT, data) < COUNT / 2)
		report_failure(&p, "another rank's, seed's or place's data looks the same", 0);
	memset(data, 0xa5, COUNT * 8);
	if (ha_payload_compare(&p, 2, 5, COUNT, data) < COUNT * 9 / 10)
		report_failure(&p, "poison looks like data", 0);
	free(data);
}

int main(void)
{
	static const int ranks[] = { 1, 2, 3, 4, 7, 8, 33, 64, MAX_RANKS };

	srand(1);
	for (size_t t = 0; t < ha_datatypes_count; t++) {
		check_moved(&ha_datatypes[t]);
		for (int op = 0; op < HA_REDOPS; op++) {
			for (size_t r = 0; r < sizeof(ranks) / sizeof(ranks[0]); r++) {
				struct ha_payload p = { .seed = (uint64_t)rand(),
							.type = &ha_datatypes[t],
							.reduced = true,
							.redop = (enum ha_redop)op,
							.ranks = ranks[r] };

				check_reduced(&p);
				/* the small types' bound for many ranks is larger than the values
				 * themselves */
				if (op != HA_AVG || ha_datatypes[t].kind != HA_FLOATING ||
				    (ranks[r] > 8 && ha_datatypes[t].precision < 24))
					continue;
				p.divides_first = true;
				check_reduced(&p);
			}
		}
	}
	return failures != 0;
}
