/* SPDX-License-Identifier: BSD-3-Clause */
/* test_lost.c - a client whose shared memory is gone, as if the machine had lost it: it alone is
 * ended, and nobody gets zeros for what it was to bring */
#include "base/log.h"
#include "tests/ina/host/backend/crew.h"
#include "tests/ina/host/shm/no_seals.h"
#include "tests/ina/switch/named.h"

#include <errno.h>
#include <unistd.h>

#define KB 1024u

struct stage {
	struct rig r;
	struct crew others;
	/* ranks 0 and 1 of a group; the second's memory will be lost */
	struct rig_client client[2];
	uint32_t handle[2];
};

static void stage_open(struct stage *s)
{
	uint32_t member[2] = { RIG_ADDR(0), RIG_ADDR(1) };
	uint8_t ticket[HA_INA_TICKET];

	rig_open(&s->r, &(struct rig_options) { .hosts = 2, .workers = 2 });
	crew_open(&s->others, &s->r, 2);
	rig_attach(&s->r, 0, &s->client[0]);
	atomic_store(&no_seals, true);
	rig_attach(&s->r, 1, &s->client[1]);
	atomic_store(&no_seals, false);
	CHECK_INT(rig_create(&s->client[0], member, 2, ticket), 0);
	for (unsigned i = 0; i < 2; i++)
		CHECK_INT(rig_join(&s->client[i], ticket, i, &s->handle[i]), 0);
}

static void post_all_reduce(struct stage *s, unsigned rank)
{
	rig_post(&s->client[rank], &(struct rig_request) { s->handle[rank], 64 * KB, 0,
							   HA_INA_ALL_REDUCE, HA_INA_INT32, 0 });
}

/* Rank 1's client is ended, rank 0 learns so and has got nothing in its place, and other groups of
 * the same backends go on. */
static void stage_close(struct stage *s)
{
	const uint32_t *word = (const uint32_t *)(const void *)s->client[0].shm.memory.buffer;

	CHECK_INT(rig_response(&s->client[0]).result, -ECANCELED);
	for (unsigned i = 0; i < 64 * KB / 4; i++)
		CHECK_INT(word[i], 7);
	CHECK(rig_await_end(&s->client[1]));
	rig_detach(&s->client[1]);
	for (unsigned i = 0; i < 3; i++)
		crew_do(&s->others, HA_INA_ALL_REDUCE, HA_INA_INT32, 0, 64 * KB, i);
	CHECK_INT(rig_leave(&s->client[0], s->handle[0]), 0);
	rig_detach(&s->client[0]);
	crew_close(&s->others);
	rig_close(&s->r);
	close(atomic_exchange(&no_seals_file, -1));
}

static void fill_buffer(struct rig_client *c)
{
	for (unsigned i = 0; i < 64 * KB / 4; i++)
		((uint32_t *)(void *)c->shm.memory.buffer)[i] = 7;
}

static void buffer_is_lost(void)
{
	struct stage s;

	stage_open(&s);
	fill_buffer(&s.client[0]);
	fill_buffer(&s.client[1]);
	post_all_reduce(&s, 0);
	CHECK_INT(ftruncate(atomic_load(&no_seals_file), INA_SHM_BUFFER), 0);
	post_all_reduce(&s, 1);
	stage_close(&s);
}

static void rings_are_lost(void)
{
	struct ina_shm_message bell = { .type = INA_SHM_BELL };
	struct stage s;
	int err;

	stage_open(&s);
	fill_buffer(&s.client[0]);
	post_all_reduce(&s, 0);
	CHECK_INT(ftruncate(atomic_load(&no_seals_file), 0), 0);
	err = ina_shm_message_send(s.client[1].shm.fd, &bell, -1);
	CHECK(!err || err == -ENOTCONN); /* the backend may have noticed before */
	stage_close(&s);
}

int main(int argc, char **argv)
{
	static const struct named_test tests[] = { { "buffer", buffer_is_lost },
						   { "rings", rings_are_lost } };

	ha_log_configure(NULL, NULL, 1);
	return NAMED_TESTS_RUN(tests, argc, argv);
}
