/* SPDX-License-Identifier: BSD-3-Clause */
/* NCCL_IB_HCA: the list, a line break, a device's name. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/namelist.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct ha_namelist_item *item;
	struct ha_namelist list;
	char *text = malloc(size + 1), *name;
	bool let_through;

	memcpy(text, data, size);
	text[size] = 0;
	name = strchr(text, '\n');
	if (name)
		*name++ = 0;
	if (ha_namelist_parse(&list, text) < 0 || list.n > HA_NAMELIST_ITEMS_MAX)
		abort();
	let_through = ha_namelist_match(&list, name ? name : "mlx5_0", 1, &item);
	if (item && let_through == list.exclude)
		abort();
	/* Each name that is listed is matched by its own item, whatever its port. */
	for (int i = 0; i < list.n; i++)
		if (ha_namelist_match(&list, list.items[i].name, HA_NAMELIST_ANY, NULL) ==
		    list.exclude)
			abort();
	free(text);
	return 0;
}
