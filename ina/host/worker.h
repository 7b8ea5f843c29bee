/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * worker.h - the host's end: operations cut into packets, a sliding window of them, and what
 * happens when answers do not come
 *
 * A state machine without socket, thread or memory of its own: time comes from a clock, packets go
 * to a table, answers are handed in. One worker is one stream: one group, one worker number, its
 * own psns.
 *
 * Timers, all looked at by ina_worker_poll():
 *   time-out  nothing new was answered for so long: a burst of the oldest is sent again; doubled
 *             each time
 *   deadline  nothing new was answered for config.peer_ns, or nothing at all came from the switch
 *             for config.switch_ns: the end, with one error
 *   abort     the switch has not yet said that it knows of the end (extended frames): it is sent
 *             again; doubled each time, INA_ABORT_REPEATS times in all
 *
 * What is sent again: a packet is lost when `reorder` packets that were sent after it, or after it
 * was last sent again, have been answered (RFC 8985's idea, by count). So also a repetition that
 * gets lost is found. The answer to a repetition says nothing about packets sent once: those wait
 * for other ranks, it does not. The old frame is repeated with its words. The extended one asks
 * first (probe): the switch says that it has it, gives the sum, or wants it again; only the rank
 * whose packet was lost sends words twice.
 *
 * Which calls are allowed inside of the callbacks:
 *   bring, take, done, send  ina_worker_post(), ina_worker_abort(), ina_worker_due(),
 *                            ina_worker_in_flight()
 *   send                     also ina_worker_receive(): a switch in the same thread may answer at
 *                            once
 *   none of them             ina_worker_poll(), ina_worker_init()
 * ina_worker_abort() calls done() of all operations before it returns: whoever called it from
 * bring() or take() finds its operation gone.
 */
#ifndef INA_WORKER_H
#define INA_WORKER_H

#include "base/clock.h"
#include "ina/frame/frame.h"
#include "ina/host/cwnd.h"

#include <sys/queue.h>

struct ina_op_ops {
	/*
	 * Packet `index`'s words of this rank, big-endian, and their exponent and flags; again when
	 * it is sent again.
	 */
	void (*bring)(void *arg, uint32_t index, uint8_t *words, struct ina_block *block);
	/*
	 * Its answer: once for each index, in any order; words are NULL where this rank gets none.
	 */
	void (*take)(void *arg, uint32_t index, const uint8_t *words, struct ina_block block);
	/*
	 * 0, or the worker's error. In the order of ina_worker_post(); from here on the operation
	 * is the caller's again.
	 */
	void (*done)(void *arg, int err);
};

struct ina_op {
	const struct ina_op_ops *ops;
	void *arg;
	uint8_t coll, root;
	uint32_t packets; /* at least 1 */
	/* The worker's. */
	uint32_t sent, answered;
	STAILQ_ENTRY(ina_op) link;
};

STAILQ_HEAD(ina_op_list, ina_op);

struct ina_worker_config {
	uint32_t addr, switch_addr;
	uint8_t mac[6], switch_mac[6];
	uint8_t group, rank, ranks, worker, workers; /* as in ina_group_config */
	bool extended;
	uint16_t base;
	uint32_t len, epoch, first_psn;
	uint32_t burst;   /* new packets per poll */
	uint32_t reorder; /* packets that may overtake one before it counts as lost */
	uint64_t rto_min_ns, rto_max_ns;
	uint64_t peer_ns, switch_ns;
};

/*
 * All limits as they are unless somebody says otherwise; the addresses and the group stay as they
 * are.
 */
void ina_worker_defaults(struct ina_worker_config *config);

/* One packet in flight. */
struct ina_entry {
	struct ina_op *op;
	uint32_t index;        /* in op */
	uint32_t order;        /* of its last transmission, of all */
	uint32_t newer, older; /* entries by last transmission */
	uint64_t sent_at;
	bool answered, again, probed;
	bool held; /* the switch's last word on it: others are late */
};

/* By their last transmission; INA_NO_ENTRY: none. */
struct ina_entries {
	uint32_t oldest, newest;
};
#define INA_NO_ENTRY UINT32_MAX

/* Seed section 7.1, and some more. */
#define INA_COUNTER_LIST(X)                                                                  \
	X(sent, "packets sent for the first time (shift_send)")                              \
	X(answered, "packets whose answer came (shift_ack)")                                 \
	X(cwnd_inc, "times the window grew")                                                 \
	X(cwnd_dec, "times the window shrank")                                               \
	X(fast_retrans_trigger, "answers that showed an older packet to be lost")            \
	X(fast_retrans_pkt, "packets sent again, or asked for, for that")                    \
	X(full_retrans_trigger, "time-outs")                                                 \
	X(full_retrans_pkt, "packets sent again, or asked for, for that")                    \
	X(in_range_redundant_ack, "answers to packets of the window that had one")           \
	X(out_range_redundant_ack, "answers to psns outside of the window")                  \
	X(refused,                                                                           \
	  "frames that are no answer to this rank: another sender, group, epoch, slot, ...") \
	X(again_words, "packets whose words were sent again")                                \
	X(probes, "packets without words, which asked whether the switch has them")          \
	X(held, "times the switch had this rank's packet and waited for another rank's")     \
	X(need, "times the switch asked for a packet again")                                 \
	X(aborts, "aborts of a group sent to the switch")                                    \
	X(marked, "answers that met congestion")                                             \
	X(overflow, "sums that were saturated")                                              \
	X(nonfinite, "sums without a value")

struct ina_counters {
#define X(name, help) uint64_t name;
	INA_COUNTER_LIST(X)
#undef X
};

struct ina_worker_ops {
	/*
	 * The frame's words are good until it returns. A packet that cannot be sent now is simply
	 * lost.
	 */
	void (*send)(void *arg, const struct ina_frame *frame);
	void *arg;
};

struct ina_worker {
	struct ina_worker_config config;
	const struct ha_clock *clock;
	struct ina_worker_ops ops;
	struct ina_entry *entry; /* a power of two of them, by psn */
	uint32_t capacity;
	uint32_t each;          /* slots of this worker */
	struct ina_frame blank; /* what all its frames have in common */
	uint32_t left, next;    /* psns: the oldest in flight, the next new one */
	uint32_t order;         /* the next transmission's */
	/* in flight for the first time, and sent again or asked for */
	struct ina_entries first, again;
	struct ina_op_list posted; /* that are not done */
	struct ina_op *feeding;    /* the one whose packets are being sent */
	struct ina_cwnd cwnd;
	uint64_t srtt, rttvar, rto; /* ns */
	uint64_t timer;             /* when the time-out is */
	uint32_t doubted, doubts;   /* psns in flight at the last time-out: the first, how many */
	uint64_t progress_at, received_at, polled_at;
	int error; /* 0, or it is over */
	/* how often more the abort is sent to the switch, unless it is acknowledged */
	unsigned aborts_left;
	struct ina_frame abort_frame; /* what is sent to it */
	char why[320];
	struct ina_counters count;
};

/* The window that a range allows: half of a worker's slots. */
uint32_t ina_worker_window(const struct ina_worker_config *config);
/*
 * entry: capacity of them, a power of two and at least the window; the caller's. 0, or -EINVAL with
 * *why.
 *
 * A worker begins at first_psn, and so only in an epoch in which this worker number of this rank
 * has sent nothing yet. In any other the switch takes its packets for repetitions and answers with
 * old sums, which nobody can distinguish from valid ones. So a rank that starts never joins an
 * epoch in which this rank has already sent, or may have: it aborts that epoch (ina_worker_abort()
 * before the first ina_worker_post(); extended frames) or asks the controller for a new incarnation
 * first. The worker cannot check this; its caller must (docs/ina.md, "Incarnations").
 */
int ina_worker_init(struct ina_worker *w, const struct ina_worker_config *config,
		    const struct ha_clock *clock, const struct ina_worker_ops *ops,
		    struct ina_entry *entry, uint32_t capacity, const char **why);
/* op stays where it is until it is done. 0, -EINVAL, or w->error. */
int ina_worker_post(struct ina_worker *w, struct ina_op *op);
/* Sends what may be sent, looks at the timers. True: something was sent. */
bool ina_worker_poll(struct ina_worker *w);
/* When poll must come at the latest, ns; UINT64_MAX: there is nothing to wait for. */
uint64_t ina_worker_due(const struct ina_worker *w);
/* A frame as ina_frame_decode() took it. */
void ina_worker_receive(struct ina_worker *w, const struct ina_frame *f);
/*
 * The end, for all ranks: operations end with err (negative), the others are notified where the
 * frame can. That takes until ina_worker_is_aborting() is false: whoever wants the others to know
 * goes on with ina_worker_poll(), ina_worker_due() and ina_worker_receive() as before.
 */
void ina_worker_abort(struct ina_worker *w, int err, const char *why);

/*
 * An abort may get lost, and so may the switch's answer: it is repeated until that has come, or
 * this often, which with the limits of ina_worker_defaults() takes 2 s. Counted and not timed, so
 * that a process that stands still does not use them up.
 */
#define INA_ABORT_REPEATS 28u

/* The end has been said, and the switch has not answered yet. */
static inline bool ina_worker_is_aborting(const struct ina_worker *w)
{
	return w->aborts_left != 0;
}

static inline uint32_t ina_worker_in_flight(const struct ina_worker *w)
{
	return w->next - w->left;
}

#endif
