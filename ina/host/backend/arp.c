/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/host/backend/arp.h"

#include "base/clock.h"
#include "ina/frame/bytes.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

/* Ethernet's type; Ethernet, IPv4, their lengths; the operation's high byte */
static const uint8_t head[] = { 0x08, 0x06, 0, 1, 8, 0, 6, 4, 0 };

void ha_arp_encode(const struct ha_arp *a, uint8_t b[HA_ARP_BYTES])
{
	memset(b, 0xff, 6);
	if (!a->request)
		memcpy(b, a->target_mac, 6);
	memcpy(b + 6, a->sender_mac, 6);
	memcpy(b + 12, head, sizeof(head));
	b[21] = a->request ? 1 : 2;
	memcpy(b + 22, a->sender_mac, 6);
	ina_put32(b + 28, a->sender);
	memcpy(b + 32, a->target_mac, 6);
	ina_put32(b + 38, a->target);
}

bool ha_arp_decode(const uint8_t *b, size_t len, struct ha_arp *a)
{
	if (len < HA_ARP_BYTES || memcmp(b + 12, head, sizeof(head)) || (b[21] != 1 && b[21] != 2))
		return false;
	a->request = b[21] == 1;
	memcpy(a->sender_mac, b + 22, 6);
	a->sender = ina_get32(b + 28);
	memcpy(a->target_mac, b + 32, 6);
	a->target = ina_get32(b + 38);
	return true;
}

static bool await_reply(int fd, uint32_t sender, uint64_t until, uint8_t mac[6])
{
	struct pollfd ready = { fd, POLLIN, 0 };
	struct ha_arp reply;
	uint8_t bytes[128];
	uint64_t now;
	ssize_t n;

	while ((now = ha_clock_now(&ha_clock_live)) < until) {
		if (poll(&ready, 1, (int)((until - now) / HA_NS_PER_MS) + 1) <= 0)
			continue;
		n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
		if (n > 0 && ha_arp_decode(bytes, (size_t)n, &reply) && reply.sender == sender) {
			memcpy(mac, reply.sender_mac, 6);
			return true;
		}
	}
	return false;
}

int ha_arp_ask(int fd, const struct ha_arp *question, unsigned tries, unsigned wait_ms,
	       uint8_t mac[6])
{
	uint8_t bytes[HA_ARP_BYTES];

	ha_arp_encode(question, bytes);
	while (tries--) {
		if (send(fd, bytes, sizeof(bytes), 0) < 0 && errno != EAGAIN && errno != ENOBUFS)
			return -errno;
		if (await_reply(fd, question->target,
				ha_clock_now(&ha_clock_live) + wait_ms * HA_NS_PER_MS, mac))
			return 0;
	}
	return -EHOSTUNREACH;
}
