/* SPDX-License-Identifier: BSD-3-Clause */
/* memory.c - protection domains and memory regions */
#include "softroce/verbs/objects.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#undef ibv_reg_mr /* the header's macros; here the functions of those names are defined */
#undef ibv_reg_mr_iova

#ifndef MADV_POPULATE_READ /* Linux 5.14; glibc of Debian 12 may lack the names */
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

/* A range up to here is made present as a whole, by one system call. */
#define WHOLE_MAX (128u << 10)

struct ibv_pd *ibv_alloc_pd(struct ibv_context *ibv)
{
	struct sr_context *context = sr_context_of(ibv);
	struct sr_vpd *pd = calloc(1, sizeof(*pd));
	int err = EIO;

	if (!pd)
		return sr_fail(ENOMEM);
	if (sr_context_enter(context)) {
		pd->engine = sr_pd_create(context->adapter->nic, &err);
		sr_context_leave(context);
	}
	if (!pd->engine) {
		free(pd);
		return sr_fail(err);
	}
	pd->pd.context = ibv;
	return &pd->pd;
}

int ibv_dealloc_pd(struct ibv_pd *ibv)
{
	struct sr_vpd *pd = (struct sr_vpd *)ibv;
	struct sr_context *context = sr_context_of(ibv->context);
	int err = 0;

	if (sr_context_enter(context)) {
		err = sr_pd_destroy(pd->engine);
		sr_context_leave(context);
	}
	if (!err)
		free(pd);
	return -err;
}

/* One byte of our own memory through the kernel: -EFAULT instead of a signal. */
static int byte_probe(const void *addr)
{
	char byte;
	struct iovec local = { &byte, 1 }, remote = { (void *)addr, 1 };

	if (process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == 1)
		return 0;
	return errno == EFAULT ? -EFAULT : 0; /* forbidden here (a sandbox): nothing is known */
}

/* Make the page present as the access needs it, as pinning it would. */
static int page_probe(uintptr_t page, size_t size, bool write)
{
	if (!madvise((void *)page, size, write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ))
		return 0;
	if (errno == EFAULT || errno == ENOMEM)
		return -EFAULT;
	/* EINVAL: not with this access; or memory of a device, or a kernel without this advice. */
	if (write && !madvise((void *)page, size, MADV_POPULATE_READ))
		return -EFAULT;
	return byte_probe((void *)page);
}

/*
 * A hardware NIC pins the memory, and registering what is not there fails with EFAULT. Here the CPU
 * will touch it later, in the worker: memory the CPU cannot reach (GPU memory, a hole) must be
 * refused now. The whole range must be mapped; its first and last page must allow the access.
 */
static int memory_check(void *addr, size_t length, int access)
{
	size_t page = sysconf(_SC_PAGESIZE);
	uintptr_t first = (uintptr_t)addr & ~(page - 1), end = (uintptr_t)addr + length;
	bool write = access &
		     (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
	uintptr_t last;
	int err;

	if (!length)
		return 0;
	if (end < (uintptr_t)addr)
		return -EINVAL;
	last = (end - 1) & ~(page - 1);
	if (last - first < WHOLE_MAX && !madvise((void *)first, last - first + page,
						 write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ))
		return 0;
	if (msync((void *)first, last - first + page, MS_ASYNC) && errno == ENOMEM)
		return -EFAULT;
	err = page_probe(first, page, write);
	return err ? err : page_probe(last, page, write);
}

static struct sr_vmr *region_create(struct ibv_pd *ibv, void *addr, size_t length, uint64_t iova,
				    int access)
{
	struct sr_context *context = sr_context_of(ibv->context);
	struct sr_vmr *mr = calloc(1, sizeof(*mr));
	int err = EIO;

	if (!mr)
		return sr_fail(ENOMEM);
	if (sr_context_enter(context)) {
		mr->engine = sr_mr_create(((struct sr_vpd *)ibv)->engine, addr, length, iova,
					  access, &err);
		if (mr->engine) {
			mr->mr.lkey = sr_mr_lkey(mr->engine);
			mr->mr.rkey = sr_mr_rkey(mr->engine);
		}
		sr_context_leave(context);
	}
	if (!mr->engine) {
		free(mr);
		return sr_fail(err);
	}
	mr->mr.context = ibv->context;
	mr->mr.pd = ibv;
	mr->mr.addr = addr;
	mr->mr.length = length;
	return mr;
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				unsigned int access)
{
	struct sr_vmr *mr;
	int err;

	if (access & IBV_ACCESS_ON_DEMAND)
		return sr_fail(EOPNOTSUPP);
	/*
	 * Optional flags ask for speed, not for behaviour (relaxed ordering): whoever cannot do
	 * them ignores them.
	 */
	access &= ~IBV_ACCESS_OPTIONAL_RANGE;
	err = memory_check(addr, length, access);
	if (err)
		return sr_fail(err);
	mr = region_create(pd, addr, length, iova, access);
	return mr ? &mr->mr : NULL;
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	return ibv_reg_mr_iova2(pd, addr, length,
				access & IBV_ACCESS_ZERO_BASED ? 0 : (uintptr_t)addr, access);
}

struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
			       int access)
{
	return ibv_reg_mr_iova2(pd, addr, length, iova, access);
}

/*
 * GPU memory, as far as this NIC can reach it: softcuda's, which is host memory. Its runtime is
 * found by name among the libraries of the process, however they were loaded.
 */
static bool has_soft_gpu(void)
{
	void *runtime = dlopen("libcudart.so.12", RTLD_LAZY | RTLD_NOLOAD);
	bool soft;

	if (!runtime)
		return false;
	soft = dlsym(runtime, "softcuda_add_resolver") != NULL;
	dlclose(runtime);
	return soft;
}

/*
 * Where in the file the buffer begins. A DMA-BUF begins at 0 and has no position (SEEK_CUR fails).
 * What softcuda exports in the place of one is an anonymous file that holds other allocations, too:
 * its position is the buffer's first byte (softcuda/runtime/dmabuf.h).
 */
static int find_buffer(int fd, uint64_t offset, size_t length, uint64_t *start)
{
	off_t position = lseek(fd, 0, SEEK_CUR);
	struct stat st;

	*start = offset + (position > 0 ? (uint64_t)position : 0);
	if (*start < offset)
		return EINVAL;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		return 0;
	/* Beyond its end a file can be mapped, but not touched. */
	return *start > (uint64_t)st.st_size || length > (uint64_t)st.st_size - *start ? EINVAL : 0;
}

/*
 * Works where the exporter lets the CPU map the buffer (host memory, udmabuf, softcuda). Memory of
 * real GPUs cannot be mapped: EOPNOTSUPP. NCCL and other programs ask with an impossible descriptor
 * whether GPU memory can be registered;
 * EBADF means yes.
 */
struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
				 int fd, int access)
{
	size_t page = sysconf(_SC_PAGESIZE), lead;
	struct sr_vmr *mr;
	uint64_t start;
	void *map;
	int err;

	if (fd < 0 || !length)
		return sr_fail(fd < 0 && has_soft_gpu() ? EBADF : EOPNOTSUPP);
	err = find_buffer(fd, offset, length, &start);
	if (err)
		return sr_fail(err);
	lead = start & (page - 1);
	map = mmap(NULL, length + lead, PROT_READ | PROT_WRITE, MAP_SHARED, fd, start - lead);
	if (map == MAP_FAILED)
		return sr_fail(errno == EBADF || errno == ENOMEM ? errno : EOPNOTSUPP);
	mr = region_create(pd, (char *)map + lead, length, iova,
			   access & ~(int)IBV_ACCESS_OPTIONAL_RANGE);
	if (!mr) {
		int err = errno;

		munmap(map, length + lead);
		return sr_fail(err);
	}
	mr->map = map;
	mr->map_len = length + lead;
	mr->mr.addr = (void *)(uintptr_t)offset;
	return &mr->mr;
}

int ibv_rereg_mr(struct ibv_mr *ibv, int flags, struct ibv_pd *pd, void *addr, size_t length,
		 int access)
{
	struct sr_vmr *mr = (struct sr_vmr *)ibv;
	struct sr_context *context = sr_context_of(ibv->context);
	int err = -EIO;

	if (!flags || (flags & ~IBV_REREG_MR_FLAGS_SUPPORTED) || mr->map ||
	    ((flags & IBV_REREG_MR_CHANGE_TRANSLATION) &&
	     (!addr || !length || memory_check(addr, length, access)))) {
		errno = EINVAL;
		return IBV_REREG_MR_ERR_INPUT;
	}
	access &= ~(int)IBV_ACCESS_OPTIONAL_RANGE;
	if (sr_context_enter(context)) {
		err = sr_mr_rereg(mr->engine, flags,
				  flags & IBV_REREG_MR_CHANGE_PD ? ((struct sr_vpd *)pd)->engine
								 : NULL,
				  addr, length, access);
		ibv->lkey = sr_mr_lkey(mr->engine);
		ibv->rkey = sr_mr_rkey(mr->engine);
		sr_context_leave(context);
	}
	if (err) {
		errno = -err;
		return IBV_REREG_MR_ERR_INPUT; /* the engine checks before it changes anything */
	}
	if (flags & IBV_REREG_MR_CHANGE_PD)
		ibv->pd = pd;
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
		ibv->addr = addr;
		ibv->length = length;
	}
	return 0;
}

int ibv_dereg_mr(struct ibv_mr *ibv)
{
	struct sr_vmr *mr = (struct sr_vmr *)ibv;
	struct sr_context *context = sr_context_of(ibv->context);
	int err = 0;

	if (sr_context_enter(context)) {
		err = sr_mr_destroy(mr->engine);
		sr_context_leave(context);
	}
	if (err)
		return -err;
	if (mr->map)
		munmap(mr->map, mr->map_len);
	free(mr);
	return 0;
}
