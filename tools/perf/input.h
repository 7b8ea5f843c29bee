/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HAWSER_PERF_INPUT_H
#define HAWSER_PERF_INPUT_H

#include <stddef.h>

/*
 * input - a file whose bytes are the data: as they are, or what follows the header of a .npy or
 * .safetensors file
 */
struct ha_input {
	void *map;
	size_t map_bytes;
	const void *data; /* NULL: no file */
	size_t bytes;
};

/*
 * Maps the file. 0 or a negative errno (-EINVAL: fewer than 8 bytes of data) with the fault
 * recorded.
 */
int ha_input_open(struct ha_input *input, const char *name);

void ha_input_close(struct ha_input *input);

#endif
