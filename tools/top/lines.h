/* SPDX-License-Identifier: BSD-3-Clause */
/* lines.h - a frame as lines of text, for a screen or for a file */
#ifndef HAWSER_TOP_LINES_H
#define HAWSER_TOP_LINES_H

#include <stdbool.h>
#include <sys/types.h>

#include "tools/top/frame.h"

#define TOP_WIDTH 320 /* bytes of a line, with its final 0 */

enum top_sort { TOP_BY_MESSAGES, TOP_BY_FAILOVERS, TOP_BY_STALL, TOP_BY_NAME, TOP_SORTS };
enum top_look { TOP_PLAIN, TOP_TITLE, TOP_BAD, TOP_CALM };

struct top_settings {
	pid_t pid; /* this process alone; 0: all */
	enum top_sort sort;
	bool reverse;
	bool idle; /* also connections that carry nothing */
	bool connections;
	bool events;
	int most_events; /* per process */
};

struct top_line {
	char text[TOP_WIDTH];
	enum top_look look;
};

struct top_lines {
	struct top_line *line;
	size_t n, room;
	size_t head; /* so many stay on the screen while the rest scrolls */
};

/* Replaces what was there. before->at 0: there was no look before, so there are no rates. 0 or
 * -ENOMEM. */
int top_lines_make(struct top_lines *lines, const struct frame *f, const struct frame *before,
		   const struct top_settings *settings);
void top_lines_free(struct top_lines *lines);

const char *top_sort_name(enum top_sort sort);

#endif
