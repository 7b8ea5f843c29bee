/* SPDX-License-Identifier: BSD-3-Clause */
/* The small parts of a backend by themselves. */
#include "base/clock.h"
#include "ina/host/backend/arp.h"
#include "ina/host/backend/authority.h"
#include "ina/host/backend/balancer.h"
#include "ina/host/backend/cores.h"
#include "ina/host/backend/net.h"
#include "ina/host/backend/registrar.h"
#include "ina/host/backend/spsc.h"
#include "ina/host/backend/ticket.h"
#include "tests/ina/switch/named.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

static void shares_are_even(void)
{
	for (unsigned workers = 1; workers <= 64; workers *= 2)
		for (uint32_t blocks = 1; blocks < 300; blocks++) {
			uint32_t sum = 0;

			for (unsigned i = 0; i < workers; i++) {
				uint32_t n = ha_share(blocks, workers, i);

				CHECK(n == blocks / workers || n == blocks / workers + 1);
				CHECK(!i || n <= ha_share(blocks, workers, i - 1));
				sum += n;
			}
			CHECK_INT(sum, blocks);
		}
}

static void *push_notes(void *arg)
{
	struct ha_spsc *s = arg;

	for (uint32_t i = 0; i < 300000; i++) {
		struct ha_note note = { i, -(int32_t)i, s };

		while (!ha_spsc_push(s, &note))
			sched_yield();
	}
	return NULL;
}

/* Everything once, in order, over many rounds of the ring; and a full one says so. */
static void ring_keeps_order(void)
{
	static struct ha_spsc s;
	struct ha_note note = { 0 };
	pthread_t thread;

	for (uint32_t i = 0; i < HA_SPSC_NOTES; i++)
		CHECK(ha_spsc_push(&s, &note));
	CHECK(!ha_spsc_push(&s, &note));
	for (uint32_t i = 0; i < HA_SPSC_NOTES; i++)
		CHECK(ha_spsc_pop(&s, &note));
	CHECK(!ha_spsc_pop(&s, &note) && ha_spsc_empty(&s));
	CHECK(!pthread_create(&thread, NULL, push_notes, &s));
	for (uint32_t i = 0; i < 300000; i++) {
		while (!ha_spsc_pop(&s, &note))
			sched_yield();
		CHECK(note.kind == i && note.err == -(int32_t)i && note.what == &s);
	}
	pthread_join(thread, NULL);
	CHECK(ha_spsc_empty(&s));
}

static void arp_is_encoded(void)
{
	/* RFC 826's packet, by hand */
	static const uint8_t request[HA_ARP_BYTES] = {
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0,  0, 0, 0, 1, 8, 6, 0, 1, 8, 0,  6, 4, 0,
		1,    2,    0,    0,    0,    0,    1, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 254
	};
	struct ha_arp a = { .request = true,
			    .sender_mac = { 2, 0, 0, 0, 0, 1 },
			    .sender = 0x0a000001,
			    .target = 0x0a0000fe },
		      reply;
	uint8_t bytes[HA_ARP_BYTES];

	ha_arp_encode(&a, bytes);
	CHECK(!memcmp(bytes, request, sizeof(bytes)));
	CHECK(ha_arp_decode(bytes, sizeof(bytes), &reply) && reply.request &&
	      reply.sender == a.sender && reply.target == a.target);
	CHECK(!memcmp(reply.sender_mac, a.sender_mac, 6));
	CHECK(!ha_arp_decode(bytes, sizeof(bytes) - 1, &reply));
	a.request = false;
	a.target_mac[0] = 4;
	ha_arp_encode(&a, bytes);
	CHECK(bytes[0] == 4 && bytes[21] == 2 &&
	      ha_arp_decode(bytes, 60 < sizeof(bytes) ? 60 : sizeof(bytes), &reply) &&
	      !reply.request);
	for (unsigned i = 12; i < 21; i++) {
		bytes[i] ^= 0x40;
		CHECK(!ha_arp_decode(bytes, sizeof(bytes), &reply));
		bytes[i] ^= 0x40;
	}
}

/* A cable on which another host never stops sending: fd is its end; it answers the question number
 * `answers`, or none, and receives all before it ends. */
struct chatter {
	int fd;
	unsigned answers, questions;
	_Atomic bool stop;
};

static void *send_arp_traffic(void *arg)
{
	struct chatter *c = arg;
	struct ha_arp other = { .sender_mac = { 2, 9 },
				.sender = 0x0a000009,
				.target = 0x0a000001 },
		      reply;
	uint8_t bytes[HA_ARP_BYTES];

	for (;;) {
		struct ha_arp say = other;
		bool stop = atomic_load(&c->stop);
		ssize_t n = recv(c->fd, bytes, sizeof(bytes), MSG_DONTWAIT);

		if (n < 0 && stop)
			return NULL;
		if (n > 0 && ha_arp_decode(bytes, (size_t)n, &reply) && reply.request &&
		    ++c->questions == c->answers)
			say = (struct ha_arp) { .sender_mac = { 2, 7 },
						.sender = reply.target,
						.target = reply.sender };
		ha_arp_encode(&say, bytes);
		while (send(c->fd, bytes, sizeof(bytes), MSG_DONTWAIT) < 0 &&
		       !atomic_load(&c->stop))
			sched_yield();
	}
}

static int ask_amid(unsigned answers, unsigned tries, unsigned *questions)
{
	const struct ha_arp question = {
		.request = true, .sender_mac = { 2, 1 }, .sender = 0x0a000001, .target = 0x0a000007
	};
	struct chatter c = { .answers = answers };
	uint8_t mac[6] = { 0 };
	pthread_t thread;
	int end[2], err;

	CHECK(!socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, end));
	c.fd = end[1];
	CHECK(!pthread_create(&thread, NULL, send_arp_traffic, &c));
	err = ha_arp_ask(end[0], &question, tries, 100, mac);
	atomic_store(&c.stop, true);
	pthread_join(thread, NULL);
	CHECK(err || (mac[0] == 2 && mac[1] == 7));
	*questions = c.questions;
	close(end[0]);
	close(end[1]);
	return err;
}

/* Others' packets neither hold up the end nor the next question. */
static void arp_amid_chatter(void)
{
	unsigned questions;

	CHECK_INT(ask_amid(0, 3, &questions), -EHOSTUNREACH);
	CHECK_INT(questions, 3);
	CHECK_INT(ask_amid(2, 600, &questions), 0); /* a minute: a busy machine lets him wait */
	CHECK(questions >= 2);
}

static void cores_are_chosen(void)
{
	static const char *const bad[] = { "x", "1-", "-1", "3-2", "0,,1", "0;1", "99999" };
	int cpu[CPU_SETSIZE];
	bool shared;
	char why[256];
	cpu_set_t may;
	unsigned n;

	CHECK(!sched_getaffinity(0, sizeof(may), &may));
	n = (unsigned)CPU_COUNT(&may);
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CHECK_INT(ha_cores_choose(bad[i], -1, 1, cpu, &shared, why, sizeof(why)), -EINVAL);
		CHECK(strstr(why, bad[i]));
	}
	CHECK_INT(ha_cores_choose(NULL, -1, n, cpu, &shared, why, sizeof(why)), 0);
	CHECK(!shared);
	for (unsigned i = 0; i < n; i++)
		CHECK(CPU_ISSET(cpu[i], &may) && (!i || cpu[i] != cpu[i - 1]));
	/* one too few: nobody is pinned; a list that is too short is refused */
	CHECK_INT(ha_cores_choose(NULL, 0, n + 1, cpu, &shared, why, sizeof(why)), 0);
	CHECK(shared && cpu[0] == -1 && cpu[n] == -1);
	if (CPU_ISSET(0, &may)) {
		CHECK_INT(ha_cores_choose("0", -1, 1, cpu, &shared, why, sizeof(why)), 0);
		CHECK(!shared && cpu[0] == 0);
		CHECK_INT(ha_cores_choose("0", -1, 2, cpu, &shared, why, sizeof(why)), -EINVAL);
		CHECK(strstr(why, "2 threads poll"));
	}
}

static void tickets_are_checked(void)
{
	struct ha_group_facts g = { .id = 255,
				    .ranks = 32,
				    .workers = 64,
				    .extended = true,
				    .base = 32768,
				    .len = 32768,
				    .epoch = 0xfffffff0,
				    .switch_addr = 0x0afffffe,
				    .key = 0x0123456789abcdef,
				    .switch_name = "a-name-of-thirty-one-characters" },
			      read;
	uint8_t ticket[HA_INA_TICKET];
	const char *why;

	for (unsigned i = 0; i < 32; i++)
		g.member[i] = 0x0a000001 + i;
	ha_ticket_write(&g, ticket);
	CHECK_INT(ha_ticket_read(ticket, &read, &why), 0);
	CHECK(!memcmp(&g, &read, sizeof(g)));
	ticket[3] = 2;
	CHECK_INT(ha_ticket_read(ticket, &read, &why), -EINVAL);
	CHECK(strstr(why, "another version"));
	ticket[3] = 1;
	ticket[100] ^= 1;
	CHECK_INT(ha_ticket_read(ticket, &read, &why), -EINVAL);
	CHECK(strstr(why, "damaged"));
}

#define LEASE_MS 500 /* between being asked for and joined; beside other work */

/* One that was joined within its lease: on a busy machine the first may be over before it could
 * be. */
static void create_joined(struct ha_authority *a, const struct ina_shm_create *spec,
			  struct ha_group_facts *g, uint64_t incarnation)
{
	char why[200];

	for (unsigned i = 0; i < 60; i++) {
		CHECK_INT(a->ops->create(a, spec, g, why, sizeof(why)), 0);
		if (!a->ops->join(a, g, 0, incarnation, why, sizeof(why)))
			return;
	}
	CHECK(!"a group could be joined");
}

/* Groups that are asked for and never joined do not use up what there is: a lease later they are no
 * more. */
static void never_joined(void)
{
	const struct ha_group_defaults defaults = { .workers = 1,
						    .extended = true,
						    .lease_ms = LEASE_MS };
	const struct ina_shm_create spec = { .ranks = 2, .member = { 1, 2 } };
	struct ha_net net = { .addr = 1 };
	struct ha_authority *a = ha_authority_local_open(&defaults, &net);
	struct ha_group_facts first, g;
	char why[200];
	unsigned n = 0;

	create_joined(a, &spec, &first, 7);
	while (n < 300 && !a->ops->create(a, &spec, &g, why, sizeof(why)))
		n++;
	CHECK(n >= 254); /* all there are; more, where this took longer than a lease */
	usleep(1200 * LEASE_MS);
	create_joined(a, &spec, &g, 8);
	usleep(1200 * LEASE_MS);
	for (n = 0; n < 253; n++) /* all but the two that have been joined */
		CHECK_INT(a->ops->create(a, &spec, &g, why, sizeof(why)), 0);
	CHECK_INT(a->ops->join(a, &first, 1, 9, why, sizeof(why)), 0);
	CHECK_INT(a->ops->leave(a, &first, 0, 7), 0);
	CHECK_INT(a->ops->leave(a, &first, 1, 9), 0);
	a->ops->close(a);
}

/* ---- a registrar whose controller does not answer ---- */

#define RANKS 12

static atomic_uint asked_to_leave;
static struct ha_registrar *ending; /* the first that leaves waits until it does */

static int join_at_once(struct ha_authority *a, struct ha_group_facts *group, unsigned rank,
			uint64_t incarnation, char *why, size_t size)
{
	return 0;
}

static int leave_in_vain(struct ha_authority *a, const struct ha_group_facts *group, unsigned rank,
			 uint64_t incarnation)
{
	atomic_fetch_add(&asked_to_leave, 1);
	while (!atomic_load(&ending->stop))
		usleep(1000);
	return -ETIMEDOUT;
}

/* A backend that ends gives its ranks back, and its controller is away: that is found out once, and
 * not once for each rank. */
static void registrar_ends_soon(void)
{
	const struct ha_authority_ops ops = { .join = join_at_once, .leave = leave_in_vain };
	struct ha_authority authority = { &ops };
	struct ha_registrar r = { .authority = &authority, .switch_mac = (const uint8_t[6]) { 2 } };
	struct ha_sleeper sleeper;
	struct ha_mailbox control;
	struct ha_question *leaves[RANKS];
	struct ha_message *message;

	ending = &r;
	CHECK_INT(ha_sleeper_open(&sleeper), 0);
	ha_mailbox_open(&control, &sleeper);
	r.control = &control;
	CHECK_INT(ha_registrar_start(&r), 0);
	for (unsigned i = 0; i < RANKS; i++) {
		struct ha_question *q = calloc(1, sizeof(*q));

		q->rank = i;
		q->incarnation = 1 + i;
		ha_mailbox_send(&r.mailbox, &q->message, HA_QUESTION_JOIN, q);
		while (!(message = ha_mailbox_take(&control)))
			usleep(1000);
		CHECK_INT(q->err, 0);
		leaves[i] = q;
	}
	for (unsigned i = 0; i < RANKS; i++)
		ha_mailbox_send(&r.mailbox, &leaves[i]->message, HA_QUESTION_LEAVE, leaves[i]);
	while (!atomic_load(&asked_to_leave))
		usleep(1000);
	ha_registrar_stop(&r);
	CHECK_INT(asked_to_leave, 2); /* the one that was under way, and one more */
	ha_mailbox_close(&control);
	ha_sleeper_close(&sleeper);
}

int main(int argc, char **argv)
{
	static const struct named_test tests[] = {
		{ "shares", shares_are_even },    { "ring", ring_keeps_order },
		{ "arp", arp_is_encoded },        { "arp_amid_chatter", arp_amid_chatter },
		{ "cores", cores_are_chosen },    { "tickets", tickets_are_checked },
		{ "never_joined", never_joined }, { "registrar_ends_soon", registrar_ends_soon },
	};

	return NAMED_TESTS_RUN(tests, argc, argv);
}
