/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/host/rank/packet.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define BUFFER (4 << 20)

static int interface_read(struct packet_socket *s, const char *name)
{
	struct ifreq r = { 0 };

	strncpy(r.ifr_name, name, IFNAMSIZ - 1);
	if (ioctl(s->fd, SIOCGIFINDEX, &r))
		return -errno;
	s->ifindex = r.ifr_ifindex;
	if (ioctl(s->fd, SIOCGIFHWADDR, &r))
		return -errno;
	memcpy(s->mac, r.ifr_hwaddr.sa_data, 6);
	if (!ioctl(s->fd, SIOCGIFADDR, &r))
		s->addr = ntohl(((struct sockaddr_in *)(void *)&r.ifr_addr)->sin_addr.s_addr);
	return 0;
}

int packet_open(struct packet_socket *s, const char *interface, char *why, size_t size)
{
	struct sockaddr_ll here = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_IP) };
	int err, room = BUFFER;

	memset(s, 0, sizeof(*s));
	s->dice = 1;
	s->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s->fd < 0) {
		snprintf(why, size, "no raw socket (%s): run as root (CAP_NET_RAW)",
			 strerror(errno));
		return -errno;
	}
	err = interface_read(s, interface);
	here.sll_ifindex = s->ifindex;
	if (!err && bind(s->fd, (struct sockaddr *)&here, sizeof(here)))
		err = -errno;
	if (err) {
		snprintf(why, size, "%.40s: %s", interface, strerror(-err));
		close(s->fd);
		return err;
	}
	if (setsockopt(s->fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)))
		setsockopt(s->fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
	return 0;
}

void packet_close(struct packet_socket *s)
{
	close(s->fd);
}

void packet_send(struct packet_socket *s, const void *bytes, size_t len)
{
	(void)!send(s->fd, bytes, len, MSG_DONTWAIT);
	s->sent++;
}

static bool draw_fault(struct packet_socket *s, double p)
{
	s->dice = s->dice * 6364136223846793005u + 1442695040888963407u;
	return (double)(s->dice >> 40) / (1 << 24) < p;
}

/* Those that have waited long enough. */
static void send_late(struct packet_socket *s)
{
	for (unsigned i = 0; i < PACKET_HELD; i++)
		if (s->held[i].len && !s->held[i].left--) {
			packet_send(s, s->held[i].bytes, s->held[i].len);
			s->held[i].len = 0;
		}
}

static bool hold_frame(struct packet_socket *s, const uint8_t *bytes, size_t len)
{
	for (unsigned i = 0; i < PACKET_HELD; i++)
		if (!s->held[i].len) {
			s->held[i].left = 1 + (uint32_t)(s->dice >> 33) % s->faults.late_by;
			s->held[i].len = (uint16_t)len;
			memcpy(s->held[i].bytes, bytes, len);
			return true;
		}
	return false;
}

void packet_send_frame(struct packet_socket *s, const struct ina_frame *f)
{
	const struct packet_faults *p = &s->faults;
	uint8_t bytes[INA_FRAME_MAX];
	size_t len = ina_frame_encode(f, bytes);

	if (p->lose > 0 && draw_fault(s, p->lose)) {
		s->lost++;
	} else if (p->late > 0 && draw_fault(s, p->late) && hold_frame(s, bytes, len)) {
		s->delayed++;
	} else {
		packet_send(s, bytes, len);
		if (p->twice > 0 && draw_fault(s, p->twice)) {
			packet_send(s, bytes, len);
			s->doubled++;
		}
	}
	if (p->late > 0)
		send_late(s);
}

size_t packet_receive(struct packet_socket *s, void *bytes, size_t size)
{
	struct sockaddr_ll from;
	socklen_t n = sizeof(from);
	ssize_t len;

	do {
		len = recvfrom(s->fd, bytes, size, MSG_DONTWAIT, (struct sockaddr *)&from, &n);
	} while (len > 0 && from.sll_pkttype == PACKET_OUTGOING);
	return len > 0 ? (size_t)len : 0;
}
