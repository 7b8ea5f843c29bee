/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/check.h"
#include "base/utf8.h"

static void sequence(const char *s, int n, bool printable)
{
	CHECK_INT(ha_utf8(s), n);
	CHECK_INT(ha_utf8_printable(s, n), printable);
}

int main(void)
{
	sequence("a", 1, true);
	sequence("\x7f", 1, false);
	sequence("\x1b[2J", 1, false);
	sequence("\u00e4", 2, true);
	sequence("\u21c4", 3, true);
	sequence("\U0001f600", 4, true);
	sequence("\xc2\x9b", 2, false);     /* a terminal's escape in one character */
	sequence("\xe2\x80\xae", 3, false); /* right to left from here on */
	sequence("\xc0\x80", 0, false);     /* longer than need be */
	sequence("\xe0\x9f\xbf", 0, false);
	sequence("\xed\xa0\x80", 0, false); /* half of a surrogate */
	sequence("\xf4\x90\x80\x80", 0, false);
	sequence("\xe2\x87", 0, false); /* cut off */
	sequence("\xff", 0, false);
	sequence("\x80", 0, false);
	return 0;
}
