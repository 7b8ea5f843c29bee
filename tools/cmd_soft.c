/* SPDX-License-Identifier: BSD-3-Clause */
/* cmd_soft.c - ha soft: the software NICs of all processes of this user, once or again and again */
#include "base/clock.h"
#include "base/options.h"
#include "softroce/control.h"
#include "tools/ha.h"
#include "tools/soft_job.h"
#include "tools/soft_name.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct options {
	const char *selector; /* NULL: every device */
	bool json;
	int64_t every_ns; /* 0: one look */
};

static void direction_print(const char *name, const struct sr_fault_dir *dir)
{
	if (dir->blackhole)
		printf("  %s: black hole\n", name);
	if (dir->drop_ppm)
		printf("  %s: drops %g %%\n", name, dir->drop_ppm / 1e4);
	if (dir->dup_ppm)
		printf("  %s: duplicates %g %%\n", name, dir->dup_ppm / 1e4);
	if (dir->reorder_ppm)
		printf("  %s: reorders %g %%\n", name, dir->reorder_ppm / 1e4);
	if (dir->delay_ns || dir->jitter_ns)
		printf("  %s: delays %g us, jitter %g us\n", name, dir->delay_ns / 1e3,
		       dir->jitter_ns / 1e3);
}

/* Calls `take` with each counter that is not 0. */
static void counters_each(const struct sr_control_page *page,
			  void (*take)(void *context, const char *name, uint64_t value),
			  void *context)
{
	const struct sr_counters *c = &page->counters;
	const struct sr_wire_counters *w = &page->wire;
	const struct {
		const char *name;
		uint64_t value;
	} all[] = {
		{ "sent_pkts", c->sent_pkts },
		{ "rcvd_pkts", c->rcvd_pkts },
		{ "sent_bytes", c->sent_bytes },
		{ "rcvd_bytes", c->rcvd_bytes },
		{ "duplicate_request", c->duplicate_request },
		{ "out_of_seq_request", c->out_of_seq_request },
		{ "rcvd_rnr_err", c->rcvd_rnr_err },
		{ "send_rnr_err", c->send_rnr_err },
		{ "rcvd_seq_err", c->rcvd_seq_err },
		{ "ack_deferred", c->ack_deferred },
		{ "ack_waited", c->ack_waited },
		{ "retry_exceeded_err", c->retry_exceeded_err },
		{ "retry_rnr_exceeded_err", c->retry_rnr_exceeded_err },
		{ "completer_retry_err", c->completer_retry_err },
		{ "send_err", c->send_err },
		{ "dropped_no_qp", c->dropped_no_qp },
		{ "dropped_bad_header", c->dropped_bad_header },
		{ "dropped_bad_key", c->dropped_bad_key },
		{ "dropped_link_down", c->dropped_link_down },
		{ "dropped_wrong_peer", c->dropped_wrong_peer },
		{ "dropped_answer", c->dropped_answer },
		{ "dropped_bad_qkey", c->dropped_bad_qkey },
		{ "dropped_no_receive", c->dropped_no_receive },
		{ "dropped_message", c->dropped_message },
		{ "refused_request", c->refused_request },
		{ "bad_icrc", w->bad_icrc },
		{ "runt", w->runt },
		{ "lost_by_fault", w->lost_by_fault },
		{ "delayed_by_fault", w->delayed_by_fault },
		{ "send_errors", w->send_errors },
		{ "syscalls_sent", w->syscalls_sent },
		{ "syscalls_received", w->syscalls_received },
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (all[i].value)
			take(context, all[i].name, all[i].value);
}

static void counter_print(void *context, const char *name, uint64_t value)
{
	printf("  %-24s %" PRIu64 "\n", name, value);
}

static void counter_put(void *context, const char *name, uint64_t value)
{
	json_object_set_new(context, name, json_integer((json_int_t)value));
}

static const char *state_text(const struct sr_control_page *page)
{
	if (page->dead)
		return "dead";
	return page->link_up ? "up" : "down";
}

static void entry_print(const struct sr_control_entry *entry, int err)
{
	const char *more = entry->page.faults.cut ? ", cut" : "";
	char name[128];

	ha_soft_name(entry, name, sizeof(name));
	printf("%s: %s%s\n", name, state_text(&entry->page),
	       err ? ", does not answer: old numbers" : more);
	direction_print("tx", &entry->page.faults.tx);
	direction_print("rx", &entry->page.faults.rx);
	counters_each(&entry->page, counter_print, NULL);
}

static json_t *entry_object(const struct sr_control_entry *entry, int err)
{
	char address[INET6_ADDRSTRLEN];
	json_t *counters = json_object();

	counters_each(&entry->page, counter_put, counters);
	return json_pack("{s:s, s:s, s:i, s:i, s:s, s:b, s:b, s:o}", "device", entry->page.device,
			 "address", sr_gid_text(entry->page.gid[0], address), "pid",
			 (int)entry->page.pid, "job", (int)ha_soft_job_of((pid_t)entry->page.pid),
			 "state", state_text(&entry->page), "cut", entry->page.faults.cut != 0,
			 "answers", !err, "counters", counters);
}

static void look_json(struct sr_control_entry *list, int n)
{
	json_t *object = json_object(), *nics = json_array();

	json_object_set_new(object, "monotonic_ns", json_integer(ha_monotonic_ns()));
	for (int i = 0; i < n; i++) {
		int err = sr_control_refresh(&list[i]);

		if (err != -ESRCH)
			json_array_append_new(nics, entry_object(&list[i], err));
	}
	json_object_set_new(object, "nics", nics);
	json_dumpf(object, stdout, JSON_COMPACT);
	printf("\n");
	json_decref(object);
}

static void look_text(struct sr_control_entry *list, int n)
{
	if (!n)
		printf("no process has a software NIC open\n");
	for (int i = 0; i < n; i++) {
		int err = sr_control_refresh(&list[i]);

		if (err != -ESRCH)
			entry_print(&list[i], err);
	}
}

/* Exit status of a look that failed; 0: it has not. */
static int show_nics(const struct options *o)
{
	struct sr_control_entry *list;
	int n;

	list = sr_control_list(o->selector, &n);
	if (n < 0 && !(o->every_ns && n == -ENOENT))
		return ha_soft_complain("soft", n);
	if (o->json)
		look_json(list, n > 0 ? n : 0);
	else
		look_text(list, n > 0 ? n : 0);
	free(list);
	return fflush(stdout) ? 1 : 0; /* whoever read it is gone */
}

#define HA_TARGET struct options

static const struct ha_option rows[] = {
	{ "json", 'j', NULL, "one line of JSON for each look", HA_FLAG(json) },
	{ "every", 0, "TIME", "again and again (500ms, 2s), until it is ended",
	  HA_TIME(every_ns, 1000000, UINT64_C(86400) * 1000000000) },
	{ 0 },
};

static const struct ha_option operands[] = {
	{ "DEVICE", 0, NULL, "soft0, soft0@127.1.0.3 or soft0:PID (every device)",
	  HA_TEXT(selector) },
	{ 0 },
};

static const struct ha_program program = {
	.name = "ha soft",
	.about = "Lists the software NICs that processes of this user have open: address, process, "
		 "job, state, faults, counters. "
		 "A job is what one process has started: its number is that process's.",
	.options = { rows },
	.operands = operands,
};

int ha_cmd_soft(int argc, char **argv)
{
	struct options o = { 0 };
	int status = ha_options_parse(&program, argc, argv, &o);
	int64_t next = ha_monotonic_ns(), wait;

	if (status)
		return status - 1;
	while (!(status = show_nics(&o)) && o.every_ns) {
		next += o.every_ns;
		wait = next - ha_monotonic_ns();
		if (wait <= 0)
			next = ha_monotonic_ns();
		else
			nanosleep(&(struct timespec) { wait / 1000000000, wait % 1000000000 },
				  NULL);
	}
	return status;
}
