/* SPDX-License-Identifier: BSD-3-Clause */
/* A program as a user has it, linked against libcudart.so.12 without a path to it; test_run.sh and
 * test_topology.py start it. */
#include <dlfcn.h>
#include <stdio.h>

#include "softcuda/runtime/cuda_api.h"

int main(int argc, char **argv)
{
	int count = 0;
	cudaError_t error = cudaGetDeviceCount(&count);
	void *nccl = dlopen("libnccl.so.2", RTLD_NOW);
	int (*get_version)(int *) =
		nccl == NULL ? NULL : (int (*)(int *))dlsym(nccl, "ncclGetVersion");
	int version = 0;

	if (get_version != NULL)
		get_version(&version);
	printf("%d devices, NCCL %d\n", error == cudaSuccess ? count : -1, version);
	for (int i = 0; i < count; i++) {
		char pci_id[32] = "";
		cudaDeviceGetPCIBusId(pci_id, sizeof(pci_id), i);
		puts(pci_id);
	}
	return argc > 1 ? argc : 0;
}
