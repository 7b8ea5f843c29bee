/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One NIC is lost that carries all connections of a process (128, or as many as the argument behind
 * the version says; half of them send, half receive), each with a receive posted: all ends move to
 * the other NIC, and every message arrives. Prints how long it took; no time is a failure.
 */
#include "tests/plugin/nccl/rig.h"

#include "softroce/control.h"

#include <inttypes.h>
#include <unistd.h>

#define CONNECTIONS 128
#define CONNECTIONS_MAX 8000 /* two queue pairs each, of the 16,384 of a software NIC */
#define WORDS 64

/* A connection of the process to itself: two ends, each of which NCCL calls a connection. */
struct lane {
	uint32_t from[WORDS], to[WORDS];
	void *from_mr, *to_mr, *recv;
};

static struct rig rig;
static struct rig_pair pair[CONNECTIONS_MAX / 2];
static struct lane lane[CONNECTIONS_MAX / 2];
static char events[] = "/tmp/fanout.XXXXXX";

static void post_receives(int pairs)
{
	for (int i = 0; i < pairs; i++) {
		struct lane *l = &lane[i];

		l->from_mr = rig_reg(&rig, pair[i].send, l->from, sizeof(l->from));
		l->to_mr = rig_reg(&rig, pair[i].recv, l->to, sizeof(l->to));
		l->recv = rig_irecv(&rig, pair[i].recv, l->to, sizeof(l->to), i, l->to_mr);
	}
}

static void send_all(int pairs)
{
	for (int i = 0; i < pairs; i++) {
		struct lane *l = &lane[i];
		void *send;

		rig_fill(l->from, sizeof(l->from), (uint32_t)i);
		send = rig_isend(&rig, pair[i].send, l->from, sizeof(l->from), i, l->from_mr);
		rig_wait(&rig, send, NULL);
		rig_wait(&rig, l->recv, NULL);
		CHECK(rig_differ(l->to, sizeof(l->to), (uint32_t)i) == sizeof(l->to),
		      "connection %d", i);
		OK(rig.plugin.dereg(pair[i].send, l->from_mr));
		OK(rig.plugin.dereg(pair[i].recv, l->to_mr));
	}
}

static void await_events(const char *text, unsigned n)
{
	struct rig_deadline deadline = rig_deadline(text);

	while (rig_count_events(events, text) < n) {
		usleep(50000); /* the file is long: who reads it all the time takes a processor */
		rig_pause(&deadline);
	}
}

static void set_cut(struct sr_faults *faults, void *arg)
{
	faults->cut = *(const bool *)arg;
}

static void cut_nic(void)
{
	struct sr_control_entry *entry;
	bool cut = true;
	char selector[64];
	int n;

	snprintf(selector, sizeof(selector), "%s:%d", rig_device(0), (int)getpid());
	entry = sr_control_list(selector, &n);
	CHECK(entry && n == 1, "%d devices are called %s", n, selector);
	CHECK(!sr_control_change(entry, set_cut, &cut), "%s does not take its fault", selector);
	free(entry);
}

/* The time of the first or the last event with the text, ns; 0 where there is none. */
static uint64_t find_time(const char *text, bool last)
{
	static const char field[] = "\"monotonic_ns\":";
	FILE *f = fopen(events, "r");
	uint64_t found = 0;
	char *line = NULL;
	size_t size = 0;

	while (f && getline(&line, &size, f) > 0) {
		const char *at = strstr(line, text) ? strstr(line, field) : NULL;
		uint64_t ns = at ? strtoull(at + sizeof(field) - 1, NULL, 10) : 0;

		if (ns && (!found || (last ? ns > found : ns < found)))
			found = ns;
	}
	free(line);
	if (f)
		fclose(f);
	return found;
}

int main(int argc, char **argv)
{
	int pairs = (argc > 2 ? atoi(argv[2]) : CONNECTIONS) / 2;
	uint64_t sign, moved;

	CHECK(pairs >= 1 && pairs <= CONNECTIONS_MAX / 2, "%s is not a number from 2 to %d",
	      argv[2], CONNECTIONS_MAX);
	close(mkstemp(events));
	setenv("HA_NCCL_EVENTS", events, 1);
	rig_expect_calm();
	rig_open(&rig, argc, argv);
	rig_pairs_open(&rig, pair, pairs, 0, 1);
	await_events("\"protected\",", 2 * (unsigned)pairs);
	post_receives(pairs);
	cut_nic();
	await_events("\"failed_over\",", 2 * (unsigned)pairs);
	sign = find_time("\"device\",", false);
	moved = find_time("\"failed_over\",", true);
	CHECK(sign && moved > sign, "sign at %" PRIu64 ", moved at %" PRIu64, sign, moved);
	printf("%d connections: the last has moved %.2f ms after the first sign\n", 2 * pairs,
	       (double)(moved - sign) / 1e6);
	send_all(pairs);
	for (int i = 0; i < pairs; i++)
		rig_pair_close(&rig, &pair[i]);
	rig_close(&rig);
	unlink(events);
	return 0;
}
