/* SPDX-License-Identifier: BSD-3-Clause */
/* A file of systemd-networkd's: frames, each behind its length. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tools/switches/neighbors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct switches_neighbors all;

	all.n = all.interfaces = 0;
	switches_take_networkd(data, size, "e0", &all);
	for (unsigned i = 0; i < all.n; i++)
		if (!*all.neighbor[i].at.id || !*all.neighbor[i].at.port)
			abort();
	return 0;
}
