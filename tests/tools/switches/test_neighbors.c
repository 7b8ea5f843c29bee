/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What LLDP daemons know, and which neighbor is a port's switch: lldpcli's JSON, the frames that
 * systemd-networkd keeps, and the rules for several neighbors, for bonds and for those that are no
 * switch.
 */
#include "tools/switches/neighbors.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/rng.h"

static struct switches_neighbors all[2];

/* ---- lldpcli ---- */

#define ID(kind, value) "\"id\": [{\"type\": \"" kind "\", \"value\": \"" value "\"}]"
#define TEXT(key, value) "\"" key "\": [{\"value\": \"" value "\"}]"
#define CAN(what, enabled) "\"capability\": [{\"type\": \"" what "\", \"enabled\": " enabled "}]"
#define CHASSIS(text) "\"chassis\": [{" text "}], "
#define PORT(text) "\"port\": [{" text "}]}"
#define NEIGHBOR(interface, via) "{\"name\": \"" interface "\", \"via\": \"" via "\", "
#define LISTENS(interface, how) "{\"name\": \"" interface "\", " TEXT("status", how) "}"
#define LIST(text) "{\"lldp\": [{\"interface\": [" text "]}]}"

#define MAC ID("mac", "50:6b:4b:12:34:56")
#define SWITCH                                                              \
	NEIGHBOR("e0", "LLDP")                                              \
	CHASSIS(MAC ", " TEXT("name", "leaf 1") ", " CAN("Bridge", "true")) \
	PORT(ID("ifname", "Ethernet1/1"))
#define BY_CDP NEIGHBOR("e0", "CDPv2") CHASSIS(ID("local", "leaf1")) PORT(ID("ifname", "Eth1/1"))
#define STATION                                                   \
	NEIGHBOR("e1", "LLDP")                                    \
	CHASSIS(ID("local", "leaf2") ", " CAN("Bridge", "false")) \
	PORT(ID("mac", "50:6b:4b:12:34:58") ", " TEXT("descr", "swp7"))
#define NO_CHASSIS "{\"name\": \"e0\", \"via\": \"LLDP\"}"
#define BAD_CHASSIS NEIGHBOR("e0", "LLDP") CHASSIS("\"id\": 4") PORT("\"id\": [4]")
#define BAD_NAMES "1, {}, {\"name\": 3}, {\"name\": \"an-interface-with-a-long-name\"}"

#define INTERFACES                                                                \
	LIST(LISTENS("e0", "RX and TX") "," LISTENS("e1", "RX only") "," LISTENS( \
		"e2", "TX only") "," LISTENS("e3", "RX and TX"))

static void begin(void)
{
	memset(all, 0, sizeof(all));
	all[0].source = "lldpd";
	all[1].source = "networkd";
}

static void what_lldpcli_prints(void)
{
	begin();
	CHECK(switches_take_lldpd(LIST(SWITCH "," BY_CDP "," STATION), INTERFACES, &all[0]));
	CHECK_INT(all[0].n, 2); /* one protocol only: others name the switch otherwise */
	CHECK_TEXT(all[0].neighbor[0].interface, "e0");
	CHECK_TEXT(all[0].neighbor[0].at.id, "mac:50:6b:4b:12:34:56");
	CHECK_TEXT(all[0].neighbor[0].at.name, "leaf_1");
	CHECK_TEXT(all[0].neighbor[0].at.port, "Ethernet1/1");
	CHECK(all[0].neighbor[0].forwards);
	CHECK_TEXT(all[0].neighbor[1].at.id, "local:leaf2");
	CHECK_TEXT(all[0].neighbor[1].at.port, "swp7"); /* a MAC address says little */
	CHECK(!all[0].neighbor[1].forwards);
	CHECK_INT(all[0].interfaces, 3); /* not where it only sends */
}

/* No neighbor, no JSON of lldpd's, and parts that are not what they should be. */
static void what_else_is_printed(void)
{
	begin();
	CHECK(switches_take_lldpd("{\"lldp\": [{}]}", INTERFACES, &all[0])); /* no neighbor */
	CHECK_INT(all[0].n, 0);
	CHECK(!switches_take_lldpd("{\"lldp\": {}}", INTERFACES, &all[0]));
	CHECK(!switches_take_lldpd("", INTERFACES, &all[0]));
	CHECK(!switches_take_lldpd("[1]", INTERFACES, &all[0]));
	CHECK(switches_take_lldpd(LIST(BAD_NAMES "," NO_CHASSIS "," BAD_CHASSIS), INTERFACES,
				  &all[0]));
	CHECK_INT(all[0].n, 0); /* who has no chassis ID is nobody */
}

/* ---- frames ---- */

struct frame {
	unsigned char data[1600];
	size_t size;
};

static void add_tlv(struct frame *f, unsigned type, const char *value, size_t size)
{
	f->data[f->size++] = (unsigned char)(type << 1 | size >> 8);
	f->data[f->size++] = (unsigned char)size;
	memcpy(f->data + f->size, value, size);
	f->size += size;
}

static void begin_frame(struct frame *f)
{
	static const unsigned char header[] = { 0x01, 0x80, 0xc2, 0x00, 0x00, 0x0e, 0x50,
						0x6b, 0x4b, 0x12, 0x34, 0x57, 0x88, 0xcc };

	memcpy(f->data, header, sizeof(header));
	f->size = sizeof(header);
}

/* A switch's: chassis ID (a MAC address), port ID (a name), name, capabilities. */
static void make_frame(struct frame *f, const char *capabilities)
{
	begin_frame(f);
	add_tlv(f, 1, "\4\x50\x6b\x4b\x12\x34\x56", 7);
	add_tlv(f, 2, "\5Ethernet1/1", 12);
	add_tlv(f, 3, "\0\x78", 2);
	add_tlv(f, 5, "leaf 1", 6);
	if (capabilities)
		add_tlv(f, 7, capabilities, 4);
	add_tlv(f, 0, "", 0);
}

static bool take_frame(const struct frame *f)
{
	begin();
	return switches_take_frame(f->data, f->size, "e0", &all[1]);
}

/* The same chassis, whichever daemon has received the frame. */
static void frames_of_switches(void)
{
	struct frame f;

	make_frame(&f, "\0\x14\0\x04");
	CHECK(take_frame(&f));
	CHECK_INT(all[1].n, 1);
	CHECK_TEXT(all[1].neighbor[0].at.id, "mac:50:6b:4b:12:34:56");
	CHECK_TEXT(all[1].neighbor[0].at.port, "Ethernet1/1");
	CHECK_TEXT(all[1].neighbor[0].at.name, "leaf_1");
	CHECK(all[1].neighbor[0].forwards);
	make_frame(&f, "\0\x14\0\x10"); /* a router */
	CHECK(take_frame(&f) && all[1].neighbor[0].forwards);
	make_frame(&f, "\0\x94\0\x80"); /* it could be either, and is a station */
	CHECK(take_frame(&f) && !all[1].neighbor[0].forwards);
	make_frame(&f, NULL); /* it need not say */
	CHECK(take_frame(&f) && all[1].neighbor[0].forwards);

	begin_frame(&f);
	add_tlv(&f, 1, "\5\1\x0a\1\2\3", 6);
	add_tlv(&f, 2, "\3\x50\x6b\x4b\x12\x34\x58", 7);
	add_tlv(&f, 4, "swp7", 4);
	add_tlv(&f, 0, "", 0);
	CHECK(take_frame(&f));
	CHECK_TEXT(all[1].neighbor[0].at.id, "ip:10.1.2.3");
	CHECK_TEXT(all[1].neighbor[0].at.port, "swp7");

	begin_frame(&f);
	add_tlv(&f, 1, "\7leaf2", 6);
	add_tlv(&f, 2, "\3\x50\x6b\x4b\x12\x34\x58", 7);
	add_tlv(&f, 0, "", 0);
	CHECK(take_frame(&f));
	CHECK_TEXT(all[1].neighbor[0].at.id, "local:leaf2");
	CHECK_TEXT(all[1].neighbor[0].at.port, "50:6b:4b:12:34:58");
}

static void frames_of_nobody(void)
{
	struct frame f;

	make_frame(&f, NULL);
	for (size_t whole = f.size; f.size; f.size--)
		CHECK_INT(take_frame(&f), f.size == whole);
	CHECK_INT(all[1].n, 0);
	make_frame(&f, NULL);
	f.data[12] = 8; /* another protocol */
	CHECK(!take_frame(&f));
	begin_frame(&f); /* no chassis */
	add_tlv(&f, 2, "\5Ethernet1/1", 12);
	add_tlv(&f, 0, "", 0);
	CHECK(!take_frame(&f));
	begin_frame(&f);
	add_tlv(&f, 1, "\4", 1); /* of no length */
	add_tlv(&f, 2, "\5Ethernet1/1", 12);
	add_tlv(&f, 0, "", 0);
	CHECK(!take_frame(&f));
}

/* Whatever comes, what is taken can be written into the file and read again. */
static void frames_at_random(void)
{
	struct sr_rng rng = { 4711 };
	struct frame f;

	for (int i = 0; i < 20000; i++) {
		struct ha_switches_line line = { .device = "mlx5_0", .port = 1 }, again = { 0 };
		char *text = NULL;
		size_t len;
		FILE *out;

		make_frame(&f, "\0\x14\0\x04");
		for (int k = 0; k < 1 + i % 4; k++)
			f.data[sr_rng_below(&rng, f.size)] = (unsigned char)sr_rng_next(&rng);
		if (!take_frame(&f))
			continue;
		line.at = all[1].neighbor[0].at;
		strcpy(line.at.source, "networkd");
		out = open_memstream(&text, &len);
		ha_switches_print(&line, out);
		fclose(out);
		text[len - 1] = 0;
		CHECK_THAT(ha_switches_parse(text, &again) == 1, "not readable: %s", text);
		free(text);
	}
}

static void what_networkd_keeps(void)
{
	unsigned char data[4096];
	size_t size = 0;
	struct frame f;

	begin();
	make_frame(&f, NULL);
	for (int i = 0; i < 2; i++) {
		memset(data + size, 0, 8);
		data[size] = (unsigned char)f.size;
		memcpy(data + size + 8, f.data, f.size);
		size += 8 + f.size;
	}
	CHECK(switches_take_networkd(data, size, "e0", &all[1]));
	CHECK_INT(all[1].n, 2);
	begin();
	CHECK(switches_take_networkd(data, 0, "e0", &all[1]));
	CHECK(!switches_take_networkd(data, size - 1, "e0", &all[1])); /* cut off */
	CHECK_INT(all[1].n, 1);
	CHECK(!switches_take_networkd(data, 7, "e0", &all[1]));
	memset(data, 0xff, 8); /* a length that no file has */
	CHECK(!switches_take_networkd(data, size, "e0", &all[1]));
	begin();
	memset(data, 0, 8);
	data[0] = 20; /* a frame that is none, and what follows is none either */
	CHECK(!switches_take_networkd(data, 28, "e0", &all[1]));
	CHECK_INT(all[1].n, 0);
}

/* ---- which neighbor is the port's switch ---- */

static void add(struct switches_neighbors *daemon, const char *interface, const char *id,
		bool forwards)
{
	struct switches_neighbor *new = switches_add_neighbor(daemon, interface);

	strcpy(new->at.id, id);
	new->forwards = forwards;
}

static struct switches_port choose(const char *first, const char *second)
{
	struct switches_port port = { .line = { .device = "mlx5_0", .port = 1 } };

	if (first)
		strcpy(port.interface[port.interfaces++], first);
	if (second)
		strcpy(port.interface[port.interfaces++], second);
	switches_choose(&port, all, 2);
	return port;
}

static void one_of_several(void)
{
	struct switches_port p;

	begin();
	switches_add_interface(&all[0], "e1");
	add(&all[0], "e0", "mac:1", true);
	p = choose("e0", NULL);
	CHECK_INT(p.answer, SWITCHES_FOUND);
	CHECK_TEXT(p.line.at.id, "mac:1");
	CHECK_TEXT(p.line.at.source, "lldpd");
	p = choose("e1", NULL);
	CHECK_INT(p.answer, SWITCHES_NONE);
	CHECK_TEXT(p.why, "no neighbor");
	CHECK_TEXT(p.line.at.source, "lldpd");

	add(&all[0], "e0", "mac:2", false); /* a station beside the switch */
	CHECK_INT(choose("e0", NULL).answer, SWITCHES_FOUND);
	add(&all[0], "e0", "mac:1", true); /* the switch again */
	CHECK_INT(choose("e0", NULL).answer, SWITCHES_FOUND);
	add(&all[0], "e0", "mac:3", true);
	p = choose("e0", NULL);
	CHECK_INT(p.answer, SWITCHES_SEVERAL);
	CHECK_TEXT(p.why, "several switches: mac:1, mac:3");
	CHECK_TEXT(p.line.at.id, "");

	add(&all[0], "e1", "mac:2", false);
	p = choose("e1", NULL);
	CHECK_INT(p.answer, SWITCHES_NONE);
	CHECK_TEXT(p.why, "its neighbor mac:2 is no switch");
}

static void bonds(void)
{
	begin();
	add(&all[0], "e0", "mac:1", true);
	CHECK_INT(choose("e0", "e1").answer, SWITCHES_NOT_ASKED); /* the other may hang anywhere */
	add(&all[0], "e1", "mac:1", true);
	CHECK_INT(choose("e0", "e1").answer, SWITCHES_FOUND);
	add(&all[0], "e2", "mac:2", true);
	CHECK_INT(choose("e0", "e2").answer, SWITCHES_SEVERAL);
}

static void two_daemons(void)
{
	struct switches_port p;

	begin();
	switches_add_interface(&all[0], "e0");
	add(&all[1], "e0", "mac:1", true); /* lldpd has no neighbor yet */
	add(&all[1], "e1", "mac:2", true); /* nor listens there */
	p = choose("e0", NULL);
	CHECK_INT(p.answer, SWITCHES_FOUND);
	CHECK_TEXT(p.line.at.source, "networkd");
	CHECK_TEXT(choose("e1", NULL).line.at.id, "mac:2");
	add(&all[0], "e0", "mac:3", true);
	CHECK_TEXT(choose("e0", NULL).line.at.id, "mac:3");

	p = choose("e9", NULL);
	CHECK_INT(p.answer, SWITCHES_NOT_ASKED);
	CHECK_TEXT(p.why, "neither lldpd nor networkd listens on e9");
	strcpy(all[0].why, "lldpcli: not installed");
	CHECK_TEXT(choose("e9", NULL).why, "lldpcli: not installed");
	CHECK_TEXT(choose(NULL, NULL).why, "it has no network interface");
}

int main(void)
{
	what_lldpcli_prints();
	what_else_is_printed();
	frames_of_switches();
	frames_of_nobody();
	frames_at_random();
	what_networkd_keeps();
	one_of_several();
	bonds();
	two_daemons();
	return 0;
}
