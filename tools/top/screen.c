/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/top/screen.h"

#include <ctype.h>
#include <curses.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/number.h"

static const char *const help[] = {
	"Keys, as in top:",
	"",
	"  q           quit",
	"  h  ?        this list; any key leads back",
	"  space enter look now",
	"  d  s        time between two looks",
	"  <  >        sort the connections by messages, failovers, stall, name",
	"  R           reverse the order",
	"  i           connections that carry nothing: shown or not",
	"  c           connections: shown or not",
	"  e           events: shown or not",
	"  up down, page up, page down, home, end: scroll",
	NULL,
};

bool screen_open(void)
{
	setlocale(LC_CTYPE, ""); /* characters alone: numbers keep their point */
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) || !newterm(NULL, stdout, stdin))
		return false;
	cbreak();
	noecho();
	keypad(stdscr, TRUE);
	curs_set(0);
	if (has_colors()) {
		start_color();
		use_default_colors();
		init_pair(TOP_BAD, COLOR_RED, -1);
		init_pair(TOP_CALM, COLOR_GREEN, -1);
	}
	return true;
}

void screen_close(void)
{
	endwin();
}

static void put_line(int row, const char *text, enum top_look look)
{
	attr_t attributes = look == TOP_TITLE ? A_REVERSE : A_NORMAL;

	if (has_colors() && (look == TOP_BAD || look == TOP_CALM))
		attributes |= (attr_t)COLOR_PAIR(look);
	if (look == TOP_BAD)
		attributes |= A_BOLD;
	attrset(attributes);
	mvaddnstr(row, 0, text, COLS);
	if (look == TOP_TITLE)
		for (int x = getcurx(stdscr); x && x < COLS; x++)
			mvaddch(row, x, ' ');
	attrset(A_NORMAL);
}

static void put_notice(const struct screen *s, int row)
{
	char text[160];

	if (s->asks)
		snprintf(text, sizeof(text), "time between two looks (2s, 500ms): %s", s->entry);
	else
		snprintf(text, sizeof(text), "%s", s->notice);
	put_line(row, text, TOP_PLAIN);
}

void screen_draw(const struct screen *s, const struct top_lines *lines)
{
	int row = 0;

	erase();
	if (s->help) {
		for (int i = 0; help[i] && row < LINES; i++)
			put_line(row++, help[i], TOP_PLAIN);
		refresh();
		return;
	}
	for (size_t i = 0; i < lines->head && row < LINES; i++)
		put_line(row++, lines->line[i].text, lines->line[i].look);
	if (row < LINES)
		put_notice(s, row++);
	/* the empty line behind the head is the notice's */
	for (size_t i = lines->head + 1 + s->scroll; i < lines->n && row < LINES; i++)
		put_line(row++, lines->line[i].text, lines->line[i].look);
	refresh();
}

/* ---- keys ---- */

static void type_entry(struct screen *s, int key)
{
	size_t length = strlen(s->entry);

	if (key == KEY_BACKSPACE || key == 127 || key == '\b') {
		if (length)
			s->entry[length - 1] = 0;
		return;
	}
	if (key > 255 || (!isalnum(key) && key != '.') || length + 1 == sizeof(s->entry))
		return;
	s->entry[length] = (char)key;
	s->entry[length + 1] = 0;
}

static void end_entry(struct screen *s)
{
	uint64_t ns;

	s->asks = false;
	if (!*s->entry)
		return;
	if (ha_time_parse(s->entry, &ns) && ns >= 50 * HA_NS_PER_MS && ns <= 3600 * HA_NS_PER_S)
		s->delay_ns = ns;
	else
		snprintf(s->notice, sizeof(s->notice), "a time from 50ms to 3600s, not '%s'",
			 s->entry);
}

static void take_entry(struct screen *s, int key)
{
	if (key == '\n' || key == '\r' || key == KEY_ENTER)
		end_entry(s);
	else if (key == 27) /* escape: as it was */
		s->asks = false;
	else
		type_entry(s, key);
}

static void scroll_by(struct screen *s, long lines)
{
	s->scroll = lines < 0 && (size_t)-lines > s->scroll ? 0 : s->scroll + (size_t)lines;
}

static void take_scroll(struct screen *s, int key)
{
	long page = LINES > 4 ? LINES - 4 : 1;

	if (key == KEY_UP)
		scroll_by(s, -1);
	else if (key == KEY_DOWN)
		scroll_by(s, 1);
	else if (key == KEY_PPAGE)
		scroll_by(s, -page);
	else if (key == KEY_NPAGE)
		scroll_by(s, page);
	else if (key == KEY_HOME)
		s->scroll = 0;
	else if (key == KEY_END)
		s->scroll = SIZE_MAX / 2; /* what draws next brings it back into range */
}

static void take_setting(struct screen *s, int key)
{
	struct top_settings *t = s->settings;

	if (key == '<' || key == '>')
		t->sort =
			(enum top_sort)((t->sort + (key == '>' ? 1u : TOP_SORTS - 1u)) % TOP_SORTS);
	else if (key == 'R')
		t->reverse = !t->reverse;
	else if (key == 'i')
		t->idle = !t->idle;
	else if (key == 'c')
		t->connections = !t->connections;
	else if (key == 'e')
		t->events = !t->events;
	else
		return;
	snprintf(s->notice, sizeof(s->notice), "sorted by %s%s%s", top_sort_name(t->sort),
		 t->reverse ? ", reversed" : "", t->idle ? "" : "; without idle connections");
}

enum screen_action screen_key(struct screen *s, int ms)
{
	int key;

	timeout(ms);
	key = getch();
	if (key == ERR || key == KEY_RESIZE) /* the latter is no key, and answers nothing */
		return SCREEN_WAIT;
	if (s->help) {
		s->help = false;
		return SCREEN_WAIT;
	}
	if (s->asks) {
		take_entry(s, key);
		return SCREEN_WAIT;
	}
	s->notice[0] = 0;
	if (key == 'q')
		return SCREEN_QUIT;
	if (key == ' ' || key == '\n' || key == '\r')
		return SCREEN_LOOK;
	if (key == 'h' || key == '?')
		s->help = true;
	if (key == 'd' || key == 's') {
		s->asks = true;
		s->entry[0] = 0;
	}
	take_scroll(s, key);
	take_setting(s, key);
	return SCREEN_WAIT;
}
