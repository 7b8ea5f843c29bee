/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>

#include "rdma/topo/gid.h"
#include "rdma/topo/pci.h"
#include "rdma/verbs/status.h"
#include "tools/topo_view.h"

#define TEXT_MAX (HA_DEVICE_PATH_MAX + 64)

static void text_put(json_t *object, const char *key, const char *text)
{
	json_object_set_new(object, key, *text ? json_string(text) : json_null());
}

static void guid_put(json_t *object, const char *key, uint64_t guid)
{
	char text[20];

	snprintf(text, sizeof(text), "%016" PRIx64, guid);
	text_put(object, key, guid ? text : "");
}

static void label_put(json_t *object, const char *key, const struct topo_view *view, int i)
{
	char label[HA_DEVICE_NAME_MAX + 8];

	text_put(object, key, ha_topo_device_label(&view->topo->devices[i], label, sizeof(label)));
}

static void address_put(json_t *o, const struct ha_topo_device *d)
{
	char gid[HA_GID_TEXT_MAX];

	json_object_set_new(o, "link_layer", json_string(d->is_ethernet ? "RoCE" : "InfiniBand"));
	json_object_set_new(o, "speed_mbps", json_integer(d->speed_mbps));
	json_object_set_new(o, "mtu", d->up ? json_integer(128 << d->address.mtu) : json_null());
	json_object_set_new(o, "gid_index",
			    d->up ? json_integer(d->address.gid_index) : json_null());
	text_put(o, "gid", d->up ? ha_gid_text(&d->address.gid, gid) : "");
	json_object_set_new(o, "roce_version",
			    d->up && d->is_ethernet ? json_integer(d->address.roce_version)
						    : json_null());
	json_object_set_new(o, "lid",
			    d->up && !d->is_ethernet ? json_integer(d->address.lid) : json_null());
}

/* What the file of `ha switches` has of a port; null: nothing. */
static json_t *switch_object(const struct ha_topo_switch *at)
{
	json_t *o;

	if (!*at->source && !*at->id)
		return json_null();
	o = json_object();
	text_put(o, "id", at->id);
	text_put(o, "name", at->name);
	text_put(o, "port", at->port);
	text_put(o, "source", at->source);
	return o;
}

static json_t *port_object(const struct topo_view *view, int i)
{
	const struct ha_topo_device *d = &view->topo->devices[i];
	bool reported = i < view->topo->ndevices;
	char text[TEXT_MAX];
	json_t *o = json_object();

	label_put(o, "device", view, i);
	json_object_set_new(o, "reported_as", reported ? json_integer(i) : json_null());
	json_object_set_new(o, "name", json_string(d->name));
	json_object_set_new(o, "port", json_integer(d->port));
	json_object_set_new(o, "state", json_string(ha_verbs_port_state_name(d->port_attr.state)));
	json_object_set_new(o, "up", json_boolean(d->up));
	address_put(o, d);
	json_object_set_new(o, "numa_node",
			    d->place.numa_node >= 0 ? json_integer(d->place.numa_node)
						    : json_null());
	json_object_set_new(o, "rail",
			    d->place.rail_id >= 0 ? json_integer(d->place.rail_id) : json_null());
	json_object_set_new(o, "plane",
			    d->place.plane_id >= 0 ? json_integer(d->place.plane_id) : json_null());
	json_object_set_new(o, "switch", switch_object(&d->place.at));
	text_put(o, "place", topo_place_text(d, text, sizeof(text)));
	text_put(o, "card", topo_card_text(d, text, sizeof(text)));
	guid_put(o, "card_guid", d->guid);
	guid_put(o, "node_guid", d->node_guid);
	text_put(o, "pci_path", d->place.pci_path);
	json_object_set_new(o, "virtual_function", json_boolean(d->place.is_virtual));
	json_object_set_new(o, "software", json_boolean(d->place.is_soft));
	json_object_set_new(o, "dma_buf", json_boolean(d->dma_buf));
	json_object_set_new(o, "peer_memory", json_boolean(d->peer_memory));
	json_object_set_new(o, "relaxed_ordering", json_boolean(d->relaxed_ordering));
	json_object_set_new(o, "adaptive_routing", json_boolean(d->adaptive_routing));
	json_object_set_new(o, "apm_enabled", json_boolean(d->apm_enabled));
	return o;
}

static json_t *order_object(const struct topo_view *view, int a)
{
	json_t *o = json_object(), *list = json_array();
	const struct ha_standby *s = view->standby;
	struct ha_standby_class class;
	char why[128];

	label_put(o, "device", view, a);
	json_object_set_new(o, "pair",
			    json_boolean(s->count[a] && ha_standby_is_pair(s, a, s->order[a][0])));
	for (int k = 0; k < s->count[a]; k++) {
		int b = s->order[a][k];
		json_t *entry = json_object();

		label_put(entry, "device", view, b);
		if (ha_standby_classify(view->topo, a, b, &class))
			text_put(entry, "class", ha_standby_class_text(&class, why, sizeof(why)));
		json_array_append_new(list, entry);
	}
	json_object_set_new(o, "order", list);
	return o;
}

static json_t *protection_object(const struct topo_view *view)
{
	static const char *const nics[] = {
		[TOPO_NICS_ONE] = "nothing",
		[TOPO_NICS_PORTS] = "port",
		[TOPO_NICS_CARDS] = "nic",
	};
	json_t *root = json_object();
	struct topo_protection p;

	for (int ethernet = 1; ethernet >= 0; ethernet--) {
		json_t *o;

		if (!topo_protection(view, ethernet, &p))
			continue;
		o = json_object();
		json_object_set_new(o, "against", json_string(nics[p.nics]));
		json_object_set_new(o, "leaf_switches",
				    p.leaves ? json_integer(p.leaves) : json_null());
		json_object_set_new(root, ethernet ? "RoCE" : "InfiniBand", o);
	}
	return root;
}

int topo_json_print(const struct topo_view *view, FILE *out)
{
	json_t *root = json_object(), *ports = json_array(), *standby = json_array();
	int rc;

	json_object_set_new(root, "library", json_string(view->topo->verbs->name));
	json_object_set_new(root, "active", json_integer(view->topo->ndevices));
	json_object_set_new(root, "down", json_integer(view->topo->down));
	for (int i = 0; i < view->topo->nports; i++)
		json_array_append_new(ports, port_object(view, i));
	json_object_set_new(root, "ports", ports);
	json_object_set_new(root, "failover_in_force",
			    json_boolean(view->failover == TOPO_FAILOVER_ON));
	json_object_set_new(root, "standby_is", json_string(topo_failover_text(view->failover)));
	for (int i = 0; i < view->topo->ndevices; i++)
		json_array_append_new(standby, order_object(view, i));
	json_object_set_new(root, "standby", standby);
	json_object_set_new(root, "protection", protection_object(view));
	if (!root)
		return -ENOMEM;
	rc = json_dumpf(root, out, JSON_INDENT(2)) ? -EIO : 0;
	json_decref(root);
	fputc('\n', out);
	return rc || ferror(out) ? -EIO : 0;
}
