/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ina_traffic.h - what the benchmarks of ha-switch send: packets of 308 bytes at two ports, 1024 in
 * flight, and the next one for each that comes back
 *
 * Even ranks are behind port 0, odd ones behind port 1. A case is the index of a number of ranks
 * (contributions of 64 words each; an answer to each), or
 *   forward   the same packets to an Ethernet address behind the other port: the bridge
 *   reflect   contributions, which the switch is to send back as they are (--reflect)
 */
#ifndef HA_BENCH_INA_TRAFFIC_H
#define HA_BENCH_INA_TRAFFIC_H

#include "ina/frame/port/tx.h"
#include "ina/switch/switch.h"

#define INA_TRAFFIC_ADDR 0x0a0000feu /* the switch's, and its Ethernet address */
#define INA_TRAFFIC_MAC              \
	{                            \
		2, 0, 10, 0, 0, 0xfe \
	}
#define INA_TRAFFIC_IN_FLIGHT 1024u
#define INA_TRAFFIC_SIZES 5
#define INA_TRAFFIC_BYTES 308 /* of a packet, with 64 words */

enum { INA_TRAFFIC_FORWARD = INA_TRAFFIC_SIZES, INA_TRAFFIC_REFLECT, INA_TRAFFIC_CASES };

struct ina_traffic {
	struct ina_port *port; /* the sender's ends of the two cables */
	struct ina_tx *tx;     /* to them */
	unsigned ranks, window, base, group;
	bool forward;
	uint32_t psn[INA_RANKS_MAX]; /* each rank's next one */
	uint8_t sample[INA_RANKS_MAX][INA_TRAFFIC_BYTES];
};

/*
 * By the name that it has in the tables and on command lines: 2, 4, 8, 16, 32, forward, reflect.
 * INA_TRAFFIC_CASES: there is none.
 */
unsigned ina_traffic_case(const char *name);
/* "2 ranks", "forward"; until the next call. */
const char *ina_traffic_name(unsigned which);
/*
 * Whose packets case which < INA_TRAFFIC_SIZES sends: group which + 1, epoch 1, slots of its own,
 * forever.
 */
struct ina_group_config ina_traffic_group(unsigned which);

/* psns begin at 0. */
void ina_traffic_make(struct ina_traffic *t, unsigned which, struct ina_port port[2],
		      struct ina_tx tx[2]);
/* The next packet of this rank, of this pool, which must have one. It goes with its burst. */
void ina_traffic_send(struct ina_traffic *t, struct rte_mempool *pool, unsigned rank);
/*
 * Takes a burst at this port, sends what each packet brings on (go_on; else it is freed), and
 * flushes the port. Packets that came.
 */
unsigned ina_traffic_answer(struct ina_traffic *t, unsigned port, bool go_on);

#endif
