/* SPDX-License-Identifier: BSD-3-Clause */
/* test_memory.c - the shared file, made by a process that gets signals (a profiler's timer, say):
 * on older kernels, Debian 12's too, each may end fallocate() */
#include "ina/host/shm/memory.h"
#include "tests/ina/switch/named.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

static unsigned calls, interrupted;

/* The C library's, with a signal in the middle of every other call, and in all those of a whole
 * buffer: that takes longer than from one signal to the next. */
int fallocate(int fd, int mode, off_t offset, off_t len)
{
	if (calls++ % 2 == 0 || len > 16 << 20) {
		interrupted++;
		errno = EINTR;
		return -1;
	}
	return (int)syscall(SYS_fallocate, fd, mode, offset, len);
}

static void signals_interrupt_allocation(void)
{
	struct ina_shm_memory m;
	char why[300] = "";
	int file, err = ina_shm_memory_make(&m, 32, &file, why, sizeof(why));

	if (err)
		fprintf(stderr, "%s\n", why);
	CHECK_INT(err, 0);
	CHECK(interrupted);
	close(file);
	for (uint64_t at = 0; at < m.bytes; at += 4096)
		m.map[at] = 1;
	ina_shm_memory_drop(&m);
}

int main(int argc, char **argv)
{
	static const struct named_test tests[] = { { "signals", signals_interrupt_allocation } };

	alarm(850);
	return NAMED_TESTS_RUN(tests, argc, argv);
}
