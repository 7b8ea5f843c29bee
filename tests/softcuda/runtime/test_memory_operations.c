/* SPDX-License-Identifier: BSD-3-Clause */
/* A stream's writes to memory, and its waits for values there. */
#include "tests/softcuda/runtime/support.h"

#include <stdatomic.h>

static CUresult (*batch)(CUstream, unsigned, CUstreamBatchMemOpParams *, unsigned);
static CUresult (*wait_32)(CUstream, CUdeviceptr, uint32_t, unsigned);
static CUresult (*wait_64)(CUstream, CUdeviceptr, uint64_t, unsigned);
static CUresult (*write_32)(CUstream, CUdeviceptr, uint32_t, unsigned);
static CUresult (*write_64)(CUstream, CUdeviceptr, uint64_t, unsigned);

static cudaStream_t stream, other;
static _Atomic uint64_t *word;

static CUdeviceptr word_address(void)
{
	return (CUdeviceptr)(uintptr_t)word;
}

/* The wait is not over at `before`, and is over at `after`. */
static void waits_until(uint64_t before, uint64_t after, bool wide, uint64_t value, unsigned flags)
{
	*word = before;
	if (wide)
		OK(wait_64(stream, word_address(), value, flags));
	else
		OK(wait_32(stream, word_address(), (uint32_t)value, flags));
	FAILS(cudaStreamQuery(stream), cudaErrorNotReady);
	*word = after;
	OK(cudaStreamSynchronize(stream));
}

static void wait_conditions(void)
{
	waits_until(4, 5, false, 5, CU_STREAM_WAIT_VALUE_GEQ);
	waits_until(4, 9, true, 5, CU_STREAM_WAIT_VALUE_GEQ | CU_STREAM_WAIT_VALUE_FLUSH);
	/* across the wrap */
	waits_until(0xfffffffe, 3, false, 0xffffffff, CU_STREAM_WAIT_VALUE_GEQ);
	waits_until(6, 5, true, 5, CU_STREAM_WAIT_VALUE_EQ);
	waits_until(1ull << 40, 7, true, 7, CU_STREAM_WAIT_VALUE_EQ);
	waits_until(2, 6, false, 4, CU_STREAM_WAIT_VALUE_AND);
	waits_until(0xffffffff, 0xfffffffe, false, 0, CU_STREAM_WAIT_VALUE_NOR);
}

/* Two streams signal each other. */
static void between_streams(void)
{
	*word = 0;
	for (unsigned i = 0; i < 50; i++) {
		OK(wait_64(stream, word_address(), 2 * i + 1, CU_STREAM_WAIT_VALUE_EQ));
		OK(write_64(stream, word_address(), 2 * i + 2, 0));
		OK(write_64(other, word_address(), 2 * i + 1, 0));
		OK(wait_64(other, word_address(), 2 * i + 2, CU_STREAM_WAIT_VALUE_EQ));
	}
	OK(cudaStreamSynchronize(stream));
	OK(cudaStreamSynchronize(other));
	CHECK_INT(*word, 100);
}

static void operation_batches(void)
{
	CUstreamBatchMemOpParams list[4] = {
		{ .value = { CU_STREAM_MEM_OP_WAIT_VALUE_32, word_address(), 1,
			     CU_STREAM_WAIT_VALUE_EQ, 0 } },
		{ .value = { CU_STREAM_MEM_OP_WRITE_VALUE_32, word_address(), 2, 0, 0 } },
		{ .operation = CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES },
		{ .value = { CU_STREAM_MEM_OP_WRITE_VALUE_32, word_address() + 4, 3, 0, 0 } },
	};

	*word = 0;
	OK(batch(stream, 4, list, 0));
	FAILS(cudaStreamQuery(stream), cudaErrorNotReady);
	OK(write_32(other, word_address(), 1, 0));
	OK(cudaStreamSynchronize(stream));
	CHECK(*word == ((uint64_t)3 << 32 | 2));
	list[1].value.address += 2;
	CHECK_INT(batch(stream, 4, list, 0), cudaErrorInvalidValue); /* not aligned */
	list[1].operation = (enum CUstreamBatchMemOpType)77;
	CHECK_INT(batch(stream, 4, list, 0), cudaErrorInvalidValue);
}

int main(void)
{
	*(void **)&batch = find_driver("cuStreamBatchMemOp");
	*(void **)&wait_32 = find_driver("cuStreamWaitValue32");
	*(void **)&wait_64 = find_driver("cuStreamWaitValue64");
	*(void **)&write_32 = find_driver("cuStreamWriteValue32");
	*(void **)&write_64 = find_driver("cuStreamWriteValue64");
	OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	OK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
	OK(cudaHostAlloc((void **)&word, sizeof(*word), cudaHostAllocMapped));
	wait_conditions();
	between_streams();
	operation_batches();
	OK(cudaFreeHost((void *)word));
	OK(cudaStreamDestroy(stream));
	OK(cudaStreamDestroy(other));
	return 0;
}
