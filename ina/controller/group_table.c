/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/controller/group_table.h"

#include "base/utf8.h"
#include "ina/controller/groups.h"
#include "ina/frame/address.h"
#include "netccl.pb-c.h"

#include <jansson.h>
#include <string.h>

#define LINE 256

/* What the controller says may have come from anybody: '?' for what a terminal should not get. */
static const char *sanitize_text(const char *s, char *buf)
{
	size_t at = 0;
	int n;

	for (; *s && at < LINE - 5; s += n) {
		n = ha_utf8(s);
		if (n && ha_utf8_printable(s, n)) {
			memcpy(buf + at, s, (size_t)n);
			at += (size_t)n;
		} else {
			n = n ? n : 1;
			buf[at++] = '?';
		}
	}
	buf[at] = 0;
	return buf;
}

static const char *state_text(Inc__State state)
{
	if (state == INC__STATE__LIVE)
		return "live";
	return state == INC__STATE__CLOSED ? "ended" : "?";
}

/* ---- for people ---- */

static void switch_line(FILE *out, const Inc__SwitchInfo *s)
{
	char name[LINE], prefix[LINE], address[HA_ADDRESS_TEXT];

	fprintf(out, "%-16s  %-15s  %-6s  %5u of %5u free, longest %5u  ",
		sanitize_text(s->name, name), ha_address_text(s->ip, address),
		s->up ? "up" : "away", s->free, s->slots, s->longest);
	for (size_t i = 0; i < s->n_serves; i++)
		fprintf(out, "%s%s", i ? "," : "", sanitize_text(s->serves[i], prefix));
	fputc('\n', out);
}

static void group_line(FILE *out, const Inc__GroupInfo *g)
{
	char sw[LINE], name[LINE], tenant[LINE], why[LINE], address[HA_ADDRESS_TEXT];

	fprintf(out, "%5u  %-16s  %5u to %5u  %5u  %-5s  %6.1f s  %-15s  ", g->groupid,
		sanitize_text(g->switch_, sw), g->aggaddr, g->aggaddr + g->agglen - 1, g->epoch,
		state_text(g->state), (double)g->leftms / 1000, sanitize_text(g->tenant, tenant));
	for (size_t i = 0; i < g->n_member; i++)
		fprintf(out, "%s%s%s", i ? "," : "", ha_address_text(g->member[i]->ip, address),
			i < 32 && g->silent & 1u << i ? "(silent)" : "");
	if (*g->name)
		fprintf(out, "  %s", sanitize_text(g->name, name));
	if (*g->why)
		fprintf(out, "  (%s)", sanitize_text(g->why, why));
	fputc('\n', out);
}

/* ---- JSON ---- */

static json_t *text_json(const char *s)
{
	char buf[LINE];

	return json_string(sanitize_text(s, buf));
}

static json_t *address_json(uint32_t ip)
{
	char buf[HA_ADDRESS_TEXT];

	return json_string(ha_address_text(ip, buf));
}

static json_t *switch_json(const Inc__SwitchInfo *s)
{
	json_t *serves = json_array();

	for (size_t i = 0; i < s->n_serves; i++)
		json_array_append_new(serves, text_json(s->serves[i]));
	return json_pack("{s:o, s:o, s:b, s:b, s:I, s:I, s:I, s:o}", "name", text_json(s->name),
			 "address", address_json(s->ip), "up", s->up, "registers", s->registers,
			 "slots", (json_int_t)s->slots, "free", (json_int_t)s->free, "longest",
			 (json_int_t)s->longest, "serves", serves);
}

static json_t *group_json(const Inc__GroupInfo *g)
{
	json_t *members = json_array(), *silent = json_array(), *all;

	for (size_t i = 0; i < g->n_member; i++) {
		json_array_append_new(members, address_json(g->member[i]->ip));
		if (i < 32 && g->silent & 1u << i)
			json_array_append_new(silent, json_integer((json_int_t)i));
	}
	all = json_pack("{s:I, s:I, s:o, s:I, s:I, s:I, s:s, s:I, s:I, s:I}", "serial",
			(json_int_t)g->serial, "group", (json_int_t)g->groupid, "switch",
			text_json(g->switch_), "epoch", (json_int_t)g->epoch, "agg_addr",
			(json_int_t)g->aggaddr, "agg_len", (json_int_t)g->agglen, "state",
			state_text(g->state), "lease_ms", (json_int_t)g->leasems, "left_ms",
			(json_int_t)g->leftms, "created", (json_int_t)g->created);
	json_object_set_new(all, "members", members);
	json_object_set_new(all, "workers", json_integer((json_int_t)g->workers));
	json_object_set_new(all, "frames", json_string(g->extended ? "extended" : "old"));
	json_object_set_new(all, "silent_ranks", silent);
	json_object_set_new(all, "tenant", text_json(g->tenant));
	json_object_set_new(all, "name", text_json(g->name));
	json_object_set_new(all, "why", text_json(g->why));
	return all;
}

static void page_json(json_t *to, const Inc__ListResponse *list)
{
	for (size_t i = 0; i < list->n_switch_; i++)
		json_array_append_new(json_object_get(to, "switches"),
				      switch_json(list->switch_[i]));
	for (size_t i = 0; i < list->n_group; i++)
		json_array_append_new(json_object_get(to, "groups"), group_json(list->group[i]));
}

/* ---- both ---- */

void ha_group_table_begin(struct ha_group_table *t, FILE *out, bool json)
{
	*t = (struct ha_group_table) { .out = out };
	if (json)
		t->json = json_pack("{s:[], s:[]}", "switches", "groups");
}

void ha_group_table_page(void *user, const struct Inc__ListResponse *list)
{
	struct ha_group_table *t = user;

	if (t->json) {
		page_json(t->json, list);
		return;
	}
	if (!t->pages++) {
		for (size_t i = 0; i < list->n_switch_; i++)
			switch_line(t->out, list->switch_[i]);
		if (!list->n_switch_)
			fputs("the controller knows no switch\n", t->out);
	}
	if (list->n_group && !t->groups)
		fprintf(t->out, "\ngroup  %-16s  %-14s  epoch  state      left  %-15s  members\n",
			"switch", "aggregators", "client");
	for (size_t i = 0; i < list->n_group; i++, t->groups++)
		group_line(t->out, list->group[i]);
}

void ha_group_table_end(struct ha_group_table *t)
{
	if (t->json) {
		json_dumpf(t->json, t->out, JSON_INDENT(2));
		fputc('\n', t->out);
		json_decref(t->json);
	} else if (!t->groups) {
		fputs("no group\n", t->out);
	}
}
