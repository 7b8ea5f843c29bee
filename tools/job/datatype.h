/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HAWSER_JOB_DATATYPE_H
#define HAWSER_JOB_DATATYPE_H

#include <stddef.h>
#include <stdint.h>

/*
 * datatype - element types and the reduction kernels that the driver runs in the GPU's place
 *
 * Names are those of nccl-tests. Integers wrap; half and bfloat16 are computed in float and rounded
 * to nearest even after every step, as NCCL's kernels do. avg is a sum and one division at the end.
 */

/*
 * mulsum: each rank's contribution is multiplied by a factor of the rank's own before it is added
 */
enum ha_redop { HA_SUM, HA_PROD, HA_MAX, HA_MIN, HA_AVG, HA_MULSUM, HA_REDOPS };

enum ha_kind { HA_SIGNED, HA_UNSIGNED, HA_FLOATING };

struct ha_datatype {
	const char *name;
	size_t size; /* bytes */
	enum ha_kind kind;
	int precision; /* of a floating type: bits of the significand, the hidden one included */
	/* dst[i] = a[i] op b[i]; dst may be a or b; avg sums */
	void (*reduce)(enum ha_redop op, void *dst, const void *a, const void *b, size_t n);
	/* dst[i] /= ranks: the end of avg */
	void (*divide)(void *dst, size_t n, int ranks);
};

extern const struct ha_datatype ha_datatypes[];
extern const size_t ha_datatypes_count;
extern const char *const ha_redop_names[HA_REDOPS];

/* By name; NULL when there is none such. */
const struct ha_datatype *ha_datatype_find(const char *name);

/* -1 when there is none such. */
int ha_redop_find(const char *name);

float ha_half_decode(uint16_t bits);
uint16_t ha_half_encode(float value);
float ha_bfloat16_decode(uint16_t bits);
uint16_t ha_bfloat16_encode(float value);

#endif
