/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HAWSER_TOOL_NCCL_LIBRARY_H
#define HAWSER_TOOL_NCCL_LIBRARY_H

#include <limits.h>
#include <stdbool.h>

#include "tools/nccl/abi.h"

/*
 * library - finding libnccl.so.2 and the CUDA runtime, and their functions
 */
struct ha_library {
	struct nccl_api nccl;
	struct cuda_api cuda;
	int nccl_version; /* 22907: 2.29.7 */
	int cuda_version; /* 12040: 12.4 */
	bool soft;        /* the runtime is softcuda */
	char nccl_path[PATH_MAX], cuda_path[PATH_MAX];
};

/* Opens both. 0 or a negative errno with the fault recorded. */
int ha_library_open(struct ha_library *library, const char *path);

/*
 * What opening it shows, without the calling process having opened it: asked in a process of its
 * own, since ranks are forked and CUDA does not survive a fork.
 */
struct ha_probe {
	int nccl_version, cuda_version;
	int devices; /* GPUs; softcuda's number depends on SOFTCUDA_DEVICES */
	bool soft;
	char nccl_path[PATH_MAX], cuda_path[PATH_MAX];
	char instead[1024]; /* why it is not the loader's; "": it is, or was asked for */
};

/*
 * `what`: a path, a library's name, a version or the beginning of one ("2.29"), "softcuda"; NULL:
 * libnccl.so.2 of the loader's path, and where there is none, or no GPU for it, the newest that was
 * linked with softcuda. 0 or a negative errno with the fault recorded.
 */
int ha_library_probe(struct ha_probe *probe, const char *what);

/* "2.29.7" and "12.4" into text of 32 bytes; text. */
const char *ha_nccl_version_text(int version, char text[32]);
const char *ha_cuda_version_text(int version, char text[32]);

#endif
