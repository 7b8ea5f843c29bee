/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/host/worker.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/*
 * who is called that much later than the longest time-out was not there; else it is called at each
 */
#define ABSENT_RTOS 3

void ina_worker_defaults(struct ina_worker_config *c)
{
	c->burst = 32;
	c->reorder = 3;
	c->rto_min_ns = 200 * HA_NS_PER_US;
	c->rto_max_ns = 100 * HA_NS_PER_MS;
	c->peer_ns = 10 * HA_NS_PER_S;
	c->switch_ns = 2 * HA_NS_PER_S;
}

uint32_t ina_worker_window(const struct ina_worker_config *c)
{
	uint32_t each = c->len / c->workers;

	return each / 2;
}

static bool is_power_of_two(uint32_t n)
{
	return n && !(n & (n - 1));
}

static bool rank_is_sound(const struct ina_worker_config *c)
{
	return c->ranks >= 2 && c->ranks <= INA_RANKS_MAX && c->rank < c->ranks;
}

static bool times_are_sound(const struct ina_worker_config *c)
{
	return c->rto_min_ns && c->rto_max_ns >= c->rto_min_ns && c->peer_ns && c->switch_ns;
}

static int check_config(const struct ina_worker_config *c, uint32_t capacity, const char **why)
{
	*why = NULL;
	if (!c->group || !rank_is_sound(c))
		*why = "a group has a number from 1 and 2 to 32 ranks, of which this is one";
	else if (!c->workers || c->worker >= c->workers || c->workers > INA_WORKERS_MAX)
		*why = "a rank has 1 to 64 workers, of which this is one";
	else if (!is_power_of_two(c->len) || !is_power_of_two(c->workers) ||
		 c->len / c->workers < 2)
		*why = "slots and workers must be powers of two, with two slots or more for each "
		       "worker";
	else if (!is_power_of_two(capacity) || capacity < ina_worker_window(c))
		*why = "the table of packets in flight must be a power of two, and hold half of a "
		       "worker's slots";
	else if (!c->burst || !times_are_sound(c))
		*why = "burst and time limits must not be 0, nor the longest time-out shorter than "
		       "the shortest";
	return *why ? -EINVAL : 0;
}

static void forget_entries(struct ina_worker *w)
{
	w->first = w->again = (struct ina_entries) { INA_NO_ENTRY, INA_NO_ENTRY };
}

static struct ina_frame blank_of(const struct ina_worker_config *c)
{
	struct ina_frame f = {
		.dst = c->switch_addr,
		.src = c->addr,
		.worker = c->worker,
		.ecn = INA_ECT1,
		.extended = c->extended,
		.group = c->group,
		.rank = c->rank,
		.epoch = c->extended ? c->epoch : 0,
	};

	memcpy(f.dst_mac, c->switch_mac, 6);
	memcpy(f.src_mac, c->mac, 6);
	return f;
}

int ina_worker_init(struct ina_worker *w, const struct ina_worker_config *config,
		    const struct ha_clock *clock, const struct ina_worker_ops *ops,
		    struct ina_entry *entry, uint32_t capacity, const char **why)
{
	int err = check_config(config, capacity, why);

	if (err)
		return err;
	memset(w, 0, sizeof(*w));
	w->config = *config;
	w->clock = clock;
	w->ops = *ops;
	STAILQ_INIT(&w->posted);
	w->entry = entry;
	w->capacity = capacity;
	w->each = config->len / config->workers;
	w->blank = blank_of(config);
	w->left = w->next = config->first_psn;
	forget_entries(w);
	w->rto = config->rto_min_ns;
	ina_cwnd_init(&w->cwnd, ina_worker_window(config), ha_clock_now(clock));
	return 0;
}

static struct ina_entry *entry_of(struct ina_worker *w, uint32_t psn)
{
	return &w->entry[psn & (w->capacity - 1)];
}

/* ---- entries by their last transmission ---- */

static struct ina_entries *entries_of(struct ina_worker *w, const struct ina_entry *e)
{
	return e->again ? &w->again : &w->first;
}

static void unlink_entry(struct ina_worker *w, uint32_t at)
{
	struct ina_entry *e = &w->entry[at];
	struct ina_entries *all = entries_of(w, e);

	if (e->older == INA_NO_ENTRY)
		all->oldest = e->newer;
	else
		w->entry[e->older].newer = e->newer;
	if (e->newer == INA_NO_ENTRY)
		all->newest = e->older;
	else
		w->entry[e->newer].older = e->older;
}

static void append_entry(struct ina_worker *w, uint32_t at)
{
	struct ina_entry *e = &w->entry[at];
	struct ina_entries *all = entries_of(w, e);

	e->older = all->newest;
	e->newer = INA_NO_ENTRY;
	if (all->newest == INA_NO_ENTRY)
		all->oldest = at;
	else
		w->entry[all->newest].newer = at;
	all->newest = at;
}

/* Of all in flight. */
static uint32_t oldest_entry(const struct ina_worker *w)
{
	uint32_t first = w->first.oldest, again = w->again.oldest;

	if (first == INA_NO_ENTRY || again == INA_NO_ENTRY)
		return first == INA_NO_ENTRY ? again : first;
	return (int32_t)(w->entry[first].order - w->entry[again].order) < 0 ? first : again;
}

/* ---- sending ---- */

static uint16_t slot_of(const struct ina_worker *w, uint32_t psn)
{
	return (uint16_t)(w->config.base + w->config.worker * w->each + (psn & (w->each - 1)));
}

static void fill_header(const struct ina_worker *w, uint32_t psn, uint8_t coll, uint8_t root,
			struct ina_frame *f)
{
	*f = w->blank;
	f->coll = coll;
	f->root = root;
	f->agg_addr = slot_of(w, psn);
	f->psn = psn;
}

/*
 * The answer may come, and the operation be done, inside of send(): neither the entry nor the
 * operation is touched after it.
 */
static void transmit_packet(struct ina_worker *w, uint32_t psn, bool probe)
{
	struct ina_entry *e = entry_of(w, psn);
	const struct ina_op *op = e->op;
	uint8_t words[INA_PAYLOAD_BYTES];
	struct ina_block block = { 0 };
	struct ina_frame f;

	fill_header(w, psn, op->coll, op->root, &f);
	if (probe) {
		f.flags = INA_F_PROBE;
	} else if (ina_coll_brings(op->coll, op->root, w->config.rank)) {
		op->ops->bring(op->arg, e->index, words, &block);
		if (w->error)
			return;
		f.words = words;
		if (w->config.extended) {
			f.exponent = block.exponent;
			f.flags = block.flags;
		}
	}
	e->probed = probe;
	e->order = w->order++;
	e->sent_at = ha_clock_now(w->clock);
	append_entry(w, psn & (w->capacity - 1));
	w->ops.send(w->ops.arg, &f);
}

/* A packet in flight once more: its words, or the question for them. */
static void repeat_packet(struct ina_worker *w, uint32_t at, bool probe)
{
	struct ina_entry *e = &w->entry[at];
	uint32_t psn = w->left + ((at - w->left) & (w->capacity - 1));

	unlink_entry(w, at);
	e->again = true;
	if (probe)
		w->count.probes++;
	else
		w->count.again_words++;
	transmit_packet(w, psn, probe);
}

static uint32_t window_of(const struct ina_worker *w)
{
	uint32_t most = ina_worker_window(&w->config);
	uint32_t cwnd = (uint32_t)w->cwnd.cwnd;

	return cwnd < most ? cwnd : most;
}

static void set_rto(struct ina_worker *w)
{
	uint64_t rto = w->srtt + 4 * w->rttvar;

	rto = rto < w->config.rto_min_ns ? w->config.rto_min_ns : rto;
	w->rto = rto > w->config.rto_max_ns ? w->config.rto_max_ns : rto;
}

/* The first packet in flight starts all clocks. */
static void start_clocks(struct ina_worker *w, uint64_t now)
{
	w->progress_at = w->received_at = w->polled_at = now;
	w->rto = w->srtt ? w->rto : w->config.rto_min_ns;
	w->timer = now + w->rto;
}

static bool send_new(struct ina_worker *w, uint64_t now)
{
	uint32_t n = 0;

	while (n < w->config.burst && w->feeding && ina_worker_in_flight(w) < window_of(w)) {
		struct ina_op *op = w->feeding;

		if (w->next == w->left)
			start_clocks(w, now);
		*entry_of(w, w->next) = (struct ina_entry) { .op = op, .index = op->sent };
		if (++op->sent == op->packets)
			w->feeding = STAILQ_NEXT(op, link);
		w->count.sent++;
		n++;
		transmit_packet(w, w->next++, false);
	}
	return n > 0;
}

int ina_worker_post(struct ina_worker *w, struct ina_op *op)
{
	if (w->error)
		return w->error;
	if (!op->packets || op->coll < INA_ALL_REDUCE || op->coll >= INA_COLLS ||
	    op->root >= w->config.ranks)
		return -EINVAL;
	op->sent = op->answered = 0;
	STAILQ_INSERT_TAIL(&w->posted, op, link);
	if (!w->feeding)
		w->feeding = op;
	return 0;
}

/* ---- the end ---- */

static void fail_worker(struct ina_worker *w, int err)
{
	struct ina_op_list ended = STAILQ_HEAD_INITIALIZER(ended);
	struct ina_op *op;

	w->error = err; /* before anybody is called back */
	STAILQ_CONCAT(&ended, &w->posted);
	w->feeding = NULL;
	w->left = w->next;
	forget_entries(w);
	while ((op = STAILQ_FIRST(&ended))) {
		STAILQ_REMOVE_HEAD(&ended, link);
		op->ops->done(op->arg, err);
	}
}

/* The answer may come inside of send(). */
static void send_abort(struct ina_worker *w)
{
	w->aborts_left--;
	w->count.aborts++;
	w->timer = ha_clock_now(w->clock) + w->rto;
	w->rto = w->rto * 2 < w->config.rto_max_ns ? w->rto * 2 : w->config.rto_max_ns;
	w->ops.send(w->ops.arg, &w->abort_frame);
}

static void begin_abort(struct ina_worker *w)
{
	const struct ina_op *op = STAILQ_FIRST(&w->posted);

	if (!w->config.extended)
		return;
	fill_header(w, w->left, op ? op->coll : INA_ALL_REDUCE, op ? op->root : 0, &w->abort_frame);
	w->abort_frame.flags = INA_F_ABORT;
	w->aborts_left = INA_ABORT_REPEATS;
	set_rto(w);
	send_abort(w);
}

/* True: something was sent. */
static bool repeat_abort(struct ina_worker *w)
{
	if (!w->aborts_left || ha_clock_now(w->clock) < w->timer)
		return false;
	send_abort(w);
	return true;
}

void ina_worker_abort(struct ina_worker *w, int err, const char *why)
{
	if (w->error)
		return;
	snprintf(w->why, sizeof(w->why), "%s", why);
	/* before the switch can answer: to this rank it says the same, with another reason */
	w->error = err;
	begin_abort(w);
	fail_worker(w, err);
}

/*
 * Why, as far as this rank can know. A switch also drops frames silently (switch.h has the
 * reasons): to the rank that is the same as a switch that is gone or a path that is cut.
 */
#define LOOK_AT                                                                                    \
	"look at the path to it, its counters of dropped frames, another collective or root than " \
	"the other ranks', a rank that was restarted"

static void missed_deadline(struct ina_worker *w, uint64_t now, bool silent)
{
	const struct ina_worker_config *c = &w->config;
	uint32_t a = c->switch_addr;
	const char *cause =
		" says nothing, or waits for a rank that is gone or has stopped: " LOOK_AT;
	char why[sizeof(w->why)];

	if (silent)
		cause = ": " LOOK_AT;
	else if (c->extended)
		cause = " answers: another rank of the group is gone or has stopped";
	snprintf(why, sizeof(why),
		 "group %u, rank %u: no answer to packet %u for %.1f s; %sswitch %u.%u.%u.%u%s",
		 c->group, c->rank, w->left,
		 (double)(now - (silent ? w->received_at : w->progress_at)) / 1e9,
		 silent ? "not one packet from " : "", a >> 24, a >> 16 & 255, a >> 8 & 255,
		 a & 255, cause);
	ina_worker_abort(w, -ETIMEDOUT, why);
}

/*
 * Time in which nobody called, though an answer was due, is nobody's silence: this thread stood
 * still, or its machine. Both time_limits begin where they were, and the time-out comes first.
 */
static void forgive_absence(struct ina_worker *w, uint64_t now)
{
	uint64_t gone = now - w->polled_at;

	w->polled_at = now;
	if (gone <= ABSENT_RTOS * w->config.rto_max_ns)
		return;
	w->received_at += gone;
	w->progress_at += gone;
	w->received_at = w->received_at < now ? w->received_at : now;
	w->progress_at = w->progress_at < now ? w->progress_at : now;
}

/* True: it is over. */
static bool look_at_deadlines(struct ina_worker *w, uint64_t now)
{
	bool silent = w->config.extended && now - w->received_at >= w->config.switch_ns;

	if (!silent && now - w->progress_at < w->config.peer_ns)
		return false;
	missed_deadline(w, now, silent);
	return true;
}

/* ---- timers ---- */

/*
 * Of a time-out: a burst. If the one before has moved nothing, not as many as then: a queue on the
 * way that is shorter loses the end of each, and if bursts were alike it would lose the same
 * packets for ever. What is left out comes first the next time.
 */
static uint32_t repeated_at_once(const struct ina_worker *w, bool in_vain)
{
	uint32_t most = w->config.burst, flying = ina_worker_in_flight(w);

	most = most < flying ? most : flying;
	return in_vain ? most - w->count.full_retrans_trigger % (most / 2 + 1) : most;
}

/*
 * Nothing new for a whole time-out: a burst of the oldest, each once; the next time those that are
 * the oldest then.
 */
static void time_out(struct ina_worker *w, uint64_t now)
{
	uint32_t n, last = w->order, at = oldest_entry(w);
	bool in_vain;

	in_vain = w->doubts && w->doubted == w->left;
	w->count.full_retrans_trigger++;
	w->doubted = w->left;
	w->doubts = ina_worker_in_flight(w);
	if (!w->entry[at].held)
		ina_cwnd_timeout(&w->cwnd, now);
	n = repeated_at_once(w, in_vain);
	for (; n-- && at != INA_NO_ENTRY && (int32_t)(w->entry[at].order - last) < 0;
	     at = oldest_entry(w)) {
		repeat_packet(w, at, w->config.extended);
		w->count.full_retrans_pkt++;
	}
	w->rto = w->rto * 2 < w->config.rto_max_ns ? w->rto * 2 : w->config.rto_max_ns;
	w->timer = now + w->rto;
}

bool ina_worker_poll(struct ina_worker *w)
{
	uint64_t now = ha_clock_now(w->clock), rtt = w->srtt ? w->srtt : w->config.rto_min_ns;
	uint32_t order = w->order;

	if (w->error)
		return repeat_abort(w);
	if (ina_worker_in_flight(w)) {
		forgive_absence(w, now);
		if (look_at_deadlines(w, now))
			return true;
		if (now >= w->timer)
			time_out(w, now);
		ina_cwnd_adjust(&w->cwnd, ina_worker_in_flight(w), rtt, now);
	}
	send_new(w, now);
	w->count.cwnd_inc = w->cwnd.increases;
	w->count.cwnd_dec = w->cwnd.decreases;
	return w->order != order;
}

uint64_t ina_worker_due(const struct ina_worker *w)
{
	uint64_t due = w->timer, peer = w->progress_at + w->config.peer_ns,
		 silent = w->received_at + w->config.switch_ns;

	if (w->error)
		return w->aborts_left ? w->timer : UINT64_MAX;
	if (w->feeding && ina_worker_in_flight(w) < window_of(w))
		return 0;
	if (!ina_worker_in_flight(w))
		return UINT64_MAX;
	due = peer < due ? peer : due;
	return w->config.extended && silent < due ? silent : due;
}

/* ---- answers ---- */

/* Is it an answer to this rank at all? Whether to a packet in flight is another question. */
static bool is_ours(const struct ina_worker *w, const struct ina_frame *f)
{
	const struct ina_worker_config *c = &w->config;

	return f->src == c->switch_addr && f->dst == c->addr && f->extended == c->extended &&
	       f->group == c->group && f->rank == c->rank && f->worker == c->worker &&
	       (!f->extended || f->flags & INA_F_ANSWER) && f->agg_addr == slot_of(w, f->psn);
}

/* RFC 6298, of packets that were sent once. */
static void measure_rtt(struct ina_worker *w, uint64_t rtt)
{
	uint64_t off = rtt > w->srtt ? rtt - w->srtt : w->srtt - rtt;

	if (!w->srtt) {
		w->srtt = rtt ? rtt : 1;
		w->rttvar = rtt / 2;
		return;
	}
	w->rttvar += off / 4 - w->rttvar / 4;
	w->srtt += rtt / 8 - w->srtt / 8;
}

/* Was the oldest of these sent more than `reorder` transmissions before the answered one? */
static inline bool has_older(const struct ina_worker *w, const struct ina_entries *all,
			     uint32_t order)
{
	return all->oldest != INA_NO_ENTRY &&
	       (int32_t)(order - w->entry[all->oldest].order) > (int32_t)w->config.reorder;
}

/*
 * Of these, what was sent more than `reorder` transmissions before the answered one; at most
 * `most`.
 */
static uint32_t send_older(struct ina_worker *w, const struct ina_entries *all, uint32_t order,
			   uint32_t most)
{
	uint32_t last = w->order, n = 0;

	while (has_older(w, all, order) && n < most) {
		if ((int32_t)(w->entry[all->oldest].order - last) >= 0)
			break;
		repeat_packet(w, all->oldest, w->config.extended);
		n++;
	}
	return n;
}

/*
 * What was sent well before the answered packet, and has no answer, is lost. But the answer to a
 * repetition comes at once, while packets sent once wait for the slowest rank: it says nothing
 * about those.
 */
static void send_lost(struct ina_worker *w, uint32_t order, bool again)
{
	uint32_t n;

	if (!has_older(w, &w->again, order) && (again || !has_older(w, &w->first, order)))
		return;
	n = send_older(w, &w->again, order, w->config.burst);
	if (!again)
		n += send_older(w, &w->first, order, w->config.burst - n);
	if (!n)
		return;
	w->count.fast_retrans_trigger++;
	w->count.fast_retrans_pkt += n;
	ina_cwnd_lost(&w->cwnd);
}

static void finish_ops(struct ina_worker *w)
{
	struct ina_op *op;

	while ((op = STAILQ_FIRST(&w->posted)) && op->answered == op->packets) {
		STAILQ_REMOVE_HEAD(&w->posted, link);
		op->ops->done(op->arg, 0);
	}
}

/* What the callbacks may see and change is settled before each of them: see worker.h. */
static void take_answer(struct ina_worker *w, struct ina_entry *e, const struct ina_frame *f)
{
	uint64_t now = w->received_at;
	uint32_t order = e->order;
	bool again = e->again;
	struct ina_block block = { f->exponent, f->flags & (INA_F_OVERFLOW | INA_F_NONFINITE) };
	struct ina_op *op = e->op;

	e->answered = true;
	unlink_entry(w, f->psn & (w->capacity - 1));
	w->count.answered++;
	w->count.overflow += block.flags & INA_F_OVERFLOW ? 1 : 0;
	w->count.nonfinite += block.flags & INA_F_NONFINITE ? 1 : 0;
	w->count.marked += f->ecn == INA_CE;
	ina_cwnd_answered(&w->cwnd, f->ecn == INA_CE);
	if (!e->again)
		measure_rtt(w, now - e->sent_at);
	set_rto(w);
	w->progress_at = now;
	w->timer = now + w->rto;
	while (w->left != w->next && entry_of(w, w->left)->answered)
		w->left++;
	op->answered++;
	op->ops->take(op->arg, e->index, f->words, block);
	if (w->error)
		return; /* it ended all: op is the caller's */
	send_lost(w, order, again);
	finish_ops(w);
}

/* The switch has our contribution, or wants it. */
static void take_status(struct ina_worker *w, uint32_t at, const struct ina_frame *f)
{
	struct ina_entry *e = &w->entry[at];

	e->held = f->flags & INA_F_HELD;
	if (e->held) {
		w->count.held++;
		ina_cwnd_spurious(&w->cwnd);
		return;
	}
	w->count.need++;
	if (!e->probed)
		return; /* a second copy: the words are on their way already */
	repeat_packet(w, at, false);
	ina_cwnd_lost(&w->cwnd);
	set_rto(w);
	w->timer = ha_clock_now(w->clock) + w->rto;
}

/*
 * A second answer. If a time-out had the packet sent again, the first one had been under way all
 * the time, and was only late: nothing was lost (as RFC 3708 has it for
 * TCP's duplicates).
 */
static void take_second(struct ina_worker *w, uint32_t psn)
{
	if (psn - w->doubted < w->doubts)
		ina_cwnd_spurious(&w->cwnd);
}

static void take_abort(struct ina_worker *w)
{
	w->aborts_left = 0;
	if (w->error)
		return; /* the abort has been sent to the switch */
	snprintf(w->why, sizeof(w->why),
		 "group %u, rank %u: the switch has ended the group: a rank gave up, its lease was "
		 "not renewed, or it "
		 "has begun a new incarnation; ask the controller",
		 w->config.group, w->config.rank);
	fail_worker(w, -ECANCELED);
}

void ina_worker_receive(struct ina_worker *w, const struct ina_frame *f)
{
	struct ina_entry *e;

	if (w->error && !w->aborts_left)
		return;
	if (!is_ours(w, f)) {
		w->count.refused++;
		return;
	}
	if (f->extended && f->epoch != w->config.epoch) {
		w->count.refused++;
		return;
	}
	if (f->flags & INA_F_ABORT) {
		take_abort(w);
		return;
	}
	if (w->error)
		return;
	w->received_at = ha_clock_now(w->clock);
	if (f->psn - w->left >= ina_worker_in_flight(w)) {
		w->count.out_range_redundant_ack++;
		take_second(w, f->psn);
		return;
	}
	e = entry_of(w, f->psn);
	if (e->answered) {
		w->count.in_range_redundant_ack++;
		take_second(w, f->psn);
		return;
	}
	if (f->coll != e->op->coll || f->root != e->op->root) {
		w->count.refused++;
		return;
	}
	if (f->flags & (INA_F_HELD | INA_F_NEED)) {
		take_status(w, f->psn & (w->capacity - 1), f);
		return;
	}
	if (!f->words == ina_coll_gets(f->coll, f->root, w->config.rank)) {
		w->count.refused++;
		return;
	}
	take_answer(w, e, f);
}
