/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The process has no descriptor left to keep a dma-buf with: one warning says so and what to do,
 * the buffers are registered on the standby at once, and a failover uses them there.
 */
#include "tests/plugin/nccl/rig.h"

#include "plugin/nccl/abi/net_v9.h"
#include "softroce/control.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define SIZE ((size_t)256 << 10)
#define NONE 3 /* the program's own are more */
#define WARNING                                                                            \
	"no descriptor is left to keep dma-bufs for other NICs (0 are kept; the limit of " \
	"open files is 3)"

/* A buffer that is known by its descriptor alone. */
struct buffer {
	int file;
	uint8_t *data;
	void *mr;
};

static struct rig rig;
static struct rig_pair pair;

static struct buffer make_buffer(void)
{
	struct buffer b = { .file = memfd_create("gpu", MFD_CLOEXEC) };

	CHECK(b.file >= 0 && !ftruncate(b.file, (off_t)SIZE), "memory");
	b.data = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, b.file, 0);
	CHECK(b.data != MAP_FAILED, "memory");
	return b;
}

static void register_buffer(struct buffer *b, void *comm)
{
	OK(((const ncclNet_v9_t *)rig.plugin.table)
		   ->regMrDmaBuf(comm, b->data, SIZE, NCCL_PTR_CUDA, 0, b->file, &b->mr));
}

static void limit_files(rlim_t most)
{
	struct rlimit limit;

	CHECK(!getrlimit(RLIMIT_NOFILE, &limit), "limit");
	limit.rlim_cur = most;
	CHECK(!setrlimit(RLIMIT_NOFILE, &limit), "limit");
}

static void exchange(struct buffer *from, struct buffer *to, uint32_t seed)
{
	void *recv, *send;

	rig_fill(from->data, SIZE, seed);
	memset(to->data, 0, SIZE);
	recv = rig_irecv(&rig, pair.recv, to->data, SIZE, 1, to->mr);
	send = rig_isend(&rig, pair.send, from->data, SIZE, 1, from->mr);
	rig_wait(&rig, recv, NULL);
	rig_wait(&rig, send, NULL);
	CHECK(rig_differ(to->data, SIZE, seed) == SIZE, "message %u", seed);
}

static void await_line(const char *text)
{
	struct rig_deadline deadline = rig_deadline(text);

	while (!rig_logged(text))
		rig_pause(&deadline);
}

static void set_cut(struct sr_faults *faults, void *arg)
{
	(void)arg;
	faults->cut = 1;
}

static void cut_first_nic(void)
{
	struct sr_control_entry *entry;
	char selector[64];
	int n;

	snprintf(selector, sizeof(selector), "soft0:%d", (int)getpid());
	entry = sr_control_list(selector, &n);
	CHECK(entry && n == 1, "%d devices are called %s", n, selector);
	CHECK(!sr_control_change(entry, set_cut, NULL), "%s does not take its fault", selector);
	free(entry);
}

int main(int argc, char **argv)
{
	struct buffer from, to;
	struct rlimit before;

	rig_expect_calm();
	rig_open(&rig, argc, argv);
	rig_pair_open(&rig, &pair);
	await_line("protected: soft0:1");
	from = make_buffer();
	to = make_buffer();
	CHECK(!getrlimit(RLIMIT_NOFILE, &before), "limit");
	limit_files(NONE);
	register_buffer(&from, pair.send);
	register_buffer(&to, pair.recv);
	limit_files(before.rlim_cur);
	CHECK(rig_log_lines(WARNING) == 1, "%u such warnings", rig_log_lines(WARNING));
	CHECK(rig_logged("or its standby again, ends; raise the limit (ulimit -n)"), "no advice");
	exchange(&from, &to, 1);
	cut_first_nic();
	await_line("failed over");
	exchange(&from, &to, 2);
	CHECK(!rig_logged("cannot register"), "%s", rig_last_warning());
	OK(rig.plugin.dereg(pair.send, from.mr));
	OK(rig.plugin.dereg(pair.recv, to.mr));
	rig_pair_close(&rig, &pair);
	rig_close(&rig);
	return 0;
}
