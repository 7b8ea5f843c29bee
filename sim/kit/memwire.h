/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * memwire.h - a network in memory with virtual time: many NICs, one thread, and the same run for
 * the same seed
 *
 * Every NIC hangs on a port. A packet leaves its port when the bytes before it have left
 * (bandwidth), then travels the port's latency, then meets the faults of the sender's tx and the
 * receiver's rx direction; what a
 * NIC sends to itself meets none, for it never leaves it. Time jumps from one thing that happens to
 * the next: an arrival, a NIC's timer, or a call that somebody asked for with sr_memwire_at().
 */
#ifndef SOFTROCE_MEMWIRE_H
#define SOFTROCE_MEMWIRE_H

#include "softroce/engine/engine.h"
#include "softroce/faults.h"

struct sr_memwire;
struct sr_memwire_port;

/*
 * What several ports of a host have in common on their way out, such as a PCIe port. Its owner's
 * memory; zero but for the rate.
 */
struct sr_memwire_bus {
	uint64_t bytes_per_us; /* 0 = no limit */
	uint64_t free;         /* when the last byte queued has passed */
};

struct sr_memwire_link {
	uint64_t latency_ns;
	uint64_t bytes_per_us; /* 0 = no limit */
	/* how much a port queues before it refuses, in time; 0 = SR_MEMWIRE_BACKLOG_NS */
	uint64_t backlog_ns;
	struct sr_memwire_bus *bus; /* passed before the port; NULL = none */
	/* so many times the bytes are what the bus has to do for them; 0 = once */
	unsigned bus_cost;
};
#define SR_MEMWIRE_LATENCY_NS 2000u
#define SR_MEMWIRE_BYTES_PER_US 12500u /* 100 Gb/s */
#define SR_MEMWIRE_BACKLOG_NS 20000u

/* Sees every packet as it is sent, may change it; false = it is lost. */
typedef bool (*sr_memwire_tap)(void *arg, struct sr_memwire_port *from, uint8_t *packet,
			       uint32_t *len);

struct sr_memwire *sr_memwire_create(uint64_t seed, int *err);
/* Destroys what is still on it, NICs too. */
void sr_memwire_destroy(struct sr_memwire *mw);

/*
 * A NIC on this wire: sr_nic_create() with config's wire filled in. Its addresses are config's
 * GIDs.
 */
struct sr_nic *sr_memwire_nic(struct sr_memwire *mw, const struct sr_nic_config *config, int *err);
struct sr_memwire_port *sr_memwire_port_of(struct sr_memwire *mw, const struct sr_nic *nic);
struct sr_nic *sr_memwire_nic_of(const struct sr_memwire_port *port);
void sr_memwire_set_link(struct sr_memwire_port *port, const struct sr_memwire_link *link);
/* Change the rates at will; use the next two for cut and kill. */
struct sr_faults *sr_memwire_faults(struct sr_memwire_port *port);
void sr_memwire_cut(struct sr_memwire_port *port, bool cut);
void sr_memwire_kill(struct sr_memwire_port *port);
/* A new address for a NIC; packets to the old one vanish. */
void sr_memwire_set_gid(struct sr_memwire *mw, struct sr_nic *nic, unsigned index,
			const union ibv_gid *gid);

void sr_memwire_set_tap(struct sr_memwire *mw, sr_memwire_tap tap, void *arg);
/*
 * Puts a packet (BTH to pad) on the wire as if the NIC at `from` had sent it. -EMSGSIZE when it is
 * too long.
 */
int sr_memwire_inject(struct sr_memwire_port *from, const struct sr_path *path, const void *packet,
		      uint32_t len);
/* Calls fn at a time; calls for one time come in the order they were asked for. 0 or -ENOMEM. */
int sr_memwire_at(struct sr_memwire *mw, uint64_t when, void (*fn)(void *arg), void *arg);

/* ns since creation, which is at 1 s. */
uint64_t sr_memwire_now(const struct sr_memwire *mw);
/* The next thing happens. False when nothing ever will. */
bool sr_memwire_step(struct sr_memwire *mw);
/* Everything up to and at `when` happens. */
void sr_memwire_run_until(struct sr_memwire *mw, uint64_t when);
uint64_t sr_memwire_steps(const struct sr_memwire *mw);

#endif
