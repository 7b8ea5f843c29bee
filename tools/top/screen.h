/* SPDX-License-Identifier: BSD-3-Clause */
/* screen.h - the lines on a terminal, and the keys */
#ifndef HAWSER_TOP_SCREEN_H
#define HAWSER_TOP_SCREEN_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/top/lines.h"

struct screen {
	struct top_settings *settings;
	uint64_t delay_ns;
	size_t scroll;   /* lines of the body that are above the screen */
	bool help;       /* the list of keys instead of the lines */
	char entry[16];  /* of a delay that is being typed */
	bool asks;       /* for it */
	char notice[96]; /* below the head; "": none */
};

enum screen_action { SCREEN_WAIT, SCREEN_LOOK, SCREEN_QUIT };

/* false: this is no terminal that can be drawn on. */
bool screen_open(void);
void screen_close(void);
void screen_draw(const struct screen *s, const struct top_lines *lines);
/* Waits for a key, ms at most, and does what it says. */
enum screen_action screen_key(struct screen *s, int ms);

#endif
