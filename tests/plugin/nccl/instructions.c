/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * instructions.c - the program that tests/plugin/nccl/instructions-per-message runs under callgrind
 *
 * Both ends of a connection in one process; a message is one irecv, one isend and one test of each
 * of the two requests. The software NIC is given time between the calls by sleeping, so that no
 * call is made in vain; one that is made in vain all the same (isend before the receive was
 * announced, test before the completion) is counted as such and reported. Callgrind collects inside
 * the calls only, in this thread only, and writes a file for each size.
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
#define CALLGRIND_DUMP_STATS
#endif

#define WARM_UP 600 /* more than any ring has slots */
#define NAP_US 100
#define NAP_MAX_US                                                                         \
	20000 /* on a machine that is so busy that the software NIC, a thread, waits for a \
		 processor */

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
		OK(p->abi->irecv((struct ha_plugin *)p, r->pair.recv, 1, &data, &size, &tag,
				 &r->to_mr, &request));
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

/* How often the plugin has reported this in the file that hawser's plugin appends events to. */
static int reported(const char *what)
{
	static char text[1 << 16];
	FILE *f = fopen(events, "r");
	size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;
	int found = 0;

	text[n] = 0;
	for (const char *at = text; (at = strstr(at, what)) != NULL; at++)
		found++;
	if (f)
		fclose(f);
	return found;
}

/* Normal operation: both ends have reported that they are protected (slowly, under callgrind), or
 * that they never will be. A plugin that reports nothing is not hawser's, and is ready when it says
 * so. */
static void await_protection(void)
{
	for (int i = 0; i < 600 && reported("\"event\"") && reported("protected\",") < 2; i++)
		usleep(100000);
	CHECK(!reported("\"event\"") || reported("protected\",") >= 2,
	      "the connection is not protected after a minute");
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

static void messages(struct run *r, unsigned long n)
{
	for (unsigned long i = 0; i < n; i++)
		message(r, (uint8_t)(i % 2 + 1));
}

static void measure(struct run *r, size_t size, unsigned long n)
{
	r->size = size;
	memset(r->to, 0, size);
	messages(r, 20); /* the first of a size may find out what the next ones know */
	r->nap = NAP_US;
	r->in_vain = 0;
	r->collect = true;
	messages(r, n);
	r->collect = false;
	CALLGRIND_DUMP_STATS;
	printf("plugin=%s messages=%lu size=%zu in_vain=%lu\n", r->rig.plugin.name, n, size,
	       r->in_vain);
}

/* VERSION MESSAGES NICS SIZE... */
int main(int argc, char **argv)
{
	struct run r = { .nap = NAP_US, .size = 8 };
	unsigned long n = argc > 2 ? strtoul(argv[2], NULL, 0) : 0;
	int nics = argc > 3 ? atoi(argv[3]) : 0;
	size_t most = 0;

	close(mkstemp(events));
	setenv("HA_NCCL_EVENTS", events, 1);
	setenv("HA_NCCL_IDLE_SPIN_THRESHOLD", "0", 0);
	setenv("HA_NCCL_HEARTBEAT_MS", "60000", 0);
	setenv("HA_NCCL_RTO_MS", "60000", 0);
	CHECK(n && argc > 4 && nics >= 1 && nics <= 4,
	      "usage: %s VERSION MESSAGES NICS SIZE..., 1 to 4 NICs", argv[0]);
	for (int i = 4; i < argc; i++) {
		size_t size = strtoull(argv[i], NULL, 0);

		CHECK(size > 0, "a size of 0 cannot be seen to arrive");
		most = size > most ? size : most;
	}
	rig_open(&r.rig, argc, argv);
	alarm(0); /* a tool that runs fifty times slower is no hang */
	rig_pair_open_on(&r.rig, &r.pair, fused_device(&r.rig, nics));
	r.from = calloc(1, most);
	r.to = calloc(1, most);
	r.from_mr = rig_reg(&r.rig, r.pair.send, r.from, most);
	r.to_mr = rig_reg(&r.rig, r.pair.recv, r.to, most);
	messages(&r, WARM_UP);
	await_protection();
	for (int i = 4; i < argc; i++)
		measure(&r, strtoull(argv[i], NULL, 0), n);
	OK(r.rig.plugin.dereg(r.pair.send, r.from_mr));
	OK(r.rig.plugin.dereg(r.pair.recv, r.to_mr));
	rig_pair_close(&r.rig, &r.pair);
	rig_close(&r.rig);
	free(r.from);
	free(r.to);
	return 0;
}
