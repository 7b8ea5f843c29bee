/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/utf8.h"

#include <stddef.h>
#include <stdint.h>

int ha_utf8(const char *text)
{
	const unsigned char *s = (const unsigned char *)text;
	int more = s[0] >= 0xc2 && s[0] <= 0xdf   ? 1
		   : (s[0] & 0xf0) == 0xe0        ? 2
		   : s[0] >= 0xf0 && s[0] <= 0xf4 ? 3
						  : 0;

	if (s[0] < 0x80)
		return 1;
	for (int i = 1; i <= more; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
	    (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	return more ? more + 1 : 0;
}

bool ha_utf8_printable(const char *text, int n)
{
	static const struct {
		uint32_t first, last;
	} unseen[] = {
		{ 0x00, 0x1f },     { 0x7f, 0x9f },     { 0xad, 0xad },
		{ 0x61c, 0x61c },   { 0x200b, 0x200f }, { 0x2028, 0x202e },
		{ 0x2060, 0x206f }, { 0xfeff, 0xfeff }, { 0xe0000, 0xe007f },
	};
	const unsigned char *s = (const unsigned char *)text;
	uint32_t code = n == 1 ? s[0] : s[0] & (0xffu >> (n + 1));

	for (int i = 1; i < n; i++)
		code = code << 6 | (s[i] & 0x3f);
	for (size_t i = 0; i < sizeof(unseen) / sizeof(unseen[0]); i++)
		if (code >= unseen[i].first && code <= unseen[i].last)
			return false;
	return n > 0;
}
