/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What single failures the connections of this host survive, as far as its own ports decide it: a
 * connection goes on over any pair of NICs, so all ports of one link layer protect each other.
 */
#include "rdma/topo/pci.h"
#include "tools/topo_view.h"

#include <string.h>

/* Two ports that are up, the farthest apart of their link layer. */
static enum topo_nics nics_apart(const struct topo_view *view, bool is_ethernet)
{
	const struct ha_topo *topo = view->topo;
	enum topo_nics best = TOPO_NICS_ONE;
	struct ha_standby_class class;

	for (int a = 0; a < topo->nports; a++)
		for (int b = a + 1; b < topo->nports; b++) {
			const struct ha_topo_device *x = &topo->devices[a], *y = &topo->devices[b];

			if (!x->up || !y->up || x->is_ethernet != is_ethernet ||
			    !ha_standby_classify(topo, a, b, &class))
				continue;
			if (class.apart == HA_STANDBY_OTHER_CARD)
				return TOPO_NICS_CARDS;
			if (class.apart == HA_STANDBY_OTHER_PORT)
				best = TOPO_NICS_PORTS;
		}
	return best;
}

/* The first port that is up and has this leaf switch. */
static bool first_of_leaf(const struct ha_topo *topo, int i)
{
	for (int k = 0; k < i; k++) {
		const struct ha_topo_device *d = &topo->devices[k];

		if (d->up && d->is_ethernet == topo->devices[i].is_ethernet &&
		    ha_leaf(d) == ha_leaf(&topo->devices[i]))
			return false;
	}
	return true;
}

bool topo_protection(const struct topo_view *view, bool is_ethernet, struct topo_protection *p)
{
	const struct ha_topo *topo = view->topo;

	*p = (struct topo_protection) { .nics = TOPO_NICS_ONE };
	for (int i = 0; i < topo->nports; i++) {
		const struct ha_topo_device *d = &topo->devices[i];

		if (!d->up || d->is_ethernet != is_ethernet)
			continue;
		if (!p->ports++)
			p->first = d;
		if (!p->unknown && !ha_leaf_comparable(ha_leaf(d), ha_leaf(p->first)))
			p->unknown = d;
		p->leaves += first_of_leaf(topo, i);
	}
	if (p->unknown)
		p->leaves = 0;
	p->nics = nics_apart(view, is_ethernet);
	return p->ports;
}

static void nics_print(const struct topo_protection *p, FILE *out)
{
	static const char *const texts[] = {
		[TOPO_NICS_ONE] =
			"no standby: a NIC that is lost ends its connections, unless the other end "
			"has a second one",
		[TOPO_NICS_PORTS] = "against the loss of a port or its cable, not of the card: all "
				    "ports are on one",
		[TOPO_NICS_CARDS] = "against the loss of a NIC",
	};

	fprintf(out, "%s", texts[p->nics]);
}

static void unknown_print(const struct topo_protection *p, FILE *out)
{
	char label[HA_DEVICE_NAME_MAX + 8], other[HA_DEVICE_NAME_MAX + 8];

	ha_topo_device_label(p->unknown, label, sizeof(label));
	if (!ha_leaf(p->unknown) || !ha_leaf(p->first))
		fprintf(out,
			"; leaf switches are not known: neither NCCL_IB_HCA nor HA_NCCL_SWITCHES "
			"names that of %s",
			ha_leaf(p->unknown) ? ha_topo_device_label(p->first, other, sizeof(other))
					    : label);
	else
		fprintf(out,
			"; leaf switches are not known: NCCL_IB_HCA names the rail of %s or of %s, "
			"not of both",
			ha_topo_device_label(p->first, other, sizeof(other)), label);
}

static void leaves_print(const struct ha_topo *topo, const struct topo_protection *p, FILE *out)
{
	char text[160];

	if (p->nics == TOPO_NICS_ONE)
		return;
	if (p->unknown) {
		unknown_print(p, out);
		return;
	}
	switch (p->leaves) {
	case 1:
		fprintf(out,
			"; NOT of a leaf switch: no standby avoids %s%s, which all ports are on",
			p->first->place.rail_id < 0 ? "" : "that ",
			ha_leaf_text(topo, ha_leaf(p->first), text, sizeof(text)));
		break;
	case 2:
		fprintf(out,
			" or a leaf switch; no standby avoids both of a path between the two: if "
			"one fails, other NICs are connected first");
		break;
	default:
		fprintf(out, " or a leaf switch");
	}
}

void topo_protection_print(const struct topo_view *view, FILE *out)
{
	struct topo_protection p;

	if (view->failover == TOPO_FAILOVER_OFF)
		return;
	for (int ethernet = 1; ethernet >= 0; ethernet--) {
		if (!topo_protection(view, ethernet, &p))
			continue;
		fprintf(out, "protection, %s: ", ethernet ? "RoCE" : "InfiniBand");
		nics_print(&p, out);
		leaves_print(view->topo, &p, out);
		fputc('\n', out);
	}
}
