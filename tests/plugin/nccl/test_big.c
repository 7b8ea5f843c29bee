/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A message of more than 2 GiB (v9 and later; before, the largest NCCL sends: 1 GiB). Both buffers
 * are one small file mapped again and again, so the machine needs little memory; the last window of
 * the receiver is its own file, so that the end of the message can be told from its beginning.
 */
#include "tests/plugin/nccl/rig.h"

#include <limits.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#define WINDOW (8u << 20)

/* `size` bytes that repeat one file of WINDOW bytes, the last window being another one. */
static uint8_t *map_repeated(size_t size)
{
	int fd = memfd_create("window", 0), end = memfd_create("end", 0);
	uint8_t *base =
		mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	CHECK(fd >= 0 && end >= 0 && base != MAP_FAILED, "memory");
	CHECK(!ftruncate(fd, WINDOW) && !ftruncate(end, WINDOW), "memory");
	for (size_t at = 0; at < size; at += WINDOW) {
		int file = at + WINDOW >= size ? end : fd;

		CHECK(mmap(base + at, WINDOW, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file,
			   0) != MAP_FAILED,
		      "mmap at %zu", at);
	}
	close(fd);
	close(end);
	return base;
}

static void wait_long(struct rig *rig, void *request, int *size)
{
	int done = 0;

	while (!done) {
		OK(rig->plugin.test(request, &done, size));
		sched_yield();
	}
}

int main(int argc, char **argv)
{
	struct rig rig;
	struct rig_pair pair;
	void *from_mr, *to_mr, *send, *recv;
	uint8_t *from, *to;
	size_t size;
	int sent, got, want;

	rig_expect_calm();
	rig_open(&rig, argc, argv);
	alarm(0); /* so much data takes its time: ctest's limit is the only one */
	size = rig.version >= 9 ? (2ull << 30) + WINDOW : MAX_NET_SIZE;
	want = size > INT_MAX ? INT_MAX : (int)size; /* what the interface's int can say */
	rig_pair_open(&rig, &pair);
	from = map_repeated(size);
	to = map_repeated(size);
	rig_fill(from, WINDOW, 1);
	rig_fill(from + size - WINDOW, WINDOW, 2);
	from_mr = rig_reg(&rig, pair.send, from, size);
	to_mr = rig_reg(&rig, pair.recv, to, size);
	recv = rig_irecv(&rig, pair.recv, to, size, 0, to_mr);
	send = rig_isend(&rig, pair.send, from, size, 0, from_mr);
	wait_long(&rig, send, &sent);
	wait_long(&rig, recv, &got);
	CHECK(sent == want && got == want, "sizes %d and %d, want %d", sent, got, want);
	CHECK(rig_differ(to, WINDOW, 1) == WINDOW, "the body is wrong");
	CHECK(rig_differ(to + size - WINDOW, WINDOW, 2) == WINDOW, "the end is wrong");
	OK(rig.plugin.dereg(pair.send, from_mr));
	OK(rig.plugin.dereg(pair.recv, to_mr));
	rig_check_calm();
	rig_pair_close(&rig, &pair);
	rig_close(&rig);
	return 0;
}
