/* SPDX-License-Identifier: BSD-3-Clause */
/* NCCL_IB_ADDR_RANGE: first byte the family, 16 bytes a GID, the rest the text. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "rdma/topo/gid.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ha_gid_range range;
	struct ha_gid_entry entries[2] = { { .index = 0 }, { .index = 1, .roce_version = 2 } };
	char printed[HA_GID_TEXT_MAX];
	char *text;

	if (size < 17)
		return 0;
	memcpy(entries[0].gid.raw, data + 1, 16);
	text = malloc(size - 16);
	memcpy(text, data + 17, size - 17);
	text[size - 17] = 0;
	if (!ha_gid_range_parse(&range, text, data[0] & 1)) {
		if (range.bits > (range.inet6 ? 128U : 32U))
			abort();
		entries[1].gid = range.prefix;
		/* A prefix is inside itself, unless it is an IPv4 address written as IPv6. */
		if (range.bits && !ha_gid_in_range(&range.prefix, &range) &&
		    !ha_gid_is_ipv4(&range.prefix))
			abort();
		ha_gid_in_range(&entries[0].gid, &range);
		ha_gid_choose(entries, 2, &range, data[0] >> 1);
	}
	ha_gid_text(&entries[0].gid, printed);
	free(text);
	return 0;
}
