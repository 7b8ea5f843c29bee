/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * instructions.c - the program that tests/plugin/nccl/instructions-per-message runs under
 * callgrind, or under bench-step (step.c)
 *
 * Both ends of a connection in one process; a message is one irecv, one isend and one test of each
 * of the two requests. The software NIC is given time between the calls by sleeping, so that no
 * call is made in vain; one that is made in vain all the same (isend before the receive was
 * announced, test before the completion) is counted as such and reported. Either tool collects
 * inside the calls only, in this thread only, and writes down the count of each size.
 */
#include "tests/plugin/nccl/rig.h"
#include "tests/plugin/nccl/step.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef HAVE_CALLGRIND
#include <valgrind/callgrind.h>
#else
#define CALLGRIND_TOGGLE_COLLECT
#define CALLGRIND_DUMP_STATS
#endif

#define CONNECTIONS_MAX 4000 /* four queue pairs each, of the 16,384 of a software NIC */
#define OPENED_AT_ONCE 64    /* more would not be through in time under callgrind */
#define PHASES 32
#define WARM_UP 600 /* more than any ring has slots */
#define NAP_US 100
/* on a machine that is so busy that the software NIC, a thread, waits for a processor */
#define NAP_MAX_US 20000

struct connection {
	struct rig_pair pair;
	unsigned buffers; /* its own, each registered at either end */
	uint8_t **from, **to;
	void **from_mr, **to_mr;
};

/* What the next message uses: connections and their buffers take turns. */
struct place {
	struct rig_pair *pair;
	uint8_t *from, *to;
	void *from_mr, *to_mr;
};

struct run {
	struct rig rig;
	struct connection *connection;
	unsigned connections;
	unsigned long turn;
	struct place at;
	size_t size;
	bool collect;
	bool stepped; /* by bench-step */
	unsigned long in_vain;
	useconds_t nap; /* so long that few calls that count find nothing */
};

static void toggle_collection(const struct run *r)
{
	if (!r->collect)
		return;
	if (r->stepped)
		step_mark(STEP_TOGGLE);
	else
		CALLGRIND_TOGGLE_COLLECT;
}

static void dump_count(const struct run *r)
{
	if (r->stepped)
		step_mark(STEP_DUMP);
	else
		CALLGRIND_DUMP_STATS;
}

static void in_vain(struct run *r)
{
	if (r->collect) {
		r->in_vain++;
		r->nap = r->nap * 2 < NAP_MAX_US ? r->nap * 2 : NAP_MAX_US;
	}
	usleep(r->nap);
}

static void *post_recv(struct run *r)
{
	const struct ha_plugin *p = &r->rig.plugin;
	void *request = NULL, *data = r->at.to;
	size_t size = r->size;
	int tag = 0;

	for (;;) {
		toggle_collection(r);
		OK(p->abi->irecv((struct ha_plugin *)p, r->at.pair->recv, 1, &data, &size, &tag,
				 &r->at.to_mr, &request));
		toggle_collection(r);
		if (request)
			return request;
		in_vain(r);
	}
}

static void *post_send(struct run *r)
{
	struct ha_plugin *p = &r->rig.plugin;
	void *request = NULL;

	for (;;) {
		toggle_collection(r);
		OK(p->abi->isend(p, r->at.pair->send, r->at.from, r->size, 0, r->at.from_mr,
				 &request));
		toggle_collection(r);
		if (request)
			return request;
		in_vain(r);
	}
}

static void finish_request(struct run *r, void *request)
{
	int done = 0, size;

	for (;;) {
		toggle_collection(r);
		OK(r->rig.plugin.test(request, &done, &size));
		toggle_collection(r);
		if (done)
			return;
		in_vain(r);
	}
}

static void take_turn(struct run *r)
{
	struct connection *c = &r->connection[r->turn % r->connections];
	unsigned b = (unsigned)(r->turn / r->connections % c->buffers);

	r->turn++;
	r->at = (struct place) { .pair = &c->pair,
				 .from = c->from[b],
				 .to = c->to[b],
				 .from_mr = c->from_mr[b],
				 .to_mr = c->to_mr[b] };
}

static void transfer_message(struct run *r)
{
	struct rig_deadline deadline = rig_deadline("a message");
	volatile uint8_t *last;
	void *send, *recv;
	uint8_t mark;

	take_turn(r);
	last = &r->at.to[r->size - 1];
	mark = (uint8_t)(*last + 1);
	r->at.from[r->size - 1] = mark;
	recv = post_recv(r);
	usleep(r->nap);
	send = post_send(r);
	while (*last != mark) {
		usleep(NAP_US);
		rig_pause(&deadline);
	}
	usleep(2 * r->nap); /* the completions behind the data, and the acknowledgement */
	finish_request(r, recv);
	finish_request(r, send);
}

static char events[] = "/tmp/instructions.XXXXXX";

#define PROTECTED_WAIT_S 1800 /* as slow as callgrind makes thousands of them */

/* Normal operation: both ends have reported that they are protected (slowly, under callgrind), or
 * that they never will be. A plugin that reports nothing is not hawser's, and is ready when it says
 * so. */
static void await_protection(unsigned connections)
{
	unsigned ends = 2 * connections, ready = 0;
	double end = rig_now() + PROTECTED_WAIT_S;

	if (rig_count_events(events, "\"event\"")) {
		while ((ready = rig_count_events(events, "protected\",")) < ends) {
			CHECK(rig_now() < end, "%u of %u ends are protected after %d s", ready,
			      ends, PROTECTED_WAIT_S);
			usleep(100000);
		}
	}
	unlink(events);
}

/* The first NICs as one device, where the interface knows that. */
static int fused_device(struct rig *rig, int nics)
{
	int dev = -1;

	if (nics == 1)
		return 0;

	if (!rig->plugin.abi->fuse) {
		printf("version %d of the interface has no makeVDevice\n", rig->version);
		exit(RIG_SKIP);
	}
	CHECK(rig->plugin.devices >= nics, "%d devices, %d are to be fused", rig->plugin.devices,
	      nics);
	OK(rig->plugin.abi->fuse(&rig->plugin, &dev, nics, (int[]) { 0, 1, 2, 3 }));
	return dev;
}

/* What is over when `buffers` are dealt out goes to the first connections, one each. */
static unsigned share_of_buffers(unsigned buffers, unsigned connections, unsigned i)
{
	return buffers / connections + (i < buffers % connections);
}

/* The pair is there. */
static void register_buffers(struct run *r, struct connection *c, unsigned buffers, size_t size)
{
	c->buffers = buffers;
	c->from = calloc(buffers, sizeof(*c->from));
	c->to = calloc(buffers, sizeof(*c->to));
	c->from_mr = calloc(buffers, sizeof(*c->from_mr));
	c->to_mr = calloc(buffers, sizeof(*c->to_mr));
	CHECK(c->from && c->to && c->from_mr && c->to_mr, "no memory");
	for (unsigned b = 0; b < buffers; b++) {
		c->from[b] = calloc(1, size);
		c->to[b] = calloc(1, size);
		CHECK(c->from[b] && c->to[b], "no memory");
		c->from_mr[b] = rig_reg(&r->rig, c->pair.send, c->from[b], size);
		c->to_mr[b] = rig_reg(&r->rig, c->pair.recv, c->to[b], size);
	}
}

/* All of them, which share the buffers out. */
static void connections_open(struct run *r, int dev, unsigned buffers, size_t size)
{
	struct rig_pair *pair = calloc(r->connections, sizeof(*pair));
	unsigned registered = 0;

	CHECK(pair, "no memory");
	for (unsigned i = 0; i < r->connections; i += OPENED_AT_ONCE) {
		unsigned left = r->connections - i;

		rig_pairs_open(&r->rig, &pair[i],
			       (int)(left < OPENED_AT_ONCE ? left : OPENED_AT_ONCE), dev, 1);
	}
	for (unsigned i = 0; i < r->connections; i++) {
		struct connection *c = &r->connection[i];

		c->pair = pair[i];
		register_buffers(r, c, share_of_buffers(buffers, r->connections, i), size);
		registered += c->buffers;
	}
	free(pair);
	CHECK(registered == buffers, "%u buffers are registered, %u are asked for", registered,
	      buffers);
}

static void connection_close(struct run *r, struct connection *c)
{
	for (unsigned b = 0; b < c->buffers; b++) {
		OK(r->rig.plugin.dereg(c->pair.send, c->from_mr[b]));
		OK(r->rig.plugin.dereg(c->pair.recv, c->to_mr[b]));
		free(c->from[b]);
		free(c->to[b]);
	}
	free(c->from);
	free(c->to);
	free(c->from_mr);
	free(c->to_mr);
	rig_pair_close(&r->rig, &c->pair);
}

static void transfer_messages(struct run *r, unsigned long n)
{
	for (unsigned long i = 0; i < n; i++)
		transfer_message(r);
}

/* Some of what a message costs comes with each so many of a connection. Few messages of each of
 * many are counted step by step, so the connections are at different ones of them. */
static void spread_phases(struct run *r)
{
	unsigned long turn = r->turn;

	for (unsigned i = 0; i < r->connections; i++)
		for (unsigned k = 0; k < i % PHASES; k++) {
			r->turn = i;
			transfer_message(r);
		}
	r->turn = turn;
}

static void measure_size(struct run *r, size_t size, unsigned long first, unsigned long n)
{
	r->size = size;
	transfer_messages(r, first);
	r->nap = NAP_US;
	r->in_vain = 0;
	r->collect = true;
	transfer_messages(r, n);
	r->collect = false;
	dump_count(r);
	printf("plugin=%s messages=%lu size=%zu in_vain=%lu\n", r->rig.plugin.name, n, size,
	       r->in_vain);
}

/* FIRST: messages of a size that are not counted: they may find out what the next ones know. */
enum { VERSION = 1, MESSAGES, NICS, CONNECTIONS, BUFFERS, FIRST, SIZES };

static unsigned parse_number(const char *text, unsigned least, unsigned most)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	CHECK(!*end && n >= least && n <= most, "'%s' is not a number from %u to %u", text, least,
	      most);
	return (unsigned)n;
}

static size_t find_largest(char **sizes, int n)
{
	size_t most = 0, size;

	for (int i = 0; i < n; i++) {
		size = parse_number(sizes[i], 1, 1U << 30); /* of a size of 0 nothing arrives */
		most = size > most ? size : most;
	}
	return most;
}

int main(int argc, char **argv)
{
	struct run r = { .nap = NAP_US, .size = 1 };
	unsigned n, buffers, first;
	size_t most;
	int dev;

	CHECK(argc > SIZES, "usage: %s VERSION MESSAGES NICS CONNECTIONS BUFFERS FIRST SIZE...",
	      argv[0]);
	n = parse_number(argv[MESSAGES], 1, 1000000);
	r.connections = parse_number(argv[CONNECTIONS], 1, CONNECTIONS_MAX);
	buffers = parse_number(argv[BUFFERS], r.connections, 100000);
	first = parse_number(argv[FIRST], 0, 1000000);
	most = find_largest(argv + SIZES, argc - SIZES);
	r.stepped = getenv(STEP_VARIABLE) != NULL;
	r.connection = calloc(r.connections, sizeof(*r.connection));
	CHECK(r.connection, "no memory");
	close(mkstemp(events));
	setenv("HA_NCCL_EVENTS", events, 1);
	setenv("HA_NCCL_IDLE_SPIN_THRESHOLD", "0", 0);
	setenv("HA_NCCL_HEARTBEAT_MS", "60000", 0);
	setenv("HA_NCCL_RTO_MS", "60000", 0);
	rig_open(&r.rig, argc, argv);
	alarm(0); /* a tool that runs fifty times slower is no hang */
	dev = fused_device(&r.rig, (int)parse_number(argv[NICS], 1, 4));
	connections_open(&r, dev, buffers, most);
	transfer_messages(&r, WARM_UP + 2 * r.connections);
	await_protection(r.connections);
	if (r.stepped)
		spread_phases(&r);
	for (int i = SIZES; i < argc; i++)
		measure_size(&r, parse_number(argv[i], 1, 1U << 30), first, n);
	for (unsigned i = 0; i < r.connections; i++)
		connection_close(&r, &r.connection[i]);
	free(r.connection);
	rig_close(&r.rig);
	return 0;
}
