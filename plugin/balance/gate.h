/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gate.h - from how many bytes on a message is worth more than one rail: the bandwidth-delay
 * product, measured
 *
 * A message that its rail takes in less time than an answer needs to come back gains nothing from a
 * second rail, and waits for two completions. So the gate is the rate of the rail that small
 * messages use, times the longest of the round trips of the rails that share, but for what is no
 * distance: answers that wait behind the peer's own data. Both are measured: now and then, on a
 * rail that has nothing else to do, an empty probe goes before the data. Its completion says the
 * round trip, the data's then the rate; the shortest and the fastest of the last few count, because
 * whatever disturbs a measurement makes it longer.
 *
 * Where an agent's hint is followed there is no gate: it counts for messages of every size. With
 * HA_NCCL_AGENT_GATE=1 messages below the gate go over SOUT whatever the hint is, with MPIB those
 * between islands (ha_advised.gated).
 *
 * One large message in 32 is measured. Small ones go past without a look (one compare with
 * ha_balance.stripe_min); for their sake the driver opens the gate for some messages with each
 * heartbeat. Where nobody shares (one rail, policy `primary`) nothing is measured.
 *
 * The owner's, inside the bundle; ha_gate_arm and ha_gate_forget also the driver's, with the bundle
 * taken.
 */
#ifndef HA_PLUGIN_GATE_H
#define HA_PLUGIN_GATE_H

#include "plugin/core.h"

struct ha_bundle;

#define HA_GATE_FIRST (64u << 10) /* bytes, until it has been measured */
#define HA_GATE_LEAST (16u << 10) /* bytes: a second completion is never worth less */
/* what takes longer to come back has stood in a queue: there is no such distance inside a
 * cluster */
#define HA_GATE_FAR_NS 100000
/* and half of NCCL's usual step of 512 KiB is always shared */
#define HA_GATE_MOST (256u << 10)

struct ha_gate_sample {
	uint64_t bytes, ns; /* of data, and until it was complete; 0: none */
};

struct ha_gate_path {
	/* the shortest of late, and of the samples that will count when they are enough; 0: none */
	uint64_t rtt_ns, next_rtt;
	struct ha_gate_sample fastest, next;
	uint8_t samples; /* towards the next SAMPLES */
};

struct ha_gate {
	bool on;                  /* there are data rails on several devices */
	uint32_t bytes;           /* messages below stay on one rail; 0: HA_GATE_FIRST */
	uint8_t wanted;           /* samples of whatever message comes next */
	uint8_t tries;            /* messages that are looked at for them, at most */
	uint8_t skip;             /* large messages until the next sample */
	uint8_t known;            /* samples so far, up to those that a first gate needs */
	bool probe_out, data_out; /* of the one sample that is under way */
	/* on this rail, its data in this slot; the stripe is called after the rail */
	uint8_t rail, entry;
	uint64_t at, length;                    /* posted when, and so many bytes */
	struct ha_gate_path path[HA_MAX_RAILS]; /* by the device's first rail */
};

/* The connection is launched, with its shares. */
void ha_gate_join(struct ha_bundle *b, bool several_devices);
/* Messages below so many bytes stay on one rail. 0: there is no gate. */
uint32_t ha_gate_bytes(const struct ha_bundle *b);
/* b->balance.stripe_min follows the gate, where messages are shared at all. */
void ha_gate_apply(struct ha_bundle *b);
/* The next messages are to be measured, small ones too. */
void ha_gate_arm(struct ha_bundle *b);
/* A message is about to be posted on the rails of `mask`: on which of them is it measured? -1:
 * none. Callers in a hurry ask ha_gate_rests before. */
int ha_gate_choose(struct ha_bundle *b, unsigned mask);
/* The message is none of those that are measured. */
static inline bool ha_gate_rests(struct ha_gate *g)
{
	if (!g->on || g->wanted || !g->skip)
		return !g->on;
	g->skip--;
	return true;
}
/* It is: the probe goes out, and `length` bytes of slot `entry` will follow. -errno: the device
 * refused the probe. */
int ha_gate_begin(struct ha_bundle *b, unsigned rail, unsigned entry, uint64_t length);
/* The probe of a rail is complete; a stripe that was timed is. */
void ha_gate_probed(struct ha_bundle *b, unsigned rail);
void ha_gate_done(struct ha_bundle *b, unsigned stripe, unsigned entry);
/* The active rails have changed: a sample on one that is gone will not end. */
void ha_gate_forget(struct ha_bundle *b);

#endif
