/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fabric.h - what `ha doctor --fabric` knows: the ports of all hosts, and a cell for each pair that
 * was looked at
 */
#ifndef HAWSER_FABRIC_FABRIC_H
#define HAWSER_FABRIC_FABRIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FABRIC_PORTS_MAX 32 /* of one host */
#define FABRIC_LABEL_MAX 72 /* bytes of a device's label, with the final 0 */

/* Data from one port to another. */
enum fabric_state {
	FABRIC_NOT_TRIED,
	FABRIC_REACHED,
	FABRIC_UNREACHED, /* no connection, or one that ended with an error */
	FABRIC_PORT_DOWN, /* at one of the ends: not tried */
	FABRIC_CORRUPT,   /* what arrived is not what was sent */
};

enum fabric_failover {
	FABRIC_NO_FAILOVER, /* not tried */
	FABRIC_SURVIVED,
	FABRIC_FAILED,
};

struct fabric_cell {
	uint8_t state;      /* enum fabric_state */
	uint8_t failover;   /* enum fabric_failover */
	int32_t error;      /* FABRIC_UNREACHED: negative errno; 0: not known */
	int32_t lost_error; /* FABRIC_FAILED: the same */
	float mbs;          /* MB/s (10^6 bytes) that arrived */
	float latency_us;   /* half of a round trip of 8 bytes, the median */
	float stall_ms;     /* longest time without a completion, over the failover */
};

struct fabric_port {
	char host[64];                /* as it is shown; different for different hosts */
	char label[FABRIC_LABEL_MAX]; /* "mlx5_0:1" */
	int speed_mbps;               /* 0: not known */
	bool up;
};

struct fabric {
	struct fabric_port *ports;
	int ports_count, hosts_count;
	struct fabric_cell *cells; /* ports_count x ports_count, from the row to the column */
	double seconds;
	bool all_pairs; /* else ports of one label only */
};

static inline struct fabric_cell *fabric_cell(const struct fabric *f, int from, int to)
{
	return &f->cells[(size_t)from * (size_t)f->ports_count + (size_t)to];
}

#endif
