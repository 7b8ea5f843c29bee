/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ina-vectors: every case as a packet test for P4 targets (STF), and all frames in one capture with
 * a list of what is in them
 *
 * Usage: ina-vectors stf DIRECTORY       one CASE_KIND.stf for each case and kind of frame
 *        ina-vectors pcap FILE LIST      all frames, in and out; LIST has a line for each
 */
#include "base/options.h"
#include "ina/frame/bytes.h"
#include "ina/switch/vectors/cases.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct out {
	struct ina_switch sw;
	struct ina_slot slot[INA_CASE_SLOTS];
	uint64_t now;
	FILE *stf, *pcap, *list;
	uint32_t frames;
	unsigned nodes; /* of multicast, in this case */
};

/* ---- STF ---- */

static void stf_bytes(FILE *f, const char *verb, unsigned port, const uint8_t *bytes, size_t len)
{
	fprintf(f, "%s %u ", verb, port);
	for (size_t i = 0; i < len; i++)
		fprintf(f, "%02x", bytes[i]);
	fputc('\n', f);
}

static uint64_t mac_number(const uint8_t mac[6])
{
	uint64_t n = 0;

	for (int i = 0; i < 6; i++)
		n = n << 8 | mac[i];
	return n;
}

/* The tables of ina/p4/ina_v1model.p4. */
static void stf_group(struct out *o, const struct ina_group_config *c)
{
	FILE *f = o->stf;
	uint32_t each = c->len / c->workers, all = UINT32_MAX >> (32 - c->ranks);

	fprintf(f, "# group %u, epoch %u: %u ranks, %u workers, %s frames, slots %u to %u\n", c->id,
		c->epoch, c->ranks, c->workers, c->extended ? "extended" : "old", c->base,
		c->base + c->len - 1);
	fprintf(f,
		"add group group:%u extended:%u set_group(ranks:%u, workers:%u, base:%u, each:%u, "
		"mask:%u, all:%" PRIu32 ", epoch:%" PRIu32 ", first_psn:%" PRIu32 ")\n",
		c->id, c->extended, c->ranks, c->workers, c->base, each, each - 1, all, c->epoch,
		c->first_psn);
	for (unsigned i = 0; i < c->ranks; i++) {
		fprintf(f, "add member group:%u rank:%u set_member(addr:0x%08x)\n", c->id, i,
			c->member[i].addr);
		fprintf(f,
			"add receiver group:%u to:%u set_receiver(addr:0x%08x, mac:0x%012" PRIx64
			")\n",
			c->id, i, c->member[i].addr, mac_number(c->member[i].mac));
	}
	fprintf(f, "mc_mgrp_create %u\n", c->id);
	for (unsigned i = 0; i < c->ranks; i++)
		fprintf(f, "mc_node_create %u %u\nmc_node_associate %u %u\n", i, i, c->id,
			o->nodes++);
}

/* ---- pcap (the classic format, microseconds, Ethernet) ---- */

static void pcap_header(FILE *f)
{
	const uint32_t h[6] = { 0xa1b2c3d4, 2 | 4 << 16, 0, 0, 65535, 1 };

	fwrite(h, sizeof(h), 1, f);
}

static void pcap_frame(struct out *o, const uint8_t *bytes, size_t len)
{
	const uint32_t h[4] = { 1, o->frames, (uint32_t)len, (uint32_t)len };
	struct ina_frame f;

	o->frames++;
	fwrite(h, sizeof(h), 1, o->pcap);
	fwrite(bytes, len, 1, o->pcap);
	if (ina_frame_decode(bytes, len, &f) != INA_FAULT_NONE) {
		fprintf(o->list, "%u bad\n", o->frames);
		return;
	}
	fprintf(o->list,
		"%u %s coll=%u group=%u rank=%u root=%u slot=%u psn=%" PRIu32
		" worker=%u ecn=%u flags=0x%02x exponent=%u epoch=%" PRIu32
		" words=%u first=%d last=%d\n",
		o->frames, f.extended ? "extended" : "old", f.coll, f.group, f.rank, f.root,
		f.agg_addr, f.psn, f.worker, f.ecn, f.flags, f.exponent, f.epoch,
		f.words ? INA_WORDS : 0, f.words ? (int32_t)ina_get32(f.words) : 0,
		f.words ? (int32_t)ina_get32(f.words + INA_PAYLOAD_BYTES - 4) : 0);
}

/* ---- a case ---- */

static void install_group(void *arg, const struct ina_group_config *group)
{
	struct out *o = arg;
	const char *why;

	if (ina_switch_install(&o->sw, group, &why)) {
		fprintf(stderr, "ina-vectors: %s\n", why);
		exit(1);
	}
	if (o->stf)
		stf_group(o, group);
}

static void end_lease(void *arg, const struct ina_group_config *group)
{
	struct out *o = arg;

	ina_switch_renew(&o->sw, group->id, group->epoch, o->now);
	if (o->stf)
		fprintf(o->stf, "# its lease ends\nadd lapsed group:%u end_group()\n", group->id);
}

/* STF takes nothing out of a table; entries that nobody's packets meet do no harm. */
static void remove_group(void *arg, const struct ina_group_config *group)
{
	struct out *o = arg;

	ina_switch_remove(&o->sw, group->id, group->epoch);
	if (o->stf)
		fprintf(o->stf, "# group %u is over, and its slots are another's\n", group->id);
}

static void write_answer(struct out *o, const struct ina_verdict *v, uint8_t rank)
{
	struct ina_frame f;
	uint8_t bytes[INA_FRAME_MAX];
	size_t len;

	ina_switch_answer(&o->sw, v, rank, &f);
	len = ina_frame_encode(&f, bytes);
	if (o->stf)
		stf_bytes(o->stf, "expect", rank, bytes, len);
	if (o->pcap)
		pcap_frame(o, bytes, len);
}

static void play_packet(void *arg, unsigned port, const uint8_t *bytes, size_t len)
{
	struct out *o = arg;
	struct ina_frame f;
	struct ina_verdict v = { .action = INA_DROP };
	enum ina_fault fault = ina_frame_decode(bytes, len, &f);

	o->now++;
	if (fault == INA_FAULT_NONE)
		ina_switch_step(&o->sw, o->now, &f, &v);
	if (o->stf) {
		fprintf(o->stf, "# %s\n",
			fault ? ina_fault_name(fault, NULL) : ina_reason_name(v.reason, NULL));
		stf_bytes(o->stf, "packet", port, bytes, len);
	}
	if (o->pcap)
		pcap_frame(o, bytes, len);
	for (uint8_t i = 0; v.action != INA_DROP && i < ina_switch_ranks(&o->sw, &v); i++)
		if (v.action == INA_ANSWER_ALL || i == f.rank)
			write_answer(o, &v, i);
}

static void run_case(struct out *o, const struct ina_case *c, bool extended)
{
	const struct ina_case_sink sink = { .install = install_group,
					    .lapse = end_lease,
					    .remove = remove_group,
					    .packet = play_packet,
					    .arg = o };

	o->nodes = 0;
	ina_switch_init(&o->sw, INA_CASE_SWITCH, ina_case_mac, o->slot, INA_CASE_SLOTS);
	c->run(&sink, extended);
}

static FILE *open_or_end(const char *path)
{
	FILE *f = fopen(path, "w");

	if (!f) {
		fprintf(stderr, "ina-vectors: cannot write %s: %s\n", path, strerror(errno));
		exit(1);
	}
	return f;
}

/* A full disk shows here. */
static void close_or_end(FILE *f, const char *path)
{
	if (!ferror(f) && !fclose(f))
		return;
	fprintf(stderr, "ina-vectors: cannot write %s: %s\n", path, strerror(errno));
	exit(1);
}

static void write_stf(struct out *o, const char *directory, const struct ina_case *c, bool extended)
{
	const char *kind = extended ? "extended" : "old";
	char path[512];

	snprintf(path, sizeof(path), "%s/%s_%s.stf", directory, c->name, kind);
	o->stf = open_or_end(path);
	fprintf(o->stf,
		"# %s, %s frames: %s. Written by ina-vectors from the slot core "
		"(ina/switch/switch.c); do not edit.\n",
		c->name, kind, c->help);
	run_case(o, c, extended);
	close_or_end(o->stf, path);
	o->stf = NULL;
}

static void write_cases(struct out *o, const char *directory)
{
	for (unsigned i = 0; i < 2 * ina_ncases; i++) {
		const struct ina_case *c = &ina_cases[i / 2];
		bool extended = i & 1;

		if (extended ? !c->extended : !c->old)
			continue;
		if (directory)
			write_stf(o, directory, c, extended);
		else
			run_case(o, c, extended);
	}
}

enum { WRITE_STF, WRITE_PCAP };

struct arguments {
	unsigned kind;
	const char *path, *list;
};

#define HA_TARGET struct arguments

static const char *const kinds[] = { [WRITE_STF] = "stf", [WRITE_PCAP] = "pcap", NULL };

static const struct ha_option operands[] = {
	{ "KIND", 0, NULL, "stf or pcap", HA_CHOICE(kind, kinds) },
	{ "PATH", 0, NULL, "a directory for stf, a file for pcap", HA_TEXT(path) },
	{ "LIST", 0, NULL, "for pcap: a file with a line for each frame", HA_TEXT(list) },
	{ 0 },
};

static const struct ha_program program = {
	.name = "ina-vectors",
	.synopsis = "stf DIRECTORY\npcap FILE LIST",
	.about = "Writes every case as a packet test for P4 targets (stf: one CASE_KIND.stf for "
		 "each case and kind of frame), or all frames, in and out, in one capture.",
	.operands = operands,
	.needed = 2,
};

int main(int argc, char **argv)
{
	static struct out o;
	struct arguments arguments = { 0 };
	int stop = ha_options_parse(&program, argc, argv, &arguments);

	if (stop)
		return stop - 1;
	if ((arguments.kind == WRITE_PCAP) != (arguments.list != NULL))
		return ha_program_refuse(&program, "pcap takes a LIST, and stf none") - 1;
	if (arguments.kind == WRITE_STF) {
		write_cases(&o, arguments.path);
		return 0;
	}
	o.pcap = open_or_end(arguments.path);
	o.list = open_or_end(arguments.list);
	pcap_header(o.pcap);
	write_cases(&o, NULL);
	close_or_end(o.pcap, arguments.path);
	close_or_end(o.list, arguments.list);
	return 0;
}
