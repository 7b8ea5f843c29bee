/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What `ha topo` shows of machines of real shapes, character by character: golden/<shape>.txt and
 * .json. A test that finds another text prints it; when that one is right, put it into the file.
 */
#include "tools/topo_view.h"

#include "base/check.h"
#include "tests/rdma/topo/machine.h"

static struct machine m;
static struct ha_standby standby;
static const char *folder;

/* The file's text, "" without one. */
static char *file_text(const char *name)
{
	char path[512], *text = calloc(1, 1 << 20);
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "r");
	if (f) {
		text[fread(text, 1, (1 << 20) - 1, f)] = 0;
		fclose(f);
	}
	return text;
}

static void check_golden(const char *name, const char *is)
{
	char *want = file_text(name);

	if (strcmp(is, want)) {
		fprintf(stderr, "%s should be:\n%s\nbut is:\n%s", name, want, is);
		exit(1);
	}
	free(want);
}

static struct topo_view view_make(void)
{
	CHECK_INT(ha_standby_compute(&m.topo, &standby), 0);
	ha_standby_avoid_leaf(&m.topo, &standby);
	return (struct topo_view) { .topo = &m.topo, .standby = &standby, .utf8 = true };
}

static char *draw_view(const struct topo_view *view, bool json)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	if (json) {
		CHECK_INT(topo_json_print(view, out), 0);
	} else {
		topo_tree_print(view, out);
		fprintf(out, "\n");
		topo_pairs_print(view, out);
		topo_protection_print(view, out);
	}
	fclose(out);
	return text;
}

static void check_shape(const char *name, bool json)
{
	struct topo_view view = view_make();
	char *text = draw_view(&view, json), file[64];

	snprintf(file, sizeof(file), "%s.%s", name, json ? "json" : "txt");
	check_golden(file, text);
	free(text);
}

/* Of four dual-port cards one second port is unplugged, and one has a link but no address. */
static void some_ports_down(void)
{
	machine_dual_port_cards(&m);
	ha_topo_release(&m.topo);
	m.devices[1].ports[0].state = IBV_PORT_DOWN;
	memset(m.devices[5].ports[0].gids, 0, sizeof(m.devices[5].ports[0].gids));
	machine_discover(&m);
	CHECK_INT(m.topo.ndevices, 6);
	check_shape("dual_port_cards", false);
	check_shape("dual_port_cards", true);
	machine_end(&m);
}

/* A terminal without UTF-8; and what the list is worth when failover is there. */
static void without_utf8(void)
{
	struct topo_view view;
	char *text;

	machine_two_fabrics(&m);
	view = view_make();
	view.utf8 = false;
	view.failover = TOPO_FAILOVER_ON;
	text = draw_view(&view, false);
	check_golden("two_fabrics.txt", text);
	free(text);
	machine_end(&m);

	machine_software(&m, 1);
	view = view_make();
	view.failover = TOPO_FAILOVER_OFF;
	text = draw_view(&view, false);
	check_golden("one_software_nic.txt", text);
	free(text);
	ha_topo_release(&m.topo);
	view = view_make(); /* no device at all */
	text = draw_view(&view, false);
	CHECK_TEXT(
		text,
		"\nstandby order: what failover will use; this version does not fail over yet\n");
	free(text);
	machine_end(&m);
}

static void places_in_the_pci_tree(void)
{
	char text[128];

	machine_begin(&m);
	machine_roce(&m, "a", "/sys/devices/pci0000:20/0000:20:01.0/0000:21:00.0", -1, 1,
		     "10.0.0.1");
	machine_roce(&m, "b", "/sys/devices/pci0000:20/0000:20:02.0/0000:22:00.0/0000:23:00.0", -1,
		     2, "10.0.0.2");
	machine_roce(&m, "c",
		     "/sys/devices/pci0000:20/0000:20:03.0/0000:24:00.0/0000:25:00.0/0000:26:00.0",
		     -1, 3, "10.0.0.3");
	machine_discover(&m);
	CHECK_TEXT(topo_place_text(&m.topo.devices[0], text, sizeof(text)),
		   "root complex pci0000:20");
	CHECK_TEXT(topo_place_text(&m.topo.devices[1], text, sizeof(text)),
		   "PCI bridge 0000:20:02.0");
	CHECK_TEXT(topo_place_text(&m.topo.devices[2], text, sizeof(text)),
		   "PCI switch 0000:24:00.0");
	CHECK_TEXT(topo_card_text(&m.topo.devices[2], text, sizeof(text)), "0000:26:00");
	check_shape("places", false);
	machine_end(&m);
}

/* NCCL_IB_HCA gives rails: a NIC that hangs on the port's own leaf switch is taken last, and told
 * from one that does not. */
static void rails_known(void)
{
	machine_eight_by_rail(&m);
	for (int i = 0; i < 6; i++)
		m.topo.devices[i].place.rail_id = i < 2 ? 0 : i;
	m.topo.devices[4].place.rail_id = m.topo.devices[5].place.rail_id;
	m.topo.devices[5].place.plane_id = 1;
	check_shape("rails_known", false);
	machine_end(&m);
}

static void protection_is(const char *text)
{
	struct topo_view view = view_make();
	char *is = NULL;
	size_t len;
	FILE *out = open_memstream(&is, &len);

	view.failover = TOPO_FAILOVER_ON;
	topo_protection_print(&view, out);
	fclose(out);
	CHECK_TEXT(is, text);
	free(is);
}

/* What one line promises follows from how many leaf switches the ports are on. */
static void leaf_switches(void)
{
	machine_eight_by_rail(&m);
	for (int i = 0; i < 8; i++)
		m.topo.devices[i].place.rail_id = 4;
	protection_is(
		"protection, RoCE: against the loss of a NIC; NOT of a leaf switch: no standby "
		"avoids that of rail 4, which all ports are on\n");
	for (int i = 0; i < 8; i++)
		m.topo.devices[i].place.plane_id = i & 1;
	protection_is("protection, RoCE: against the loss of a NIC or a leaf switch; no standby "
		      "avoids both of a path between the two: if one fails, other NICs are "
		      "connected first\n");
	m.topo.devices[7].place.rail_id = 5;
	protection_is("protection, RoCE: against the loss of a NIC or a leaf switch\n");
	m.topo.devices[3].place.rail_id = -1;
	protection_is("protection, RoCE: against the loss of a NIC; leaf switches are not known: "
		      "neither NCCL_IB_HCA nor HA_NCCL_SWITCHES names that of mlx5_3:1\n");
	/* A port that is down protects nothing. */
	m.topo.devices[3].up = m.topo.devices[7].up = false;
	for (int i = 0; i < 8; i += 2)
		m.topo.devices[i].up = false;
	protection_is(
		"protection, RoCE: against the loss of a NIC; NOT of a leaf switch: no standby "
		"avoids that of rail 4, plane 1, which all ports are on\n");
	machine_end(&m);
}

/* As by rails, where the file of `ha switches` names the switches. */
static void switches_of_the_file(void)
{
	char *text, name[16];
	struct topo_view view;

	machine_eight_by_rail(&m);
	for (int i = 0; i < 8; i++) {
		struct ha_topo_switch *at = &m.topo.devices[i].place.at;

		strcpy(at->id, "mac:50:6b:4b:12:34:56");
		strcpy(at->name, "leaf1");
		strcpy(at->source, "lldpd");
		snprintf(name, sizeof(name), "swp%d", i);
		strcpy(at->port, name);
	}
	protection_is("protection, RoCE: against the loss of a NIC; NOT of a leaf switch: no "
		      "standby avoids leaf1 (mac:50:6b:4b:12:34:56), which all ports are on\n");
	view = view_make();
	text = draw_view(&view, true);
	CHECK(strstr(text, "\"switch\": {\n        \"id\": \"mac:50:6b:4b:12:34:56\",\n        "
			   "\"name\": \"leaf1\",\n        \"port\": \"swp0\",\n        \"source\": "
			   "\"lldpd\"\n      }"));
	free(text);
	text = draw_view(&view, false);
	CHECK(strstr(text, ", same leaf switch)") && !strstr(text, ", another leaf switch)"));
	free(text);
	for (int i = 0; i < 8; i += 2)
		strcpy(m.topo.devices[i].place.at.id, "mac:50:6b:4b:12:34:57");
	protection_is("protection, RoCE: against the loss of a NIC or a leaf switch; no standby "
		      "avoids both of a path between the two: if one fails, other NICs are "
		      "connected first\n");
	m.topo.devices[5].place.rail_id = 1; /* the others are known in another way */
	protection_is("protection, RoCE: against the loss of a NIC; leaf switches are not known: "
		      "NCCL_IB_HCA names the rail of mlx5_0:1 or of mlx5_5:1, not of both\n");
	m.topo.devices[5].place.rail_id = -1;
	m.topo.devices[0].place.at.id[0] = 0;
	protection_is("protection, RoCE: against the loss of a NIC; leaf switches are not known: "
		      "neither NCCL_IB_HCA nor HA_NCCL_SWITCHES names that of mlx5_0:1\n");
	machine_end(&m);
}

int main(int argc, char **argv)
{
	CHECK_INT(argc, 2);
	folder = argv[1];
	machine_eight_by_rail(&m);
	check_shape("eight_by_rail", false);
	machine_end(&m);
	rails_known();
	leaf_switches();
	switches_of_the_file();
	some_ports_down();
	machine_two_per_switch(&m);
	check_shape("two_per_switch", false);
	machine_end(&m);
	machine_virtual_functions(&m);
	check_shape("virtual_functions", false);
	machine_end(&m);
	machine_one_card(&m);
	check_shape("one_card", false);
	machine_end(&m);
	machine_software(&m, 2);
	check_shape("software", false);
	check_shape("software", true);
	machine_end(&m);
	without_utf8();
	places_in_the_pci_tree();
	return 0;
}
