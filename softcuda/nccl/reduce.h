/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reduce.h - arithmetic on arrays of elements: all types and operations that NCCL's kernels know
 *
 * Results are rounded as a GPU rounds them: 16-bit floats after each operation, 8-bit floats by way
 * of a 16-bit one and saturated. `to` may be the same address as a source, and must not overlap one
 * otherwise.
 */
#ifndef SOFTCUDA_NCCL_REDUCE_H
#define SOFTCUDA_NCCL_REDUCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Values of ncclDataType_t. */
enum element_type {
	ELEMENT_INT8,
	ELEMENT_UINT8,
	ELEMENT_INT32,
	ELEMENT_UINT32,
	ELEMENT_INT64,
	ELEMENT_UINT64,
	ELEMENT_HALF,
	ELEMENT_FLOAT,
	ELEMENT_DOUBLE,
	ELEMENT_BFLOAT16,
	ELEMENT_FLOAT8_E4M3,
	ELEMENT_FLOAT8_E5M2,
	ELEMENT_TYPE_COUNT
};

/* Values of ncclDevRedOp_t: what is left of ncclRedOp_t for a kernel. */
enum reduction_operator {
	REDUCE_SUM,
	REDUCE_PRODUCT,
	REDUCE_MIN_MAX, /* the argument says which */
	/* each rank's input times the argument, a value of the element's type in the low bytes */
	REDUCE_PREMULTIPLY_SUM,
	REDUCE_SUM_DIVIDE, /* integers: the sum divided by argument >> 1; bit 0: signed */
	REDUCE_OPERATOR_COUNT
};

struct reduction_functions {
	void (*combine)(void *to, const void *a, const void *b, size_t count, uint64_t argument);
	/* NULL: inputs are taken as they are */
	void (*prepare)(void *to, const void *from, size_t count, uint64_t argument);
	/* NULL: the result is taken as it is */
	void (*finish)(void *to, const void *from, size_t count, uint64_t argument);
};

struct reduction {
	const struct reduction_functions *functions;
	size_t element_bytes;
	uint64_t argument;
};

/* Bytes of one element of `type`. */
size_t element_bytes(enum element_type type);

/* False where NCCL has no such combination. */
bool find_reduction(struct reduction *reduction, enum element_type type,
		    enum reduction_operator operator, uint64_t argument);

/* An operation that only moves bytes. */
void find_copy(struct reduction *reduction);

/*
 * The argument in the low bytes of what `pointer` points to: as wide as an element, or 8 bytes for
 * REDUCE_SUM_DIVIDE.
 */
uint64_t load_argument(const void *pointer, size_t element_bytes, enum reduction_operator operator);

#endif
