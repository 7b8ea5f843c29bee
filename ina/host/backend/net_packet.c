/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An AF_PACKET socket for each worker. The kernel's filter gives each only frames of aggregation to
 * this host with its number (DSCP). Raw sockets of both protocols that drop everything keep the
 * kernel from answering the switch's packets with
 * "protocol unreachable".
 */
#include "ina/frame/neighbour.h"
#include "ina/host/backend/arp.h"
#include "ina/host/backend/net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define ROOM 512 /* bytes of a packet that is looked at; frames are shorter */
#define SEND_ROOM 64
#define BUFFER_BYTES (8 << 20)
#define ARP_TRIES 10
#define ARP_WAIT_MS 200

struct queue {
	_Alignas(128) int fd;
	struct mmsghdr in[HA_NET_BURST], out[SEND_ROOM];
	struct iovec in_part[HA_NET_BURST], out_part[SEND_ROOM];
	unsigned waiting;
	uint8_t in_bytes[HA_NET_BURST][ROOM], out_bytes[SEND_ROOM][INA_FRAME_MAX];
};

struct packet_net {
	struct ha_net net;
	int ifindex, dropping[2];
	struct queue *queue;
	_Atomic uint64_t lost;
};

static struct packet_net *to_packet_net(struct ha_net *net)
{
	return (struct packet_net *)net;
}

static unsigned receive(struct ha_net *net, unsigned worker, struct ha_net_packet *packet,
			unsigned n)
{
	struct queue *q = &to_packet_net(net)->queue[worker];
	int got = recvmmsg(q->fd, q->in, n < HA_NET_BURST ? n : HA_NET_BURST, MSG_DONTWAIT, NULL);

	for (int i = 0; i < got; i++)
		packet[i] = (struct ha_net_packet) { q->in_bytes[i], q->in[i].msg_len };
	return got < 0 ? 0 : (unsigned)got;
}

/* What the socket does not take is lost, like any packet. */
static void flush(struct ha_net *net, unsigned worker)
{
	struct queue *q = &to_packet_net(net)->queue[worker];
	unsigned sent = 0;

	while (sent < q->waiting) {
		int n = sendmmsg(q->fd, q->out + sent, q->waiting - sent, MSG_DONTWAIT);

		if (n <= 0)
			break;
		sent += (unsigned)n;
	}
	if (sent < q->waiting)
		atomic_fetch_add_explicit(&to_packet_net(net)->lost, q->waiting - sent,
					  memory_order_relaxed);
	q->waiting = 0;
}

static void send_frame(struct ha_net *net, unsigned worker, const struct ina_frame *frame)
{
	struct queue *q = &to_packet_net(net)->queue[worker];

	q->out_part[q->waiting].iov_len = ina_frame_encode(frame, q->out_bytes[q->waiting]);
	if (++q->waiting == SEND_ROOM)
		flush(net, worker);
}

static int fd(struct ha_net *net, unsigned worker)
{
	return to_packet_net(net)->queue[worker].fd;
}

static uint64_t lost(struct ha_net *net)
{
	struct packet_net *p = to_packet_net(net);

	for (unsigned i = 0; i < net->workers; i++) {
		struct tpacket_stats s;
		socklen_t len = sizeof(s);

		if (!getsockopt(p->queue[i].fd, SOL_PACKET, PACKET_STATISTICS, &s, &len))
			atomic_fetch_add_explicit(&p->lost, s.tp_drops, memory_order_relaxed);
	}
	return atomic_load_explicit(&p->lost, memory_order_relaxed);
}

/* ---- sockets ---- */

static int open_socket(const struct packet_net *p, uint16_t type)
{
	struct sockaddr_ll at = { .sll_family = AF_PACKET,
				  .sll_protocol = htons(type),
				  .sll_ifindex = p->ifindex };
	int s = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1,
	    bytes = BUFFER_BYTES, err;

	if (s < 0)
		return -errno;
	setsockopt(s, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof(on));
	setsockopt(s, SOL_PACKET, PACKET_QDISC_BYPASS, &on, sizeof(on));
	if (setsockopt(s, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)))
		setsockopt(s, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	if (!bind(s, (struct sockaddr *)&at, sizeof(at)))
		return s;
	err = -errno;
	close(s);
	return err;
}

/* Frames of both protocols to addr with this DSCP. */
static int set_filter(int s, uint32_t addr, unsigned worker)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 23),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, INA_PROTOCOL_EXTENDED, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, INA_PROTOCOL_OLD, 0, 6),
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 15),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xfc),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, worker << 2, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 30),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, addr, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, ROOM),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };
	uint8_t before[ROOM];

	if (setsockopt(s, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)))
		return -errno;
	while (recv(s, before, sizeof(before), MSG_DONTWAIT) >= 0) /* what came before the filter */
		;
	return 0;
}

static int open_dropping_socket(uint8_t protocol)
{
	struct sock_filter code[] = { BPF_STMT(BPF_RET | BPF_K, 0) };
	struct sock_fprog program = { 1, code };
	int s = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, protocol);

	if (s >= 0)
		setsockopt(s, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
	return s;
}

static void set_parts(struct queue *q)
{
	for (unsigned i = 0; i < HA_NET_BURST; i++) {
		q->in_part[i] = (struct iovec) { q->in_bytes[i], ROOM };
		q->in[i].msg_hdr = (struct msghdr) { .msg_iov = &q->in_part[i], .msg_iovlen = 1 };
	}
	for (unsigned i = 0; i < SEND_ROOM; i++) {
		q->out_part[i] = (struct iovec) { q->out_bytes[i], 0 };
		q->out[i].msg_hdr = (struct msghdr) { .msg_iov = &q->out_part[i], .msg_iovlen = 1 };
	}
}

static int open_queues(struct packet_net *p)
{
	p->queue = aligned_alloc(128, p->net.workers * sizeof(*p->queue));
	if (!p->queue)
		return -ENOMEM;
	memset(p->queue, 0, p->net.workers * sizeof(*p->queue));
	for (unsigned i = 0; i < p->net.workers; i++)
		p->queue[i].fd = -1;
	for (unsigned i = 0; i < p->net.workers; i++) {
		int err;

		set_parts(&p->queue[i]);
		p->queue[i].fd = open_socket(p, ETH_P_IP);
		err = p->queue[i].fd < 0 ? p->queue[i].fd
					 : set_filter(p->queue[i].fd, p->net.addr, i);
		if (err)
			return err;
	}
	return 0;
}

/* ---- neighbours ---- */

static int ask_who_has(const struct packet_net *p, int s, uint32_t hop, uint8_t mac[6])
{
	struct ha_arp question = { .request = true, .sender = p->net.addr, .target = hop };

	memcpy(question.sender_mac, p->net.mac, 6);
	return ha_arp_ask(s, &question, ARP_TRIES, ARP_WAIT_MS, mac);
}

static int neighbour(struct ha_net *net, uint32_t addr, uint8_t mac[6], char *why, size_t size)
{
	struct packet_net *p = to_packet_net(net);
	uint32_t hop = ina_neighbour_hop(addr, p->ifindex);
	int s, err;

	if (ina_neighbour_mac(hop, p->ifindex, mac))
		return 0;
	s = open_socket(p, ETH_P_ARP);
	err = s < 0 ? s : ask_who_has(p, s, hop, mac);
	if (s >= 0)
		close(s);
	if (err)
		snprintf(why, size,
			 "no answer from %u.%u.%u.%u on %s (%s), which packets to the switch "
			 "%u.%u.%u.%u go to: look at the cable and the route, or give --switch-mac",
			 hop >> 24, hop >> 16 & 255, hop >> 8 & 255, hop & 255, net->device,
			 strerror(-err), addr >> 24, addr >> 16 & 255, addr >> 8 & 255, addr & 255);
	return err;
}

/* ---- opening ---- */

static void close_it(struct ha_net *net)
{
	struct packet_net *p = to_packet_net(net);

	for (unsigned i = 0; p->queue && i < net->workers; i++)
		if (p->queue[i].fd >= 0)
			close(p->queue[i].fd);
	for (unsigned i = 0; i < 2; i++)
		if (p->dropping[i] >= 0)
			close(p->dropping[i]);
	free(p->queue);
	free(p);
}

static const struct ha_net_ops ops = {
	.name = "packet",
	.receive = receive,
	.send = send_frame,
	.flush = flush,
	.fd = fd,
	.neighbour = neighbour,
	.lost = lost,
	.close = close_it,
};

static bool find_interface(struct packet_net *p, const char *ifname, char *why, size_t size)
{
	struct ifaddrs *all = NULL;
	uint32_t a = p->net.addr;
	bool found = false;

	if (getifaddrs(&all)) {
		snprintf(why, size, "interfaces: %s", strerror(errno));
		return false;
	}
	for (const struct ifaddrs *i = all; i && !found; i = i->ifa_next) {
		if (!i->ifa_addr || i->ifa_addr->sa_family != AF_INET ||
		    (ifname && strcmp(i->ifa_name, ifname)))
			continue;
		found = ntohl(((const struct sockaddr_in *)(const void *)i->ifa_addr)
				      ->sin_addr.s_addr) == a;
		if (found)
			snprintf(p->net.device, sizeof(p->net.device), "%.15s", i->ifa_name);
	}
	freeifaddrs(all);
	if (!found)
		snprintf(why, size,
			 "no interface of this host%s%s has the address %u.%u.%u.%u "
			 "(NETCCL_BIND_ADDR)",
			 ifname ? " called " : "", ifname ? ifname : "", a >> 24, a >> 16 & 255,
			 a >> 8 & 255, a & 255);
	return found;
}

static int ask_interface(struct packet_net *p)
{
	struct ifreq r = { 0 };
	int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), err = 0;

	if (s < 0)
		return -errno;
	strcpy(r.ifr_name, p->net.device);
	if (ioctl(s, SIOCGIFINDEX, &r))
		err = -errno;
	p->ifindex = r.ifr_ifindex;
	if (!err && ioctl(s, SIOCGIFHWADDR, &r))
		err = -errno;
	memcpy(p->net.mac, r.ifr_hwaddr.sa_data, 6);
	close(s);
	return err;
}

static int node_of(const char *device)
{
	char path[128];
	int node = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/net/%s/device/numa_node", device);
	f = fopen(path, "re");
	if (!f)
		return -1;
	if (fscanf(f, "%d", &node) != 1)
		node = -1;
	fclose(f);
	return node;
}

struct ha_net *ha_net_packet_open(unsigned workers, uint32_t addr, const char *ifname, char *why,
				  size_t size)
{
	struct packet_net *p = calloc(1, sizeof(*p));
	int err;

	if (!p) {
		snprintf(why, size, "no memory");
		return NULL;
	}
	p->net = (struct ha_net) { .ops = &ops, .workers = workers, .addr = addr, .node = -1 };
	p->dropping[0] = p->dropping[1] = -1;
	if (!find_interface(p, ifname, why, size))
		goto failed;
	p->net.node = node_of(p->net.device);
	err = ask_interface(p);
	if (!err)
		err = open_queues(p);
	if (!err) {
		p->dropping[0] = open_dropping_socket(INA_PROTOCOL_OLD);
		p->dropping[1] = open_dropping_socket(INA_PROTOCOL_EXTENDED);
		return &p->net;
	}
	snprintf(why, size, "packet sockets on %s: %s%s", p->net.device, strerror(-err),
		 err == -EPERM ? "; it needs CAP_NET_RAW" : "");
failed:
	close_it(&p->net);
	return NULL;
}
