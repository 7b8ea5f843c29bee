/* SPDX-License-Identifier: BSD-3-Clause */
/* The standby orders of machines of real shapes, each with its reason; and what happens when ports
 * go down and up. */
#include "rdma/topo/standby.h"

#include <errno.h>

#include "base/check.h"
#include "tests/base/lines.h"
#include "tests/rdma/topo/machine.h"

static struct machine m;
static struct ha_standby standby;

#define OWN_CARD "/sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0"

/* What is kept for a port is what its list gives now. */
static void expect_kept(int port)
{
	int order[HA_TOPO_PORTS_MAX];

	CHECK_INT(ha_topo_standby(&m.topo, port, order, HA_TOPO_PORTS_MAX), standby.count[port]);
	for (int k = 0; k < standby.count[port]; k++)
		CHECK_INT(order[k], standby.order[port][k]);
}

/* The first `max` standbys of a port, as names without their port 1, must be `order`. */
static void expect_first(int max, const char *name, const char *order)
{
	char label[64], is[1024] = "";
	int i;

	snprintf(label, sizeof(label), strchr(name, ':') ? "%s" : "%s:1", name);
	i = machine_port(&m, label);
	CHECK_INT(ha_standby_compute(&m.topo, &standby), 0);
	expect_kept(i);
	for (int k = 0; k < standby.count[i] && k < max; k++) {
		size_t used = strlen(is);

		ha_topo_device_label(&m.topo.devices[standby.order[i][k]], label, sizeof(label));
		if (!strcmp(label + strlen(label) - 2, ":1"))
			label[strlen(label) - 2] = 0;
		snprintf(is + used, sizeof(is) - used, "%s%s", k ? " " : "", label);
	}
	if (strcmp(is, order))
		fprintf(stderr, "standbys of %s:\n", name);
	CHECK_TEXT(is, order);
}

static void expect_order(const char *name, const char *order)
{
	expect_first(HA_TOPO_PORTS_MAX, name, order);
}

static void port_set(const char *name, enum ibv_port_state state, int changed)
{
	char label[64];

	machine_device(&m, name)->ports[0].state = state;
	snprintf(label, sizeof(label), "%s:1", name);
	CHECK_INT(ha_topo_refresh(&m.topo, &m.config, machine_port(&m, label)), changed);
}

/* All four of a socket are equally near: neighbours pair up, and so does each next choice (0-2 1-3,
 * 0-3 1-2, ...). */
static void eight_nics_by_rail(void)
{
	machine_eight_by_rail(&m);
	expect_order("mlx5_0", "mlx5_1 mlx5_2 mlx5_3 mlx5_4 mlx5_5 mlx5_6 mlx5_7");
	expect_order("mlx5_1", "mlx5_0 mlx5_3 mlx5_2 mlx5_5 mlx5_4 mlx5_7 mlx5_6");
	expect_order("mlx5_2", "mlx5_3 mlx5_0 mlx5_1 mlx5_6 mlx5_7 mlx5_4 mlx5_5");
	expect_order("mlx5_3", "mlx5_2 mlx5_1 mlx5_0 mlx5_7 mlx5_6 mlx5_5 mlx5_4");
	expect_order("mlx5_4", "mlx5_5 mlx5_6 mlx5_7 mlx5_0 mlx5_1 mlx5_2 mlx5_3");
	expect_order("mlx5_7", "mlx5_6 mlx5_5 mlx5_4 mlx5_3 mlx5_2 mlx5_1 mlx5_0");
	machine_end(&m);
}

/* Port goes with like port of the neighbour card; the other port of the own card is nearest, and
 * last nevertheless. */
static void dual_port_cards(void)
{
	machine_dual_port_cards(&m);
	expect_order("mlx5_0", "mlx5_2 mlx5_3 mlx5_4 mlx5_6 mlx5_5 mlx5_7 mlx5_1");
	expect_order("mlx5_1", "mlx5_3 mlx5_2 mlx5_5 mlx5_7 mlx5_4 mlx5_6 mlx5_0");
	expect_order("mlx5_2", "mlx5_0 mlx5_1 mlx5_6 mlx5_4 mlx5_7 mlx5_5 mlx5_3");
	expect_order("mlx5_5", "mlx5_7 mlx5_6 mlx5_1 mlx5_3 mlx5_0 mlx5_2 mlx5_4");
	machine_end(&m);
}

/* Only one card: its other port is better than nothing. Two ports of one function as well. */
static void one_card(void)
{
	machine_one_card(&m);
	expect_order("mlx5_0", "mlx5_1");
	expect_order("mlx5_1", "mlx5_0");
	machine_end(&m);

	machine_begin(&m);
	machine_roce(&m, "mlx4_0", "/sys/devices/pci0000:00/0000:00:03.0/0000:05:00.0", 0, 1,
		     "10.0.0.1");
	m.devices[0].nports = 2;
	m.devices[0].ports[1] = fake_roce_port("10.0.0.2");
	machine_discover(&m);
	expect_order("mlx4_0", "mlx4_0:2");
	expect_order("mlx4_0:2", "mlx4_0");
	machine_end(&m);
}

/* A dual-port card and a single one: both ports lean on the single card, which pairs with the
 * first. */
static void an_odd_port(void)
{
	machine_begin(&m);
	machine_roce(&m, "mlx5_0", "/sys/devices/pci0000:3a/0000:3a:00.0/0000:3d:00.0", 0, 7,
		     "10.0.0.1");
	machine_roce(&m, "mlx5_1", "/sys/devices/pci0000:3a/0000:3a:00.0/0000:3d:00.1", 0, 7,
		     "10.0.0.2");
	machine_roce(&m, "mlx5_2", "/sys/devices/pci0000:3a/0000:3a:01.0/0000:3e:00.0", 0, 8,
		     "10.0.0.3");
	machine_discover(&m);
	expect_order("mlx5_0", "mlx5_2 mlx5_1");
	expect_order("mlx5_1", "mlx5_2 mlx5_0");
	expect_order("mlx5_2", "mlx5_0 mlx5_1");
	machine_end(&m);
}

/* The switch first, then the other switch of the socket, then the other socket. */
static void two_nics_per_switch(void)
{
	machine_two_per_switch(&m);
	expect_order("mlx5_0", "mlx5_1 mlx5_2 mlx5_3 mlx5_4 mlx5_5 mlx5_6 mlx5_7");
	expect_order("mlx5_1", "mlx5_0 mlx5_3 mlx5_2 mlx5_5 mlx5_4 mlx5_7 mlx5_6");
	expect_order("mlx5_6", "mlx5_7 mlx5_4 mlx5_5 mlx5_2 mlx5_3 mlx5_0 mlx5_1");
	machine_end(&m);
}

/* Functions of the other card first. Those of one's own go down with the same cable. */
static void virtual_functions(void)
{
	struct ha_standby_class class;
	char text[64];

	machine_virtual_functions(&m);
	expect_order("mlx5_0", "mlx5_3 mlx5_4 mlx5_5 mlx5_1 mlx5_2");
	expect_order("mlx5_1", "mlx5_4 mlx5_3 mlx5_5 mlx5_0 mlx5_2");
	expect_order("mlx5_2", "mlx5_5 mlx5_3 mlx5_4 mlx5_0 mlx5_1");
	expect_order("mlx5_4", "mlx5_1 mlx5_0 mlx5_2 mlx5_3 mlx5_5");
	CHECK(ha_standby_classify(&m.topo, 1, 2, &class));
	CHECK_TEXT(ha_standby_class_text(&class, text, sizeof(text)), "same card and cable");
	machine_end(&m);
}

/* Sub-functions hang on their function's cable: another card is better, however far. */
static void sub_functions(void)
{
	struct ha_standby_class class;
	char text[64];

	machine_begin(&m);
	machine_roce(&m, "mlx5_0", OWN_CARD, 0, 0x4000, "10.0.0.1");
	machine_roce(&m, "mlx5_1", OWN_CARD "/mlx5_core.sf.2", 0, 0x4000, "10.0.0.2");
	machine_roce(&m, "mlx5_2", OWN_CARD "/mlx5_core.sf.3", 0, 0x4000, "10.0.0.3");
	machine_roce(&m, "mlx5_3", "/sys/devices/pci0000:80/0000:80:01.0/0000:81:00.0", 1, 0x4001,
		     "10.0.0.4");
	machine_discover(&m);
	expect_first(1, "mlx5_0", "mlx5_3");
	expect_first(1, "mlx5_1", "mlx5_3");
	expect_first(1, "mlx5_2", "mlx5_3");
	CHECK(ha_standby_classify(&m.topo, 0, 1, &class));
	CHECK_TEXT(ha_standby_class_text(&class, text, sizeof(text)), "same card and cable");
	machine_end(&m);
}

/* A dual-port card alone, one port with two virtual functions: the other port has another cable. */
static void another_cable(void)
{
#define CARD "/sys/devices/pci0000:3a/0000:3a:00.0/0000:3d:00"
	machine_begin(&m);
	machine_roce(&m, "mlx5_0", CARD ".0", 0, 7, "10.0.0.1");
	machine_roce(&m, "mlx5_1", CARD ".1", 0, 7, "10.0.0.2");
	machine_roce(&m, "mlx5_2", CARD ".2", 0, 7, "10.0.0.3");
	machine_roce(&m, "mlx5_3", CARD ".3", 0, 7, "10.0.0.4");
	tree_link(&m.tree, CARD ".2/physfn", CARD ".0");
	tree_link(&m.tree, CARD ".3/physfn", CARD ".0");
	machine_discover(&m);
	expect_order("mlx5_0", "mlx5_1 mlx5_2 mlx5_3");
	expect_order("mlx5_2", "mlx5_1 mlx5_0 mlx5_3");
	machine_end(&m);
}

/* One card with a PCI connection to either socket has one GUID; the farther other card is still the
 * better one. */
static void socket_direct(void)
{
	machine_begin(&m);
	machine_roce(&m, "mlx5_0", "/sys/devices/pci0000:20/0000:20:01.0/0000:21:00.0", 0, 7,
		     "10.0.0.1");
	machine_roce(&m, "mlx5_1", "/sys/devices/pci0000:a0/0000:a0:01.0/0000:a1:00.0", 1, 7,
		     "10.0.0.2");
	machine_roce(&m, "mlx5_2", "/sys/devices/pci0000:a0/0000:a0:02.0/0000:a2:00.0", 1, 8,
		     "10.0.0.3");
	machine_discover(&m);
	expect_order("mlx5_0", "mlx5_2 mlx5_1");
	expect_order("mlx5_1", "mlx5_2 mlx5_0");
	expect_order("mlx5_2", "mlx5_1 mlx5_0");
	machine_end(&m);
}

/* InfiniBand is no standby of RoCE, however near. */
static void two_fabrics(void)
{
	machine_two_fabrics(&m);
	expect_order("mlx5_0", "mlx5_2");
	expect_order("mlx5_2", "mlx5_0");
	expect_order("mlx5_1", "mlx5_3");
	expect_order("mlx5_3", "mlx5_1");
	machine_end(&m);
}

/* Another subnet of InfiniBand, another kind of address, another version: after those of the same,
 * however far. */
static void other_networks_come_last(void)
{
	static const char *const paths[] = {
		"/sys/devices/pci0000:20/0000:20:00.0/0000:21:00.0",
		"/sys/devices/pci0000:20/0000:20:00.0/0000:22:00.0",
		"/sys/devices/pci0000:a0/0000:a0:01.0/0000:a1:00.0",
		"/sys/devices/pci0000:a0/0000:a0:01.0/0000:a2:00.0",
	};

	machine_begin(&m);
	for (int i = 0; i < 4; i++)
		machine_ib(&m, (const char *[]) { "a", "b", "c", "d" }[i], paths[i], i / 2,
			   (uint64_t)i + 1, (uint16_t)(i + 1));
	m.devices[1].ports[0].gids[0].address = m.devices[3].ports[0].gids[0].address =
		"fe80::7:a088:c203:0:1";
	machine_discover(&m);
	expect_order("a", "c b d");
	expect_order("b", "d a c");
	machine_end(&m);

	machine_begin(&m);
	machine_roce(&m, "a", paths[0], 0, 1, "10.0.0.1");
	machine_roce(&m, "b", paths[1], 0, 2, "fd00::1");
	machine_roce(&m, "c", paths[2], 1, 3, "10.0.0.2");
	/* version 1 only */
	machine_roce(&m, "d", paths[3], 1, 4, "10.0.0.3")->ports[0].gids[3].address = NULL;
	machine_discover(&m);
	expect_order("a", "c b d");
	/* c behind its switch; then b, which is left for it while a is taken */
	expect_order("d", "c b a");
	machine_end(&m);
}

/* Equally near: the one in the same IPv4 network, although the PCI order says otherwise. */
static void same_ipv4_network_first(void)
{
	machine_begin(&m);
	machine_roce(&m, "a", "/sys/devices/pci0000:20/0000:20:01.0/0000:21:00.0", 0, 1,
		     "10.1.0.1");
	machine_roce(&m, "b", "/sys/devices/pci0000:20/0000:20:02.0/0000:22:00.0", 0, 2,
		     "10.2.0.1");
	machine_roce(&m, "c", "/sys/devices/pci0000:20/0000:20:03.0/0000:23:00.0", 0, 3,
		     "10.1.0.2");
	machine_roce(&m, "d", "/sys/devices/pci0000:20/0000:20:04.0/0000:24:00.0", 0, 4,
		     "10.2.0.2");
	machine_discover(&m);
	expect_order("a", "c b d");
	expect_order("b", "d a c");
	machine_end(&m);
}

/* The 25 Gb/s port on the board is nobody's first choice, and has a good one itself. */
static void a_slow_port(void)
{
	static struct ha_standby_class class;
	char text[64];

	machine_begin(&m);
	machine_roce(&m, "bnxt_re0", "/sys/devices/pci0000:20/0000:20:01.0/0000:21:00.0", 0, 9,
		     "10.0.0.9")
		->ports[0]
		.effective_mbps = 25000;
	machine_roce(&m, "mlx5_0", "/sys/devices/pci0000:20/0000:20:02.0/0000:22:00.0", 0, 1,
		     "10.0.0.1");
	machine_roce(&m, "mlx5_1", "/sys/devices/pci0000:a0/0000:a0:01.0/0000:a1:00.0", 1, 2,
		     "10.0.0.2");
	machine_discover(&m);
	expect_order("mlx5_0", "mlx5_1 bnxt_re0");
	expect_order("mlx5_1", "mlx5_0 bnxt_re0");
	expect_order("bnxt_re0", "mlx5_0 mlx5_1");
	CHECK(ha_standby_classify(&m.topo, machine_port(&m, "mlx5_0:1"),
				  machine_port(&m, "bnxt_re0:1"), &class));
	CHECK_TEXT(ha_standby_class_text(&class, text, sizeof(text)),
		   "same root, less than half the speed");
	machine_end(&m);
}

/* Software NICs have no place: their names decide. */
static void software_nics(void)
{
	machine_software(&m, 2);
	expect_order("soft0", "soft1");
	expect_order("soft1", "soft0");
	CHECK(ha_standby_is_pair(&standby, 0, 1));
	machine_end(&m);
	machine_software(&m, 3); /* an odd one leans on the first of the equally loaded */
	expect_order("soft0", "soft1 soft2");
	expect_order("soft1", "soft0 soft2");
	expect_order("soft2", "soft0 soft1");
	CHECK(!ha_standby_is_pair(&standby, 0, 2));
	machine_end(&m);
	machine_software(&m, 1);
	expect_order("soft0", "");
	CHECK(!ha_standby_is_pair(&standby, 0, 0));
	machine_end(&m);
}

/* Eight virtual functions of one card beside seven cards: the card carries three of them, not all
 * seven. */
static void a_crowded_card(void)
{
	int on_card = 0;

	machine_begin(&m);
	for (int i = 0; i < 15; i++) {
		char name[16], path[128], address[16];

		snprintf(name, sizeof(name), "mlx5_%d", i);
		snprintf(address, sizeof(address), "10.0.0.%d", i + 1);
		snprintf(path, sizeof(path),
			 "/sys/devices/pci0000:20/0000:20:%02x.0/0000:%02x:0%d.%d", i < 8 ? 1 : i,
			 i < 8 ? 0x21 : 0x21 + i, i < 8 ? i / 4 : 0, i < 8 ? i % 4 : 0);
		machine_roce(&m, name, path, 0, i < 8 ? 1 : 100 + (uint64_t)i, address);
	}
	machine_discover(&m);
	CHECK_INT(ha_standby_compute(&m.topo, &standby), 0);
	for (int i = 8; i < 15; i++)
		on_card += m.topo.devices[standby.order[i][0]].guid == 1;
	CHECK_INT(on_card, 3); /* ceil(15 ports / 7 other cards) */
	machine_end(&m);
}

/* A port that is down is nobody's standby, keeps its own, and finds its place again; the other
 * pairs do not move. */
static void a_flap(void)
{
	machine_eight_by_rail(&m);
	port_set("mlx5_1", IBV_PORT_DOWN, 1);
	CHECK_INT(m.topo.ndevices, 8);
	expect_first(2, "mlx5_0", "mlx5_2 mlx5_3");
	expect_first(3, "mlx5_1", "mlx5_0 mlx5_2 mlx5_3");
	expect_first(2, "mlx5_2", "mlx5_3 mlx5_0");
	expect_first(2, "mlx5_3", "mlx5_2 mlx5_0");
	for (int i = 0; i < 8; i++)
		CHECK_INT(standby.count[i], i == machine_port(&m, "mlx5_1:1") ? 7 : 6);
	/* The partners of two that are down find each other. */
	port_set("mlx5_3", IBV_PORT_DOWN, 1);
	port_set("mlx5_3", IBV_PORT_DOWN, 0);
	expect_first(1, "mlx5_0", "mlx5_2");
	expect_first(1, "mlx5_2", "mlx5_0");
	port_set("mlx5_3", IBV_PORT_ACTIVE, 1);
	port_set("mlx5_1", IBV_PORT_ACTIVE, 1);
	port_set("mlx5_1", IBV_PORT_ACTIVE, 0);
	expect_order("mlx5_0", "mlx5_1 mlx5_2 mlx5_3 mlx5_4 mlx5_5 mlx5_6 mlx5_7");
	machine_device(&m, "mlx5_1")->ports[0].error = -EIO;
	CHECK_INT(ha_topo_refresh(&m.topo, &m.config, machine_port(&m, "mlx5_1:1")), -EIO);
	CHECK(!m.topo.devices[machine_port(&m, "mlx5_1:1")].up);
	machine_end(&m);
}

/* Seven, 0-1 2-3 4-5 and 6 left over: 2 keeps 3 when it goes down, although 6 then carries
 * nobody. */
static void a_port_that_is_down_keeps_its_standby(void)
{
	machine_software(&m, 7);
	expect_first(1, "soft6", "soft0");
	port_set("soft2", IBV_PORT_DOWN, 1);
	port_set("soft4", IBV_PORT_DOWN, 1);
	expect_first(1, "soft3", "soft5");
	expect_first(1, "soft2", "soft3");
	expect_first(1, "soft4", "soft5");
	machine_end(&m);
}

/* A port that was down at discovery is not reported and no candidate. Once up it is a standby,
 * still not reported. */
static void a_cable_plugged_in_later(void)
{
	const struct ha_topo_device *late;
	int order[8];

	machine_begin(&m);
	machine_roce(&m, "a", "/sys/devices/pci0000:20/0000:20:01.0/0000:21:00.0", 0, 1,
		     "10.0.0.1");
	machine_roce(&m, "b", "/sys/devices/pci0000:20/0000:20:02.0/0000:22:00.0", 0, 2,
		     "10.0.0.2");
	machine_roce(&m, "c", "/sys/devices/pci0000:20/0000:20:03.0/0000:23:00.0", 0, 3,
		     "10.0.0.3");
	m.devices[1].ports[0].state = IBV_PORT_DOWN;
	m.devices[1].ports[0].gids[2].address = m.devices[1].ports[0].gids[3].address = NULL;
	m.devices[1].ports[0].gids[0].address = m.devices[1].ports[0].gids[1].address = NULL;
	machine_discover(&m);
	CHECK_INT(m.topo.ndevices, 2);
	CHECK_INT(m.topo.nports, 3);
	CHECK_INT(m.topo.down, 1);
	CHECK_INT(lines_warnings(), 0);
	late = &m.topo.devices[2];
	CHECK_TEXT(late->name, "b");
	CHECK(!late->up);
	expect_order("a", "c");
	expect_order("c", "a");
	expect_order("b", "a c");                             /* it may be asked already */
	CHECK_INT(ha_topo_refresh(&m.topo, &m.config, 2), 0); /* still down */
	port_set("b", IBV_PORT_ACTIVE, 0); /* up, but nobody can address it yet */
	CHECK(lines_contain("b: port 1 has no GID"));
	m.devices[1].ports[0].gids[2].address = m.devices[1].ports[0].gids[3].address = "10.0.0.2";
	port_set("b", IBV_PORT_ACTIVE, 1);
	CHECK_INT(m.topo.ndevices, 2);
	CHECK_INT(late->address.gid.raw[15], 2);
	CHECK_INT(late->address.mtu, IBV_MTU_4096);
	CHECK_INT(late->speed_mbps, 400000);
	expect_order("a", "b c"); /* as a process that starts now would have it */
	expect_order("b", "a c");
	expect_order("c", "a b");
	CHECK_INT(ha_topo_standby(&m.topo, 0, order, 8), 2);
	CHECK_INT(order[0], 2);
	CHECK_INT(order[1], 1);
	CHECK_INT(ha_topo_standby(&m.topo, 0, order, 1), 1);
	CHECK_INT(ha_topo_standby(&m.topo, 0, order, 0), 0);
	CHECK_INT(ha_topo_standby(&m.topo, 3, order, 8), -EINVAL);
	CHECK_INT(ha_topo_standby(&m.topo, -1, order, 8), -EINVAL);
	machine_end(&m);
}

/* Second ports that nobody plugged in do not disturb: the first ones pair up among themselves. */
static void unplugged_ports(void)
{
	machine_dual_port_cards(&m);
	for (int card = 0; card < 4; card++)
		m.devices[2 * card + card % 2].ports[0].state = IBV_PORT_DOWN;
	ha_topo_release(&m.topo);
	machine_discover(&m);
	CHECK_INT(m.topo.ndevices, 4);
	expect_order("mlx5_1", "mlx5_2 mlx5_5 mlx5_6");
	expect_order("mlx5_2", "mlx5_1 mlx5_6 mlx5_5");
	expect_order("mlx5_5", "mlx5_6 mlx5_1 mlx5_2");
	machine_end(&m);
}

int main(void)
{
	eight_nics_by_rail();
	dual_port_cards();
	one_card();
	an_odd_port();
	two_nics_per_switch();
	virtual_functions();
	sub_functions();
	another_cable();
	socket_direct();
	two_fabrics();
	other_networks_come_last();
	same_ipv4_network_first();
	a_slow_port();
	software_nics();
	a_crowded_card();
	a_flap();
	a_port_that_is_down_keeps_its_standby();
	a_cable_plugged_in_later();
	unplugged_ports();
	return 0;
}
