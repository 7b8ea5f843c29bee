/* SPDX-License-Identifier: BSD-3-Clause */
/* Device memory as a NIC gets it: exported as a descriptor, registered by softroce, written and
 * read by a peer. */
#include "tests/softcuda/runtime/support.h"
#include "tests/softroce/front_side.h"

#include <errno.h>
#include <unistd.h>

#define SIZE 20000u /* not whole pages */
#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

struct target {
	uint64_t address;
	uint32_t rkey;
};

static const struct side_options options;

static CUresult get_handle(void *handle, const void *address, size_t size)
{
	CUresult (*get)(void *, CUdeviceptr, size_t, int, unsigned long long);
	*(void **)&get = find_driver("cuMemGetHandleForAddressRange");
	return get(handle, (CUdeviceptr)(uintptr_t)address, size,
		   CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
}

/* The address that peers use is the one of the buffer, as NCCL and NIC drivers have it. */
static struct ibv_mr *register_device(struct side *side, char *address, size_t size)
{
	int descriptor = -1;
	OK(get_handle(&descriptor, address, size));
	struct ibv_mr *mr =
		ibv_reg_dmabuf_mr(side->pd, 0, size, (uintptr_t)address, descriptor, ACCESS);
	CHECK(mr != NULL);
	close(descriptor);
	return mr;
}

/* Memory of cuMemCreate, mapped from its second unit on. */
static char *map_memory(void)
{
	size_t unit = (size_t)2 << 20;
	const CUmemAllocationProp properties = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
						 .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
	const CUmemAccessDesc access = { { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
					 CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
	CUresult (*create)(CUmemGenericAllocationHandle *, size_t, const CUmemAllocationProp *,
			   unsigned long long);
	CUresult (*reserve)(CUdeviceptr *, size_t, size_t, CUdeviceptr, unsigned long long);
	CUresult (*map)(CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle,
			unsigned long long);
	CUresult (*set_access)(CUdeviceptr, size_t, const CUmemAccessDesc *, size_t);
	CUmemGenericAllocationHandle memory;
	CUdeviceptr address;

	*(void **)&create = find_driver("cuMemCreate");
	*(void **)&reserve = find_driver("cuMemAddressReserve");
	*(void **)&map = find_driver("cuMemMap");
	*(void **)&set_access = find_driver("cuMemSetAccess");
	OK(create(&memory, 2 * unit, &properties, 0));
	OK(reserve(&address, unit, 0, 0, 0));
	OK(map(address, unit, unit, memory, 0));
	OK(set_access(address, unit, &access, 1));
	return (char *)(uintptr_t)address;
}

static void refuse_wrong_memory(void)
{
	char pageable[100], *device;
	void *host;
	int descriptor;

	OK(cudaMalloc((void **)&device, SIZE));
	OK(cudaHostAlloc(&host, SIZE, 0));
	CHECK_INT(get_handle(&descriptor, pageable, 100), cudaErrorInvalidValue);
	CHECK_INT(get_handle(&descriptor, host, 100), cudaErrorInvalidValue);
	CHECK_INT(get_handle(&descriptor, device, 0), cudaErrorInvalidValue);
	/* beyond its last page */
	CHECK_INT(get_handle(&descriptor, device, 5 * 4096 + 1), cudaErrorNotSupported);
	OK(cudaFree(device));
	OK(cudaFreeHost(host));
}

/* Each of three places: an allocation between others, an address inside of one, a mapping. */
static void serve_memory(int fd)
{
	struct side side;
	char *before, *device, *mapped, byte;

	side_open(&side, fd, &options);
	side_connect(&side, &options);
	/* A NIC beside softcuda says that it registers GPU memory, as NCCL asks it. */
	OK(cudaMalloc((void **)&before, SIZE));
	CHECK(!ibv_reg_dmabuf_mr(side.pd, 0, 0, 0, -1, 0) && errno == EBADF);
	OK(cudaMalloc((void **)&device, SIZE));
	mapped = map_memory();
	char *places[3] = { device, device + 4096 + 100, mapped };
	size_t sizes[3] = { 4096, 1000, SIZE };
	for (int i = 0; i < 3; i++) {
		struct ibv_mr *mr = register_device(&side, places[i], sizes[i]);
		struct target target = { (uintptr_t)places[i], mr->rkey };
		memset(before, 1, SIZE);
		memset(device, 2, SIZE);
		memset(mapped, 3, SIZE);
		CHECK(write(fd, &target, sizeof(target)) == sizeof(target));
		CHECK(read(fd, &byte, 1) == 1); /* 500 bytes of 9 have been written there */
		for (unsigned k = 0; k < SIZE; k++) {
			char *at = device + k;
			char expected = i < 2 && at >= places[i] && at < places[i] + 500 ? 9 : 2;
			CHECK(*at == expected);
			CHECK(before[k] == 1);
			CHECK(mapped[k] == (i == 2 && k < 500 ? 9 : 3));
		}
		CHECK(ibv_dereg_mr(mr) == 0);
	}
	refuse_wrong_memory();
	side_meet(&side);
	side_close(&side);
}

static void write_to(struct side *side, const struct target *target, enum ibv_wr_opcode opcode)
{
	struct ibv_wc wc;
	side->peer_addr = target->address;
	side->peer_rkey = target->rkey;
	side_post_send(side, opcode, 1, 0, 500);
	CHECK(side_wait(side, &wc, 60000) && wc.status == IBV_WC_SUCCESS);
}

static void use_memory(int fd)
{
	struct side side;
	struct target target;

	side_open(&side, fd, &options);
	side_connect(&side, &options);
	for (int i = 0; i < 3; i++) {
		CHECK(read(fd, &target, sizeof(target)) == sizeof(target));
		memset(side.buf, 9, 500);
		write_to(&side, &target, IBV_WR_RDMA_WRITE);
		memset(side.buf, 0, 500);
		write_to(&side, &target, IBV_WR_RDMA_READ);
		CHECK(side.buf[0] == 9 && side.buf[499] == 9);
		CHECK(write(fd, "w", 1) == 1);
	}
	side_meet(&side);
	side_close(&side);
}

int main(void)
{
	side_isolate("127.167.0.0/16");
	side_run(serve_memory, use_memory);
	return 0;
}
