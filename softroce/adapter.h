/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * adapter.h - one software NIC of this process: the engine, its UDP wire, its control page and its
 * worker thread
 *
 * There is one adapter per device of SOFTROCE_DEVICES and process, however often the device is
 * opened. It has two is there: it is *held* (listed or open: it owns its address) and, within that,
 * *open* (it has an engine, a worker and a page). A process that lists devices and frees the list
 * without opening any gives the addresses back at once.
 *
 * A device that has failed (IBV_EVENT_DEVICE_FATAL) is not listed and cannot be opened. It keeps
 * its address, its worker and its page, also when it is closed, until somebody asks for its return
 * through the page; who lists devices next makes it anew (restore.c).
 *
 * Lock order: the table's mutex, then `lock`, then the locks of channels and event queues in
 * verbs/.
 */
#ifndef SOFTROCE_ADAPTER_H
#define SOFTROCE_ADAPTER_H

#include "softroce/control.h"
#include "softroce/netif.h"
#include "softroce/udp.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

/* ns: while an application polls, the worker looks in so often (worker.c) */
#define SR_AWAY_NS 200000

struct sr_context;
struct sr_past;
struct sr_vdevice;

struct sr_adapter {
	struct sr_device_spec spec;
	int holders, opens;        /* under the table's mutex */
	LIST_HEAD(, sr_past) past; /* of restore.c, under the table's mutex */
	/* SUBNET: the address it has, or had the last time; all-zero = none yet */
	uint8_t taken[16];
	/*
	 * counts forks and deaths that are over: what was made in an earlier incarnation belongs to
	 * the parent process, or is dead
	 */
	unsigned incarnation;

	/* Protects the engine and everything below it, up to the next blank line. */
	pthread_mutex_t lock;
	struct sr_nic *nic; /* NULL: not open */
	struct sr_udp *udp;
	struct sr_netif link;
	struct sr_faults faults;
	struct sr_control control;
	LIST_HEAD(, sr_context) contexts; /* of verbs/device.c, for port and device events */
	struct sr_vdevice *listed;        /* of verbs/device.c, while anybody has it */
	/* when the sleeping worker will wake by itself; 0 while it is awake */
	uint64_t wake_at;
	bool stop, dead, link_reported;
	uint32_t srq_errors, speed_reported; /* of the faults, those that have been acted on */
	unsigned deferred; /* sends posted and left for the next turn; see verbs/qp.c */
	struct {
		unsigned prompt; /* so many turns more that let no acknowledgement wait */
		unsigned next;   /* as many when the worker has to send one again */
	} acks;

	atomic_int wanted; /* threads waiting for the lock: the worker lets them go first */
	/* when an application last looked at an empty completion queue, ns */
	atomic_ullong polled_at;
	int kick, watch; /* eventfd that wakes the worker; netlink socket */
	pthread_t worker;
};

/*
 * The adapters of SOFTROCE_DEVICES that have an address now. Each is held once more. Number
 * written, or -errno.
 */
int sr_adapter_list(struct sr_adapter **out, int max);
void sr_adapter_release(struct sr_adapter *adapter, unsigned incarnation);
/* Make the NIC live (the first time) and hold it. 0 or -errno. */
int sr_adapter_open(struct sr_adapter *adapter, const struct sr_event_ops *events);
void sr_adapter_close(struct sr_adapter *adapter, unsigned incarnation);

/* Between these two the caller owns the engine. enter() is false when the process has forked since
 * `incarnation`: nothing of the parent's NIC may be used in the child. leave() wakes the worker
 * when the engine now needs it earlier than it would wake. */
bool sr_adapter_enter(struct sr_adapter *adapter, unsigned incarnation);
bool sr_adapter_try_enter(struct sr_adapter *adapter, unsigned incarnation);
void sr_adapter_leave(struct sr_adapter *adapter);
/* Receive what is there and transmit what may be. Number of packets received, plus one when more
 * can be sent at once. */
int sr_adapter_turn(struct sr_adapter *adapter, uint64_t now);
/* The same for an application that polls: the acknowledgements may wait for what it does next. */
int sr_adapter_turn_polled(struct sr_adapter *adapter, uint64_t now);
/* The worker has to send acknowledgements that waited: the application has not come back. */
void sr_adapter_acks_overdue(struct sr_adapter *adapter);
/*
 * The sockets of every open device, to poll for reading. Their number, or -EBUSY when one is in use
 * at this moment.
 */
int sr_adapter_pollfds(struct pollfd *fds, int max);
/* Address, MTU and carrier as they are now, given to the engine. */
void sr_adapter_follow_link(struct sr_adapter *adapter);
/* Faults as the control page has them now; answers the bell. */
void sr_adapter_follow_control(struct sr_adapter *adapter);

/* restore.c, under the table's mutex. Is it away: dead, and nobody has asked for its return? If
 * somebody has, it is made anew. */
bool sr_adapter_away(struct sr_adapter *adapter,
		     bool (*name_free)(const struct sr_adapter *adapter, const char *name));
/* The NIC of this adapter stays when the last one closes it: it is dead. */
bool sr_adapter_stays(struct sr_adapter *adapter);
/* One who had it open before it died has closed it. */
void sr_past_close(struct sr_adapter *adapter, unsigned incarnation);
/* The process ends, or this library goes: the thread of a dead NIC that is not open ends. */
void sr_adapter_abandon(struct sr_adapter *adapter);
int sr_worker_start(struct sr_adapter *adapter);
void sr_worker_stop(struct sr_adapter *adapter);

#endif
