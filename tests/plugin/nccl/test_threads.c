/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections driven by different threads at once: each connection by one, all through one
 * plugin. */
#include "tests/plugin/nccl/rig.h"

#include <pthread.h>

#define THREADS 6
#define MESSAGES 300

static struct rig rig;

static void *run_worker(void *arg)
{
	unsigned self = (unsigned)(uintptr_t)arg;
	uint8_t from[2000], to[2000];

	for (int again = 0; again < 2; again++) {
		struct rig_pair pair;
		void *from_mr, *to_mr;

		rig_pair_open(&rig, &pair);
		from_mr = rig_reg(&rig, pair.send, from, sizeof(from));
		to_mr = rig_reg(&rig, pair.recv, to, sizeof(to));
		for (unsigned m = 0; m < MESSAGES; m++) {
			size_t size = (self * 331 + m * 17) % sizeof(from);
			void *recv = rig_irecv(&rig, pair.recv, to, sizeof(to), (int)self, to_mr),
			     *send;
			int got;

			rig_fill(from, size, self * 1000 + m);
			send = rig_isend(&rig, pair.send, from, size, (int)self, from_mr);
			rig_wait(&rig, recv, &got);
			rig_wait(&rig, send, NULL);
			CHECK((size_t)got == size && rig_differ(to, size, self * 1000 + m) == size,
			      "thread %u", self);
		}
		OK(rig.plugin.dereg(pair.send, from_mr));
		OK(rig.plugin.dereg(pair.recv, to_mr));
		rig_pair_close(&rig, &pair);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread[THREADS];

	rig_expect_calm();
	rig_open(&rig, argc, argv);
	for (uintptr_t i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&thread[i], NULL, run_worker, (void *)i), "thread");
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	rig_check_calm();
	rig_close(&rig);
	return 0;
}
