/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * regMrDmaBuf kept a descriptor for each registration on a connection with a standby: 1,500
 * registrations left the process without any. Now one for each buffer, half of the limit at most,
 * and the program goes on.
 */
#include "tests/plugin/nccl/rig.h"

#include "plugin/nccl/abi/net_v9.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define LIMIT 400
#define BUFFERS 1500

static int count_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	CHECK(dir, "/proc/self/fd");
	while (readdir(dir))
		n++;
	closedir(dir);
	return n - 3; /* itself, . and .. */
}

static ncclResult_t reg_dmabuf(struct rig *rig, void *comm, void *data, size_t size, int fd,
			       void **mhandle)
{
	return ((const ncclNet_v9_t *)rig->plugin.table)
		->regMrDmaBuf(comm, data, size, NCCL_PTR_CUDA, 0, fd, mhandle);
}

int main(int argc, char **argv)
{
	static void *handle[BUFFERS];
	const struct rlimit limit = { LIMIT, LIMIT };
	int before, after, file = memfd_create("gpu", MFD_CLOEXEC);
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct rig_pair pair;
	struct rig rig;
	uint8_t *base;
	void *again[2];

	rig_open(&rig, argc, argv);
	CHECK(file >= 0 && !ftruncate(file, (off_t)page), "memory");
	rig_pair_open(&rig, &pair);
	CHECK(!setrlimit(RLIMIT_NOFILE, &limit), "limit");
	base = mmap(NULL, BUFFERS * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		    -1, 0);
	CHECK(base != MAP_FAILED, "addresses");

	/* both ends register the same buffer, one of them twice: one descriptor */
	before = count_descriptors();
	OK(reg_dmabuf(&rig, pair.send, base, page, file, &handle[0]));
	after = count_descriptors();
	CHECK(after <= before + 1, "%d descriptors for one buffer", after - before);
	OK(reg_dmabuf(&rig, pair.send, base, page, file, &again[0]));
	OK(reg_dmabuf(&rig, pair.recv, base, page, file, &again[1]));
	CHECK(count_descriptors() == after, "%d more for the same buffer",
	      count_descriptors() - after);
	OK(rig.plugin.dereg(pair.send, again[0]));
	OK(rig.plugin.dereg(pair.recv, again[1]));

	for (int i = 1; i < BUFFERS; i++)
		OK(reg_dmabuf(&rig, pair.send, base + (size_t)i * page, page, file, &handle[i]));
	CHECK(count_descriptors() < before + LIMIT / 2 + 1, "%d of %d descriptors are kept",
	      count_descriptors() - before, LIMIT);
	/* the program's own */
	for (int i = 0; i < 50; i++)
		CHECK(dup(file) >= 0, "no descriptor is left for the program after %d", i);
	for (int i = 0; i < BUFFERS; i++)
		OK(rig.plugin.dereg(pair.send, handle[i]));
	CHECK(count_descriptors() == before + 50, "%d descriptors stay",
	      count_descriptors() - before - 50);
	rig_pair_close(&rig, &pair);
	rig_close(&rig);
	return 0;
}
