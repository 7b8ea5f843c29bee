/* SPDX-License-Identifier: BSD-3-Clause */
/* arp.h - ARP for Ethernet and IPv4 (RFC 826): requests, answers, and what they say */
#ifndef INA_BACKEND_ARP_H
#define INA_BACKEND_ARP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HA_ARP_BYTES 42 /* with the Ethernet header */

struct ha_arp {
	bool request; /* else an answer */
	uint8_t sender_mac[6], target_mac[6];
	uint32_t sender, target; /* IPv4, host byte order */
};

/* A request goes to all, an answer to target_mac. */
void ha_arp_encode(const struct ha_arp *a, uint8_t bytes[HA_ARP_BYTES]);
/* False: it is none. */
bool ha_arp_decode(const uint8_t *bytes, size_t len, struct ha_arp *a);

/*
 * Asks up to `tries` times, every wait_ms, over a packet socket that does not block and receives
 * all ARP of its cable; for no longer, whatever others say there. 0 and who it is,
 * -EHOSTUNREACH, or what send() had against it.
 */
int ha_arp_ask(int fd, const struct ha_arp *question, unsigned tries, unsigned wait_ms,
	       uint8_t mac[6]);

#endif
