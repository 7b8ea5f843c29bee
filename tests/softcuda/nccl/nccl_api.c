/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/softcuda/nccl/nccl_api.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static void *find_symbol(void *library, const char *name)
{
	void *symbol = dlsym(library, name);

	if (!symbol) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	return symbol;
}

void load_nccl(struct nccl_api *api, const char *path)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);

	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
#define FIND(name, symbol, parameters) *(void **)&api->name = find_symbol(library, #symbol);
	NCCL_FUNCTIONS(FIND)
	CUDA_FUNCTIONS(FIND)
#undef FIND
	*(void **)&api->error_string = find_symbol(library, "ncclGetErrorString");
	*(void **)&api->last_error = find_symbol(library, "ncclGetLastError");
}

void check_nccl(const struct nccl_api *api, int result, const char *what)
{
	if (!result)
		return;
	fprintf(stderr, "%s: %s; %s\n", what, api->error_string(result), api->last_error(NULL));
	exit(1);
}

void check_cuda(int result, const char *what)
{
	if (!result)
		return;
	fprintf(stderr, "%s: CUDA error %d\n", what, result);
	exit(1);
}
