/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What registering asks of the kernel. A failover registers a buffer of each connection while all
 * of them wait, so an ordinary one costs one system call; what has a hole or forbids the access is
 * refused. The calls are this program's own and count.
 */
#include "tests/softroce/front_side.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SMALL (32u << 10)
#define LARGE (1u << 20)
#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)

static const struct side_options options;
static unsigned asked;

__attribute__((visibility("default"))) int madvise(void *addr, size_t length, int advice)
{
	asked++;
	return (int)syscall(SYS_madvise, addr, length, advice);
}

__attribute__((visibility("default"))) int msync(void *addr, size_t length, int flags)
{
	asked++;
	return (int)syscall(SYS_msync, addr, length, flags);
}

static char *map_pages(size_t size)
{
	char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

/* System calls of one registration. */
static unsigned calls_of(struct ibv_pd *pd, char *data, size_t size)
{
	struct ibv_mr *mr;
	unsigned before = asked;

	mr = ibv_reg_mr(pd, data, size, ACCESS);
	CHECK(mr);
	before = asked - before;
	CHECK(!ibv_dereg_mr(mr));
	printf("registering %zu bytes: %u system calls\n", size, before);
	return before;
}

static void check_refused(struct ibv_pd *pd, char *data, size_t size)
{
	errno = 0;
	CHECK(!ibv_reg_mr(pd, data, size, ACCESS));
	CHECK(errno == EFAULT);
}

/* A hole in the middle, and a first and a last page that may not be written. */
static void refuse_unsound(struct ibv_pd *pd, size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *data = map_pages(size);

	CHECK(!munmap(data + size / 2, page));
	check_refused(pd, data, size);
	CHECK(!munmap(data, size));
	data = map_pages(size);
	CHECK(!mprotect(data, page, PROT_READ));
	check_refused(pd, data, size);
	CHECK(!mprotect(data, page, PROT_READ | PROT_WRITE));
	CHECK(!mprotect(data + size - page, page, PROT_READ));
	check_refused(pd, data, size);
	CHECK(!munmap(data, size));
}

static void take_turns(int fd)
{
	char *small = map_pages(SMALL), *large = map_pages(LARGE);
	struct side side;

	side_open(&side, fd, &options);
	CHECK(calls_of(side.pd, small, SMALL) == 1);
	CHECK(calls_of(side.pd, small + 100, 1000) == 1);
	CHECK(calls_of(side.pd, large, LARGE) == 3);
	refuse_unsound(side.pd, SMALL);
	refuse_unsound(side.pd, LARGE);
	side_close(&side);
	CHECK(!munmap(small, SMALL) && !munmap(large, LARGE));
}

static void stay_idle(int fd)
{
	struct side side;

	side_open(&side, fd, &options);
	side_close(&side);
}

int main(void)
{
	side_isolate("127.147.0.0/24");
	side_run(take_turns, stay_idle);
	return 0;
}
