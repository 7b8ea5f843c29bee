/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * abi.h - what the XDP program and user space share: the maps' values, the settings, the counters
 */
#ifndef INA_XDP_ABI_H
#define INA_XDP_ABI_H

#include "ina/switch/switch.h"

/* Read-only data, set before the program is loaded. */
struct ina_xdp_settings {
	uint32_t addr; /* the switch's, host byte order */
	uint32_t nslots;
	uint8_t mac[6];
	uint8_t mac_set; /* else answers bear the MAC address that the contribution was sent to */
	/* answers run in BPF_PROG_TEST_RUN, where there is no port: all ranks are behind port 0 */
	uint8_t testable;
	uint32_t bench_ranks; /* 0: the programs of bench-xdp are not loaded */
	uint32_t lose;        /* of 65536 sound frames so many are dropped, on purpose; for tests */
	/*
	 * an answer to one goes out by a redirect to where the frame came from, not by XDP_TX:
	 * ina_xdp_port_tx_sleeps()
	 */
	uint32_t redirect_one;
};

/*
 * A group in one incarnation: the one value of a map of its own, which user space maps into its
 * memory. group.config.lease_until and .member[].mac may change, by aligned stores; the rest
 * stands. group.over is the program's as well.
 */
struct ina_xdp_group {
	struct ina_group group;
	uint64_t incarnation;         /* no two of a switch alike, the later the larger */
	uint32_t seen;                /* 1: a packet was taken since user space wrote 0 */
	uint32_t port[INA_RANKS_MAX]; /* interface of each rank */
	uint32_t reserved;
};

/*
 * Per CPU and port: which answer left last, and for which rank behind the port the next copy of it
 * is.
 */
struct ina_xdp_cursor {
	uint32_t psn, epoch;
	uint16_t agg_addr;
	uint8_t group;
	uint8_t next;
};

/*
 * What stands in the slots' map behind a lock; of another, earlier incarnation than the group's:
 * open.
 */
struct ina_xdp_slot {
	uint32_t lock; /* struct bpf_spin_lock */
	uint32_t reserved;
	uint64_t incarnation;
	struct ina_slot slot;
};

/*
 * The indices of the counters, each per CPU: a frame's faults, the reasons of what was sound, and
 * these.
 */
#define INA_XDP_COUNTER_LIST(X)                                                                   \
	X(ANSWERS, "answers", "sent to one rank each")                                            \
	X(NO_ROOM, "no-room", "the driver leaves no room behind a frame without words for a sum") \
	X(GONE, "gone", "an answer for a group that has ended meanwhile")                         \
	X(LOST, "lost", "dropped on purpose (--fault)")

enum ina_xdp_counter {
	INA_XDP_FAULTS_AT = 0,
	INA_XDP_REASONS_AT = INA_FAULTS,
	INA_XDP_OWN_AT = INA_FAULTS + INA_REASONS,
	INA_XDP_BEFORE_OWN = INA_XDP_OWN_AT - 1,
#define X(id, name, help) INA_XDP_##id,
	INA_XDP_COUNTER_LIST(X)
#undef X
		INA_XDP_COUNTERS
};

#endif
