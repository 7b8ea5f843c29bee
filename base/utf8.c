/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/utf8.h"

#include <stddef.h>
#include <stdint.h>

/* Bytes that must follow the first one; 0: none may begin so, or it stands alone. */
static int count_following(unsigned char first)
{
	if (first >= 0xc2 && first <= 0xdf)
		return 1;
	if ((first & 0xf0) == 0xe0)
		return 2;
	return first >= 0xf0 && first <= 0xf4 ? 3 : 0;
}

/* What has a shorter form, is half of a UTF-16 pair, or is above U+10FFFF. */
static bool is_forbidden(const unsigned char *s)
{
	switch (s[0]) {
	case 0xe0:
		return s[1] < 0xa0;
	case 0xed:
		return s[1] > 0x9f;
	case 0xf0:
		return s[1] < 0x90;
	case 0xf4:
		return s[1] > 0x8f;
	default:
		return false;
	}
}

int ha_utf8(const char *text)
{
	const unsigned char *s = (const unsigned char *)text;
	int more = count_following(s[0]);

	if (s[0] < 0x80)
		return 1;
	for (int i = 1; i <= more; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	return more && !is_forbidden(s) ? more + 1 : 0;
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
