/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * packet.h - a raw socket on one interface: frames of aggregation out and in, with faults on
 * request
 */
#ifndef INA_RANK_PACKET_H
#define INA_RANK_PACKET_H

#include "ina/frame/frame.h"

struct packet_faults {
	double lose, twice, late; /* fractions of what is sent */
	uint32_t late_by;         /* frames that overtake one that is late, at most 255 */
};

#define PACKET_HELD 256

struct packet_socket {
	int fd, ifindex;
	uint8_t mac[6];
	uint32_t addr; /* the interface's first IPv4 address, host byte order */
	struct packet_faults faults;
	uint64_t dice;
	/* Frames that are late: sent when `left` others have gone. */
	struct held {
		uint32_t left;
		uint16_t len; /* 0: none here */
		uint8_t bytes[INA_FRAME_MAX];
	} held[PACKET_HELD];
	uint64_t sent, lost, doubled, delayed;
};

/* 0, or a negative errno and why. */
int packet_open(struct packet_socket *s, const char *interface, char *why, size_t size);
void packet_close(struct packet_socket *s);
/* As it is; what cannot be sent now is lost. */
void packet_send(struct packet_socket *s, const void *bytes, size_t len);
/* Through the faults. */
void packet_send_frame(struct packet_socket *s, const struct ina_frame *f);
/* The bytes of a frame, at most size; 0: none is there. */
size_t packet_receive(struct packet_socket *s, void *bytes, size_t size);

#endif
