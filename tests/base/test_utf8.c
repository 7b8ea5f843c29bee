/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/check.h"
#include "base/utf8.h"

static void check_sequence(const char *s, int n, bool printable)
{
	CHECK_INT(ha_utf8(s), n);
	CHECK_INT(ha_utf8_printable(s, n), printable);
}

int main(void)
{
	check_sequence("a", 1, true);
	check_sequence("\x7f", 1, false);
	check_sequence("\x1b[2J", 1, false);
	check_sequence("\u00e4", 2, true);
	check_sequence("\u21c4", 3, true);
	check_sequence("\U0001f600", 4, true);
	check_sequence("\xc2\x9b", 2, false);     /* a terminal's escape in one character */
	check_sequence("\xe2\x80\xae", 3, false); /* right to left from here on */
	check_sequence("\xc0\x80", 0, false);     /* longer than need be */
	check_sequence("\xe0\x9f\xbf", 0, false);
	check_sequence("\xed\xa0\x80", 0, false); /* half of a surrogate */
	check_sequence("\xf4\x90\x80\x80", 0, false);
	check_sequence("\xe2\x87", 0, false); /* cut off */
	check_sequence("\xff", 0, false);
	check_sequence("\x80", 0, false);
	return 0;
}
