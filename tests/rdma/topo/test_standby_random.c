/* SPDX-License-Identifier: BSD-3-Clause */
/* What holds for the standby orders of any machine: 3,000 random ones, listed in random orders. */
#include "rdma/topo/standby.h"

#include "base/check.h"

#define MACHINES 3000

static struct ha_topo topo, shuffled;
static struct ha_standby standby, other;
static uint64_t state;

static unsigned draw_below(unsigned n) /* xorshift64 */
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (unsigned)(state >> 20) % n;
}

static void address_make(struct ha_topo_device *d, int i, bool ipv4)
{
	memset(&d->address.gid, 0, sizeof(d->address.gid));
	d->address.roce_version = 2;
	if (!d->is_ethernet) {
		d->address.roce_version = 0;
		d->address.gid.raw[0] = 0xfe;
		d->address.gid.raw[1] = 0x80;
	} else if (ipv4 || draw_below(8)) {
		d->address.gid.raw[10] = d->address.gid.raw[11] = 0xff;
		d->address.gid.raw[12] = 10;
		d->address.gid.raw[13] = (uint8_t)draw_below(2);
	} else {
		d->address.gid.raw[0] = 0xfd;
	}
	d->address.gid.raw[15] = (uint8_t)(i + 1);
}

/* `alike`: every card has one port, all ports are RoCE of one speed and in one class: below one
 * root complex. */
static void machine_make(bool alike)
{
	int cards = 1 + (int)draw_below(9);

	memset(&topo, 0, sizeof(topo));
	for (int c = 0; c < cards; c++) {
		unsigned node = alike ? 0 : draw_below(2), root = alike ? 0 : draw_below(2);
		unsigned ports = alike || draw_below(2) ? 1 : 1 + draw_below(4);
		unsigned bus = 2 + 4 * node + root,
			 branch = alike ? 1 + (unsigned)c : 1 + draw_below(2);
		bool soft = !alike && !draw_below(12), ethernet = alike || draw_below(6),
		     fast = alike || draw_below(5);

		for (unsigned p = 0; p < ports; p++) {
			struct ha_topo_device *d = &topo.devices[topo.nports];

			snprintf(d->name, sizeof(d->name), "dev%d", topo.nports);
			d->port = 1;
			d->context =
				(struct ibv_context *)(uintptr_t)(4096 + 64 * (size_t)topo.nports);
			if (!soft)
				snprintf(d->place.pci_path, sizeof(d->place.pci_path),
					 "/sys/devices/pci0000:%x0/0000:%x0:%02x.0/0000:%x%x:00.%u",
					 bus, bus, branch, bus, 1 + (unsigned)c, p);
			memcpy(d->place.physical_path, d->place.pci_path,
			       sizeof(d->place.physical_path));
			d->place.numa_node = soft ? -1 : (int)node;
			d->place.is_soft = soft;
			d->is_ethernet = ethernet;
			d->guid = 100 + (uint64_t)c;
			d->speed_mbps = fast ? 400000 : 100000;
			d->up = alike || draw_below(6);
			address_make(d, topo.nports, alike);
			topo.nports++;
		}
	}
	topo.ndevices = topo.nports;
}

static int classes[HA_TOPO_PORTS_MAX][HA_TOPO_PORTS_MAX], best[HA_TOPO_PORTS_MAX];

static int class_make(int a, int b)
{
	struct ha_standby_class c;

	if (a == b || !topo.devices[b].up || !ha_standby_classify(&topo, a, b, &c))
		return 1000;
	return c.apart * 100 + c.other_network * 20 + c.slower * 10 + (int)c.distance;
}

static void classes_make(void)
{
	for (int a = 0; a < topo.nports; a++) {
		best[a] = 1000;
		for (int b = 0; b < topo.nports; b++) {
			classes[a][b] = class_make(a, b);
			best[a] = classes[a][b] < best[a] ? classes[a][b] : best[a];
		}
	}
}

static bool same_card(int a, int b)
{
	return topo.devices[a].guid == topo.devices[b].guid && !topo.devices[a].place.is_soft;
}

/* Everybody who may, once; never itself; better classes first; so the same card last. */
static void check_order(int a)
{
	bool seen[HA_TOPO_PORTS_MAX] = { false };
	int may = 0, last = 0;
	bool card = false;

	for (int b = 0; b < topo.nports; b++)
		may += classes[a][b] < 1000;
	CHECK_INT(standby.count[a], may);
	for (int k = 0; k < standby.count[a]; k++) {
		int b = standby.order[a][k];

		CHECK(b != a && !seen[b] && topo.devices[b].up);
		CHECK(topo.devices[b].is_ethernet == topo.devices[a].is_ethernet);
		CHECK(classes[a][b] >= last);
		CHECK(!card || same_card(a, b));
		card = same_card(a, b);
		last = classes[a][b];
		seen[b] = true;
	}
}

/*
 * No card is the first standby of too many. For a port with c other cards in its best class and n
 * ports that choose among these cards, nobody chosen by it carries more than ceil(n / c) + 1: the
 * pairs take a share each at most, and who has no partner takes the least loaded.
 */
static void check_spread(void)
{
	int load[16] = { 0 }, soft = 0;

	for (int a = 0; a < topo.nports; a++) {
		soft += topo.devices[a].place.is_soft;
		if (standby.count[a] && best[a] < 100)
			load[topo.devices[standby.order[a][0]].guid - 100]++;
	}
	for (int a = 0; a < topo.nports && !soft; a++) {
		bool mine[16] = { false };
		int cards = 0, choosers = 0, members = 0, bound;

		if (best[a] >= 100) /* nothing but its own card */
			continue;
		for (int b = 0; b < topo.nports; b++) {
			if (classes[a][b] != best[a])
				continue;
			cards += !mine[topo.devices[b].guid - 100];
			mine[topo.devices[b].guid - 100] = true;
			members++;
		}
		for (int b = 0; b < topo.nports; b++) {
			bool chooses = false;

			for (int x = 0; x < topo.nports; x++)
				chooses |= best[b] < 100 && classes[b][x] == best[b] &&
					   mine[topo.devices[x].guid - 100];
			choosers += chooses;
			members += same_card(a, b);
		}
		choosers = choosers > members ? choosers : members;
		bound = (choosers + cards - 1) / cards + 1;
		if (load[topo.devices[standby.order[a][0]].guid - 100] > bound)
			fprintf(stderr, "%s: %d > %d\n", topo.devices[a].name,
				load[topo.devices[standby.order[a][0]].guid - 100], bound);
		CHECK(load[topo.devices[standby.order[a][0]].guid - 100] <= bound);
	}
}

/* The library lists the devices in another order: the same names come out. */
static void check_enumeration(void)
{
	int place[HA_TOPO_PORTS_MAX];

	shuffled = topo;
	for (int i = 0; i < topo.nports; i++)
		place[i] = i;
	for (int i = topo.nports - 1; i > 0; i--) {
		int k = (int)draw_below((unsigned)i + 1), t = place[i];

		place[i] = place[k];
		place[k] = t;
	}
	for (int i = 0; i < topo.nports; i++)
		shuffled.devices[place[i]] = topo.devices[i];
	CHECK_INT(ha_standby_compute(&shuffled, &other), 0);
	for (int i = 0; i < topo.nports; i++) {
		CHECK_INT(other.count[place[i]], standby.count[i]);
		for (int k = 0; k < standby.count[i]; k++)
			CHECK_INT(other.order[place[i]][k], place[standby.order[i][k]]);
	}
}

/* Ports that are all alike: everybody has a partner but one of an odd number; a flap moves nobody
 * else. */
static void check_pairs(void)
{
	int single = 0, flapped = (int)draw_below((unsigned)topo.nports), partner;

	for (int a = 0; a < topo.nports; a++)
		single += topo.nports > 1 && !ha_standby_is_pair(&standby, a, standby.order[a][0]);
	CHECK_INT(single, topo.nports > 1 ? topo.nports % 2 : 0);
	partner = standby.order[flapped][0];
	topo.devices[flapped].up = false;
	CHECK_INT(ha_standby_compute(&topo, &other), 0);
	if (topo.nports > 1 && ha_standby_is_pair(&standby, flapped, partner))
		CHECK_INT(other.order[flapped][0], partner);
	for (int a = 0; a < topo.nports; a++)
		if (a != flapped && a != partner &&
		    ha_standby_is_pair(&standby, a, standby.order[a][0]))
			CHECK(ha_standby_is_pair(&other, a, standby.order[a][0]));
	topo.devices[flapped].up = true;
	CHECK_INT(ha_standby_compute(&topo, &other), 0);
	CHECK(!memcmp(&standby, &other, sizeof(other)));
}

static int card_ports(int a)
{
	int n = 0;

	for (int b = 0; b < topo.nports; b++)
		n += b == a || same_card(a, b);
	return n;
}

/* No two ports without partner could have had each other (but on cards of several ports, which have
 * their share). */
static void check_maximal(void)
{
	for (int a = 0; a < topo.nports; a++)
		for (int b = 0; b < a; b++) {
			bool up = topo.devices[a].up && topo.devices[b].up;
			bool fit = up && best[a] < 1000 && classes[a][b] == best[a] &&
				   classes[b][a] == best[b];

			if (fit && card_ports(a) == 1 && card_ports(b) == 1)
				CHECK(ha_standby_is_pair(&standby, a, standby.order[a][0]) ||
				      ha_standby_is_pair(&standby, b, standby.order[b][0]));
		}
}

int main(void)
{
	for (int seed = 1; seed <= MACHINES; seed++) {
		bool alike = seed % 4 == 0;

		state = (uint64_t)seed * 0x9e3779b97f4a7c15;
		machine_make(alike);
		CHECK_INT(ha_standby_compute(&topo, &standby), 0);
		classes_make();
		for (int a = 0; a < topo.nports; a++)
			check_order(a);
		check_spread();
		check_enumeration();
		if (alike)
			check_pairs();
		check_maximal();
	}
	return 0;
}
