/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program that ends without closing anything must end: with connections open and a thread still
 * polling, with init alone, in a forked child that never asked for any of it. Status 0, no signal,
 * no hang.
 */
#include "tests/plugin/nccl/rig.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

/* Nothing is given back here on purpose: not for a leak detector. */
int __lsan_is_turned_off(void) __attribute__((visibility("default")));
int __lsan_is_turned_off(void)
{
	return 1;
}

enum scene { INIT_ONLY, OPEN_AND_POLLING, FORKED_CHILD, SCENES };
static struct rig rig;
static void *recv_request;

static void *poll_for_ever(void *arg)
{
	int done;

	while (rig.plugin.test(recv_request, &done, NULL) == ncclSuccess)
		;
	pause(); /* NCCL would abort; here only the way out matters */
	return arg;
}

static void play_scene(enum scene scene, int argc, char **argv)
{
	static uint8_t buffer[64], landing[64];
	struct rig_pair pair;
	pthread_t thread;
	int status;
	pid_t child;

	rig_open(&rig, argc, argv);
	if (scene == INIT_ONLY)
		exit(0);
	rig_pair_open(&rig, &pair);
	recv_request =
		rig_irecv(&rig, pair.recv, landing, 64, 0, rig_reg(&rig, pair.recv, landing, 64));
	if (scene == FORKED_CHILD) {
		child = fork();
		if (!child)
			exit(0);
		CHECK(waitpid(child, &status, 0) == child && status == 0, "the child's status 0x%x",
		      status);
		/* The fork has done no harm. */
		rig_wait(&rig,
			 rig_isend(&rig, pair.send, buffer, 8, 0,
				   rig_reg(&rig, pair.send, buffer, 8)),
			 NULL);
		rig_wait(&rig, recv_request, NULL);
		exit(0);
	}
	CHECK(!pthread_create(&thread, NULL, poll_for_ever, NULL), "thread");
	usleep(20000);
	exit(0);
}

int main(int argc, char **argv)
{
	for (enum scene scene = INIT_ONLY; scene < SCENES; scene++) {
		pid_t child = fork();
		int status;

		CHECK(child >= 0, "fork");
		if (!child)
			play_scene(scene, argc, argv);
		CHECK(waitpid(child, &status, 0) == child, "waitpid");
		CHECK(status == 0, "scene %d: status 0x%x", scene, status);
	}
	return 0;
}
