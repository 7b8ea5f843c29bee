/* SPDX-License-Identifier: BSD-3-Clause */
/* Questions to a controller that is slow or silent, from many ranks and from clients that ask
 * without end: leases are kept, and others have their turn. */
#include "base/clock.h"
#include "base/log.h"
#include "tests/ina/host/backend/crew.h"
#include "tests/ina/switch/named.h"
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#define KB 1024u

/* Creations of groups that each take their time: eight ranks of one host keep their leases
 * meanwhile. */
static void leases_do_not_wait_for_questions(void)
{
	enum { CREATES = 20 };
	struct ina_shm_message m;
	struct rig_client other;
	struct rig r;
	struct crew c;

	rig_open(&r, &(struct rig_options) { .workers = 2 });
	crew_open(&c, &r, 8);
	rig_attach(&r, 0, &other);
	fabric_slow_creates(r.fabric, 60 * 1000);
	for (unsigned i = 0; i < CREATES; i++) {
		m = (struct ina_shm_message) { .type = INA_SHM_CREATE,
					       .serial = 100 + i,
					       .create = { .ranks = 8, .name = "slow" } };
		memcpy(m.create.member, c.member, sizeof(m.create.member));
		CHECK(!ina_shm_message_send(other.shm.fd, &m, -1));
	}
	for (unsigned i = 0; i < CREATES; i++)
		CHECK(rig_receive(&other, &m));
	/* a lease is due each 100 ms */
	CHECK(fabric_longest_wait(r.fabric) && fabric_longest_wait(r.fabric) <= 4);
	fabric_slow_creates(r.fabric, 0);
	crew_do(&c, HA_INA_ALL_REDUCE, HA_INA_INT32, 0, 4 * KB, 1);
	rig_detach(&other);
	crew_close(&c);
	rig_close(&r);
}

static void send_create(struct rig_client *c, uint32_t serial)
{
	struct ina_shm_message m = { .type = INA_SHM_CREATE,
				     .serial = serial,
				     .create = { .ranks = 2,
						 .member = { RIG_ADDR(0), RIG_ADDR(0) },
						 .name = "one of many" } };

	CHECK(!ina_shm_message_send(c->shm.fd, &m, -1));
}

/* The controller does not answer, and a client asks without end: it is refused at once beyond what
 * may wait, and another client's question has its turn after one of these, not after all. */
static void client_asks_without_end(void)
{
	enum { QUESTIONS = 4000, WAITING = 2 * HA_INA_RANKS };
	struct rig_client greedy, other;
	struct ina_shm_message m;
	struct rig r;

	rig_open(&r, &(struct rig_options) { .workers = 2 });
	rig_attach(&r, 0, &greedy);
	rig_attach(&r, 0, &other);
	fabric_controller_hangs(r.fabric, true);
	for (unsigned i = 1; i <= QUESTIONS; i++) {
		send_create(&greedy, i);
		if (i <= WAITING)
			continue;
		CHECK(rig_receive(&greedy, &m));
		CHECK_INT(m.serial, i);
		CHECK(m.type == INA_SHM_REFUSED && strstr(m.state.text, "questions"));
		CHECK_INT(m.state.result, -EAGAIN);
	}
	send_create(&other, 1);
	fabric_controller_hangs(r.fabric, false);
	CHECK(rig_receive(&other, &m));
	CHECK(m.type == INA_SHM_TICKET); /* there are 16 groups, which the first client asks for */
	for (unsigned i = 1; i <= WAITING; i++) {
		CHECK(rig_receive(&greedy, &m));
		CHECK_INT(m.serial, i);
	}
	rig_detach(&greedy);
	rig_detach(&other);
	rig_close(&r);
}

static void ask_and_go(struct rig *r)
{
	struct rig_client c;

	rig_attach(r, 0, &c);
	for (uint32_t serial = 1; serial <= 4; serial++)
		send_create(&c, serial);
	CHECK(!shutdown(c.shm.fd, SHUT_WR));
	CHECK(rig_await_end(&c));
	rig_detach(&c);
}

/* Clients that go while their questions wait: nobody asks the controller for them. */
static void questions_of_who_has_gone(void)
{
	uint32_t member[2] = { RIG_ADDR(0), RIG_ADDR(0) };
	uint8_t ticket[HA_INA_TICKET];
	struct rig_client first, last;
	struct ina_shm_message m;
	struct rig r;

	rig_open(&r, &(struct rig_options) { .workers = 2 });
	rig_attach(&r, 0, &first);
	fabric_controller_hangs(r.fabric, true);
	send_create(&first, 1000);
	while (!fabric_creating(r.fabric)) /* the test's time limit ends it */
		rig_pause(1000);
	for (unsigned i = 0; i < 8; i++)
		ask_and_go(&r);
	rig_attach(&r, 0, &last); /* behind what the backend does when a client ends */
	rig_detach(&last);
	fabric_controller_hangs(r.fabric, false);
	CHECK(rig_receive(&first, &m));
	CHECK(m.type == INA_SHM_TICKET);
	CHECK_INT(rig_create(&first, member, 2, ticket), 0);
	CHECK_INT(fabric_groups(r.fabric), 2);
	rig_detach(&first);
	rig_close(&r);
}

/* A rank that has failed to join does not join again: `rank` is the next one that tries, of 32. */
static unsigned join_when_found(struct rig_client *c, const uint8_t ticket[HA_INA_TICKET],
				unsigned rank, uint32_t *handle)
{
	while (rig_join(c, ticket, rank, handle)) {
		CHECK_INT(c->state.result, -EHOSTUNREACH);
		CHECK(++rank < INA_RANKS_MAX);
		rig_pause(1000 * 1000);
	}
	return rank;
}

/* Many ranks cannot reach their switch: that is found out once for all of them, and again only when
 * some time has passed. Then a switch that is there again is found. */
static void hidden_switch_is_searched_for_once(void)
{
	enum { LATE = 20 };
	uint32_t member[INA_RANKS_MAX], handle;
	uint8_t ticket[HA_INA_TICKET];
	struct rig_client late;
	struct rig r;

	rig_open(&r, &(struct rig_options) { .workers = 2 });
	rig_attach(&r, 0, &late);
	for (unsigned i = 0; i < INA_RANKS_MAX; i++)
		member[i] = RIG_ADDR(0);
	CHECK_INT(rig_create(&late, member, INA_RANKS_MAX, ticket), 0);
	fabric_switch_hidden(r.fabric, 1000);
	for (unsigned i = 0; i < LATE; i++) {
		CHECK_INT(rig_join(&late, ticket, i, &handle), -EHOSTUNREACH);
		CHECK(strstr(late.state.text, "nobody knows the way"));
	}
	CHECK(fabric_searches(r.fabric) && fabric_searches(r.fabric) <= LATE / 2);
	fabric_switch_hidden(r.fabric, 0);
	CHECK(join_when_found(&late, ticket, LATE, &handle) < INA_RANKS_MAX);
	CHECK_INT(rig_leave(&late, handle), 0);
	rig_detach(&late);
	rig_close(&r);
}

int main(int argc, char **argv)
{
	static const struct named_test tests[] = {
		{ "leases_do_not_wait_for_questions", leases_do_not_wait_for_questions },
		{ "client_asks_without_end", client_asks_without_end },
		{ "questions_of_who_has_gone", questions_of_who_has_gone },
		{ "hidden_switch_is_searched_for_once", hidden_switch_is_searched_for_once },
	};

	ha_log_configure(NULL, NULL, 1);
	return NAMED_TESTS_RUN(tests, argc, argv);
}
