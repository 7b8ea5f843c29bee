/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "rdma/topo/gid.h"
#include "rdma/topo/pci.h"
#include "rdma/verbs/status.h"
#include "tools/topo_view.h"

#define LEVELS 3   /* node, place, card; the port is below */
#define THEN_MAX 3 /* standbys after the first that a line names */

/* One port and what stands above it. An empty text: that level is left out. */
struct row {
	const struct ha_topo_device *dev;
	int index;
	char above[LEVELS][96];
};

/* The last `n` folders of a path begin here; NULL: it has fewer below its root complex. */
static const char *folders_back(const char *path, int n)
{
	const char *at = path + strlen(path);

	while (n > 0 && at > path)
		n -= *--at == '/';
	return n || !strstr(path, "/pci") || at <= strstr(path, "/pci") ? NULL : at;
}

const char *topo_place_text(const struct ha_topo_device *dev, char *buf, size_t len)
{
	/*
	 * A switch has a port towards the host, then one towards each function: two folders above
	 * the function.
	 */
	const char *path = dev->place.physical_path, *up = folders_back(path, 3),
		   *root = strstr(path, "/pci");

	if (dev->place.is_soft)
		snprintf(buf, len, "%s", "");
	else if (up)
		snprintf(buf, len, "PCI %s %.*s", folders_back(path, 4) ? "switch" : "bridge",
			 (int)strcspn(up + 1, "/"), up + 1);
	else
		snprintf(buf, len, "root complex %.*s", root ? (int)strcspn(root + 1, "/") : 1,
			 root ? root + 1 : "?");
	return buf;
}

const char *topo_card_text(const struct ha_topo_device *dev, char *buf, size_t len)
{
	const char *folder = strrchr(dev->place.physical_path, '/');

	snprintf(buf, len, "%s", folder && !dev->place.is_soft ? folder + 1 : "");
	buf[strcspn(buf, ".")] = 0;
	return buf;
}

/* "active", "down", "active, no address". */
static const char *topo_state_text(const struct ha_topo_device *dev, char *buf, size_t len)
{
	snprintf(buf, len, "%s%s", ha_verbs_port_state_name(dev->port_attr.state),
		 !dev->up && dev->port_attr.state == IBV_PORT_ACTIVE ? ", no address" : "");
	return buf;
}

const char *topo_failover_text(enum topo_failover failover)
{
	static const char *const texts[] = {
		[TOPO_FAILOVER_LATER] =
			"what failover will use; this version does not fail over yet",
		[TOPO_FAILOVER_OFF] =
			"what failover would use; HA_NCCL_ENABLE_BACKUP=0 switches it off",
		[TOPO_FAILOVER_ON] = "what failover uses",
	};

	return texts[failover];
}

static void row_make(struct row *row, const struct ha_topo_device *dev, int index)
{
	char card[HA_DEVICE_PATH_MAX];
	size_t used;

	row->dev = dev;
	row->index = index;
	if (dev->place.is_soft)
		snprintf(row->above[0], sizeof(row->above[0]), "no PCI device: software NICs");
	else if (dev->place.numa_node >= 0)
		snprintf(row->above[0], sizeof(row->above[0]), "NUMA node %d",
			 dev->place.numa_node);
	else
		snprintf(row->above[0], sizeof(row->above[0]), "NUMA node unknown");
	topo_place_text(dev, row->above[1], sizeof(row->above[1]));
	topo_card_text(dev, card, sizeof(card));
	if (!*card)
		return;
	used = (size_t)snprintf(row->above[2], sizeof(row->above[2]), "card %.20s", card);
	if (dev->guid)
		snprintf(row->above[2] + used, sizeof(row->above[2]) - used, "  GUID %016" PRIx64,
			 dev->guid);
}

static int row_compare(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	/* unknown (-1) comes last */
	unsigned nx = (unsigned)x->dev->place.numa_node, ny = (unsigned)y->dev->place.numa_node;
	uint64_t ox = ha_pci_order(x->dev->place.pci_path),
		 oy = ha_pci_order(y->dev->place.pci_path);
	int names;

	if (x->dev->place.is_soft != y->dev->place.is_soft)
		return x->dev->place.is_soft - y->dev->place.is_soft;
	if (nx != ny)
		return nx < ny ? -1 : 1;
	for (int level = 1; level < LEVELS; level++)
		if (strcmp(x->above[level], y->above[level]))
			return strcmp(x->above[level], y->above[level]);
	if (ox != oy)
		return ox < oy ? -1 : 1;
	names = strverscmp(x->dev->name, y->dev->name);
	return names ? names : x->dev->port - y->dev->port;
}

static void leaf_print(const struct topo_view *view, const struct row *row, FILE *out)
{
	const struct ha_topo_device *d = row->dev;
	char state[64], gid[HA_GID_TEXT_MAX];

	if (row->index < view->topo->ndevices)
		fprintf(out, "[%d] ", row->index);
	else
		fprintf(out, "[-] ");
	fprintf(out, "%s:%d  %s", d->name, d->port, topo_state_text(d, state, sizeof(state)));
	if (d->up && d->is_ethernet)
		fprintf(out, "  %g Gb/s  RoCE v%d  GID %d %s", d->speed_mbps / 1000.0,
			d->address.roce_version, d->address.gid_index,
			ha_gid_text(&d->address.gid, gid));
	else if (d->up)
		fprintf(out, "  %g Gb/s  InfiniBand  LID %d  GID %d %s", d->speed_mbps / 1000.0,
			d->address.lid, d->address.gid_index, ha_gid_text(&d->address.gid, gid));
	else
		fprintf(out, "  %s", d->is_ethernet ? "RoCE" : "InfiniBand");
	if (d->place.rail_id >= 0)
		fprintf(out, "  rail %d", d->place.rail_id);
	if (d->place.plane_id >= 0)
		fprintf(out, "  plane %d", d->place.plane_id);
	if (d->place.is_virtual)
		fprintf(out, "  virtual function %s", strrchr(d->place.pci_path, '/') + 1);
	if (row->index >= view->topo->ndevices)
		fprintf(out, "  not reported; no standby before it is up");
	fprintf(out, "\n");
}

/* Rows from..to have everything above `level` in common. */
static void rows_print(const struct topo_view *view, const struct row *rows, int from, int to,
		       int level, const char *indent, FILE *out)
{
	const char *const *pen = view->utf8 ? (const char *[]) { "├─ ", "└─ ", "│  " }
					    : (const char *[]) { "|- ", "`- ", "|  " };
	const char *const below[] = { pen[2], "   " }; /* others follow; this was the last */
	char deeper[64];

	if (level < LEVELS && !*rows[from].above[level]) {
		rows_print(view, rows, from, to, level + 1, indent, out);
		return;
	}
	for (int i = from, next; i < to; i = next) {
		next = i + 1;
		while (level < LEVELS && next < to &&
		       !strcmp(rows[i].above[level], rows[next].above[level]))
			next++;
		fprintf(out, "%s%s", indent, level ? pen[next == to] : "");
		if (level == LEVELS) {
			leaf_print(view, &rows[i], out);
			continue;
		}
		fprintf(out, "%s\n", rows[i].above[level]);
		snprintf(deeper, sizeof(deeper), "%s%s", indent, level ? below[next == to] : "");
		rows_print(view, rows, i, next, level + 1, deeper, out);
	}
}

void topo_tree_print(const struct topo_view *view, FILE *out)
{
	int n = view->topo->nports;
	struct row *rows = n ? calloc((size_t)n, sizeof(*rows)) : NULL;

	if (!rows)
		return;
	for (int i = 0; i < n; i++)
		row_make(&rows[i], &view->topo->devices[i], i);
	qsort(rows, (size_t)n, sizeof(*rows), row_compare);
	rows_print(view, rows, 0, n, 0, "", out);
	free(rows);
}

/* Do they hang on one leaf switch? */
static const char *rail_text(const struct ha_topo_device *a, const struct ha_topo_device *b)
{
	if (!ha_leaf_comparable(ha_leaf(a), ha_leaf(b)))
		return "";
	return ha_standby_shares_leaf(a, b) ? ", same leaf switch" : ", another leaf switch";
}

static void pair_print(const struct topo_view *view, int a, int width, FILE *out)
{
	const struct ha_standby *s = view->standby;
	struct ha_standby_class class;
	char label[HA_DEVICE_NAME_MAX + 8], why[128];
	int more = s->count[a] - 1 - THEN_MAX;

	fprintf(out, "  %-*s ", width,
		ha_topo_device_label(&view->topo->devices[a], label, sizeof(label)));
	if (!s->count[a]) {
		fprintf(out, "no standby: no other port of its link layer is up\n");
		return;
	}
	for (int k = 0; k < s->count[a] && k <= THEN_MAX; k++) {
		int b = s->order[a][k];

		ha_topo_device_label(&view->topo->devices[b], label, sizeof(label));
		if (k) {
			fprintf(out, "%s%s", k == 1 ? ", then " : ", ", label);
			continue;
		}
		ha_standby_classify(view->topo, a, b, &class);
		fprintf(out, "%s standby %s (%s%s)", ha_standby_is_pair(s, a, b) ? "<=>" : " =>",
			label, ha_standby_class_text(&class, why, sizeof(why)),
			rail_text(&view->topo->devices[a], &view->topo->devices[b]));
	}
	if (more > 0)
		fprintf(out, " and %d more", more);
	fprintf(out, "\n");
}

void topo_pairs_print(const struct topo_view *view, FILE *out)
{
	char label[HA_DEVICE_NAME_MAX + 8];
	int width = 0;

	fprintf(out, "standby order: %s\n", topo_failover_text(view->failover));
	for (int i = 0; i < view->topo->ndevices; i++) {
		int len = (int)strlen(
			ha_topo_device_label(&view->topo->devices[i], label, sizeof(label)));

		width = len > width ? len : width;
	}
	for (int i = 0; i < view->topo->ndevices; i++)
		pair_print(view, i, width, out);
}
