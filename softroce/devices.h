/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * devices.h - what SOFTROCE_DEVICES says: a list of device specifications, parsed without looking
 * at the machine
 */
#ifndef SOFTROCE_DEVICES_H
#define SOFTROCE_DEVICES_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

#define SR_DEVICES_MAX 32
#define SR_DEVICE_NAME_MAX 32
#define SR_DEVICES_DEFAULT "127.1.0.0/16,127.2.0.0/16"

enum sr_device_kind {
	SR_DEVICE_INTERFACE, /* a network interface; its addresses and its state are followed */
	SR_DEVICE_ADDRESS,   /* one address of this machine */
	SR_DEVICE_SUBNET,    /* a loopback subnet; each process takes the next free address of it */
};

struct sr_device_spec {
	char name[SR_DEVICE_NAME_MAX]; /* as libibverbs lists it: soft0, ... */
	enum sr_device_kind kind;
	char ifname[IFNAMSIZ]; /* SR_DEVICE_INTERFACE */
	uint8_t gid[16];       /* ADDRESS and SUBNET: the address, an IPv4 one as ::ffff:a.b.c.d */
	unsigned prefix;       /* SUBNET: its length in bits of the IPv4 address, 8..30 */
	unsigned place;        /* in the list, from 0 on; items that make no sense have one, too */
};

/*
 * Called for each item that cannot be used, with one line that says why and what to write instead.
 */
typedef void (*sr_devices_complain)(void *user, const char *line);

/*
 * Parse `text`: items separated by commas, each `[name=]what`, where what is an interface, an IPv4
 * or IPv6 address, or a subnet of 127.0.0.0/8. An item without a name is called soft<N>, N its
 * place in the list from 0 on. Items that make no sense are reported and skipped. Returns the
 * number of specifications written to `out` (at most `max`).
 */
int sr_devices_parse(const char *text, struct sr_device_spec *out, int max,
		     sr_devices_complain complain, void *user);

/* Of ASCII: letters, digits, '_' and '-', one of the first at its start; SR_DEVICE_NAME_MAX - 1 at
 * most. */
bool sr_device_name_valid(const char *name);

/*
 * The IPv4 address in a GID of the form ::ffff:a.b.c.d (host byte order), 0 when it is not of that
 * form.
 */
uint32_t sr_gid_ipv4(const uint8_t gid[16]);
/* ::ffff:a.b.c.d for an IPv4 address in host byte order. */
void sr_gid_from_ipv4(uint8_t gid[16], uint32_t address);
/* The address as text ("127.1.0.1", "fe80::1"); buf has 46 bytes at least (INET6_ADDRSTRLEN). */
const char *sr_gid_text(const uint8_t gid[16], char *buf);

#endif
