/* SPDX-License-Identifier: BSD-3-Clause */
/* test_faults.c - groups that end, ranks and backends that die, backends that lie: every operation
 * ends, each segment is whole or untouched */
#include "base/rng.h"
#include "ina/host/shm/client.h"
#include "ina/host/shm/server.h"
#include "tests/ina/host/front/rig.h"
#include "tests/ina/switch/named.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#define SEGMENTS 12
#define WORDS (HA_INA_SEGMENT / 4)

struct want {
	int result;          /* of the operation */
	unsigned done_least; /* segments that all ranks must have */
	const char *text;
};

/* Every segment that says so has the sum, whole; every other one the rank's own. */
static unsigned whole_or_untouched(struct ha_ina_op *op, const int32_t *x, unsigned rank,
				   unsigned ranks)
{
	unsigned done = 0;

	for (size_t s = 0; s < SEGMENTS; s++) {
		bool has = ha_ina_op_done(op, s);
		int32_t want = has ? (int32_t)(ranks * (ranks + 1) / 2) : (int32_t)rank + 1;

		done += has;
		for (size_t i = 0; i < WORDS; i++)
			CHECK_INT(x[s * WORDS + i], want);
	}
	return done;
}

static void in_place(struct rank *r)
{
	const struct want *want = r->arg;
	int32_t *x = malloc(SEGMENTS * (size_t)HA_INA_SEGMENT);
	struct ha_ina_request q = { .coll = HA_INA_ALL_REDUCE,
				    .type = HA_INA_INT32,
				    .bytes = SEGMENTS * (size_t)HA_INA_SEGMENT,
				    .in = x,
				    .out = x };
	struct ha_ina_op *op, *later;

	for (size_t i = 0; i < SEGMENTS * (size_t)WORDS; i++)
		x[i] = (int32_t)r->rank + 1;
	op = post_or_die(r->ina, r->group, &q);
	/* it may be over already */
	if (ha_ina_post(r->group, &(struct ha_ina_request) { .coll = HA_INA_BARRIER }, &later))
		later = NULL;
	CHECK_INT(ha_ina_wait(op, TIME_LIMIT), want->result);
	if (!strstr(ha_ina_error(r->ina), want->text))
		fprintf(stderr, "said: %s\n", ha_ina_error(r->ina));
	CHECK(strstr(ha_ina_error(r->ina), want->text));
	CHECK(whole_or_untouched(op, x, r->rank, r->ranks) >= want->done_least);
	if (later)
		CHECK_INT(ha_ina_wait(later, TIME_LIMIT), want->result);
	CHECK_INT(ha_ina_group_state(r->group), want->result);
	ha_ina_op_free(op);
	ha_ina_op_free(later);
	CHECK_INT(ha_ina_post(r->group, &q, &op), want->result);
	free(x);
}

static void check_ended(const char *option, int result, const char *text)
{
	const char *const options[] = { option, "5", NULL };
	struct want want = { result, 5, text };

	backend_start(options);
	ranks_run(3, in_place, &want);
	backend_stop();
}

static void cancellation_is_reported(void)
{
	check_ended("--cancel-at", -ECANCELED, "as the test wants it");
}

/* Requests are answered over memory that is shared, why a group has ended is said over a socket:
 * which comes first is nobody's to say. */
static void canceled_with_reason(const char *ms, const char *text)
{
	const char *const options[] = { "--cancel-at", "5", "--said-ms", ms, NULL };
	struct want want = { -ECANCELED, 5, text };

	backend_start(options);
	ranks_run(3, in_place, &want);
	backend_kill(); /* it may still have something to say */
}

static void reason_later(void)
{
	canceled_with_reason("200", "as the test wants it");
}

static void no_reason(void)
{
	canceled_with_reason("20000", "the backend ended the operation");
}

static void timed_out(void)
{
	check_ended("--timeout-at", -ETIMEDOUT, "as the test wants it");
}

static void nothing_free(void)
{
	static const char *const options[] = { "--eagain", NULL };
	uint8_t ticket[HA_INA_TICKET];
	uint32_t member[2] = { 1, 2 };
	struct ha_ina *ina;

	backend_start(options);
	ina = open_or_die();
	CHECK_INT(ha_ina_group_create(ina, member, 2, "x", ticket), -EAGAIN);
	CHECK(strstr(ha_ina_error(ina), "do without"));
	ha_ina_close(ina);
	backend_stop();
}

/* It dies in the middle of a segment: some ranks have its result, some have not. Another one takes
 * over, with a new context. */
static void backend_dies(void)
{
	static const char *const options[] = { "--die-at", "5", NULL };
	struct want want = { -ENOTCONN, 4, "the backend has gone" };
	pid_t pid[3];

	backend_start(options);
	ranks_start(3, in_place, &want, pid);
	ranks_wait(3, pid);
	backend_kill(); /* it is dead; its end is collected */
	backend_start(NULL);
	ha_ina_close(open_or_die());
	backend_stop();
}

/* ---- a rank dies ---- */

static void until_over(struct rank *r)
{
	static int32_t x[1 << 16];
	struct ha_ina_request q = { .coll = HA_INA_ALL_REDUCE,
				    .type = HA_INA_INT32,
				    .bytes = sizeof(x),
				    .in = x,
				    .out = x };
	int result = 0;

	for (unsigned n = 0; !result; n++) {
		if (r->rank == 1 && n == 20)
			raise(SIGKILL);
		struct ha_ina_op *op;

		result = ha_ina_post(r->group, &q, &op);
		if (!result) {
			result = ha_ina_wait(op, TIME_LIMIT);
			ha_ina_op_free(op);
		}
		CHECK(n < 21);
	}
	CHECK_INT(result, -ECANCELED);
	ha_ina_group_leave(r->group);
	ha_ina_close(r->ina);
	_exit(0); /* nobody meets the dead one */
}

static void rank_dies(void)
{
	pid_t pid[3];
	int status;

	backend_start(NULL);
	ranks_start(3, until_over, NULL, pid);
	for (unsigned i = 0; i < 3; i++) {
		CHECK_INT(waitpid(pid[i], &status, 0), pid[i]);
		CHECK(i == 1 ? WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL : !status);
	}
	ha_ina_close(open_or_die());
	backend_stop();
}

/* ---- backends that lie: ours, in a thread, with one client ---- */

enum lie {
	RESPONSE_TWICE,
	RESPONSE_TO_NOBODY,
	RESULT_POSITIVE,
	RING_TORN,
	REQUESTS_TORN,
	MESSAGE_UNKNOWN,
	ENDS_CLIENT,
	NO_ANSWERS
};

static enum lie lie;
static struct ina_shm_server *server;
static struct ina_shm_peer *peer;
static atomic_bool stop;
static atomic_bool lied;
static unsigned honest; /* requests that it answers first */

#define AT_ONCE 127u
#define HONEST (8 * AT_ONCE)
#define MORE 16 /* operations after the lie */
static_assert(HONEST < INA_SHM_ENTRIES && HONEST + 1 + MORE > INA_SHM_ENTRIES,
	      "once round the ring");

static void keep_peer(void *arg, struct ina_shm_peer *p)
{
	peer = p;
}

static void answer_create(void *arg, struct ina_shm_peer *p, uint32_t serial,
			  const struct ina_shm_create *spec)
{
	uint8_t ticket[HA_INA_TICKET] = { 1 };

	ina_shm_answer_ticket(p, serial, ticket);
}

static void answer_join(void *arg, struct ina_shm_peer *p, uint32_t serial,
			const uint8_t ticket[HA_INA_TICKET], uint32_t rank)
{
	ina_shm_answer_joined(p, serial, 3, rank, 2);
}

static void answer_leave(void *arg, struct ina_shm_peer *p, uint32_t serial, uint32_t handle,
			 int err)
{
	ina_shm_answer_left(p, serial, handle);
}

static void ignore_bell(void *arg, struct ina_shm_peer *p)
{
}

static void release_peer(void *arg, struct ina_shm_peer *p, const char *why)
{
	peer = NULL;
	ina_shm_peer_release(p);
}

static const struct ina_shm_server_ops ops = { keep_peer,    answer_create, answer_join,
					       answer_leave, ignore_bell,   release_peer };

/* Its ends of the rings, as the client sees them. */
static struct ina_shm_control *ends_of(struct ina_shm_peer *p)
{
	uint64_t bytes;
	uint8_t *map = ina_shm_peer_buffer(p, &bytes) - INA_SHM_BUFFER;

	return (struct ina_shm_control *)(map + INA_SHM_CONTROL);
}

static void send_lie(struct ina_shm_request q)
{
	struct ina_shm_response r = { q.sequence, 0, 0 };

	if (honest) {
		honest--;
		ina_shm_peer_respond(peer, &r);
		return;
	}
	if (lie == RESPONSE_TO_NOBODY)
		r.sequence += INA_SHM_ENTRIES;
	if (lie == RESULT_POSITIVE)
		r.result = 7;
	if (lie == RING_TORN) {
		atomic_store(&ends_of(peer)->responses.tail.value, 77777);
		ina_shm_answer_left(peer, 999, 3); /* wakes it */
	} else if (lie == REQUESTS_TORN) {
		atomic_store(&ends_of(peer)->requests.head.value, 77777);
	} else if (lie == MESSAGE_UNKNOWN) {
		ina_shm_answer_joined(peer, 999, 3, 1, 1);
	} else if (lie == ENDS_CLIENT) {
		ina_shm_peer_end(peer, "the test does not like it");
	} else if (lie != NO_ANSWERS) {
		ina_shm_peer_respond(peer, &r);
		if (lie == RESPONSE_TWICE)
			ina_shm_peer_respond(peer, &r);
	}
	atomic_store(&lied, true);
}

static void *serve_wrong_answers(void *arg)
{
	while (!atomic_load(&stop)) {
		struct ina_shm_request q;

		ina_shm_server_poll(server, 1);
		/* its count is wrong after a lie */
		while (peer && !atomic_load(&lied) && ina_shm_peer_next(peer, &q) > 0)
			send_lie(q);
	}
	ina_shm_server_close(server);
	return NULL;
}

/* The client looks at where the backend is in its requests when these have been once round the
 * ring: all but the last few are answered. */
static void go_round(struct ha_ina *ina, struct ha_ina_group *g, const struct ha_ina_request *q)
{
	struct ha_ina_op *op[AT_ONCE];

	for (unsigned n = 0; n < HONEST; n += AT_ONCE) {
		for (unsigned i = 0; i < AT_ONCE; i++)
			op[i] = post_or_die(ina, g, q);
		for (unsigned i = 0; i < AT_ONCE; i++) {
			CHECK_INT(ha_ina_wait(op[i], TIME_LIMIT), 0);
			ha_ina_op_free(op[i]);
		}
	}
}

static void post_more(struct ha_ina_group *g, const struct ha_ina_request *q,
		      struct ha_ina_op *more[MORE])
{
	while (!atomic_load(&lied))
		usleep(1000);
	for (unsigned i = 0; i < MORE; i++)
		(void)ha_ina_post(g, q, &more[i]); /* the last ones may come too late */
}

/* The operation ends with the reason, and the backend is believed nothing any more. */
static void found_out(struct ha_ina *ina, struct ha_ina_op *op, int result, const char *text)
{
	uint8_t ticket[HA_INA_TICKET] = { 0 };
	struct ha_ina_group *again;

	CHECK_INT(ha_ina_wait(op, TIME_LIMIT), result);
	if (!strstr(ha_ina_error(ina), text))
		fprintf(stderr, "said: %s\n", ha_ina_error(ina));
	CHECK(strstr(ha_ina_error(ina), text));
	CHECK_INT(ha_ina_group_join(ina, ticket, 1, &again), -ENOTCONN);
	ha_ina_op_free(op);
}

static void with_liar(enum lie which, int result, const char *text)
{
	static int32_t x[4 * WORDS];
	struct ha_ina_op *more[MORE] = { NULL };
	struct ha_ina_request q = { .coll = HA_INA_ALL_REDUCE,
				    .type = HA_INA_INT32,
				    .bytes = sizeof(x),
				    .in = x,
				    .out = x };
	char path[64], why[200];
	struct ina_shm_server_config config = { .path = path };
	struct ha_ina_group *g;
	struct ha_ina_op *op;
	struct ha_ina *ina;
	pthread_t thread;

	snprintf(path, sizeof(path), "/tmp/ina-liar-%d.sock", (int)getpid());
	lie = which;
	atomic_store(&lied, false);
	honest = which == REQUESTS_TORN ? HONEST : 0;
	atomic_store(&stop, false);
	server = ina_shm_server_open(&config, &ops, NULL, why, sizeof(why));
	CHECK(server);
	CHECK_INT(pthread_create(&thread, NULL, serve_wrong_answers, NULL), 0);
	CHECK_INT(ha_ina_open(&ina, &(struct ha_ina_options) { .backend = path }, why, sizeof(why)),
		  0);
	g = group_or_die(ina, 2, 0);
	if (which == REQUESTS_TORN) {
		q.bytes = 1024; /* one request */
		go_round(ina, g, &q);
	}
	op = post_or_die(ina, g, &q);
	if (which == REQUESTS_TORN)
		post_more(g, &q, more);
	if (which == NO_ANSWERS) {
		ha_ina_op_free(op);
		CHECK_INT(ha_ina_group_state(g), result);
	} else {
		found_out(ina, op, result, text);
		for (unsigned i = 0; i < MORE; i++)
			ha_ina_op_free(more[i]);
	}
	ha_ina_group_leave(g);
	ha_ina_close(ina);
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
}

static void wrong_backends_are_detected(void)
{
	with_liar(RESPONSE_TWICE, -ENOTCONN, "writes what cannot be");
	with_liar(RESPONSE_TO_NOBODY, -ENOTCONN, "writes what cannot be");
	with_liar(RESULT_POSITIVE, -ENOTCONN, "writes what cannot be");
	with_liar(RING_TORN, -ENOTCONN, "writes what cannot be");
	with_liar(REQUESTS_TORN, -ENOTCONN, "writes what cannot be");
	with_liar(MESSAGE_UNKNOWN, -ENOTCONN, "a message");
	with_liar(ENDS_CLIENT, -ENOTCONN, "the test does not like it");
	with_liar(NO_ANSWERS, -ECANCELED, "freed before");
}

/* ---- clients that write anything anywhere into what they share ---- */

/* Rings, header, buffer; requests that may be good; bells. */
static void write_at_random(struct ina_shm_client *c, struct sr_rng *rng)
{
	struct ina_shm_request q = { .coll = HA_INA_ALL_REDUCE,
				     .type = HA_INA_INT32,
				     .bytes = 256 };
	struct ina_shm_message m = { .type = INA_SHM_BELL };
	uint8_t *map = c->memory.map;

	for (unsigned n = 0; n < 400; n++) {
		uint64_t word = sr_rng_next(rng);

		switch (sr_rng_below(rng, 6)) {
		case 0:
			memcpy(map + INA_SHM_CONTROL +
				       8 * sr_rng_below(rng, sizeof(struct ina_shm_control) / 8),
			       &word, 8);
			break;
		case 1:
			memcpy(map + 8 * sr_rng_below(rng, INA_SHM_BUFFER / 8), &word, 8);
			break;
		case 2:
			q.offset = word >> 40;
			q.group = (uint32_t)sr_rng_below(rng, 4);
			(void)ina_shm_ring_push(&c->memory.requests, &q);
			break;
		case 3:
			m.type = (uint32_t)sr_rng_below(rng, INA_SHM_TYPES + 1);
			m.serial = (uint32_t)word;
			if (ina_shm_message_bytes(m.type) && !sr_rng_below(rng, 20))
				(void)ina_shm_message_send(c->fd, &m,
							   sr_rng_below(rng, 2) ? 0 : -1);
			break;
		default:
			m.type = INA_SHM_BELL;
			(void)ina_shm_message_send(c->fd, &m, -1);
		}
	}
}

static void attack_backend(unsigned seed)
{
	struct sr_rng rng = { seed };
	char why[200];

	for (unsigned n = 0; n < 30; n++) {
		struct ina_shm_client c;

		CHECK_INT(ina_shm_client_open(&c, getenv("NETCCL_BACKEND"), 1, NULL, why,
					      sizeof(why)),
			  0);
		write_at_random(&c, &rng);
		ina_shm_client_close(&c);
	}
	_exit(0);
}

static void sums_beside_vandals(struct rank *r)
{
	static int32_t x[1 << 16];
	struct ha_ina_request q = { .coll = HA_INA_ALL_REDUCE,
				    .type = HA_INA_INT32,
				    .bytes = sizeof(x),
				    .in = x,
				    .out = x };

	for (int32_t n = 0; n < 60; n++) {
		for (size_t i = 0; i < sizeof(x) / 4; i++)
			x[i] = n + (int32_t)i + (int32_t)r->rank;
		CHECK_INT(run_request(r->ina, r->group, &q), 0);
		for (size_t i = 0; i < sizeof(x) / 4; i++)
			CHECK_INT(x[i], 2 * (n + (int32_t)i) + 1);
	}
}

static void random_writers_do_no_harm(void)
{
	pid_t good[2], bad[2];

	backend_start(NULL);
	ranks_start(2, sums_beside_vandals, NULL, good);
	for (unsigned i = 0; i < 2; i++) {
		bad[i] = fork();
		if (!bad[i])
			attack_backend(i + 1);
	}
	ranks_wait(2, bad);
	ranks_wait(2, good);
	backend_stop();
}

static const struct named_test tests[] = {
	{ "canceled", cancellation_is_reported },
	{ "reason_later", reason_later },
	{ "no_reason", no_reason },
	{ "timed_out", timed_out },
	{ "nothing_free", nothing_free },
	{ "backend_dies", backend_dies },
	{ "rank_dies", rank_dies },
	{ "liars", wrong_backends_are_detected },
	{ "vandals", random_writers_do_no_harm },
};

int main(int argc, char **argv)
{
	alarm(850);
	return NAMED_TESTS_RUN(tests, argc, argv);
}
