/* SPDX-License-Identifier: BSD-3-Clause */
/* Ports found by address, their counters from every source of several drivers, and the live
 * loopback interface. */
#include "agent/ports.h"

#include "agent/ethtool.h"
#include "base/check.h"
#include "base/clock.h"
#include "tests/agent/host.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>

static const char *folder;

/* ---- how often a folder of sysfs was read ---- */

static unsigned folders_read;

DIR *__real_opendir(const char *name);
DIR *__wrap_opendir(const char *name);

DIR *__wrap_opendir(const char *name)
{
	folders_read++;
	return __real_opendir(name);
}

/* ---- tests ---- */

/* In words of four bytes; not the interface's, which misses RDMA. */
static void check_first_look(const struct ha_port *p)
{
	CHECK_INT(p->count[HA_PORT_TX_BYTES], 4000);
	CHECK_INT(p->count[HA_PORT_RX_BYTES], 8000);
	CHECK_INT(p->count[HA_PORT_ECN], 10);
	CHECK_INT(p->count[HA_PORT_CNP], 50);
	CHECK_INT(p->count[HA_PORT_PAUSES], 108);
	CHECK_INT(p->count[HA_PORT_DISCARDS], 243);
	CHECK_INT(p->count[HA_PORT_RETRANSMITS], 31);
}

static void ports_of_mlx5(void)
{
	static struct ha_ports ports;
	const struct ha_port *p = ports.port;
	struct tree t;

	host_lay(&t, folder, "two_mlx5");
	ha_ports_open(&ports, t.root);
	CHECK_INT(ha_ports_find(&ports, inet_addr("10.8.0.1"), 0), 0);
	CHECK_TEXT(p[0].device, "mlx5_1");
	CHECK_TEXT(p[0].interface, "eth1");
	CHECK_INT(ha_ports_find(&ports, inet_addr("10.0.0.1"), 0), 1);
	CHECK_INT(ha_ports_find(&ports, inet_addr("10.0.0.1"), 0), 1);
	CHECK_INT(ha_ports_find(&ports, 0, 0), -1);
	CHECK_TEXT(p[1].device, "mlx5_0");
	CHECK_INT(p[1].number, 1);
	CHECK_INT(p[1].mbps, 400000);
	CHECK(p[1].up);
	check_first_look(&p[1]);
	CHECK_INT(p[1].span, 0);
	CHECK_INT(p[1].delta[HA_PORT_CNP], 0); /* the first look is no event */
	host_number(&t, "/sys/class/infiniband/mlx5_0/ports/1/hw_counters/rp_cnp_handled", 130);
	/* it was reset */
	host_number(&t, "/sys/class/infiniband/mlx5_0/ports/1/hw_counters/packet_seq_err", 0);
	tree_file(&t, "/sys/class/infiniband/mlx5_0/ports/1/state", "1: DOWN\n");
	ha_ports_look(&ports, HA_NS_PER_S);
	CHECK_INT(p[1].delta[HA_PORT_CNP], 100);
	CHECK_INT(p[1].delta[HA_PORT_RETRANSMITS], 0);
	CHECK_INT(p[1].span, HA_NS_PER_S);
	CHECK(!p[1].up && p[0].up);
	/* An address that appears later is found after a while. */
	CHECK_INT(ha_ports_find(&ports, inet_addr("10.8.0.9"), 0), -1);
	tree_file(&t, "/sys/class/infiniband/mlx5_1/ports/1/gids/1",
		  "0000:0000:0000:0000:0000:ffff:0a08:0009\n");
	tree_file(&t, "/sys/class/infiniband/mlx5_1/ports/1/gid_attrs/ndevs/1", "eth1\n");
	CHECK_INT(ha_ports_find(&ports, inet_addr("10.8.0.9"), HA_NS_PER_S), -1);
	CHECK_INT(ha_ports_find(&ports, inet_addr("10.8.0.9"), 5 * HA_NS_PER_S), 0);
	CHECK_INT(ports.n, 2);
	tree_remove(&t);
	ha_ports_look(&ports, 6 * HA_NS_PER_S); /* the host has lost them all: nobody falls over */
	CHECK(!p[0].up && !p[1].up);
	ha_ports_close(&ports);
}

static void other_drivers(void)
{
	static struct ha_ports ports;
	const struct ha_port *p = ports.port;
	struct tree t;

	host_lay(&t, folder, "rxe_and_bnxt");
	ha_ports_open(&ports, t.root);
	CHECK_INT(ha_ports_find(&ports, inet_addr("192.168.1.5"), 0), 0);
	CHECK_INT(ha_ports_find(&ports, inet_addr("192.168.2.5"), 0), 1);
	CHECK_INT(p[0].count[HA_PORT_TX_BYTES], 777);
	CHECK_INT(p[0].count[HA_PORT_RETRANSMITS], 12);
	CHECK_INT(p[0].mbps, 2500);
	CHECK(!p[1].up);
	CHECK_INT(p[1].count[HA_PORT_ECN], 11);
	CHECK_INT(p[1].count[HA_PORT_PAUSES], 9);
	CHECK_INT(p[1].count[HA_PORT_RETRANSMITS], 12);
	ha_ports_close(&ports);
	tree_remove(&t);
}

static void many_addresses(void)
{
	static struct ha_ports ports;
	struct tree t;

	tree_make(&t);
	tree_file(&t, "/sys/class/infiniband/x\"y/ports/1/gids/0",
		  "0000:0000:0000:0000:0000:ffff:0a00:0001\n");
	ha_ports_open(&ports, t.root);
	/* a name that would break JSON */
	CHECK_INT(ha_ports_find(&ports, inet_addr("10.0.0.1"), 0), -1);
	for (uint32_t i = 1; i < 2000; i++)
		CHECK_INT(ha_ports_find(&ports, htonl(i), 0), -1);
	ha_ports_close(&ports);
	tree_remove(&t);
}

enum { DEVICES = 8, GIDS = 256, FLOWS = 255 };

static void lay_many_gids(struct tree *t)
{
	char path[128], text[64];

	tree_make(t);
	for (unsigned d = 0; d < DEVICES; d++)
		for (unsigned i = 0; i < GIDS; i++) {
			snprintf(path, sizeof(path),
				 "/sys/class/infiniband/mlx5_%u/ports/1/gids/%u", d, i);
			snprintf(text, sizeof(text), "0000:0000:0000:0000:0000:ffff:0a%02x:%04x\n",
				 d, i + 1);
			tree_file(t, path, text);
		}
}

/* As the policy does in each look: both addresses of each flow. */
static void look_for_foreign_flows(struct ha_ports *ports, uint64_t now)
{
	for (uint32_t i = 1; i <= FLOWS; i++) {
		CHECK_INT(ha_ports_find(ports, htonl(0xc0a80000 + i), now), -1);
		CHECK_INT(ha_ports_find(ports, htonl(0xc0a90000 + i), now), -1);
	}
}

/* Flows of addresses that are not this host's: the tables of all ports are read once for all of
 * them, not once for each address. */
static void foreign_addresses_cost_one_look(void)
{
	static struct ha_ports ports;
	struct tree t;

	lay_many_gids(&t);
	ha_ports_open(&ports, t.root);
	folders_read = 0;
	look_for_foreign_flows(&ports, 0);
	CHECK_INT(folders_read, 1 + DEVICES);
	look_for_foreign_flows(&ports, HA_NS_PER_S);
	CHECK_INT(folders_read, 1 + DEVICES);
	CHECK_INT(ha_ports_find(&ports, inet_addr("10.7.1.0"), HA_NS_PER_S), 0); /* the last GID */
	CHECK_TEXT(ports.port[0].device, "mlx5_7");
	look_for_foreign_flows(&ports, HA_PORTS_AGAIN_NS);
	look_for_foreign_flows(&ports, HA_PORTS_AGAIN_NS);
	CHECK_INT(folders_read, 2 * (1 + DEVICES));
	ha_ports_close(&ports);
	tree_remove(&t);
}

static void count_names(void *user, const char *name, uint64_t value)
{
	CHECK(*name);
	++*(int *)user;
}

static void the_live_loopback(void)
{
	static struct ha_ports ports;
	int n = 0, err;

	ha_ports_open(&ports, "");
	CHECK_INT(ha_ports_find(&ports, inet_addr("127.0.0.1"), 0), 0);
	CHECK_TEXT(ports.port[0].interface, "lo");
	CHECK(ports.port[0].up);
	CHECK_INT(ha_ports_find(&ports, inet_addr("203.0.113.77"), 0), -1);
	err = ha_ethtool_each("", "lo", count_names, &n); /* no driver behind it */
	CHECK(!err || err == -EOPNOTSUPP || err == -EPERM);
	CHECK(ha_ethtool_each("", "no-such-device", count_names, &n) < 0);
	ha_ports_close(&ports);
}

int main(int argc, char **argv)
{
	CHECK(argc == 2);
	folder = argv[1];
	ports_of_mlx5();
	other_drivers();
	many_addresses();
	foreign_addresses_cost_one_look();
	the_live_loopback();
	return 0;
}
