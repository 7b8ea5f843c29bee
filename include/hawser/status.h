/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * status.h - the page that a process with hawser in it shows to `ha status` and to monitoring
 *
 * A file per context, HA_NCCL_STATUS_DIR/<pid>[.n], mapped by its process and read by anybody of
 * the same user. Fixed layout, native byte order, one version for the whole. Every record has a
 * sequence number in its first word: odd while the record is being written, 0 when it was never
 * used. A reader takes the number, the record and the number again, and starts over when they
 * differ or the number is odd; it never makes the writer wait. A process that dies in the middle of
 * a record leaves that number odd for ever: give up after some attempts.
 *
 * Times: wall = nanoseconds since 1970 (UTC), mono = CLOCK_MONOTONIC nanoseconds. Texts end with a
 * 0.
 */
#ifndef HAWSER_STATUS_H
#define HAWSER_STATUS_H

#include "include/hawser/event.h"

#include <assert.h>
#include <stdint.h>

/* "HASTATS1" in memory of a little-endian machine */
#define HA_STATUS_MAGIC UINT64_C(0x3153544154534148)
#define HA_STATUS_VERSION 2u

#define HA_STATUS_DEVICES 32
#define HA_STATUS_CONNECTIONS 512
#define HA_STATUS_EVENTS 128
#define HA_STATUS_RAILS 8
#define HA_STATUS_NAME 48 /* bytes of a device's name */

enum ha_status_port { HA_PORT_UNKNOWN, HA_PORT_UP, HA_PORT_DOWN, HA_PORT_FAILED };
enum ha_status_rail_state {
	HA_STATUS_RAIL_NONE,
	HA_STATUS_RAIL_INIT,
	HA_STATUS_RAIL_UP,
	HA_STATUS_RAIL_DOWN
};
enum ha_status_protection { HA_PROTECTION_UNKNOWN, HA_PROTECTION_YES, HA_PROTECTION_NO };
/* Which single failures the rails that are up survive. NOTHING also on pages of versions that did
 * not say. */
enum ha_status_against {
	HA_AGAINST_NOTHING,
	HA_AGAINST_NIC_HERE,  /* of a NIC at this end only: the peer's is the same on all rails */
	HA_AGAINST_NIC_THERE, /* of one of the peer's only */
	HA_AGAINST_NIC,       /* of any one NIC; of a switch it is not known, or not so */
	HA_AGAINST_SWITCH,    /* of any one NIC or leaf switch (NCCL_IB_HCA, HA_NCCL_SWITCHES) */
};

/* Written once, magic last; never changes afterwards. */
struct ha_status_header {
	uint64_t magic;
	uint32_t version;
	uint32_t size; /* of the whole page, bytes */
	uint32_t pid;
	uint32_t uid;
	uint64_t pid_space; /* inode of the process's pid namespace; 0 = unknown */
	/* field 22 of /proc/<pid>/stat: tells a process from a later one with its pid */
	uint64_t start_ticks;
	uint64_t started_wall;
	uint64_t started_mono;
	char host[64];
	char program[64]; /* /proc/<pid>/comm */
	char hawser[32];  /* version of the plugin */
	char plugin[208]; /* the file that holds it; "" = unknown */
	uint64_t reserved[4];
};

struct ha_status_totals {
	uint32_t seq;
	uint32_t connections; /* open now */
	uint32_t unlisted;    /* of them, without a record because the table is full */
	/* calls that found their connection in the service thread's hands and returned "not now",
	 * modulo 2^32; 0 on pages of versions that did not count */
	uint32_t kept_out;
	/* When the service thread last looked at the connections: every second; without any, every
	 * 60 s. Not while the process is stopped; without a service thread, when it calls. */
	uint64_t updated_mono;
	uint64_t lines_lost; /* of HA_NCCL_EVENTS: could not be written */
	uint64_t next_event; /* number of the event to come; the last HA_STATUS_EVENTS are kept */
	uint64_t events[32]; /* by enum ha_event_kind */
};

struct ha_status_device {
	uint32_t seq;
	uint32_t port; /* enum ha_status_port */
	uint32_t connections;
	uint32_t rails_up;
	uint32_t rails_down;
	uint32_t failovers; /* connections that left it */
	uint64_t events;    /* of device and port */
	char name[HA_STATUS_NAME];
};

struct ha_status_rail {
	uint16_t device; /* index into the table of devices; 0xffff = none */
	uint16_t weight; /* parts per 1024 */
	uint32_t state;  /* enum ha_status_rail_state */
	uint32_t epoch;
	uint32_t failures;
	char peer[24]; /* the peer's device */
};

struct ha_status_connection {
	uint32_t seq;
	uint32_t used;             /* 0: no connection has this record now */
	uint32_t sends;            /* 1: this is the sending end */
	uint32_t protection;       /* enum ha_status_protection */
	uint32_t protection_cause; /* enum ha_event_cause: why not */
	uint32_t nrails;
	uint32_t failovers;
	uint32_t lost; /* it has ended with an error */
	/* a sender's messages below so many bytes go over one rail; 0: they all do */
	uint32_t gate;
	uint32_t against; /* enum ha_status_against */
	uint64_t since_wall;
	uint64_t messages; /* served (sender), arrived whole (receiver) */
	uint64_t replayed_requests;
	uint64_t replayed_bytes;
	uint64_t stall_last; /* ns without progress: the last failover's and the longest */
	uint64_t stall_worst;
	char name[160];
	struct ha_status_rail rail[HA_STATUS_RAILS];
};

struct ha_status_event {
	uint32_t seq;
	uint16_t kind;   /* enum ha_event_kind */
	uint16_t cause;  /* enum ha_event_cause */
	uint64_t number; /* record number % HA_STATUS_EVENTS */
	uint64_t wall;
	uint64_t mono;
	uint64_t requests, bytes; /* replayed */
	uint64_t stall;           /* ns without progress */
	uint64_t registration;    /* of it, ns spent in registering buffers */
	uint32_t epoch;
	int32_t rail; /* -1 = none */
	char connection[160];
	char device[HA_STATUS_NAME];
	char peer_device[24];
	char text[160];
};

struct ha_status_page {
	struct ha_status_header header;
	struct ha_status_totals totals;
	struct ha_status_device device[HA_STATUS_DEVICES];
	struct ha_status_connection connection[HA_STATUS_CONNECTIONS];
	struct ha_status_event event[HA_STATUS_EVENTS];
};

static_assert(sizeof(struct ha_status_header) == 456, "ABI");
static_assert(sizeof(struct ha_status_totals) == 296, "ABI");
static_assert(sizeof(struct ha_status_device) == 80, "ABI");
static_assert(sizeof(struct ha_status_rail) == 40, "ABI");
static_assert(sizeof(struct ha_status_connection) == 568, "ABI");
static_assert(sizeof(struct ha_status_event) == 464, "ABI");
static_assert(sizeof(struct ha_status_page) == 456 + 296 + 32 * 80 + 512 * 568 + 128 * 464, "ABI");
static_assert(HA_EVENT_KIND_COUNT <= 32, "counted in ha_status_totals.events");

#endif
