/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pat_schedule.c
 *
 * A distance has upper bits, a multiple of `distance`, and lower ones. A phase visits all upper
 * bits for the same lower ones; `visit` counts them. A visit whose distance is not below the number
 * of ranks is left out, but what it would have sent on is sent on all the same where that is
 * needed.
 *
 * Reduce-scatter: the lower bits count down. An odd distance is a leaf's: PAT_LEAVES starts its
 * data on their way. Then
 * PAT_RELAYS receives along the lowest bit, adds, and sends along the next. What is left in the end
 * are sums at multiples of `distance`: PAT_TOPS_ODD and PAT_TOPS combine them pair by pair, `scale`
 * doubling, and
 * PAT_RESULT takes the last.
 *
 * All-gather: the same trees from their roots. PAT_TOPS hands out data over the upper bits, `scale`
 * halving; then the lower bits follow in depth-first order: PAT_RELAYS sends, and PAT_LEAVES
 * receives what needs no sending on.
 */
#include "softcuda/nccl/pat_schedule.h"

#define CONNECTION_STEPS 8

static int lowest_bit(int value)
{
	return __builtin_ctz((unsigned)value);
}

static int round_up_to_power(int value)
{
	int power = 1;

	while (power < value)
		power *= 2;
	return power;
}

/*
 * How many trees are handled together: as many as fit into a message, times the steps that may be
 * under way.
 */
static void choose_aggregation(struct pat_schedule *schedule, size_t element_bytes)
{
	size_t message = (size_t)schedule->chunk * element_bytes;
	size_t channel = (size_t)(schedule->end - schedule->offset) * element_bytes;
	int steps = CONNECTION_STEPS;

	schedule->aggregation = 1;
	while (message / (channel * (size_t)schedule->aggregation) >= 2 &&
	       schedule->aggregation < schedule->ranks / 2)
		schedule->aggregation *= 2;
	schedule->per_message = schedule->aggregation;
	while (steps > 1 && schedule->aggregation < schedule->ranks / 2) {
		steps /= 2;
		schedule->aggregation *= 2;
	}
	schedule->distance = schedule->pairs / schedule->aggregation;
}

/* The number of visits of the current phase. */
static int visits_of_phase(const struct pat_schedule *schedule)
{
	switch (schedule->phase) {
	case PAT_TOPS_ODD:
	case PAT_TOPS:
		return schedule->aggregation / (2 * schedule->scale);
	case PAT_RESULT:
		return 1;
	default:
		return schedule->aggregation;
	}
}

static void enter_phase(struct pat_schedule *schedule, enum pat_phase phase)
{
	schedule->phase = phase;
	schedule->visit = 0;
	schedule->first_visit = 0;
	schedule->ahead = 0;
}

static void start_chunk(struct pat_schedule *schedule)
{
	if (schedule->offset >= schedule->end) {
		enter_phase(schedule, PAT_DONE);
		return;
	}
	if (schedule->gathers) {
		schedule->scale = schedule->aggregation / 2;
		schedule->lower = schedule->distance / 2;
		enter_phase(schedule, schedule->scale ? PAT_TOPS : PAT_RELAYS);
	} else {
		schedule->scale = 1;
		schedule->lower = schedule->distance - 1;
		enter_phase(schedule, PAT_LEAVES);
	}
}

void start_pat(struct pat_schedule *schedule, bool gathers, int rank, int ranks,
	       size_t element_bytes, ptrdiff_t total, ptrdiff_t offset, ptrdiff_t end,
	       ptrdiff_t chunk)
{
	schedule->gathers = gathers;
	schedule->rank = rank;
	schedule->ranks = ranks;
	schedule->pairs = round_up_to_power(ranks);
	schedule->total = total;
	schedule->offset = offset;
	schedule->end = end;
	schedule->chunk = chunk;
	if (offset < end)
		choose_aggregation(schedule, element_bytes);
	start_chunk(schedule);
}

static ptrdiff_t index_of_rank(const struct pat_schedule *schedule, int distance)
{
	return (schedule->rank + distance) % schedule->ranks * schedule->total + schedule->offset;
}

/* Does visit number `number` complete a message? */
static bool fills_message(const struct pat_schedule *schedule, int number)
{
	return (number + 1) % schedule->per_message == 0;
}

static ptrdiff_t place_in_message(const struct pat_schedule *schedule, int number,
				  const struct pat_step *step)
{
	return number % schedule->per_message * step->count;
}

static int bit_or_none(int distance)
{
	return distance ? lowest_bit(distance) : -1;
}

/*
 * Reduce-scatter visits far ranks first: the bits of the number, mirrored and inverted. So peers
 * change with the numbers of which all upper bits are set, and only those.
 */
static int upper_bits(const struct pat_schedule *schedule)
{
	int visits = visits_of_phase(schedule);
	int upper = 0;

	for (int bit = 1; bit < visits; bit *= 2)
		upper += schedule->visit & bit ? 0 : visits / 2 / bit;
	return upper;
}

static bool meets_new_peer(const struct pat_schedule *schedule, int visits)
{
	/* all below the highest unset bit are unset, too, or there is none */
	int unset = visits - 1 - schedule->visit;

	return (unset & (unset + 1)) == 0;
}

static void meet_new_peer(struct pat_schedule *schedule, struct pat_step *step)
{
	schedule->first_visit = schedule->visit;
	schedule->ahead = 0;
	step->step_offset = 0;
}

/* What is sent to a peer of the upper bits is not posted before its own visit: messages pile up. */
static void count_message(struct pat_schedule *schedule)
{
	if (fills_message(schedule, schedule->visit - schedule->first_visit))
		schedule->ahead++;
}

static bool reduce_leaf(struct pat_schedule *schedule, struct pat_step *step)
{
	int distance = upper_bits(schedule) * schedule->distance + schedule->lower;
	bool last = schedule->visit == visits_of_phase(schedule) - 1;

	step->input = index_of_rank(schedule, distance);
	step->send_dimension = 0;
	step->send_offset = place_in_message(schedule, schedule->visit, step);
	step->post_send = last || fills_message(schedule, schedule->visit);
	return distance < schedule->ranks;
}

static bool reduce_relay(struct pat_schedule *schedule, struct pat_step *step)
{
	int from = upper_bits(schedule) * schedule->distance + schedule->lower;
	int dimension = lowest_bit(from);
	int distance = from - (1 << dimension);
	bool complete = schedule->visit == visits_of_phase(schedule) - 1 ||
			fills_message(schedule, schedule->visit);

	/* no lower bits are left */
	bool to_top = distance != 0 && schedule->lower == 1 << dimension;

	if (to_top && meets_new_peer(schedule, schedule->aggregation))
		meet_new_peer(schedule, step);
	if (distance >= schedule->ranks)
		return false;
	step->input = index_of_rank(schedule, distance);
	step->send_dimension = bit_or_none(distance);
	step->send_offset = place_in_message(schedule, schedule->visit, step);
	if (to_top)
		step->send_offset =
			place_in_message(schedule, schedule->visit - schedule->first_visit, step);
	step->post_send = dimension == 0 && complete;
	if (from < schedule->ranks) {
		step->recv_dimension = dimension;
		step->recv_offset = place_in_message(schedule, schedule->visit, step);
		step->post_recv = complete;
	}
	if (dimension > 0)
		count_message(schedule);
	return true;
}

static bool reduce_odd_top(struct pat_schedule *schedule, struct pat_step *step)
{
	int distance = (2 * upper_bits(schedule) + 1) * schedule->scale * schedule->distance;
	int received =
		schedule->visit + schedule->aggregation - schedule->aggregation / schedule->scale;
	bool last = schedule->visit == visits_of_phase(schedule) - 1;

	if (distance >= schedule->ranks)
		return false;
	step->input = index_of_rank(schedule, distance);
	step->send_dimension = lowest_bit(distance);
	step->send_offset = place_in_message(schedule, schedule->visit, step);
	step->post_send = last || fills_message(schedule, schedule->visit);
	if (distance + 1 < schedule->ranks) {
		step->recv_dimension = 0;
		step->recv_offset = place_in_message(schedule, received, step);
		step->post_recv = fills_message(schedule, received);
	}
	return true;
}

static bool reduce_top(struct pat_schedule *schedule, struct pat_step *step)
{
	int from = (2 * upper_bits(schedule) + 1) * schedule->scale * schedule->distance;
	int dimension = lowest_bit(from);
	int distance = from - (1 << dimension);
	int visits = visits_of_phase(schedule);

	if (meets_new_peer(schedule, visits))
		meet_new_peer(schedule, step);
	if (distance >= schedule->ranks)
		return false;
	step->input = index_of_rank(schedule, distance);
	step->send_dimension = bit_or_none(distance);
	if (from < schedule->ranks) {
		step->recv_dimension = dimension;
		step->recv_offset = place_in_message(schedule, schedule->visit, step);
		step->post_recv =
			schedule->visit == visits - 1 || fills_message(schedule, schedule->visit);
	}
	step->send_offset =
		place_in_message(schedule, schedule->visit - schedule->first_visit, step);
	count_message(schedule);
	return true;
}

static bool reduce_result(struct pat_schedule *schedule, struct pat_step *step)
{
	step->input = index_of_rank(schedule, 0);
	step->recv_dimension = 0;
	step->recv_offset = place_in_message(schedule, schedule->aggregation - 1, step);
	step->post_recv = true;
	step->final = true;
	return true;
}

static bool gather_leaf(struct pat_schedule *schedule, struct pat_step *step)
{
	int distance = schedule->visit * schedule->distance + schedule->lower;

	if (distance >= schedule->ranks)
		return false;
	step->output = index_of_rank(schedule, distance);
	step->recv_dimension = 0;
	step->recv_offset = place_in_message(schedule, schedule->visit, step);
	step->post_recv = fills_message(schedule, schedule->visit) ||
			  distance + schedule->distance >= schedule->ranks;
	return true;
}

/*
 * A root of the lower bits' trees: its data came by the upper bits, and lie where PAT_TOPS has put
 * them.
 */
static void receive_from_top(const struct pat_schedule *schedule, struct pat_step *step, int upper)
{
	int number = upper >> (step->recv_dimension + 1);
	int next = (2 * (number + 1) + 1) << step->recv_dimension;

	step->recv_offset = place_in_message(schedule, number, step);
	step->post_recv = step->send_dimension == 0 &&
			  (fills_message(schedule, number) || next >= schedule->ranks);
	step->step_offset =
		step->send_dimension == 0 ? 0 : (unsigned)(number / schedule->per_message);
}

static bool gather_relay(struct pat_schedule *schedule, struct pat_step *step)
{
	int upper = schedule->visit * schedule->distance;
	int to = upper + schedule->lower;
	int dimension = lowest_bit(to);
	int distance = to - (1 << dimension);
	bool fills = fills_message(schedule, schedule->visit);

	/* What is received last from the next rank is received even if it need not be sent on. */
	if (to >= schedule->ranks && (dimension != 0 || distance >= schedule->ranks))
		return false;
	step->output = index_of_rank(schedule, distance);
	step->send_dimension = dimension;
	step->send_offset = place_in_message(schedule, schedule->visit, step);
	step->post_send = fills || to + schedule->distance >= schedule->ranks;
	step->recv_dimension = bit_or_none(distance);
	step->step_offset =
		dimension == 0 ? 0 : (unsigned)(schedule->visit / schedule->per_message);
	if (step->recv_dimension >= 0 && schedule->lower == 1 << dimension) {
		receive_from_top(schedule, step, upper);
	} else if (step->recv_dimension >= 0) {
		step->recv_offset = place_in_message(schedule, schedule->visit, step);
		step->post_recv =
			dimension == 0 && (fills || to + schedule->distance - 1 >= schedule->ranks);
	}
	if (to >= schedule->ranks) {
		step->send_dimension = -1;
		step->post_send = false;
	}
	return true;
}

static bool gather_top(struct pat_schedule *schedule, struct pat_step *step)
{
	int unit = schedule->scale * schedule->distance;
	int to = (2 * schedule->visit + 1) * unit;
	int distance = to - (1 << lowest_bit(to));
	int number;

	if (to >= schedule->ranks)
		return false;
	step->output = index_of_rank(schedule, distance);
	step->send_dimension = lowest_bit(to);
	step->send_offset = place_in_message(schedule, schedule->visit, step);
	step->post_send =
		fills_message(schedule, schedule->visit) || to + 2 * unit >= schedule->ranks;
	step->step_offset = (unsigned)(schedule->visit / schedule->per_message);
	step->recv_dimension = bit_or_none(distance);
	if (step->recv_dimension >= 0) {
		number = (schedule->visit * 2 * unit) >> (step->recv_dimension + 1);
		step->recv_offset = place_in_message(schedule, number, step);
		step->step_offset = (unsigned)(number / schedule->per_message);
	}
	return true;
}

static bool make_step(struct pat_schedule *schedule, struct pat_step *step)
{
	switch (schedule->phase) {
	case PAT_LEAVES:
		return schedule->gathers ? gather_leaf(schedule, step)
					 : reduce_leaf(schedule, step);
	case PAT_RELAYS:
		return schedule->gathers ? gather_relay(schedule, step)
					 : reduce_relay(schedule, step);
	case PAT_TOPS_ODD:
		return reduce_odd_top(schedule, step);
	case PAT_TOPS:
		return schedule->gathers ? gather_top(schedule, step) : reduce_top(schedule, step);
	default:
		return reduce_result(schedule, step);
	}
}

static void end_chunk(struct pat_schedule *schedule)
{
	schedule->offset += schedule->chunk;
	start_chunk(schedule);
}

static void next_reduce_phase(struct pat_schedule *schedule)
{
	switch (schedule->phase) {
	case PAT_LEAVES:
		if (schedule->lower > 1)
			enter_phase(schedule, PAT_RELAYS);
		else
			enter_phase(schedule,
				    schedule->aggregation > 1 ? PAT_TOPS_ODD : PAT_RESULT);
		break;
	case PAT_RELAYS:
		schedule->lower--;
		enter_phase(schedule, schedule->lower % 2 ? PAT_LEAVES : PAT_RELAYS);
		break;
	case PAT_TOPS_ODD:
		enter_phase(schedule, PAT_TOPS);
		break;
	case PAT_TOPS:
		schedule->scale *= 2;
		enter_phase(schedule,
			    schedule->scale < schedule->aggregation ? PAT_TOPS_ODD : PAT_RESULT);
		break;
	default:
		end_chunk(schedule);
		break;
	}
}

/*
 * Depth first: down to the next lower bit, or, from an odd number, on to the nearest sibling. 0:
 * there is none.
 */
static int next_lower_bits(int lower)
{
	int parent;

	if (lower % 2 == 0)
		return lower + (1 << lowest_bit(lower)) / 2;
	parent = lower - 1;
	if (!parent)
		return 0;
	return parent - (1 << lowest_bit(parent)) / 2;
}

static void next_lower_tree(struct pat_schedule *schedule)
{
	schedule->lower = next_lower_bits(schedule->lower);
	if (schedule->lower)
		enter_phase(schedule, PAT_RELAYS);
	else
		end_chunk(schedule);
}

static void next_gather_phase(struct pat_schedule *schedule)
{
	switch (schedule->phase) {
	case PAT_TOPS:
		schedule->scale /= 2;
		enter_phase(schedule, schedule->scale ? PAT_TOPS : PAT_RELAYS);
		break;
	case PAT_RELAYS:
		if (schedule->lower % 2)
			enter_phase(schedule, PAT_LEAVES);
		else
			next_lower_tree(schedule);
		break;
	default:
		next_lower_tree(schedule);
		break;
	}
}

static void start_step(const struct pat_schedule *schedule, struct pat_step *step)
{
	ptrdiff_t left = schedule->end - schedule->offset;

	step->recv_dimension = -1;
	step->send_dimension = -1;
	step->recv_offset = 0;
	step->send_offset = 0;
	step->step_offset = schedule->gathers ? 0 : schedule->ahead;
	step->post_recv = false;
	step->post_send = false;
	step->final = false;
	step->input = schedule->offset;
	step->output = schedule->offset;
	step->count = left < schedule->chunk ? left : schedule->chunk;
}

bool next_pat_step(struct pat_schedule *schedule, struct pat_step *step)
{
	while (schedule->phase != PAT_DONE) {
		bool taken;

		start_step(schedule, step);
		taken = make_step(schedule, step);
		if (++schedule->visit == visits_of_phase(schedule)) {
			if (schedule->gathers)
				next_gather_phase(schedule);
			else
				next_reduce_phase(schedule);
		}
		if (taken)
			return true;
	}
	return false;
}
