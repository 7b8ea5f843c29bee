/* SPDX-License-Identifier: BSD-3-Clause */
/* The plugin's side of the registration against an agent that this program plays: one that answers,
 * is absent, hangs, dies, refuses, sends nonsense. Time is the test's own; no call of the client
 * may wait. */
#include "plugin/balance/agent_client.h"

#include "base/check.h"
#include "base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define FLOWS 200
#define NOBODY 65533 /* and the next: users that own nothing here */

static char dir[64], path[96];
static int listener = -1, agent = -1; /* the agent's sockets */
static struct ha_agent_client c;
static struct ha_agent_flow flow[FLOWS];
static uint64_t now = 1000;

static void agent_listens(void)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };

	strcpy(at.sun_path, path);
	unlink(path);
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	CHECK(!bind(listener, (struct sockaddr *)&at, sizeof(at)) && !listen(listener, 1));
}

static void agent_accepts(void)
{
	agent = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	CHECK(agent >= 0);
}

static void agent_dies(void)
{
	close(agent);
	close(listener);
	unlink(path);
	agent = listener = -1;
}

static bool run_round_after(uint64_t ns)
{
	now += ns;
	return ha_agent_round(&c, now);
}

/* Answers up to `most` questions: registrations with `status`, slots by conn_id % 256. Returns how
 * many. */
static int agent_answers(int most, uint32_t status, int *deregistrations)
{
	int n = 0;

	while (n < most) {
		struct mpib_register m;
		struct mpib_register_response r = {
			{ MPIB_REG_MAGIC, sizeof(r), MPIB_MSG_RESPONSE, 0 }, status, 0
		};

		if (recv(agent, &m, sizeof(m.header), 0) != (ssize_t)sizeof(m.header))
			break;
		CHECK_INT(m.header.magic, MPIB_REG_MAGIC);
		CHECK_INT(recv(agent, &m.conn_id, m.header.length - 8u, 0), m.header.length - 8);
		n++;
		r.hint_slot = status ? MPIB_NO_SLOT : m.conn_id & 255;
		if (m.header.type == MPIB_MSG_DEREGISTER) {
			CHECK_INT(m.header.length, 12);
			r.header.length = 12;
			r.status = 0;
			++*deregistrations;
		} else {
			CHECK_INT(m.header.type, MPIB_MSG_REGISTER);
			CHECK_INT(m.header.length, 28);
		}
		CHECK_INT(send(agent, &r, r.header.length, MSG_NOSIGNAL), r.header.length);
	}
	return n;
}

static int exchange_messages(uint32_t status)
{
	int deregistrations = 0;

	do
		run_round_after(HA_NS_PER_MS);
	while (agent_answers(1000, status, &deregistrations));
	run_round_after(HA_NS_PER_MS);
	return deregistrations;
}

static void add_flow(int i)
{
	flow[i] = (struct ha_agent_flow) {
		.sout_src = 0x0a, .sout_dst = 0x0b + (uint32_t)i, .sup_src = 1, .sup_dst = 2
	};
	ha_agent_add(&c, &flow[i]);
}

static int count_held_slots(void)
{
	int n = 0;

	for (int i = 0; i < FLOWS; i++)
		n += atomic_load(&flow[i].slot) == (flow[i].conn_id & 255);
	return n;
}

static void open_client(int flows)
{
	memset(flow, 0, sizeof(flow));
	for (int i = 0; i < FLOWS; i++)
		atomic_store(&flow[i].slot, MPIB_NO_SLOT);
	CHECK(!ha_agent_client_open(&c, path));
	for (int i = 0; i < flows; i++)
		add_flow(i);
}

static void close_client(void)
{
	ha_agent_client_close(&c);
	if (agent >= 0 || listener >= 0)
		agent_dies();
}

static void flows_get_their_slots(void)
{
	agent_listens();
	open_client(FLOWS);
	CHECK_INT(c.state, HA_AGENT_IDLE);
	CHECK_INT(ha_agent_due(&c), 0);
	run_round_after(0);
	agent_accepts();
	CHECK_INT(exchange_messages(0), 0);
	CHECK_INT(count_held_slots(), FLOWS);
	CHECK_INT(c.state, HA_AGENT_ANSWERS);
	CHECK(ha_agent_due(&c) == UINT64_MAX);
	for (int i = 0; i < FLOWS; i++)
		for (int k = 0; k < i; k++)
			CHECK(flow[i].conn_id != flow[k].conn_id);
	for (int i = 0; i < FLOWS; i += 2)
		ha_agent_remove(&c, &flow[i]);
	CHECK_INT(exchange_messages(0), FLOWS / 2);
	ha_agent_remove(&c, &flow[0]); /* is gone already */
	CHECK_INT(exchange_messages(0), 0);
	close_client();
}

static void nothing_is_dialled_without_need(void)
{
	open_client(0);
	CHECK(!run_round_after(0));
	CHECK_INT(c.state, HA_AGENT_IDLE);
	CHECK(ha_agent_due(&c) == UINT64_MAX);
	close_client();
}

static void an_absent_agent_is_dialled_with_growing_pauses(void)
{
	int dials = 0;

	open_client(1);
	CHECK(run_round_after(0)); /* one event */
	CHECK_INT(c.state, HA_AGENT_ABSENT);
	for (int i = 0; i < 60; i++) { /* a minute */
		uint64_t due = c.dial_at;

		CHECK(!run_round_after(HA_NS_PER_S));
		dials += c.dial_at != due;
	}
	CHECK(dials >= 10 && dials <= 20);
	agent_listens();
	run_round_after(5 * HA_NS_PER_S);
	agent_accepts();
	exchange_messages(0);
	CHECK_INT(count_held_slots(), 1);
	close_client();
}

static void a_hanging_agent_is_left(void)
{
	agent_listens();
	open_client(3);
	run_round_after(0);
	agent_accepts();
	CHECK(!run_round_after(900 * HA_NS_PER_MS));
	CHECK(run_round_after(200 * HA_NS_PER_MS));
	CHECK_INT(c.state, HA_AGENT_HANGS);
	CHECK_INT(c.fd, -1);
	close(agent);
	run_round_after(
		100 * HA_NS_PER_MS); /* dialled again: the kernel takes the call, nobody answers */
	CHECK(c.fd >= 0);
	CHECK_INT(count_held_slots(), 0);
	close_client();
}

/* Its queue of callers is full, as that of a stopped process will be. */
static void a_full_queue_does_not_hold_us_up(void)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int fd[8];

	agent_listens();
	strcpy(to.sun_path, path);
	for (int i = 0; i < 8; i++) {
		fd[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
		if (connect(fd[i], (struct sockaddr *)&to, sizeof(to)))
			CHECK_INT(errno, EAGAIN);
	}
	open_client(1);
	CHECK(run_round_after(0));
	CHECK_INT(c.state, HA_AGENT_HANGS);
	for (int i = 0; i < 8; i++)
		close(fd[i]);
	close_client();
}

/* The slots stay in use meanwhile, and everything is said again. */
static void a_restarted_agent_disturbs_nobody(void)
{
	agent_listens();
	open_client(100);
	run_round_after(0);
	agent_accepts();
	exchange_messages(0);
	CHECK_INT(count_held_slots(), 100);
	ha_agent_remove(&c, &flow[0]);
	agent_dies();
	CHECK(run_round_after(HA_NS_PER_MS));
	CHECK_INT(c.state, HA_AGENT_ABSENT);
	CHECK_INT(count_held_slots(), 99);
	add_flow(100); /* a newcomer meanwhile */
	agent_listens();
	run_round_after(200 * HA_NS_PER_MS);
	agent_accepts();
	CHECK_INT(exchange_messages(0),
		  1); /* the BYE message that the failed one may not have received */
	CHECK_INT(count_held_slots(), 100);
	close_client();
}

static void a_flow_that_goes_before_the_answer(void)
{
	int deregistrations = 0;

	agent_listens();
	open_client(10);
	run_round_after(0);
	agent_accepts();
	for (int i = 0; i < 10; i++)
		ha_agent_remove(&c, &flow[i]);
	memset(flow, 0xee, sizeof(flow)); /* its memory is somebody else's now */
	CHECK_INT(agent_answers(10, 0, &deregistrations), 10);
	deregistrations += exchange_messages(0);
	CHECK_INT(deregistrations, 10);
	for (size_t i = 0; i < sizeof(flow); i++)
		CHECK_INT(((unsigned char *)flow)[i], 0xee);
	close_client();
}

static void a_refused_flow_asks_again(void)
{
	agent_listens();
	open_client(4);
	run_round_after(0);
	agent_accepts();
	exchange_messages(MPIB_STATUS_NO_SLOT);
	CHECK_INT(count_held_slots(), 0);
	CHECK_INT(flow[0].status, MPIB_STATUS_NO_SLOT);
	CHECK_INT(c.state, HA_AGENT_ANSWERS);
	exchange_messages(0);
	CHECK_INT(count_held_slots(), 0);
	run_round_after(5 * HA_NS_PER_S);
	exchange_messages(0);
	CHECK_INT(count_held_slots(), 4);
	close_client();
}

static void check_bad_answer(const void *data, size_t size, enum ha_agent_state want)
{
	agent_listens();
	open_client(2);
	run_round_after(0);
	agent_accepts();
	if (size)
		CHECK_INT(send(agent, data, size, MSG_NOSIGNAL), size);
	else
		close(agent);
	run_round_after(HA_NS_PER_MS);
	CHECK_INT(c.state, want);
	CHECK_INT(count_held_slots(), 0);
	close_client();
}

static void an_agent_that_answers_nonsense_is_left(void)
{
	struct mpib_register_response r = { { MPIB_REG_MAGIC, sizeof(r), MPIB_MSG_RESPONSE, 0 },
					    0,
					    5 };
	uint8_t flood[3 * sizeof(r)];

	r.header.magic++;
	check_bad_answer(&r, sizeof(r), HA_AGENT_REFUSED);
	r.header.magic--;
	r.header.length = 12;
	check_bad_answer(&r, 12, HA_AGENT_REFUSED);
	r.header.length = sizeof(r);
	r.header.type = MPIB_MSG_REGISTER;
	check_bad_answer(&r, sizeof(r), HA_AGENT_REFUSED);
	r.header.type = MPIB_MSG_RESPONSE;
	for (int i = 0; i < 3; i++) /* three answers to two questions */
		memcpy(flood + i * sizeof(r), &r, sizeof(r));
	agent_listens();
	open_client(2);
	run_round_after(0);
	agent_accepts();
	CHECK_INT(send(agent, flood, sizeof(flood), MSG_NOSIGNAL), sizeof(flood));
	run_round_after(HA_NS_PER_MS);
	CHECK_INT(c.state, HA_AGENT_REFUSED);
	close_client();
	check_bad_answer(NULL, 0, HA_AGENT_REFUSED); /* hangs up at once */
	r.hint_slot = 256;                           /* a slot that there is not */
	agent_listens();
	open_client(1);
	run_round_after(0);
	agent_accepts();
	CHECK_INT(send(agent, &r, sizeof(r), MSG_NOSIGNAL), sizeof(r));
	run_round_after(HA_NS_PER_MS);
	CHECK_INT(atomic_load(&flow[0].slot), MPIB_NO_SLOT);
	close_client();
}

static void an_answer_may_come_in_pieces(void)
{
	struct mpib_register_response r = { { MPIB_REG_MAGIC, sizeof(r), MPIB_MSG_RESPONSE, 0 },
					    0,
					    0 };

	agent_listens();
	open_client(1);
	run_round_after(0);
	agent_accepts();
	r.hint_slot = flow[0].conn_id & 255;
	for (size_t i = 0; i < sizeof(r); i++) {
		CHECK_INT(count_held_slots(), 0);
		CHECK_INT(send(agent, (char *)&r + i, 1, MSG_NOSIGNAL), 1);
		run_round_after(HA_NS_PER_MS);
	}
	CHECK_INT(count_held_slots(), 1);
	close_client();
}

/* 65536 numbers: who keeps his is not given another's. */
static void numbers_come_round(void)
{
	agent_listens();
	open_client(2);
	run_round_after(0);
	agent_accepts();
	exchange_messages(0);
	for (int i = 0; i < 70000; i++) {
		add_flow(2);
		CHECK(flow[2].conn_id != flow[0].conn_id && flow[2].conn_id != flow[1].conn_id);
		ha_agent_remove(&c, &flow[2]);
	}
	close_client();
}

/*
 * Who listens decides, not whose file it is: a socket of root is trusted by everybody, another
 * user's by that user alone.
 */
static void check_listener_of(uid_t listens, uid_t connects, enum ha_agent_state want)
{
	agent_listens();
	CHECK(!chmod(dir, 0755) && !chmod(path, 0666));
	CHECK(!seteuid(listens) && !listen(listener, 1) && !seteuid(0)); /* takes who it is anew */
	open_client(1);
	CHECK(!seteuid(connects));
	run_round_after(0);
	CHECK(!seteuid(0));
	CHECK_INT(c.state, want);
	CHECK_INT(c.fd >= 0, want != HA_AGENT_REFUSED);
	close_client();
}

static void a_socket_of_another_user_is_refused(void)
{
	if (geteuid()) {
		printf("a socket of another user: skipped, only root can make one\n");
		return;
	}
	check_listener_of(NOBODY, 0, HA_AGENT_REFUSED);
	check_listener_of(NOBODY, NOBODY + 1, HA_AGENT_REFUSED);
	check_listener_of(NOBODY, NOBODY, HA_AGENT_IDLE);
	check_listener_of(0, NOBODY, HA_AGENT_IDLE);
}

int main(void)
{
	strcpy(dir, "/tmp/hawser-client-XXXXXX");
	CHECK(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/agent.sock", dir);
	flows_get_their_slots();
	nothing_is_dialled_without_need();
	an_absent_agent_is_dialled_with_growing_pauses();
	a_hanging_agent_is_left();
	a_full_queue_does_not_hold_us_up();
	a_restarted_agent_disturbs_nobody();
	a_flow_that_goes_before_the_answer();
	a_refused_flow_asks_again();
	an_agent_that_answers_nonsense_is_left();
	an_answer_may_come_in_pieces();
	numbers_come_round();
	a_socket_of_another_user_is_refused();
	return rmdir(dir) ? 1 : 0;
}
