/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs_engine.h - the verbs of one simulated host: thin objects over softroce engines that hang on
 * a wire in memory
 *
 * No thread, no descriptor, no clock but the wire's. Everything that is made is counted, so that a
 * leak shows. One thread.
 */
#ifndef HA_SIM_VERBS_ENGINE_H
#define HA_SIM_VERBS_ENGINE_H

#include "rdma/verbs/ops.h"
#include "sim/kit/memwire.h"

#include <sys/queue.h>

#define SIM_DEVICES_MAX 8
/* asynchronous events waiting on one device; more are lost, and noted */
#define SIM_EVENTS_MAX 256

struct sim_verbs;

/*
 * What a scenario may want to be done to a device's completions and posts. All zero is a sound
 * device.
 */
struct sim_knobs {
	/* completions are not handed out before; one that dies earlier takes them with it */
	uint64_t hold_until;
	uint32_t lose; /* so many completions vanish from now on */
	/*
	 * so many work requests more, then the device dies in the middle of its doorbell; 0 = never
	 */
	uint32_t die_at_post;
	bool unreachable; /* a queue pair that is being connected finds nobody */
	/* Deliberate defects, to see that the oracles notice; each happens once, at the n-th
	 * receive completion from now. */
	uint32_t drop_imm, double_imm, shorten_imm;
	bool leak_qp; /* one queue pair's destruction is forgotten */
};

/* From its beginning to its end: one that comes back is another, with the same address, numbers
 * and keys. */
struct sim_device {
	struct ibv_device ibv; /* first: what the core holds */
	struct sim_verbs *host;
	unsigned index, number; /* the number is in its name */
	struct sr_nic *nic;
	struct sr_memwire_port *port;
	union ibv_gid gid;
	struct ibv_context *context; /* NULL: not open */
	bool dead;
	bool unlisted;                /* with it: the system has taken it off the list */
	SLIST_ENTRY(sim_device) past; /* in sim_verbs.past */
	struct sim_knobs knobs;
	uint8_t speed; /* what the port says, in 100 Gb/s; 0 = what the engine does */
	struct ibv_async_event events[SIM_EVENTS_MAX];
	unsigned events_first, events_n, events_lost;
};

struct sim_limits {
	int max_qp_wr, max_srq_wr, max_qp;
	enum ibv_mtu mtu;
	uint32_t inflight;  /* packets in flight of a queue pair */
	bool retry_forever; /* a NIC that never says that nobody answers */
	bool unordered;     /* it has queue pairs whose messages arrive in any order */
};

enum sim_kind { SIM_CONTEXT, SIM_PD, SIM_MR, SIM_CQ, SIM_SRQ, SIM_QP, SIM_KINDS };

struct sim_hooks {
	/* A peer's bytes are about to be placed on the device. */
	void (*placing)(void *user, struct sim_device *dev, void *to, const void *from,
			uint32_t len);
	/* Memory has been registered. */
	void (*registered)(void *user);
	/* A queue pair has been made. */
	void (*made_qp)(void *user);
	void *user;
};

struct sim_verbs {
	struct ha_verbs_ops ops; /* for ha_ctx_params; priv is this */
	struct sr_memwire *wire;
	unsigned host;
	uint64_t seed;
	unsigned ndevices;
	struct sim_device *device[SIM_DEVICES_MAX];
	SLIST_HEAD(, sim_device) past; /* those that are dead and have come back */
	unsigned renames;
	struct sim_limits limits;
	struct sim_hooks hooks;
	bool apart;               /* a device reaches only the one of its number */
	bool gone;                /* the process has died: verbs do nothing any more */
	unsigned live[SIM_KINDS]; /* objects that exist */
	bool turn_asked;          /* a look at what unordered queue pairs hold is asked for */
	LIST_HEAD(, sim_object) objects;
};

/*
 * `ndevices` devices called sim0, sim1, ... with addresses 10.<host + 1>.0.<index + 1>. 0 or
 * -ENOMEM.
 */
int sim_verbs_create(struct sr_memwire *wire, unsigned host, unsigned ndevices,
		     const struct sim_limits *limits, const struct sim_hooks *hooks, uint64_t seed,
		     struct sim_verbs **out);
/* The NICs stay on the wire, which destroys them; objects of ours that are left are freed. */
void sim_verbs_destroy(struct sim_verbs *v);

/* Somebody answers at this address. */
bool sim_device_reaches(const struct sim_device *dev, const union ibv_gid *gid);
/*
 * The device is gone: DEVICE_FATAL, and nothing works any more. Completions that it holds back are
 * lost with it.
 */
void sim_device_kill(struct sim_device *dev);
/*
 * A dead one comes back, under its old name or another; what was opened before stays dead. Its port
 * is as new. 0 or a negative errno.
 */
int sim_device_restore(struct sim_verbs *v, unsigned i, bool renamed);
/* Bytes that it has put on the wire, before it came back as well. */
uint64_t sim_device_sent(const struct sim_verbs *v, unsigned i);
/* Completions that nobody has fetched are lost with it. */
void sim_device_forget_completions(struct sim_device *dev);
/*
 * Every connected queue pair goes to the error state without the peer's knowledge. Returns how many
 * there were.
 */
unsigned sim_device_break_qps(struct sim_device *dev);
/*
 * The process dies: its kernel takes all that it had off the NICs. What the core still calls does
 * nothing.
 */
void sim_verbs_die(struct sim_verbs *v);
/* "2 queue pairs, 1 memory region"; "" when nothing is left. */
void sim_verbs_left(const struct sim_verbs *v, char *text, size_t size);

#endif
