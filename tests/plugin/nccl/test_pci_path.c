/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where a software NIC sits for NCCL, which gives a device without a PCI path to the first CPU,
 * together with all others of the kind: one card, whose ports it merges by itself into a device
 * that it then loses. Each has a path of its own that NCCL takes for that of a PCI function, or
 * shares one as a port of a card (SOFTROCE_CARD_PORTS). What has none, because it cannot be made,
 * is not fused.
 */
#include "tests/plugin/nccl/rig.h"

#include <ctype.h>
#include <sys/stat.h>

#include "plugin/nccl/abi/net_v10.h"
#include "plugin/nccl/abi/net_v11.h"
#include "plugin/nccl/abi/net_v12.h"
#include "plugin/nccl/abi/net_v6.h"
#include "plugin/nccl/abi/net_v7.h"
#include "plugin/nccl/abi/net_v8.h"
#include "plugin/nccl/abi/net_v9.h"

struct place {
	char path[256]; /* "": NULL */
	int port;
};

#define CALLS(v)                                                                              \
	static void place_v##v(const void *net, int dev, struct place *place)                 \
	{                                                                                     \
		ncclNetProperties_v##v##_t p;                                                 \
                                                                                              \
		OK(((const ncclNet_v##v##_t *)net)->getProperties(dev, &p));                  \
		snprintf(place->path, sizeof(place->path), "%s", p.pciPath ? p.pciPath : ""); \
		place->port = p.port;                                                         \
	}
CALLS(6)
CALLS(7)
CALLS(8)
CALLS(9)
CALLS(10)
CALLS(11)
CALLS(12)

static struct rig rig;

static struct place place_of(int dev)
{
	static void (*const of[])(const void *, int,
				  struct place *) = { place_v6,  place_v7,  place_v8, place_v9,
						      place_v10, place_v11, place_v12 };
	struct place place;

	of[rig.version - 6](rig.plugin.table, dev, &place);
	return place;
}

/* As ncclTopoFillNet and checkBDFFormat look at it. */
static void is_pci_function(const char *path)
{
	static const char shape[] = "xxxx:xx:xx.x";
	char subsystem[300], real[4096];
	const char *id = strrchr(path, '/');

	CHECK(id && strlen(++id) == sizeof(shape) - 1, "'%s' ends in no PCI address", path);
	for (size_t i = 0; i < sizeof(shape) - 1; i++)
		CHECK(shape[i] == 'x' ? isxdigit((unsigned char)id[i]) : id[i] == shape[i],
		      "'%s' is no PCI address", id);
	snprintf(subsystem, sizeof(subsystem), "%s/subsystem", path);
	CHECK(realpath(subsystem, real), "there is no %s", subsystem);
	CHECK(!strcmp(strrchr(real, '/'), "/pci"), "%s is %s, not pci", subsystem, real);
}

static void separate_cards(void)
{
	struct place a = place_of(0), b = place_of(1);

	is_pci_function(a.path);
	is_pci_function(b.path);
	CHECK(strcmp(a.path, b.path), "both are at %s", a.path);
	/* With the function and, as for virtual functions, the device set to 0 they still
	 * differ. */
	CHECK(strncmp(a.path, b.path, strlen(a.path) - 4), "%s and %s are one card", a.path,
	      b.path);
	CHECK(a.port == 1 && b.port == 1, "ports %d and %d", a.port, b.port);
}

static void one_card(void)
{
	struct place a = place_of(0), b = place_of(1), c = place_of(2);

	is_pci_function(a.path);
	CHECK(!strcmp(a.path, b.path), "ports of one card are at %s and %s", a.path, b.path);
	CHECK(strcmp(a.path, c.path), "the next card is at %s, too", c.path);
	CHECK(a.port == 1 && b.port == 2 && c.port == 1, "ports %d, %d and %d", a.port, b.port,
	      c.port);
}

static void without_a_place(void)
{
	int dev = -1, devices = -1;

	CHECK(!*place_of(0).path, "a place at %s", place_of(0).path);
	if (rig.version < 9)
		return;
	CHECK(rig.plugin.abi->fuse(&rig.plugin, &dev, 2, (int[]) { 0, 1 }) == ncclInvalidArgument,
	      "fused without a place");
	CHECK(rig_logged("soft0:1 cannot be fused: it has no PCI path"), "no warning");
	OK(rig.plugin.count(&devices));
	CHECK(devices == rig.plugin.devices, "%d devices", devices);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name, *variable, *value;
		void (*look)(void);
	} cases[] = { { "separate", "SOFTROCE_CARD_PORTS", "1", separate_cards },
		      { "card", "SOFTROCE_CARD_PORTS", "2", one_card },
		      { "nowhere", "SOFTROCE_CONTROL", "/proc/there/is/none", without_a_place } };

	setenv("SOFTROCE_DEVICES", "127.1.0.0/16,127.2.0.0/16,127.3.0.0/16", 1);
	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		if (argc < 3 || strcmp(argv[2], cases[i].name))
			continue;
		setenv(cases[i].variable, cases[i].value, 1);
		rig_open(&rig, argc, argv);
		cases[i].look();
		rig_close(&rig);
		return 0;
	}
	CHECK(false, "no such case");
}
