/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ina-rank: one rank of a group, on any interface, without DPDK: it does operations whose results
 * it knows and compares every word
 *
 * To see that a switch adds, from a namespace or from another machine. Prints a line for each
 * operation, and its counters at the end.
 */
#include "ina/frame/address.h"
#include "ina/frame/neighbour.h"
#include "ina/frame/option.h"
#include "ina/host/rank/job.h"
#include "ina/host/rank/packet.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ENTRIES 32768u
#define FIND_S 5
#define HOSTILE_MS 300

struct options {
	const char *interface;
	struct ina_worker_config c;
	struct packet_faults faults;
	uint32_t packets, operations, first, hostile;
	uint64_t seed;
	uint8_t coll;
};

struct rank {
	const struct options *o;
	struct packet_socket socket;
	struct ina_worker worker;
	struct ina_entry entry[ENTRIES];
};

#define HA_TARGET struct options

static const struct ha_option rows[] = {
	{ "interface", 'i', "NAME", "to send and receive on", HA_TEXT(interface) },
	{ "switch", 0, "IPV4", "its address", INA_ADDRESS(c.switch_addr) },
	{ "group", 0, "N", "its number", HA_NUMBER(c.group, 1, 255) },
	{ "rank", 0, "N", "ours", HA_NUMBER(c.rank, 0, 31) },
	{ "ranks", 0, "N", "of the group", HA_NUMBER(c.ranks, 1, 32) },
	{ "base", 0, "N", "the group's first aggregator", HA_NUMBER(c.base, 0, 65535) },
	{ "len", 0, "N", "its aggregators", HA_NUMBER(c.len, 1, 65536) },
	{ "epoch", 0, "N", "of the group (0)", HA_NUMBER(c.epoch, 0, UINT32_MAX) },
	{ "old", 0, NULL, "frames without epochs", HA_FLAG_OFF(c.extended) },
	{ "workers", 0, "N", "of each rank, of which this is the first (1)",
	  HA_NUMBER(c.workers, 1, 64) },
	{ "coll", 0, "N",
	  "1 all-reduce, 2 reduce, 3 broadcast, 4 reduce-scatter, 5 all-gather (1); the root is "
	  "rank 0",
	  HA_NUMBER(coll, 1, 5) },
	{ "packets", 0, "N", "of an operation, 256 bytes each (1000)",
	  HA_NUMBER(packets, 1, UINT32_MAX) },
	{ "operations", 0, "N", "so many (1)", HA_NUMBER(operations, 0, UINT32_MAX) },
	{ "first", 0, "N", "the number of the first (0)", HA_NUMBER(first, 0, UINT32_MAX) },
	{ "lose", 0, "P", "a bad network: the fraction that is lost of what is sent (0)",
	  INA_FRACTION(faults.lose) },
	{ "twice", 0, "P", "the fraction that is sent twice (0)", INA_FRACTION(faults.twice) },
	{ "late", 0, "P", "the fraction that is late (0)", INA_FRACTION(faults.late) },
	{ "late-by", 0, "N", "packets that overtake one that is late (40)",
	  HA_NUMBER(faults.late_by, 1, 255) },
	{ "seed", 0, "N", "of the bad network (1)", HA_NUMBER(seed, 0, UINT32_MAX) },
	{ "time-limit", 0, "SECONDS", "for the other ranks (10)", HA_NUMBER(c.peer_ns, 0, 100000),
	  .scale = HA_NS_PER_S },
	{ "hostile", 0, "N", "instead: N frames that no switch may answer or take",
	  HA_NUMBER(hostile, 0, UINT32_MAX) },
	{ 0 },
};

static const struct ha_program program = {
	.name = "ina-rank",
	.synopsis = "--interface=NAME --switch=IPV4 --group=N --rank=N --ranks=N --base=N --len=N "
		    "[OPTIONS]",
	.about = "One rank of a group, on any interface, without DPDK: it does operations whose "
		 "results it knows and compares every word.",
	.options = { rows },
	.notes = "Exit status: 0 every word was right, 1 it could not be done, 2 called wrongly, 3 "
		 "a word was WRONG.",
};

/* ---- the protocol over the socket ---- */

static void send_frame(void *arg, const struct ina_frame *f)
{
	struct rank *r = arg;

	packet_send_frame(&r->socket, f);
}

static void receive_all(struct rank *r)
{
	uint8_t bytes[2048];
	struct ina_frame f;
	size_t len;

	while ((len = packet_receive(&r->socket, bytes, sizeof(bytes))))
		if (ina_frame_decode(bytes, len, &f) == INA_FAULT_NONE)
			ina_worker_receive(&r->worker, &f);
}

static void wait_until(struct rank *r, uint64_t due)
{
	uint64_t now = ha_clock_now(&ha_clock_live);
	struct pollfd p = { .fd = r->socket.fd, .events = POLLIN };
	uint64_t ns = due > now ? due - now : 0;
	struct timespec t = { (time_t)(ns / HA_NS_PER_S), (long)(ns % HA_NS_PER_S) };

	if (due == UINT64_MAX)
		t = (struct timespec) { 1, 0 };
	ppoll(&p, 1, &t, NULL);
}

static volatile sig_atomic_t stop; /* SIGTERM: what was done so far counts */

static void on_signal(int sig)
{
	stop = 1;
}

/* 0, or the exit status. */
static int run_operation(struct rank *r, uint32_t number)
{
	static struct job j;
	uint64_t began = ha_clock_now(&ha_clock_live);
	int err;

	job_begin(&j, number, r->o->coll, 0, r->o->packets, r->o->c.rank, r->o->c.ranks);
	err = ina_worker_post(&r->worker, &j.op);
	while (!err && !j.done && !stop) {
		receive_all(r);
		if (!ina_worker_poll(&r->worker) && !j.done)
			wait_until(r, ina_worker_due(&r->worker));
	}
	if (stop)
		return 0;
	if (err || j.err) {
		if (!err)
			err = j.err;
		printf("operation %u: %s\n", number,
		       *r->worker.why ? r->worker.why : strerror(-err));
		return 1;
	}
	printf("operation %u: %u packets, %.3f ms, %" PRIu64 " wrong, at %.3f s\n", number,
	       r->o->packets, (double)(ha_clock_now(&ha_clock_live) - began) / 1e6, j.wrong,
	       (double)ha_clock_now(&ha_clock_live) / 1e9);
	return j.wrong ? 3 : 0;
}

/* A rank that has given up is not gone before the switch knows. */
static void finish_abort(struct rank *r)
{
	while (ina_worker_is_aborting(&r->worker) && !stop) {
		receive_all(r);
		if (!ina_worker_poll(&r->worker) && ina_worker_is_aborting(&r->worker))
			wait_until(r, ina_worker_due(&r->worker));
	}
}

/*
 * Those who miss an answer of the last operation need the switch only, but the frames that are late
 * must go.
 */
static void print_counters(const struct rank *r)
{
	const struct ina_counters *c = &r->worker.count;

#define X(name, help) printf("%s %" PRIu64 "\n", #name, c->name);
	INA_COUNTER_LIST(X)
#undef X
	printf("frames %" PRIu64 " lost %" PRIu64 " twice %" PRIu64 " late %" PRIu64 "\n",
	       r->socket.sent, r->socket.lost, r->socket.doubled, r->socket.delayed);
}

/* ---- hostile ---- */

static struct ina_frame make_bad_frame(const struct options *o, uint32_t n)
{
	struct ina_frame f = { .src = o->c.addr,
			       .dst = o->c.switch_addr,
			       .ecn = INA_ECT1,
			       .extended = o->c.extended,
			       .coll = o->coll,
			       .group = o->c.group,
			       .rank = o->c.rank,
			       .agg_addr = (uint16_t)(o->c.base + n % o->c.len),
			       .psn = n % o->c.len,
			       .epoch = o->c.extended ? o->c.epoch : 0 };

	memcpy(f.dst_mac, o->c.switch_mac, 6);
	memcpy(f.src_mac, o->c.mac, 6);
	switch (n % 6) {
	case 0:
		break; /* another's rank, from our address */
	case 1:
		f.rank = 31;
		break; /* that the group has not */
	case 2:
		f.group = (uint8_t)(200 + n % 50);
		break; /* that the switch has not */
	case 3:
		f.worker = 33;
		break;
	case 4:
		f.extended = !f.extended;
		f.epoch = 0;
		break;
	case 5:
		f.agg_addr ^= 0x8000;
		break;
	}
	return f;
}

/* One frame in four is not even one: a byte of its headers is wrong. 1: something answered. */
static int send_bad_frames(struct rank *r)
{
	uint8_t bytes[INA_FRAME_MAX] = { 0 }, words[INA_PAYLOAD_BYTES] = { 1 }, in[2048];
	struct timespec t = { 0, HOSTILE_MS * 1000000L };
	struct ina_frame f;
	size_t len;

	for (uint32_t n = 0; n < r->o->hostile; n++) {
		f = make_bad_frame(r->o, n);
		f.words = n % 3 ? words : NULL;
		len = ina_frame_encode(&f, bytes);
		if (n % 4 == 0)
			bytes[14 + n / 4 % (len - 14)] ^= (uint8_t)(1u << n % 8);
		packet_send(&r->socket, bytes, n % 5 ? len : len - 1 - n % 9);
	}
	nanosleep(&t, NULL);
	while ((len = packet_receive(&r->socket, in, sizeof(in))))
		if (ina_frame_decode(in, len, &f) == INA_FAULT_NONE) {
			printf("an answer came\n");
			return 1;
		}
	printf("%u frames, no answer\n", r->o->hostile);
	return 0;
}

/* ---- the program ---- */

static int find_switch(struct options *o)
{
	struct timespec t = { 0, 10000000 };
	struct ina_neighbour n;
	int err = -EAGAIN;

	for (int i = 0; err == -EAGAIN && i < FIND_S * 100; i++) {
		err = ina_neighbour_find(o->c.switch_addr, &n);
		if (err == -EAGAIN)
			nanosleep(&t, NULL);
	}
	if (err)
		fprintf(stderr,
			"ina-rank: the switch cannot be found (%s): has it the address of "
			"--switch, and does its machine answer ARP?\n",
			strerror(-err));
	else
		memcpy(o->c.switch_mac, n.mac, 6);
	return err;
}

static int run_rank(struct options *o)
{
	static struct rank r;
	struct ina_worker_ops ops = { .send = send_frame, .arg = &r };
	const char *wrong;
	char why[128];
	int rc = 0;

	r.o = o;
	if (packet_open(&r.socket, o->interface, why, sizeof(why))) {
		fprintf(stderr, "ina-rank: %s\n", why);
		return 1;
	}
	r.socket.faults = o->faults;
	r.socket.dice = o->seed * 0x9e3779b97f4a7c15u + o->c.rank;
	o->c.addr = r.socket.addr;
	memcpy(o->c.mac, r.socket.mac, 6);
	if (find_switch(o))
		return 1;
	if (o->hostile)
		return send_bad_frames(&r);
	if (ina_worker_init(&r.worker, &o->c, &ha_clock_live, &ops, r.entry, ENTRIES, &wrong)) {
		fprintf(stderr, "ina-rank: %s\n", wrong);
		return 2;
	}
	signal(SIGTERM, on_signal);
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (uint32_t n = 0; n < o->operations && !rc && !stop; n++)
		rc = run_operation(&r, o->first + n);
	finish_abort(&r);
	print_counters(&r);
	packet_close(&r.socket);
	return rc;
}

int main(int argc, char **argv)
{
	static struct options o = { .packets = 1000,
				    .operations = 1,
				    .coll = INA_ALL_REDUCE,
				    .seed = 1,
				    .faults.late_by = 40 };
	int result;

	ina_worker_defaults(&o.c);
	o.c.extended = true;
	o.c.workers = 1;
	result = ha_options_parse(&program, argc, argv, &o);
	if (result)
		return result - 1;
	if (!o.interface || !o.c.switch_addr || !o.c.group || !o.c.ranks || !o.c.len)
		return ha_program_refuse(
			       &program,
			       "--interface, --switch, --group, --ranks and --len are needed") -
		       1;
	o.c.switch_ns = o.c.peer_ns;
	return run_rank(&o);
}
