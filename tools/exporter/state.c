/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters and marks as a file, so that they outlive the exporter, too. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/newfile.h"
#include "tools/exporter/watcher.h"

static json_t *counter_json(const struct counter *c)
{
	return json_pack("{s:s, s:s, s:s, s:f}", "family", counter_about[c->family].name, "a",
			 c->label[0], "b", c->label[1], "value", c->value);
}

static json_t *process_json(unsigned pid, uint64_t start, uint64_t next_event)
{
	return json_pack("{s:I, s:I, s:I}", "pid", (json_int_t)pid, "start", (json_int_t)start,
			 "next", (json_int_t)next_event);
}

static json_t *processes_json(const struct watcher *w)
{
	json_t *all = json_array();

	for (unsigned i = 0; i < w->processes; i++) {
		const struct watcher_process *p = w->process[i];

		if (p->counted)
			json_array_append_new(all, process_json(p->page.header.pid,
								p->page.header.start_ticks,
								p->next_event));
	}
	for (unsigned i = 0; i < w->lefts; i++)
		json_array_append_new(all, process_json(w->left[i].pid, w->left[i].start,
							w->left[i].next_event));
	return all;
}

int watcher_save(const struct watcher *w, const char *path)
{
	json_t *all = json_object(), *counters = json_array();
	struct ha_new_file file;
	int err = ha_new_file_open(&file, path);

	for (size_t i = 0; i < w->counters.n; i++)
		json_array_append_new(counters, counter_json(&w->counters.list[i]));
	json_object_set_new(all, "counters", counters);
	json_object_set_new(all, "processes", processes_json(w));
	if (!err) {
		json_dumpf(all, file.out, JSON_COMPACT | JSON_REAL_PRECISION(17));
		err = ha_new_file_close(&file);
	}
	json_decref(all);
	return err;
}

static void load_counter(struct watcher *w, json_t *one)
{
	const char *family = json_string_value(json_object_get(one, "family"));
	const char *a = json_string_value(json_object_get(one, "a"));
	const char *b = json_string_value(json_object_get(one, "b"));
	double value = json_number_value(json_object_get(one, "value"));

	for (int i = 0; family && a && b && value > 0 && i < COUNTER_FAMILIES; i++)
		if (!strcmp(counter_about[i].name, family))
			counters_add(&w->counters, (enum counter_family)i, a, b, value);
}

int watcher_load(struct watcher *w, const char *path)
{
	json_t *all, *one;
	size_t i;

	if (access(path, F_OK))
		return errno == ENOENT ? 0 : -errno; /* the first one here */
	all = json_load_file(path, 0, NULL);
	if (!all)
		return -EINVAL;
	json_array_foreach(json_object_get(all, "counters"), i, one) load_counter(w, one);
	json_array_foreach(json_object_get(all, "processes"), i, one)
	{
		if (w->marks == WATCHER_PROCESSES + WATCHER_LEFT)
			break;
		w->mark[w->marks++] = (struct watcher_mark) {
			(unsigned)json_integer_value(json_object_get(one, "pid")),
			(uint64_t)json_integer_value(json_object_get(one, "start")),
			(uint64_t)json_integer_value(json_object_get(one, "next"))
		};
	}
	json_decref(all);
	return 0;
}
