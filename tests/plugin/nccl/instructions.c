/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * instructions.c - the program that tests/plugin/nccl/instructions-per-message runs under callgrind
 *
 * Both ends of a connection in one process; a message is one irecv, one isend and one test of each of the two requests.
 * The software NIC is given time between the calls by sleeping, so that no call is made in vain; one that is made in
 * vain all the same (isend before the receive was announced, test before the completion) is counted as such and
 * reported. Callgrind collects inside the calls only, in this thread only.
 */
#include "tests/plugin/nccl/rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef HAVE_CALLGRIND
#include <valgrind/callgrind.h>
#else
#define CALLGRIND_TOGGLE_COLLECT
#endif

#define WARM_UP 600 /* more than any ring has slots */
#define NAP_US 100
#define NAP_MAX_US 20000 /* on a machine that is so busy that the software NIC, a thread, waits for a processor */

struct run {
	struct rig rig;
	struct rig_pair pair;
	uint8_t *from, *to;
	void *from_mr, *to_mr;
	size_t size;
	bool collect;
	unsigned long in_vain;
	useconds_t nap; /* as long as it takes to make few calls in vain */
};

static void toggle(const struct run *r)
{
	if (r->collect)
		CALLGRIND_TOGGLE_COLLECT;
}

static void in_vain(struct run *r)
{
	r->in_vain += r->collect;
	r->nap = r->nap * 2 < NAP_MAX_US ? r->nap * 2 : NAP_MAX_US;
	usleep(r->nap);
}

static void *post_recv(struct run *r)
{
	const struct ha_plugin *p = &r->rig.plugin;
	void *request = NULL, *data = r->to;
	size_t size = r->size;
	int tag = 0;

	for (;;) {
		toggle(r);
		OK(p->abi->irecv((struct ha_plugin *)p, r->pair.recv, 1, &data, &size, &tag, &r->to_mr, &request));
		toggle(r);
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
		toggle(r);
		OK(p->abi->isend(p, r->pair.send, r->from, r->size, 0, r->from_mr, &request));
		toggle(r);
		if (request)
			return request;
		in_vain(r);
	}
}

static void finish(struct run *r, void *request)
{
	int done = 0, size;

	for (;;) {
		toggle(r);
		OK(r->rig.plugin.test(request, &done, &size));
		toggle(r);
		if (done)
			return;
		in_vain(r);
	}
}

static void message(struct run *r, uint8_t mark)
{
	struct rig_deadline deadline = rig_deadline("a message");
	volatile uint8_t *last = &r->to[r->size - 1];
	void *send, *recv;

	r->from[r->size - 1] = mark;
	recv = post_recv(r);
	usleep(r->nap);
	send = post_send(r);
	while (*last != mark) {
		usleep(NAP_US);
		rig_pause(&deadline);
	}
	usleep(2 * r->nap); /* the completions behind the data, and the acknowledgement */
	finish(r, recv);
	finish(r, send);
}

static char events[] = "/tmp/instructions.XXXXXX";

/* Calm: both ends have said that they are protected (slowly, under callgrind), or that they never will be. */
static void await_protection(void)
{
	static char text[65536];
	int said = 0;

	for (int i = 0; i < 600 && said < 2; i++) {
		FILE *f = fopen(events, "r");
		size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;

		text[n] = 0;
		said = 0;
		for (const char *at = text; (at = strstr(at, "protected\",")) != NULL; at++)
			said++;
		if (f)
			fclose(f);
		usleep(100000);
	}
	unlink(events);
	CHECK(said >= 2, "the connection is not protected after a minute");
}

int main(int argc, char **argv)
{
	struct run r = { .size = argc > 2 ? strtoull(argv[2], NULL, 0) : 8, .nap = NAP_US };
	unsigned long messages = argc > 3 ? strtoul(argv[3], NULL, 0) : 1000;

	close(mkstemp(events));
	setenv("HA_NCCL_EVENTS", events, 1);
	setenv("HA_NCCL_IDLE_SPIN_THRESHOLD", "0", 0);
	setenv("HA_NCCL_HEARTBEAT_MS", "60000", 0);
	setenv("HA_NCCL_RTO_MS", "60000", 0);
	rig_open(&r.rig, argc, argv);
	alarm(0); /* a tool that runs fifty times slower is no hang */
	CHECK(r.size > 0, "a size of 0 cannot be seen to arrive");
	rig_pair_open(&r.rig, &r.pair);
	r.from = calloc(1, r.size);
	r.to = calloc(1, r.size);
	r.from_mr = rig_reg(&r.rig, r.pair.send, r.from, r.size);
	r.to_mr = rig_reg(&r.rig, r.pair.recv, r.to, r.size);
	for (unsigned i = 0; i < WARM_UP; i++)
		message(&r, (uint8_t)(i % 2 + 1));
	await_protection();
	r.nap = NAP_US;
	r.collect = true;
	for (unsigned long i = 0; i < messages; i++)
		message(&r, (uint8_t)(i % 2 + 1));
	r.collect = false;
	printf("plugin=%s messages=%lu size=%zu in_vain=%lu\n", r.rig.plugin.name, messages, r.size, r.in_vain);
	OK(r.rig.plugin.dereg(r.pair.send, r.from_mr));
	OK(r.rig.plugin.dereg(r.pair.recv, r.to_mr));
	rig_pair_close(&r.rig, &r.pair);
	rig_close(&r.rig);
	free(r.from);
	free(r.to);
	return 0;
}
