/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * silence.h - for how long work on a device's paths may stand still before a sign is asked for
 *
 * As configured (HA_NCCL_SILENCE_MS), or twice as long as work has stood still of late and then
 * gone on; every five seconds half of that is forgotten. Until a device has carried work for a
 * second nobody knows how long its work takes, and a sign may take longer; so it may for five
 * minutes after a queue pair waited while its path was proved sound, as it does on a path that
 * loses packets. An alarm that was false doubles the configured time, and is the last one for a
 * minute; ten minutes without one halve it again. failover/sign.c asks and decides.
 *
 * Arithmetic alone: the caller brings the time and owns the structure (under ctx->drive).
 */
#ifndef HA_DEVICE_SILENCE_H
#define HA_DEVICE_SILENCE_H

#include <stdbool.h>
#include <stdint.h>

/* until a device has carried work for so long, */
#define HA_SILENCE_LEARN_NS UINT64_C(1000000000)
/* it has this long at the least to give a sign */
#define HA_SILENCE_UNKNOWN_NS UINT64_C(200000000)
/* and so it has for this long after a queue pair waited on a sound path */
#define HA_SILENCE_LOSSY_NS UINT64_C(300000000000)
/* no standstill teaches more than this: what stands still for longer is the NIC's to judge */
#define HA_SILENCE_MOST_NS UINT64_C(200000000)
#define HA_SILENCE_WINDOW_NS UINT64_C(5000000000) /* "of late": half is forgotten after each */
/* after a false alarm there is none for so long, */
#define HA_SILENCE_REST_NS UINT64_C(60000000000)
/* and what it has taught is halved when there was none for so long */
#define HA_SILENCE_RELAX_NS UINT64_C(600000000000)

struct ha_silence {
	uint64_t base_ns;            /* as configured; 0: no sign is ever asked for */
	uint64_t floor_ns;           /* the same, doubled by false alarms */
	uint64_t longest_ns[2];      /* standstills of this window, and of those before */
	uint64_t window_until;       /* this window's end */
	uint64_t known_at;           /* unknown before; 0: nothing has moved yet */
	uint64_t lossy_until;        /* a queue pair has waited on a sound path */
	uint64_t rest_until;         /* no alarm before */
	uint64_t learned_at;         /* floor_ns changed then */
	uint64_t false_alarm_before; /* an alarm before this time has been counted with the last */
};

void ha_silence_init(struct ha_silence *s, uint64_t base_ns);
/* ns of standstill after which a sign is asked for; UINT64_MAX: not now, or never. */
uint64_t ha_silence_limit(struct ha_silence *s, uint64_t now);
/* ns in which it must come: the limit, or more where little is known or packets get lost. */
uint64_t ha_silence_wait(const struct ha_silence *s, uint64_t limit, uint64_t now);
/* Work was done. */
void ha_silence_moved(struct ha_silence *s, uint64_t now);
/* Work stood still for at least so long, and went on. */
void ha_silence_ended(struct ha_silence *s, uint64_t stood_ns, uint64_t now);
/* A queue pair waits while its path is proved sound: packets get lost on it. */
void ha_silence_lossy(struct ha_silence *s, uint64_t now);
/* A path that was given up at `alarm_at` is up again: it had been alive. True: the limit is another
 * now; false: an alarm of the same moment has taught it already. */
bool ha_silence_false_alarm(struct ha_silence *s, uint64_t alarm_at, uint64_t now);
/* The peer has had one of such a path: no alarm from here either for a while. */
void ha_silence_rest(struct ha_silence *s, uint64_t now);

#endif
