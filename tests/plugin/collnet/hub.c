/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/plugin/collnet/hub.h"

#include "base/check.h"

#include <errno.h>
#include <pthread.h>
#include <sys/queue.h>
#include <unistd.h>

#define OPS 4096 /* of a group */

struct contribution {
	float *in; /* a copy: in place, it is overwritten here first */
	float *out;
	size_t bytes;
	size_t delivered; /* segments */
	bool posted;
};

struct incarnation {
	SLIST_ENTRY(incarnation) link;
	unsigned ranks;
	uint64_t joined, left;
	bool broken;
	uint64_t delivered[HA_INA_RANKS];
	struct contribution (*op)[HA_INA_RANKS];
};

struct ha_ina {
	unsigned rank;
	const int *give_up;
};

struct ha_ina_group {
	struct incarnation *incarnation;
	unsigned rank, posted;
};

struct ha_ina_op {
	struct incarnation *incarnation;
	unsigned rank, index;
	bool left, ended;
	int result;
};

struct hub hub;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static SLIST_HEAD(, incarnation) incarnations; /* of all groups */
static unsigned looks;

void hub_lock(void)
{
	pthread_mutex_lock(&lock);
}

void hub_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

void hub_reset(void)
{
	pthread_mutex_lock(&lock);
	for (unsigned r = 0; r < HA_INA_RANKS; r++)
		hub.rank[r] = (struct hub_rank) { .limit = HUB_FOREVER };
	hub.create_error = 0;
	hub.lazy = 1;
	pthread_mutex_unlock(&lock);
}

const char *hub_backend(unsigned r)
{
	static char name[HA_INA_RANKS][4];

	snprintf(name[r], sizeof(name[r]), "%u", r);
	return name[r];
}

static bool given_up(const int *give_up)
{
	/* pairs with the caller's release */
	return give_up && __atomic_load_n(give_up, __ATOMIC_ACQUIRE);
}

/* -ECANCELED: it hung, and was given up. */
static int await_answer(unsigned rank, const int *give_up)
{
	bool hung = true;

	while (hung && !given_up(give_up)) {
		pthread_mutex_lock(&lock);
		hung = hub.rank[rank].hung;
		pthread_mutex_unlock(&lock);
		if (hung)
			usleep(1000);
	}
	return hung ? -ECANCELED : 0;
}

static int hub_open(struct ha_ina **ina, const struct ha_ina_options *options, char *why,
		    size_t size)
{
	unsigned rank = (unsigned)atoi(options->backend);

	*ina = NULL;
	if (await_answer(rank, options->give_up)) {
		snprintf(why, size, "given up");
		return -ECANCELED;
	}
	pthread_mutex_lock(&lock);
	*ina = malloc(sizeof(**ina));
	(*ina)->rank = rank;
	(*ina)->give_up = options->give_up;
	hub.opened++;
	if (hub.rank[rank].down) {
		free(*ina);
		*ina = NULL;
		hub.opened--;
		snprintf(why, size, "no backend");
	}
	pthread_mutex_unlock(&lock);
	return *ina ? 0 : -ENOTCONN;
}

static void hub_close(struct ha_ina *ina)
{
	pthread_mutex_lock(&lock);
	hub.opened--;
	pthread_mutex_unlock(&lock);
	free(ina);
}

static const char *hub_error(const struct ha_ina *ina)
{
	return "the hub says no";
}

static uint32_t hub_address(const struct ha_ina *ina)
{
	return ina->rank + 1;
}

static int hub_create(struct ha_ina *ina, const uint32_t *member, unsigned ranks, const char *name,
		      uint8_t ticket[HA_INA_TICKET])
{
	struct incarnation *incarnation;
	int err;

	if (await_answer(ina->rank, ina->give_up))
		return -ECANCELED;
	pthread_mutex_lock(&lock);
	err = hub.rank[ina->rank].down ? -ENOTCONN : hub.create_error;
	for (unsigned r = 0; r < ranks; r++)
		CHECK_INT(member[r], r + 1);
	if (!err) {
		incarnation = calloc(1, sizeof(*incarnation));
		incarnation->op = calloc(OPS, sizeof(*incarnation->op));
		incarnation->ranks = ranks;
		SLIST_INSERT_HEAD(&incarnations, incarnation, link);
		memset(ticket, 0, HA_INA_TICKET);
		memcpy(ticket, &incarnation, sizeof(incarnation));
		hub.groups++;
	}
	pthread_mutex_unlock(&lock);
	return err;
}

static int hub_join(struct ha_ina *ina, const uint8_t ticket[HA_INA_TICKET], unsigned rank,
		    struct ha_ina_group **group)
{
	struct incarnation *incarnation;
	int err;

	if (await_answer(rank, ina->give_up))
		return -ECANCELED;
	memcpy(&incarnation, ticket, sizeof(incarnation));
	pthread_mutex_lock(&lock);
	err = hub.rank[rank].down ? -ENOTCONN : hub.rank[rank].join_error;
	CHECK(!(incarnation->joined & 1ull << rank)); /* good once for each rank */
	if (!err) {
		incarnation->joined |= 1ull << rank;
		*group = calloc(1, sizeof(**group));
		(*group)->incarnation = incarnation;
		(*group)->rank = rank;
		hub.joined++;
	}
	pthread_mutex_unlock(&lock);
	return err;
}

static void free_contributions(struct incarnation *incarnation)
{
	for (unsigned i = 0; i < OPS; i++) {
		for (unsigned r = 0; r < incarnation->ranks; r++) {
			free(incarnation->op[i][r].in);
			incarnation->op[i][r].in = NULL;
		}
	}
}

/* Incarnations are kept to the end of the process, tickets and operations point to them; what was
 * brought is not. */
static void hub_leave(struct ha_ina_group *group)
{
	pthread_mutex_lock(&lock);
	group->incarnation->broken = true;
	group->incarnation->left |= 1ull << group->rank;
	if (group->incarnation->left == group->incarnation->joined)
		free_contributions(group->incarnation);
	hub.joined--;
	pthread_mutex_unlock(&lock);
	free(group);
}

static int state_of(const struct incarnation *incarnation, unsigned rank)
{
	if (hub.rank[rank].down)
		return -ENOTCONN;
	if (hub.rank[rank].ended)
		return hub.rank[rank].ended;
	return incarnation->broken ? -ECANCELED : 0;
}

static int hub_state(const struct ha_ina_group *group)
{
	int err;

	pthread_mutex_lock(&lock);
	err = state_of(group->incarnation, group->rank);
	pthread_mutex_unlock(&lock);
	return err;
}

static int hub_post(struct ha_ina_group *group, const struct ha_ina_request *q,
		    struct ha_ina_op **op)
{
	struct contribution *c;
	int err;

	CHECK_INT(q->coll, HA_INA_ALL_REDUCE);
	CHECK_INT(q->type, HA_INA_FLOAT32);
	pthread_mutex_lock(&lock);
	err = state_of(group->incarnation, group->rank);
	if (!err) {
		CHECK(group->posted < OPS);
		c = &group->incarnation->op[group->posted][group->rank];
		*c = (struct contribution) {
			.in = malloc(q->bytes), .out = q->out, .bytes = q->bytes, .posted = true
		};
		memcpy(c->in, q->in, q->bytes);
		*op = calloc(1, sizeof(**op));
		**op = (struct ha_ina_op) { .incarnation = group->incarnation,
					    .rank = group->rank,
					    .index = group->posted++ };
		hub.ops++;
	}
	pthread_mutex_unlock(&lock);
	return err;
}

static size_t count_segments(size_t bytes)
{
	return (bytes + HA_INA_SEGMENT - 1) / HA_INA_SEGMENT;
}

static void deliver_segment(struct ha_ina_op *op, struct contribution *all)
{
	struct contribution *c = &all[op->rank];
	size_t from = c->delivered * (HA_INA_SEGMENT / 4), to = from + HA_INA_SEGMENT / 4;

	if (to > c->bytes / 4)
		to = c->bytes / 4;
	for (size_t i = from; i < to; i++) {
		double sum = HUB_MARK;

		for (unsigned r = 0; r < op->incarnation->ranks; r++)
			sum += all[r].in[i];
		c->out[i] = (float)sum;
	}
	c->delivered++;
	op->incarnation->delivered[op->rank]++;
}

static bool is_complete(const struct incarnation *incarnation, const struct contribution *all)
{
	for (unsigned r = 0; r < incarnation->ranks; r++)
		if (!all[r].posted)
			return false;
	return true;
}

/* In order: an operation begins when all before it have ended here. */
static bool at_its_turn(const struct ha_ina_op *op)
{
	const struct contribution *before =
		op->index ? &op->incarnation->op[op->index - 1][op->rank] : NULL;

	return !before || before->delivered == count_segments(before->bytes);
}

static bool end_operation(struct ha_ina_op *op, int result)
{
	op->ended = true;
	op->result = result;
	return true;
}

static bool all_at_limit(const struct incarnation *incarnation)
{
	for (unsigned r = 0; r < incarnation->ranks; r++)
		if (incarnation->delivered[r] < hub.rank[r].limit)
			return false;
	return true;
}

static bool advance_operation(struct ha_ina_op *op)
{
	struct contribution *all = op->incarnation->op[op->index], *mine = &all[op->rank];
	const struct hub_rank *r = &hub.rank[op->rank];
	int err = state_of(op->incarnation, op->rank);

	if (op->ended)
		return true;
	if (mine->delivered == count_segments(mine->bytes))
		return end_operation(op, 0);
	if (err)
		return end_operation(op, err);
	if (op->incarnation->delivered[op->rank] >= r->limit)
		return r->fail && (!r->at_limit || all_at_limit(op->incarnation))
			       ? end_operation(op, r->fail)
			       : false;
	if (at_its_turn(op) && is_complete(op->incarnation, all) && ++looks % hub.lazy == 0)
		deliver_segment(op, all);
	return mine->delivered == count_segments(mine->bytes) ? end_operation(op, 0) : false;
}

static bool hub_test(struct ha_ina_op *op, int *result)
{
	bool ended;

	pthread_mutex_lock(&lock);
	ended = advance_operation(op);
	*result = op->result;
	pthread_mutex_unlock(&lock);
	return ended;
}

static bool hub_op_done(const struct ha_ina_op *op, size_t segment)
{
	bool done;

	pthread_mutex_lock(&lock);
	done = segment < op->incarnation->op[op->index][op->rank].delivered;
	pthread_mutex_unlock(&lock);
	return done;
}

static void hub_op_free(struct ha_ina_op *op)
{
	pthread_mutex_lock(&lock);
	op->incarnation->broken |= !op->ended;
	hub.ops--;
	pthread_mutex_unlock(&lock);
	free(op);
}

const struct ha_ina_ops hub_ops = {
	.open = hub_open,
	.close = hub_close,
	.error = hub_error,
	.address = hub_address,
	.group_create = hub_create,
	.group_join = hub_join,
	.group_leave = hub_leave,
	.group_state = hub_state,
	.post = hub_post,
	.test = hub_test,
	.op_done = hub_op_done,
	.op_free = hub_op_free,
};
