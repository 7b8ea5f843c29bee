/* SPDX-License-Identifier: BSD-3-Clause */
#include "softcuda/nccl/one_rank.h"
#include "softcuda/nccl/move.h"

#include <string.h>

/* The kernel's parameters in order. */
struct one_rank_parameters {
	char *destination;
	const char *source;
	uint64_t count;
	uint64_t argument;
	uint8_t argument_is_pointer;
};

static const uint16_t parameter_sizes[] = { 8, 8, 8, 8, 1 };

/* The element's type as it stands in the mangled name of the template's instance. */
static const struct {
	const char *mangled;
	enum element_type type;
} mangled_types[] = {
	{ "aEE", ELEMENT_INT8 },
	{ "hEE", ELEMENT_UINT8 },
	{ "iEE", ELEMENT_INT32 },
	{ "jEE", ELEMENT_UINT32 },
	{ "lEE", ELEMENT_INT64 },
	{ "mEE", ELEMENT_UINT64 },
	{ "6__halfEE", ELEMENT_HALF },
	{ "fEE", ELEMENT_FLOAT },
	{ "dEE", ELEMENT_DOUBLE },
	{ "13__nv_bfloat16EE", ELEMENT_BFLOAT16 },
	{ "13__nv_fp8_e4m3EE", ELEMENT_FLOAT8_E4M3 },
	{ "13__nv_fp8_e5m2EE", ELEMENT_FLOAT8_E5M2 },
};

static bool type_of_name(const char *name, enum element_type *type)
{
	static const char template[] = "oneRankReduceI13FuncPreMulSumI";
	const char *found = strstr(name, template);

	if (!found)
		return false;
	found += strlen(template);
	for (size_t i = 0; i < sizeof(mangled_types) / sizeof(mangled_types[0]); i++) {
		if (strncmp(found, mangled_types[i].mangled, strlen(mangled_types[i].mangled)) ==
		    0) {
			*type = mangled_types[i].type;
			return true;
		}
	}
	return false;
}

/* The blocks of the grid share the elements among them; here one thread does all. */
static void run_one_rank(const struct softcuda_launch *launch)
{
	const struct one_rank_parameters *parameters = launch->parameters;
	struct movement movement = { .prepare = true };
	uint64_t argument = parameters->argument;
	struct reduction reduction;
	enum element_type type;

	if (!type_of_name(launch->name, &type))
		return;
	if (parameters->argument_is_pointer)
		argument = load_argument((const void *)(uintptr_t)argument, element_bytes(type),
					 REDUCE_PREMULTIPLY_SUM);
	find_reduction(&reduction, type, REDUCE_PREMULTIPLY_SUM, argument);
	add_source(&movement, parameters->source);
	add_destination(&movement, parameters->destination);
	move_elements(&reduction, &movement, parameters->count);
}

static const struct softcuda_kernel one_rank_kernel = {
	.run = run_one_rank,
	.parameter_size = parameter_sizes,
	.parameter_count = sizeof(parameter_sizes) / sizeof(parameter_sizes[0]),
};

const struct softcuda_kernel *find_one_rank_kernel(const char *name)
{
	enum element_type type;

	return type_of_name(name, &type) ? &one_rank_kernel : NULL;
}
