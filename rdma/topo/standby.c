/* SPDX-License-Identifier: BSD-3-Clause */
#include "rdma/topo/standby.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rdma/topo/gid.h"

#define N HA_TOPO_PORTS_MAX
#define RANK_NONE UINT8_MAX /* may not, or not any more */
#define NOBODY (-1)

/*
 * Ports are numbered by their place in the stable order here; topo[] leads back to the list. A
 * round gives each port one standby of the best class that it has left.
 */
struct deal {
	const struct ha_topo *list;
	int n;
	int topo[N];
	int card[N];        /* the smallest port of the same card */
	uint8_t rank[N][N]; /* the class as one number */
	/* of equal rank: leading bytes that the addresses share, then the same position */
	uint8_t alike[N][N];
	bool candidate[N]; /* who may be chosen */
	/* Of the round. */
	uint8_t best[N]; /* the smallest rank that is left */
	int cards[N];    /* how many cards have ports in that class */
	int quota[N]; /* how many may choose this port's card, as far as this port is concerned */
	int first[N]; /* the choice; NOBODY */
	int card_load[N]; /* by card[]: how many chose it */
	int load[N];      /* how many chose the port */
};

static const struct ha_topo_device *device_of(const struct deal *d, int i)
{
	return &d->list->devices[d->topo[i]];
}

/* A wire: one port of one physical function. Software NICs have one each. */
static bool same_wire(const struct ha_topo_device *a, const struct ha_topo_device *b)
{
	return !a->place.is_soft && !b->place.is_soft && a->port == b->port &&
	       !strcmp(a->place.physical_path, b->place.physical_path);
}

static bool same_network(const struct ha_topo_device *a, const struct ha_topo_device *b)
{
	if (ha_gid_is_zero(&a->address.gid) || ha_gid_is_zero(&b->address.gid))
		return true;
	/* A subnet prefix, but for the FLID that routers of InfiniBand keep in its bytes 4 and
	 * 5. */
	if (!a->is_ethernet)
		return !memcmp(a->address.gid.raw, b->address.gid.raw, 4) &&
		       !memcmp(a->address.gid.raw + 6, b->address.gid.raw + 6, 2);
	return a->address.roce_version == b->address.roce_version &&
	       ha_gid_is_ipv4(&a->address.gid) == ha_gid_is_ipv4(&b->address.gid) &&
	       ha_gid_is_link_local(&a->address.gid) == ha_gid_is_link_local(&b->address.gid);
}

bool ha_standby_classify(const struct ha_topo *topo, int a, int b, struct ha_standby_class *class)
{
	const struct ha_topo_device *x = &topo->devices[a], *y = &topo->devices[b];

	if (x->is_ethernet != y->is_ethernet)
		return false;
	class->distance = ha_topo_distance(topo, a, b);
	class->apart = same_wire(x, y) ? HA_STANDBY_SAME_WIRE : HA_STANDBY_OTHER_PORT;
	if (class->distance != HA_PCI_SAME_CARD)
		class->apart = HA_STANDBY_OTHER_CARD;
	class->other_network = !same_network(x, y);
	class->slower = x->speed_mbps > 0 && y->speed_mbps > 0 && y->speed_mbps < x->speed_mbps / 2;
	return true;
}

const char *ha_standby_class_text(const struct ha_standby_class *class, char *buf, size_t len)
{
	static const char *const apart[] = {
		[HA_STANDBY_OTHER_PORT] = "other port of the card",
		[HA_STANDBY_SAME_WIRE] = "same card and cable",
	};

	snprintf(buf, len, "%s%s%s",
		 class->apart ? apart[class->apart] : ha_pci_distance_name(class->distance),
		 class->other_network ? ", another network" : "",
		 class->slower ? ", less than half the speed" : "");
	return buf;
}

uint8_t ha_standby_rank(const struct ha_standby_class *class)
{
	return (uint8_t)(class->apart << 5 | class->other_network << 4 | class->slower << 3 |
			 class->distance);
}

/*
 * How many leading bytes two addresses share: subnets are not known here, but they mostly end at a
 * byte, and the host part (the last byte of IPv4, the interface identifier of IPv6, RFC 4291 2.5.1)
 * says nothing.
 */
static uint8_t alike_of(const struct ha_topo_device *a, const struct ha_topo_device *b)
{
	int bytes = 0, most = ha_gid_is_ipv4(&a->address.gid) ? 15 : 8;
	struct ha_pci_address x, y;
	bool placed;

	if (a->is_ethernet && !ha_gid_is_zero(&a->address.gid) && !ha_gid_is_zero(&b->address.gid))
		while (bytes < most && a->address.gid.raw[bytes] == b->address.gid.raw[bytes])
			bytes++;
	placed = ha_pci_address(a->place.physical_path, &x) &&
		 ha_pci_address(b->place.physical_path, &y) && x.function == y.function &&
		 a->port == b->port;
	return (uint8_t)(bytes << 1 | placed);
}

/* PCI order, then what is left to tell software NICs and ports apart. */
static int stable_compare(const void *a, const void *b)
{
	const struct ha_topo_device *x = *(const struct ha_topo_device *const *)a;
	const struct ha_topo_device *y = *(const struct ha_topo_device *const *)b;
	uint64_t ox = ha_pci_order(x->place.pci_path), oy = ha_pci_order(y->place.pci_path);
	int names;

	if (ox != oy)
		return ox < oy ? -1 : 1;
	names = strverscmp(x->name, y->name); /* soft2 before soft10 */
	return names ? names : x->port - y->port;
}

static void deal_init(struct deal *d, const struct ha_topo *list)
{
	const struct ha_topo_device *sorted[N];
	struct ha_standby_class class;

	d->list = list;
	d->n = list->nports;
	for (int i = 0; i < d->n; i++)
		sorted[i] = &list->devices[i];
	qsort(sorted, (size_t)d->n, sizeof(sorted[0]), stable_compare);
	for (int i = 0; i < d->n; i++) {
		d->topo[i] = (int)(sorted[i] - list->devices);
		d->card[i] = i;
	}
	for (int i = 0; i < d->n; i++)
		for (int k = 0; k < d->n; k++) {
			if (i == k || !ha_standby_classify(list, d->topo[i], d->topo[k], &class))
				d->rank[i][k] = RANK_NONE;
			else
				d->rank[i][k] = ha_standby_rank(&class);
			d->alike[i][k] = alike_of(sorted[i], sorted[k]);
			if (k < i && d->card[i] == i &&
			    ha_topo_distance(list, d->topo[i], d->topo[k]) == HA_PCI_SAME_CARD)
				d->card[i] = d->card[k];
		}
}

static bool may_choose(const struct deal *d, int a, int b)
{
	return d->candidate[b] && d->rank[a][b] != RANK_NONE && d->rank[a][b] == d->best[a];
}

/* Both are in the other's best class. */
static bool may_pair(const struct deal *d, int a, int b)
{
	return d->candidate[a] && may_choose(d, a, b) && may_choose(d, b, a);
}

/* The best class of a port, and the share of its members that one card may take. */
static void class_measure(struct deal *d, int a)
{
	bool seen[N] = { false };
	int ports = 0, cards = 0;

	d->best[a] = RANK_NONE;
	for (int b = 0; b < d->n; b++)
		if (d->candidate[b] && d->rank[a][b] < d->best[a])
			d->best[a] = d->rank[a][b];
	for (int b = 0; b < d->n; b++) {
		if (!may_choose(d, a, b))
			continue;
		ports++;
		cards += !seen[d->card[b]];
		seen[d->card[b]] = true;
	}
	for (int b = 0; b < d->n;
	     b++) /* those that compete for the same class: its members and this card's ports */
		ports += d->card[b] == d->card[a] && (b == a || d->candidate[b]) &&
			 !may_choose(d, a, b);
	d->cards[a] = cards;
	d->quota[a] = cards ? (ports + cards - 1) / cards : 0;
}

static void round_begin(struct deal *d)
{
	for (int i = 0; i < d->n; i++) {
		class_measure(d, i);
		d->first[i] = NOBODY;
		d->card_load[i] = d->load[i] = 0;
	}
}

static void choose_standby(struct deal *d, int a, int b)
{
	d->first[a] = b;
	d->load[b]++;
	d->card_load[d->card[b]]++;
}

/* Neither card is the choice of too many already. Two ports of one card alone have nobody to spread
 * over. */
static bool within_quota(const struct deal *d, int a, int b)
{
	if (d->card[a] == d->card[b])
		return true;
	return d->card_load[d->card[a]] < d->quota[b] && d->card_load[d->card[b]] < d->quota[a];
}

/* How many pairs the card of `a` can still form with ports like `a`. */
static int open_pairs(const struct deal *d, int a)
{
	int ports = 0, room = d->quota[a] - d->card_load[d->card[a]];

	for (int b = 0; b < d->n; b++)
		ports += d->card[b] == d->card[a] && d->candidate[b] && d->first[b] == NOBODY &&
			 d->best[b] == d->best[a];
	return ports < room ? ports : room;
}

static int partner_find(const struct deal *d, int a)
{
	int best = NOBODY, best_open = 0;

	for (int b = 0; b < d->n; b++) {
		int open;

		if (d->first[b] != NOBODY || !may_pair(d, a, b) || !within_quota(d, a, b))
			continue;
		open = open_pairs(d, b);
		if (best == NOBODY || open > best_open ||
		    (open == best_open && d->alike[a][b] > d->alike[a][best])) {
			best = b;
			best_open = open;
		}
	}
	return best;
}

/*
 * Form as many pairs as possible. Within a class every two ports of different cards may pair, and
 * then taking the cards with most unpaired ports first leaves the fewest over.
 */
static void pairs_form(struct deal *d)
{
	bool tried[N] = { false };

	for (;;) {
		int a = NOBODY, b, most = 0;

		for (int i = 0; i < d->n; i++) {
			int open;

			if (tried[i] || d->first[i] != NOBODY || !d->candidate[i] ||
			    d->best[i] == RANK_NONE)
				continue;
			open = open_pairs(d, i);
			if (a == NOBODY || open > most) {
				a = i;
				most = open;
			}
		}
		if (a == NOBODY)
			return;
		tried[a] = true; /* partners only become fewer */
		b = partner_find(d, a);
		if (b == NOBODY)
			continue;
		choose_standby(d, a, b);
		choose_standby(d, b, a);
	}
}

/* Is `b` better than `c` for a port without partner? usual: what it has when every port is up. */
static bool better_left(const struct deal *d, int a, int b, int c, int usual)
{
	int cards = d->card_load[d->card[b]] - d->card_load[d->card[c]],
	    ports = d->load[b] - d->load[c];

	if (cards)
		return cards < 0;
	if (ports)
		return ports < 0;
	if ((b == usual) != (c == usual))
		return b == usual;
	return d->alike[a][b] > d->alike[a][c];
}

static int least_loaded(const struct deal *d, int a, int usual)
{
	int best = NOBODY;

	for (int b = 0; b < d->n; b++)
		if (may_choose(d, a, b) && (best == NOBODY || better_left(d, a, b, best, usual)))
			best = b;
	return best;
}

/* Those without a partner: first who has the fewest cards to choose from, because the others can
 * avoid that choice. */
static void rest_choose(struct deal *d, const int *usual)
{
	for (int cards = 1; cards <= d->n; cards++)
		for (int a = 0; a < d->n; a++)
			if (d->first[a] == NOBODY && d->cards[a] == cards)
				choose_standby(d, a, least_loaded(d, a, usual ? usual[a] : NOBODY));
}

/* Pairs both ends of which are up stay. */
static void pairs_keep(struct deal *d, const int *usual)
{
	for (int a = 0; a < d->n; a++) {
		int b = usual[a];

		if (a >= b || usual[b] != a || !may_pair(d, a, b) || !within_quota(d, a, b))
			continue;
		choose_standby(d, a, b);
		choose_standby(d, b, a);
	}
}

/* A port that is down keeps its standby: what hangs on it is moving there, or has moved. */
static void down_keep(struct deal *d, const int *usual)
{
	for (int a = 0; a < d->n; a++)
		if (!d->candidate[a] && usual[a] != NOBODY && may_choose(d, a, usual[a]))
			choose_standby(d, a, usual[a]);
}

/* Put the round's choices into the orders and take them off the table. False: nobody has anything
 * left. */
static bool round_end(struct deal *d, struct ha_standby *standby)
{
	bool any = false;

	for (int a = 0; a < d->n; a++) {
		int b = d->first[a], t = d->topo[a];

		if (b == NOBODY)
			continue;
		standby->order[t][standby->count[t]++] = (unsigned char)d->topo[b];
		d->rank[a][b] = RANK_NONE;
		any = true;
	}
	return any;
}

int ha_standby_compute(const struct ha_topo *topo, struct ha_standby *standby)
{
	struct deal *d = calloc(1, sizeof(*d));
	int usual[N];

	memset(standby, 0, sizeof(*standby));
	if (!d)
		return -ENOMEM;
	standby->nports = topo->nports;
	deal_init(d, topo);
	for (int i = 0; i < d->n; i++)
		d->candidate[i] = true;
	round_begin(d);
	pairs_form(d);
	rest_choose(d, NULL);
	memcpy(usual, d->first, sizeof(usual));

	for (int i = 0; i < d->n; i++)
		d->candidate[i] = device_of(d, i)->up;
	round_begin(d);
	pairs_keep(d, usual);
	pairs_form(d);
	down_keep(d, usual);
	rest_choose(d, usual);
	while (round_end(d, standby)) {
		round_begin(d);
		pairs_form(d);
		rest_choose(d, NULL);
	}
	free(d);
	return 0;
}

bool ha_standby_shares_leaf(const struct ha_topo_device *a, const struct ha_topo_device *b)
{
	uint32_t leaf = ha_leaf(a);

	return leaf && leaf == ha_leaf(b);
}

void ha_standby_avoid_leaf(const struct ha_topo *topo, struct ha_standby *standby)
{
	for (int a = 0; a < standby->nports; a++) {
		unsigned char last[N];
		int n = 0, nlast = 0;

		for (int k = 0; k < standby->count[a]; k++) {
			unsigned char b = standby->order[a][k];

			if (ha_standby_shares_leaf(&topo->devices[a], &topo->devices[b]))
				last[nlast++] = b;
			else
				standby->order[a][n++] = b;
		}
		memcpy(standby->order[a] + n, last, (size_t)nlast);
	}
}

bool ha_standby_is_pair(const struct ha_standby *standby, int a, int b)
{
	return standby->count[a] && standby->order[a][0] == b && standby->count[b] &&
	       standby->order[b][0] == a;
}

/* The orders of the list as it is, or NULL without memory. */
static const struct ha_standby *find_orders(struct ha_topo *topo)
{
	struct ha_standby *standby;

	if (topo->standby)
		return topo->standby;
	standby = malloc(sizeof(*standby));
	if (!standby || ha_standby_compute(topo, standby)) {
		free(standby);
		return NULL;
	}
	topo->standby = standby;
	return standby;
}

int ha_topo_standby(struct ha_topo *topo, int dev, int order[], int max)
{
	const struct ha_standby *standby;
	int n;

	if (dev < 0 || dev >= topo->nports)
		return -EINVAL;
	standby = find_orders(topo);
	if (!standby)
		return -ENOMEM;
	for (n = 0; n < standby->count[dev] && n < max; n++)
		order[n] = standby->order[dev][n];
	return n;
}
