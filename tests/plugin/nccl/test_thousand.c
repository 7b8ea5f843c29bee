/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thousand connections of one process (or as many as the argument behind the version says), half
 * of which it sends on and half of which it receives on, each with its standby: they are made,
 * carry messages, and take no more memory than they may. The NICs are software, so what their
 * queues take is in it.
 */
#include "tests/plugin/nccl/rig.h"

#include <string.h>
#include <unistd.h>

#define CONNECTIONS 1000
#define CONNECTIONS_MAX 8000 /* two queue pairs each, of the 16,384 of a software NIC */
/* Of an end, of hawser's; another plugin's (RIG_PLUGIN) is printed only. Half of the 360 that it
 * took once, and a page of what the C library adds; 175 to 179 are measured. */
#define MOST_KIB 184

static double resident_kib(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	long all, resident;

	CHECK(f && fscanf(f, "%ld %ld", &all, &resident) == 2, "statm");
	fclose(f);
	return (double)resident * (double)sysconf(_SC_PAGESIZE) / 1024;
}

static void carry_messages(struct rig *rig, struct rig_pair *pair, uint32_t seed)
{
	static uint32_t from[64], to[64];
	void *from_mr = rig_reg(rig, pair->send, from, sizeof(from)),
	     *to_mr = rig_reg(rig, pair->recv, to, sizeof(to));

	rig_fill(from, sizeof(from), seed);
	for (int k = 0; k < 3; k++) {
		void *recv = rig_irecv(rig, pair->recv, to, sizeof(to), (int)seed, to_mr);
		void *send = rig_isend(rig, pair->send, from, sizeof(from), (int)seed, from_mr);

		rig_wait(rig, recv, NULL);
		rig_wait(rig, send, NULL);
		CHECK(rig_differ(to, sizeof(to), seed) == sizeof(to), "connection %u", seed);
	}
	OK(rig->plugin.dereg(pair->send, from_mr));
	OK(rig->plugin.dereg(pair->recv, to_mr));
}

int main(int argc, char **argv)
{
	int pairs = (argc > 2 ? atoi(argv[2]) : CONNECTIONS) / 2;
	static struct rig_pair first, pair[CONNECTIONS_MAX / 2];
	double before, each;
	struct rig rig;

	CHECK(pairs >= 1 && pairs <= CONNECTIONS_MAX / 2, "%s is not a number from 2 to %d",
	      argv[2], CONNECTIONS_MAX);
	rig_expect_calm();
	rig_open(&rig, argc, argv);
	rig_pair_open(&rig, &first); /* what the process has once */
	before = resident_kib();
	rig_pairs_open(&rig, pair, pairs, 0, 1);
	for (int i = 0; i < pairs; i++)
		carry_messages(&rig, &pair[i], (uint32_t)i);
	each = (resident_kib() - before) / (2.0 * pairs);
	printf("%d connections: %.0f KiB each\n", 2 * pairs, each);
	CHECK(strcmp(rig.plugin.name, "HA") || each <= MOST_KIB,
	      "%.0f KiB for each connection, at most %d are wanted", each, MOST_KIB);
	for (int i = 0; i < pairs; i++)
		rig_pair_close(&rig, &pair[i]);
	rig_pair_close(&rig, &first);
	rig_check_calm();
	rig_close(&rig);
	return 0;
}
