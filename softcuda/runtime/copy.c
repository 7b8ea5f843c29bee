/* SPDX-License-Identifier: BSD-3-Clause */
#include "softcuda/runtime/copy.h"

#include "softcuda/runtime/memory.h"

#include <stdlib.h>
#include <string.h>

#define ZERO_PAGES_MIN (16 * ARENA_PAGE) /* from here on it pays to ask which pages exist */

struct copy {
	struct operation base;
	char *to;
	const char *from;
	char *staging; /* owned, or NULL */
	struct shape shape;
};

struct fill {
	struct operation base;
	char *to;
	uint32_t value;
	unsigned element;
	struct shape shape;
};

static bool is_small(struct shape shape)
{
	return shape.height == 0 || shape.width <= COPY_BRIEF / shape.height;
}

/* ---- copies ---- */

static void run_copy(const struct operation *operation)
{
	const struct copy *copy = (const struct copy *)operation;
	struct shape shape = copy->shape;

	/*
	 * A copy onto itself and overlapping ranges are undefined in CUDA; here they must at least
	 * not be undefined in C.
	 */
	for (size_t row = 0; row < shape.height; row++)
		memmove(copy->to + row * shape.to_pitch, copy->from + row * shape.from_pitch,
			shape.width);
}

static void clean_copy(struct operation *operation)
{
	free(((struct copy *)operation)->staging);
}

struct operation *create_copy(void *to, const void *from, struct shape shape)
{
	struct copy *copy = create_operation(sizeof(*copy), OPERATION_COPY, run_copy);
	if (copy == NULL)
		return NULL;
	copy->base.brief = is_small(shape);
	copy->base.clean = clean_copy;
	copy->to = to;
	copy->from = from;
	copy->shape = shape;
	if (from == NULL) {
		copy->staging = malloc(shape.width * shape.height + 1);
		copy->from = copy->staging;
		copy->shape.from_pitch = shape.width;
		if (copy->staging == NULL) {
			release_operation(&copy->base);
			return NULL;
		}
	}
	return &copy->base;
}

void *copy_staging(struct operation *operation)
{
	return ((struct copy *)operation)->staging;
}

/* ---- fills ---- */

static void fill_row(char *to, const struct fill *fill)
{
	if (!fill->value && fill->shape.width >= ZERO_PAGES_MIN &&
	    zero_device_memory(to, fill->shape.width))
		return;
	if (fill->element == 1) {
		memset(to, (int)(fill->value & 0xff), fill->shape.width);
		return;
	}
	for (size_t at = 0; at < fill->shape.width; at += fill->element)
		memcpy(to + at, &fill->value, fill->element); /* the low bytes: little endian */
}

static void run_fill(const struct operation *operation)
{
	const struct fill *fill = (const struct fill *)operation;
	for (size_t row = 0; row < fill->shape.height; row++)
		fill_row(fill->to + row * fill->shape.to_pitch, fill);
}

struct operation *create_fill(void *to, uint32_t value, unsigned element, struct shape shape)
{
	struct fill *fill = create_operation(sizeof(*fill), OPERATION_SET, run_fill);
	if (fill == NULL)
		return NULL;
	fill->base.brief = is_small(shape);
	fill->to = to;
	fill->value = value;
	fill->element = element;
	fill->shape = shape;
	return &fill->base;
}
