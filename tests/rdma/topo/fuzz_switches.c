/* SPDX-License-Identifier: BSD-3-Clause */
/* A line of the file of `ha switches`: refused, or the same when it is written and read again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "rdma/topo/switches.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ha_switches_line line = { 0 }, again = { 0 };
	char *text = malloc(size + 1), *printed = NULL;
	size_t len;
	FILE *out;

	memcpy(text, data, size);
	text[size] = 0;
	if (ha_switches_parse(text, &line) == 1) {
		out = open_memstream(&printed, &len);
		ha_switches_print(&line, out);
		fclose(out);
		printed[len - 1] = 0;
		if (ha_switches_parse(printed, &again) != 1 || memcmp(&line, &again, sizeof(line)))
			abort();
	}
	free(printed);
	free(text);
	return 0;
}
