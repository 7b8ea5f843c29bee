/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A frame of the Link Layer Discovery Protocol (IEEE 802.1AB-2016, clauses 7 to 9): after the
 * Ethernet header TLVs, each with 7 bits of type and 9 bits of length.
 */
#include <arpa/inet.h>
#include <string.h>

#include "tools/switches/neighbors.h"

#define ETHERNET_HEADER 14
#define ETHERTYPE_AT 12

enum tlv {
	TLV_END,
	TLV_CHASSIS_ID,
	TLV_PORT_ID,
	TLV_PORT_DESCRIPTION = 4,
	TLV_SYSTEM_NAME,
	TLV_CAPABILITIES = 7,
};

#define CHASSIS_MAC 4 /* subtypes of a chassis ID */
#define CHASSIS_ADDRESS 5
#define PORT_MAC 3 /* and of a port ID */

#define CAPABLE_BRIDGE 4u /* bits of the enabled capabilities */
#define CAPABLE_ROUTER 16u

struct tlv_value {
	const unsigned char *at;
	size_t size;
};

/* As lldpd calls the subtypes of a chassis ID. */
static const char *const kinds[] = { "unhandled", "unhandled", "ifalias", "unhandled",
				     "mac",       "ip",        "ifname",  "local" };

/* "00:53:00:aa:bb:cc" */
static size_t print_mac(const unsigned char *mac, char *text, size_t size)
{
	return (size_t)snprintf(text, size, "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2],
				mac[3], mac[4], mac[5]);
}

/* Its family by IANA's number (1: IPv4, 2: IPv6) before the address; 0: it is neither. */
static size_t print_address(struct tlv_value v, char *text, size_t size)
{
	bool inet = v.size == 5 && v.at[0] == 1, inet6 = v.size == 17 && v.at[0] == 2;

	if ((!inet && !inet6) ||
	    !inet_ntop(inet ? AF_INET : AF_INET6, v.at + 1, text, (socklen_t)size))
		return 0;
	return strlen(text);
}

static bool take_chassis_id(struct tlv_value v, struct ha_topo_switch *at)
{
	struct tlv_value id = { v.at + 1, v.size - 1 };
	char text[INET6_ADDRSTRLEN];
	size_t n = 0;

	if (v.size < 2)
		return false;
	if (v.at[0] == CHASSIS_MAC && id.size == 6)
		n = print_mac(id.at, text, sizeof(text));
	else if (v.at[0] == CHASSIS_ADDRESS)
		n = print_address(id, text, sizeof(text));
	if (n)
		switches_set_id(at, kinds[v.at[0]], text, n);
	else
		switches_set_id(at, v.at[0] < 8 ? kinds[v.at[0]] : kinds[0], (const char *)id.at,
				id.size);
	return true;
}

/* A port's MAC address says little to people; its description, which follows, replaces it. */
static bool take_port_id(struct tlv_value v, struct ha_topo_switch *at, bool *is_mac)
{
	char text[32];

	if (v.size < 2)
		return false;
	*is_mac = v.at[0] == PORT_MAC && v.size == 7;
	if (*is_mac)
		ha_switches_word(at->port, sizeof(at->port), text,
				 print_mac(v.at + 1, text, sizeof(text)));
	else
		ha_switches_word(at->port, sizeof(at->port), (const char *)v.at + 1, v.size - 1);
	return true;
}

static bool take_tlv(enum tlv type, struct tlv_value v, struct switches_neighbor *new,
		     bool *port_is_mac)
{
	switch (type) {
	case TLV_CHASSIS_ID:
		return take_chassis_id(v, &new->at);
	case TLV_PORT_ID:
		return take_port_id(v, &new->at, port_is_mac);
	case TLV_PORT_DESCRIPTION:
		if (*port_is_mac && v.size)
			ha_switches_word(new->at.port, sizeof(new->at.port), (const char *)v.at,
					 v.size);
		return true;
	case TLV_SYSTEM_NAME:
		ha_switches_word(new->at.name, sizeof(new->at.name), (const char *)v.at, v.size);
		return true;
	case TLV_CAPABILITIES:
		if (v.size == 4)
			new->forwards = v.at[3] & (CAPABLE_BRIDGE | CAPABLE_ROUTER);
		return true;
	default:
		return true;
	}
}

/* Chassis ID and port ID are mandatory, and the end is marked. */
static bool take_tlvs(const unsigned char *data, size_t size, struct switches_neighbor *new)
{
	bool port_is_mac = false;

	while (size >= 2) {
		enum tlv type = data[0] >> 1;
		struct tlv_value v = { data + 2, (size_t)(data[0] & 1) << 8 | data[1] };

		if (v.size > size - 2)
			return false;
		if (type == TLV_END)
			return new->at.id[0] && new->at.port[0];
		if (!take_tlv(type, v, new, &port_is_mac))
			return false;
		data += 2 + v.size;
		size -= 2 + v.size;
	}
	return false;
}

bool switches_take_frame(const unsigned char *frame, size_t size, const char *interface,
			 struct switches_neighbors *all)
{
	struct switches_neighbor *new;

	if (size < ETHERNET_HEADER || frame[ETHERTYPE_AT] != 0x88 ||
	    frame[ETHERTYPE_AT + 1] != 0xcc)
		return false;
	new = switches_add_neighbor(all, interface);
	if (!new)
		return true;
	if (take_tlvs(frame + ETHERNET_HEADER, size - ETHERNET_HEADER, new))
		return true;
	all->n--;
	return false;
}
