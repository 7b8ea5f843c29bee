/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/frame/address.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

bool ha_address_parse(const char *text, uint32_t *addr)
{
	struct in_addr in;

	if (inet_pton(AF_INET, text, &in) != 1)
		return false;
	*addr = ntohl(in.s_addr);
	return true;
}

bool ha_prefix_parse(const char *text, struct ha_prefix *prefix)
{
	const char *slash = strchr(text, '/');
	char addr[HA_ADDRESS_TEXT];
	unsigned len = 32;
	int end = 0;

	if (slash && (slash[1] < '0' || slash[1] > '9' ||
		      sscanf(slash, "/%2u%n", &len, &end) != 1 || slash[end] || len > 32))
		return false;
	if (snprintf(addr, sizeof(addr), "%.*s", slash ? (int)(slash - text) : HA_ADDRESS_TEXT,
		     text) >= (int)sizeof(addr))
		return false;
	prefix->len = (uint8_t)len;
	return ha_address_parse(addr, &prefix->addr) && !(len < 32 && prefix->addr << len);
}

const char *ha_address_text(uint32_t addr, char *buf)
{
	snprintf(buf, HA_ADDRESS_TEXT, "%u.%u.%u.%u", addr >> 24, addr >> 16 & 255, addr >> 8 & 255,
		 addr & 255);
	return buf;
}

const char *ha_prefix_text(const struct ha_prefix *prefix, char *buf)
{
	uint32_t a = prefix->addr;

	snprintf(buf, HA_PREFIX_TEXT, "%u.%u.%u.%u/%u", a >> 24, a >> 16 & 255, a >> 8 & 255,
		 a & 255, prefix->len);
	return buf;
}
