/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thousand connections of one process, 500 of which it sends on and 500 of which it receives on,
 * each with its standby: they are made, carry messages, and take no more memory than they may. The
 * NICs are software, so what their queues take is in it.
 */
#include "tests/plugin/nccl/rig.h"

#include <string.h>
#include <unistd.h>

#define PAIRS 500 /* a sending and a receiving end each */
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

static void open_pairs(struct rig *rig, struct rig_pair *pair, int n)
{
	struct rig_deadline deadline = rig_deadline("a thousand connections");
	int ready = 0;

	for (int i = 0; i < n; i++)
		OK(rig->plugin.abi->listen(&rig->plugin, 0, pair[i].handle, &pair[i].listen));
	while (ready < n) {
		ready = 0;
		for (int i = 0; i < n; i++) {
			struct rig_pair *p = &pair[i];

			if (!p->send)
				OK(rig->plugin.abi->connect(&rig->plugin, 0, p->handle, &p->send));
			if (!p->recv)
				OK(rig->plugin.abi->accept(&rig->plugin, p->listen, &p->recv));
			ready += p->send && p->recv;
		}
		rig_pause(&deadline);
	}
}

int main(int argc, char **argv)
{
	static struct rig_pair first, pair[PAIRS];
	static uint32_t from[64], to[PAIRS][64];
	double before, each;
	struct rig rig;

	rig_expect_calm();
	rig_open(&rig, argc, argv);
	rig_pair_open(&rig, &first); /* what the process has once */
	before = resident_kib();
	open_pairs(&rig, pair, PAIRS);
	for (int i = 0; i < PAIRS; i++) {
		void *from_mr = rig_reg(&rig, pair[i].send, from, sizeof(from)),
		     *to_mr = rig_reg(&rig, pair[i].recv, to[i], sizeof(to[i]));

		rig_fill(from, sizeof(from), (uint32_t)i);
		for (int k = 0; k < 3; k++) {
			void *recv = rig_irecv(&rig, pair[i].recv, to[i], sizeof(to[i]), i, to_mr);
			void *send = rig_isend(&rig, pair[i].send, from, sizeof(from), i, from_mr);

			rig_wait(&rig, recv, NULL);
			rig_wait(&rig, send, NULL);
			CHECK(rig_differ(to[i], sizeof(to[i]), (uint32_t)i) == sizeof(to[i]),
			      "connection %d", i);
		}
		OK(rig.plugin.dereg(pair[i].send, from_mr));
		OK(rig.plugin.dereg(pair[i].recv, to_mr));
	}
	each = (resident_kib() - before) / (2.0 * PAIRS);
	printf("%d connections: %.0f KiB each\n", 2 * PAIRS, each);
	CHECK(strcmp(rig.plugin.name, "HA") || each <= MOST_KIB,
	      "%.0f KiB for each connection, at most %d are wanted", each, MOST_KIB);
	for (int i = 0; i < PAIRS; i++)
		rig_pair_close(&rig, &pair[i]);
	rig_pair_close(&rig, &first);
	rig_check_calm();
	rig_close(&rig);
	return 0;
}
