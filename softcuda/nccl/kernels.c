/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kernels.c - NCCL's kernels by their mangled names
 *
 * Registered with the runtime when libnccl.so.2 is loaded, removed before it is unloaded.
 */
#include "softcuda/nccl/function_table.h"
#include "softcuda/nccl/gin.h"
#include "softcuda/nccl/launch.h"
#include "softcuda/nccl/one_rank.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static const struct softcuda_kernel batches_kernel = { .run = run_batches };

/* The name behind "_Z<length>"; NULL for another form of name. */
static const char *plain_name(const char *mangled)
{
	if (strncmp(mangled, "_Z", 2) != 0 || !isdigit((unsigned char)mangled[2]))
		return NULL;
	mangled += 2;
	while (isdigit((unsigned char)*mangled))
		mangled++;
	return mangled;
}

static const struct softcuda_kernel *resolve_kernel(const char *name)
{
	const char *plain = plain_name(name);

	if (plain && strncmp(plain, "ncclDevKernel_", strlen("ncclDevKernel_")) == 0)
		return load_function_table() ? &batches_kernel : NULL;
	if (plain && find_gin_kernel(plain))
		return load_function_table() ? find_gin_kernel(plain) : NULL;
	return find_one_rank_kernel(name);
}

__attribute__((constructor)) static void register_kernels(void)
{
	if (softcuda_add_resolver(resolve_kernel) != 0)
		fprintf(stderr, "softcuda: no room for the kernels of NCCL " LAYOUT_VERSION
				": too many resolvers\n");
}

__attribute__((destructor)) static void unregister_kernels(void)
{
	softcuda_remove_resolver(resolve_kernel);
}
