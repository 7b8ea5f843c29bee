/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The file of `ha switches`: what a line says, which lines make no sense, which files are refused,
 * and what two ports then have in common.
 */
#include "rdma/topo/switches.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/rng.h"
#include "rdma/topo/standby.h"
#include "tests/base/lines.h"
#include "tests/rdma/topo/machine.h"

#define LEAF1 "mac:50:6b:4b:12:34:56"
#define LEAF2 "mac:50:6b:4b:12:34:57"

static struct machine m;

/* ---- lines ---- */

static int parse_line(const char *text, struct ha_switches_line *line)
{
	memset(line, 0, sizeof(*line));
	return ha_switches_parse(text, line);
}

static void lines_with_sense(void)
{
	struct ha_switches_line line;
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	CHECK_INT(parse_line("mlx5_0:1 " LEAF1 " Ethernet1/1 lldpd leaf1", &line), 1);
	CHECK_TEXT(line.device, "mlx5_0");
	CHECK_INT(line.port, 1);
	CHECK_TEXT(line.at.id, LEAF1);
	CHECK_TEXT(line.at.port, "Ethernet1/1");
	CHECK_TEXT(line.at.source, "lldpd");
	CHECK_TEXT(line.at.name, "leaf1");
	ha_switches_print(&line, out);

	CHECK_INT(parse_line("\tmlx5_1:2  - -\tlldpd - ", &line), 1); /* no neighbor */
	CHECK_TEXT(line.at.id, "");
	CHECK_TEXT(line.at.name, "");
	ha_switches_print(&line, out);
	fclose(out);
	CHECK_TEXT(text, "mlx5_0:1 " LEAF1 " Ethernet1/1 lldpd leaf1\nmlx5_1:2 - - lldpd -\n");
	free(text);

	CHECK_INT(parse_line("", &line), 0);
	CHECK_INT(parse_line("  # mlx5_0:1", &line), 0);
}

static void lines_without_sense(void)
{
	static const char *const texts[] = {
		"mlx5_0:1",
		"mlx5_0:1 " LEAF1 " 1 lldpd",
		"mlx5_0:1 " LEAF1 " 1 lldpd leaf1 more",
		"mlx5_0 " LEAF1 " 1 lldpd leaf1",
		":1 " LEAF1 " 1 lldpd leaf1",
		"mlx5_0:0 " LEAF1 " 1 lldpd leaf1",
		"mlx5_0:256 " LEAF1 " 1 lldpd leaf1",
		"mlx5_0:1x " LEAF1 " 1 lldpd leaf1",
		"mlx5_0: " LEAF1 " 1 lldpd leaf1",
		"mlx5_0:1 leaf1 1 lldpd leaf1",
		"mlx5_0:1 mac: 1 lldpd leaf1",
		"mlx5_0:1 :50 1 lldpd leaf1",
		"mlx5_0:1 " LEAF1 " 1 a-source-with-a-long-name leaf1",
		"mlx5_0:1 " LEAF1 " 1 lldpd leaf\033[31m",
		"mlx5_0:1 " LEAF1 " 1 lldpd leaf\303\244",
		"a-device-with-a-name-that-is-so-long-that-no-device-of-any-kernel-can-have-it-at-"
		"all:1 " LEAF1 " 1 lldpd leaf1",
	};
	struct ha_switches_line line;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		CHECK_THAT(parse_line(texts[i], &line) == -EINVAL, "taken: %s", texts[i]);
}

/* Whatever is in a line, it is refused, or means the same when it is written and read again. */
static void lines_at_random(void)
{
	static const char sound[] = "mlx5_0:1 " LEAF1 " Ethernet1/1 lldpd leaf1";
	struct sr_rng rng = { 4711 };

	for (int i = 0; i < 20000; i++) {
		struct ha_switches_line line, again;
		char text[sizeof(sound)], *printed = NULL;
		size_t len;
		FILE *out;

		memcpy(text, sound, sizeof(sound));
		for (int k = 0; k < 1 + i % 4; k++)
			text[sr_rng_below(&rng, sizeof(sound) - 1)] = (char)sr_rng_below(&rng, 256);
		if (parse_line(text, &line) != 1)
			continue;
		out = open_memstream(&printed, &len);
		ha_switches_print(&line, out);
		fclose(out);
		printed[len - 1] = 0;
		CHECK_INT(parse_line(printed, &again), 1);
		CHECK_THAT(!memcmp(&line, &again, sizeof(line)), "not the same: %s", text);
		free(printed);
	}
}

static void words(void)
{
	char word[8];

	ha_switches_word(word, sizeof(word), "leaf 1\n", 7);
	CHECK_TEXT(word, "leaf_1_");
	ha_switches_word(word, sizeof(word), "a\303\244b", 4);
	CHECK_TEXT(word, "a__b");
	ha_switches_word(word, sizeof(word), "too-long-a-name", 15);
	CHECK_TEXT(word, "too-lon");
	ha_switches_word(word, sizeof(word), "ab\0cd", 5);
	CHECK_TEXT(word, "ab");
}

/* ---- files ---- */

static const char *path(void)
{
	static char name[128];

	snprintf(name, sizeof(name), "%s/switches", m.tree.root);
	return name;
}

static void write_file(const char *text)
{
	tree_file(&m.tree, "/switches", text);
	CHECK_INT(chmod(path(), 0644), 0);
}

/* The list anew, with this text in the file. */
static void discover_with(const char *text)
{
	write_file(text);
	ha_topo_release(&m.topo);
	snprintf(m.config.switches, sizeof(m.config.switches), "%s", path());
	lines_catch();
	machine_discover(&m);
}

static const struct ha_topo_device *port(const char *label)
{
	return &m.topo.devices[machine_port(&m, label)];
}

static void ports_and_switches(void)
{
	char text[160];

	machine_eight_by_rail(&m);
	discover_with(HA_SWITCHES_HEAD "\n"
				       "mlx5_0:1 " LEAF1 " Ethernet1/1 lldpd leaf1\n"
				       "mlx5_1:1 " LEAF2 " Ethernet1/1 lldpd -\n"
				       "mlx5_2:1 " LEAF1 " Ethernet1/2 lldpd leaf1\n"
				       "mlx5_3:1 - - lldpd -\n"
				       "mlx5_77:1 " LEAF1 " 1 lldpd leaf1\n");
	CHECK_INT(lines_warnings(), 0);
	CHECK_TEXT(port("mlx5_0:1")->place.at.name, "leaf1");
	CHECK(ha_leaf(port("mlx5_0:1")));
	CHECK(ha_leaf(port("mlx5_0:1")) & HA_LEAF_SWITCH);
	CHECK_INT(ha_leaf(port("mlx5_0:1")), ha_leaf(port("mlx5_2:1")));
	CHECK(ha_leaf(port("mlx5_0:1")) != ha_leaf(port("mlx5_1:1")));
	CHECK_INT(ha_leaf(port("mlx5_3:1")), 0);
	CHECK_INT(ha_leaf(port("mlx5_4:1")), 0);
	CHECK(ha_standby_shares_leaf(port("mlx5_0:1"), port("mlx5_2:1")));
	CHECK(!ha_standby_shares_leaf(port("mlx5_0:1"), port("mlx5_1:1")));
	CHECK(!ha_standby_shares_leaf(port("mlx5_3:1"), port("mlx5_4:1")));
	CHECK_TEXT(ha_leaf_text(&m.topo, ha_leaf(port("mlx5_2:1")), text, sizeof(text)),
		   "leaf1 (" LEAF1 ")");
	CHECK_TEXT(ha_leaf_text(&m.topo, ha_leaf(port("mlx5_1:1")), text, sizeof(text)), LEAF2);
	CHECK_TEXT(ha_leaf_text(&m.topo, ha_leaf_of_switch("mac:1"), text, sizeof(text)),
		   "of the peer's NICs");
	machine_end(&m);
}

/* NCCL_IB_HCA's rail wins, and the two kinds are never compared. */
static void rails_win(void)
{
	uint32_t rail, leaf;
	char text[160];

	machine_eight_by_rail(&m);
	discover_with(HA_SWITCHES_HEAD "\nmlx5_0:1 " LEAF1 " 1 lldpd leaf1\n"
				       "mlx5_1:1 " LEAF1 " 2 lldpd leaf1\n");
	leaf = ha_leaf(port("mlx5_0:1"));
	m.topo.devices[machine_port(&m, "mlx5_1:1")].place.rail_id = 3;
	rail = ha_leaf(port("mlx5_1:1"));
	CHECK_INT(rail, 4 << 12);
	CHECK_TEXT(ha_leaf_text(&m.topo, rail, text, sizeof(text)), "of rail 3");
	CHECK(!ha_leaf_comparable(leaf, rail));
	CHECK(!ha_leaf_comparable(leaf, 0) && !ha_leaf_comparable(0, rail));
	CHECK(ha_leaf_comparable(leaf, ha_leaf_of_switch(LEAF2)));
	CHECK(ha_leaf_comparable(rail, 1 << 12));
	m.topo.devices[machine_port(&m, "mlx5_1:1")].place.plane_id = 1;
	CHECK_TEXT(ha_leaf_text(&m.topo, ha_leaf(port("mlx5_1:1")), text, sizeof(text)),
		   "of rail 3, plane 1");
	m.topo.devices[machine_port(&m, "mlx5_1:1")].place.rail_id = HA_LEAF_MAX;
	CHECK_INT(ha_leaf(port("mlx5_1:1")), 0); /* too large to be sent */
	m.topo.devices[machine_port(&m, "mlx5_1:1")].place.rail_id = HA_LEAF_MAX - 1;
	CHECK(!(ha_leaf(port("mlx5_1:1")) & HA_LEAF_SWITCH));
	machine_end(&m);
}

/* The first line that makes no sense is named by its number; the others count all the same. */
static void nonsense_is_left_out(void)
{
	machine_eight_by_rail(&m);
	discover_with(HA_SWITCHES_HEAD "\n\n"
				       "mlx5_0:1 " LEAF1 " Ethernet1/1 lldpd leaf1\n"
				       "mlx5_1:1 nonsense\n"
				       "mlx5_0:1 " LEAF2 " Ethernet1/1 lldpd leaf2\n" /* again */
				       "mlx5_2:1 " LEAF2 " Ethernet1/1 lldpd leaf2");
	CHECK_INT(lines_count("line 4 of "), 1);
	CHECK(lines_contain("(2 such in all)"));
	CHECK_TEXT(port("mlx5_0:1")->place.at.name, "leaf1");
	CHECK_TEXT(port("mlx5_1:1")->place.at.id, "");
	CHECK_TEXT(port("mlx5_2:1")->place.at.name, "leaf2");
	machine_end(&m);
}

static void expect_refused(const char *why)
{
	ha_topo_release(&m.topo);
	lines_catch();
	machine_discover(&m);
	CHECK_INT(lines_count("is not read: "), 1);
	CHECK_THAT(lines_contain(why), "not refused: %s", why);
	CHECK(lines_contain("HA_NCCL_SWITCHES=none"));
	CHECK_TEXT(port("mlx5_0:1")->place.at.id, "");
}

static void refused_files(void)
{
	static const char sound[] = HA_SWITCHES_HEAD "\nmlx5_0:1 " LEAF1 " 1 lldpd leaf1\n";
	char *large = malloc(70000);

	machine_eight_by_rail(&m);
	discover_with(sound);
	CHECK_TEXT(port("mlx5_0:1")->place.at.name, "leaf1");
	CHECK_INT(chmod(path(), 0664), 0);
	expect_refused("others may write to it");
	CHECK_INT(chmod(path(), 0646), 0);
	expect_refused("others may write to it");
	CHECK_INT(chmod(path(), 0644), 0);
	if (!geteuid()) {
		CHECK_INT(chown(path(), 12345, 0), 0);
		expect_refused("it is another user's");
		CHECK_INT(chown(path(), 0, 0), 0);
	}
	write_file("# hawser switches 2\n");
	expect_refused("its first line is not");
	write_file("");
	expect_refused("its first line is not");
	memset(large, '#', 69999);
	large[69999] = 0;
	write_file(large);
	expect_refused("it is longer than");
	CHECK_INT(unlink(path()), 0);
	expect_refused("No such file");
	CHECK_INT(mkdir(path(), 0755), 0);
	expect_refused("it is no file");

	ha_topo_release(&m.topo); /* no file is read, and nothing is said */
	strcpy(m.config.switches, "none");
	lines_catch();
	machine_discover(&m);
	CHECK_INT(lines_count("switches"), 0);
	ha_topo_release(&m.topo); /* this host's says nothing about a machine that is made up */
	strcpy(m.config.switches, HA_SWITCHES_FILE);
	lines_catch();
	machine_discover(&m);
	CHECK_INT(lines_count("switches"), 0);
	free(large);
	machine_end(&m);
}

int main(void)
{
	lines_with_sense();
	lines_without_sense();
	lines_at_random();
	words();
	ports_and_switches();
	rails_win();
	nonsense_is_left_out();
	refused_files();
	return 0;
}
