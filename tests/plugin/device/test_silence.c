/* SPDX-License-Identifier: BSD-3-Clause */
/* For how long may a path stand still: as configured, as it has been seen to, as false alarms have
 * taught. */
#include "plugin/device/silence.h"

#include "base/check.h"

#define MS UINT64_C(1000000)
#define S (1000 * MS)

/* It has carried work for some seconds. */
static void make_known(struct ha_silence *s)
{
	ha_silence_init(s, 5 * MS);
	ha_silence_moved(s, S);
}

static void off_is_never(void)
{
	struct ha_silence s;

	ha_silence_init(&s, 0);
	ha_silence_ended(&s, 10 * MS, S);
	CHECK(ha_silence_limit(&s, S) == UINT64_MAX);
}

/* Nobody knows yet how long its work takes. */
static void at_first_it_is_long(void)
{
	struct ha_silence s;

	ha_silence_init(&s, 5 * MS);
	CHECK_INT(ha_silence_limit(&s, 100 * S), 5 * MS);
	CHECK_INT(ha_silence_wait(&s, 5 * MS, 100 * S), HA_SILENCE_UNKNOWN_NS);
	ha_silence_moved(&s, 100 * S);
	ha_silence_moved(&s, 100 * S + 500 * MS);
	CHECK_INT(ha_silence_wait(&s, 5 * MS, 100 * S + 999 * MS), HA_SILENCE_UNKNOWN_NS);
	CHECK_INT(ha_silence_wait(&s, 5 * MS, 101 * S), 5 * MS);
	ha_silence_init(&s, 500 * MS);
	CHECK_INT(ha_silence_wait(&s, 500 * MS, S), 500 * MS);
}

/* Both directions of a queue pair can wait at once. */
static void a_lossy_path_has_longer(void)
{
	struct ha_silence s;

	make_known(&s);
	ha_silence_lossy(&s, 100 * S);
	CHECK_INT(ha_silence_limit(&s, 100 * S), 5 * MS);
	CHECK_INT(ha_silence_wait(&s, 5 * MS, 100 * S), HA_SILENCE_UNKNOWN_NS);
	CHECK_INT(ha_silence_wait(&s, 300 * MS, 100 * S), 300 * MS);
	CHECK_INT(ha_silence_wait(&s, 5 * MS, 399 * S), HA_SILENCE_UNKNOWN_NS);
	CHECK_INT(ha_silence_wait(&s, 5 * MS, 400 * S), 5 * MS);
}

static void twice_the_longest(void)
{
	struct ha_silence s;

	make_known(&s);
	CHECK_INT(ha_silence_limit(&s, 100 * S), 5 * MS);
	ha_silence_ended(&s, 2 * MS, 100 * S);
	CHECK_INT(ha_silence_limit(&s, 100 * S), 5 * MS);
	ha_silence_ended(&s, 8 * MS, 100 * S);
	ha_silence_ended(&s, 3 * MS, 101 * S);
	CHECK_INT(ha_silence_limit(&s, 101 * S), 16 * MS);
	CHECK_INT(ha_silence_limit(&s, 108 * S), 16 * MS); /* of the window before */
	CHECK_INT(ha_silence_limit(&s, 113 * S), 8 * MS);  /* half of it is forgotten, */
	CHECK_INT(ha_silence_limit(&s, 118 * S), 5 * MS);  /* then half of that */
}

static void what_is_long_past_is_forgotten(void)
{
	struct ha_silence s;

	make_known(&s);
	ha_silence_ended(&s, 50 * MS, 100 * S);
	CHECK_INT(ha_silence_limit(&s, 200 * S), 5 * MS);
	CHECK_INT(ha_silence_limit(&s, 2000000 * S), 5 * MS);
}

static void no_standstill_teaches_without_end(void)
{
	struct ha_silence s;

	make_known(&s);
	ha_silence_ended(&s, 3600 * S, 100 * S);
	CHECK_INT(ha_silence_limit(&s, 100 * S), 2 * HA_SILENCE_MOST_NS);
}

static void a_false_alarm_doubles_and_rests(void)
{
	struct ha_silence s;
	uint64_t now = 100 * S;

	make_known(&s);
	CHECK(ha_silence_false_alarm(&s, now, now + 50 * MS));
	CHECK(ha_silence_limit(&s, now + 59 * S) == UINT64_MAX);
	CHECK_INT(ha_silence_limit(&s, now + 61 * S), 10 * MS);
	now += 70 * S;
	CHECK(ha_silence_false_alarm(&s, now, now + 50 * MS));
	CHECK_INT(ha_silence_limit(&s, now + 61 * S), 20 * MS);
}

/* The connections of a path give it up together; each recovers by itself. */
static void alarms_of_one_moment_are_one(void)
{
	struct ha_silence s;

	make_known(&s);
	CHECK(ha_silence_false_alarm(&s, 100 * S, 100 * S + 50 * MS));
	CHECK(!ha_silence_false_alarm(&s, 100 * S + MS, 100 * S + 60 * MS));
	CHECK(!ha_silence_false_alarm(&s, 100 * S + 2 * MS, 100 * S + 70 * MS));
	CHECK_INT(ha_silence_limit(&s, 161 * S), 10 * MS);
}

static void it_ends_somewhere_and_is_unlearned(void)
{
	struct ha_silence s;
	uint64_t now = 100 * S;

	make_known(&s);
	for (int i = 0; i < 20; i++, now += 70 * S)
		CHECK(ha_silence_false_alarm(&s, now, now + MS));
	CHECK_INT(ha_silence_limit(&s, now), HA_SILENCE_MOST_NS);
	now += 600 * S;
	CHECK_INT(ha_silence_limit(&s, now), HA_SILENCE_MOST_NS / 2);
	for (int i = 0; i < 10; i++)
		ha_silence_limit(&s, now += 600 * S);
	CHECK_INT(ha_silence_limit(&s, now), 5 * MS);
}

static void the_peers_false_alarm_is_a_rest(void)
{
	struct ha_silence s;

	make_known(&s);
	ha_silence_rest(&s, 100 * S);
	CHECK(ha_silence_limit(&s, 159 * S) == UINT64_MAX);
	CHECK_INT(ha_silence_limit(&s, 160 * S), 5 * MS);
}

int main(void)
{
	off_is_never();
	at_first_it_is_long();
	a_lossy_path_has_longer();
	twice_the_longest();
	what_is_long_past_is_forgotten();
	no_standstill_teaches_without_end();
	a_false_alarm_doubles_and_rests();
	alarms_of_one_moment_are_one();
	it_ends_somewhere_and_is_unlearned();
	the_peers_false_alarm_is_a_rest();
	return 0;
}
