/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels: registered as nvcc's constructors do it, given a body by a resolver, launched in the
 * ways that there are. */
#include "tests/softcuda/runtime/support.h"

#include <string.h>

#include "softcuda/softcuda.h"

/* Called by generated code only, so no header has them. */
void **__cudaRegisterFatBinary(void *image);
void __cudaRegisterFatBinaryEnd(void **binary);
void __cudaUnregisterFatBinary(void **binary);
void __cudaRegisterFunction(void **binary, const char *stub, char *device_function,
			    const char *name, int thread_limit, void *thread, void *block,
			    void *block_dimension, void *grid_dimension, int *warp_size);
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_memory,
				     struct stream *stream);
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared_memory,
				       void *stream);

typedef CUresult launch_fn(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
			   unsigned block_x, unsigned block_y, unsigned block_z,
			   unsigned shared_memory, CUstream stream, void **parameters,
			   void **extra);
typedef CUresult launch_ex_fn(const CUlaunchConfig *config, CUfunction function, void **parameters,
			      void **extra);

struct parameters {
	char flag;
	uint64_t wide;
	uint16_t half;
	float *target;
};

static const uint16_t sizes[] = { 1, 8, 2, 8 };
static struct softcuda_launch seen;
static struct parameters received;

static void run_add(const struct softcuda_launch *launch)
{
	seen = *launch;
	memcpy(&received, launch->parameters, launch->parameters_size);
	received.target[0] += 1;
}

static const struct softcuda_kernel add = {
	.run = run_add, .parameter_size = sizes, .parameter_count = 4, .static_shared_memory = 3000
};

static const struct softcuda_kernel *resolve_add(const char *name)
{
	return strcmp(name, "_Z3addcytPf") == 0 ? &add : NULL;
}

static const struct softcuda_kernel *resolve_nothing(const char *name)
{
	return NULL;
}

static char add_stub, unknown_stub; /* stubs are known by their addresses */
static char image[64];

static void **register_kernels(void)
{
	void **binary = __cudaRegisterFatBinary(image);
	CHECK(binary != NULL);
	__cudaRegisterFunction(binary, &add_stub, NULL, "_Z3addcytPf", -1, NULL, NULL, NULL, NULL,
			       NULL);
	__cudaRegisterFunction(binary, &unknown_stub, NULL, "_Z7unknownv", -1, NULL, NULL, NULL,
			       NULL, NULL);
	__cudaRegisterFatBinaryEnd(binary);
	return binary;
}

static void check_received(float *target)
{
	CHECK(received.flag == 'f' && received.wide == 0x1122334455667788 && received.half == 777);
	CHECK(received.target == target);
	CHECK(seen.grid[0] == 2 && seen.grid[1] == 3 && seen.grid[2] == 4);
	CHECK(seen.block[0] == 5 && seen.block[1] == 6 && seen.block[2] == 7);
	CHECK_INT(seen.shared_memory, 1234);
	memset(&received, 0, sizeof(received));
}

static void by_pointers(float *target)
{
	struct parameters in = { 'f', 0x1122334455667788, 777, target };
	void *pointers[] = { &in.flag, &in.wide, &in.half, &in.target };

	OK(cudaLaunchKernel(&add_stub, (dim3) { 2, 3, 4 }, (dim3) { 5, 6, 7 }, pointers, 1234,
			    NULL));
	memset(&in, 0, sizeof(in)); /* they have been read */
	OK(cudaDeviceSynchronize());
	check_received(target);
	CHECK_INT(seen.parameters_size, sizeof(in));
}

static void by_buffer(float *target)
{
	launch_fn *launch = (launch_fn *)find_driver("cuLaunchKernel");
	struct parameters in = { 'f', 0x1122334455667788, 777, target };
	size_t size = sizeof(in);
	void *extra[] = { CU_LAUNCH_PARAM_BUFFER_POINTER, &in, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
			  CU_LAUNCH_PARAM_END };
	cudaFunction_t function;

	OK(cudaGetFuncBySymbol(&function, &add_stub));
	OK(launch(function, 2, 3, 4, 5, 6, 7, 1234, NULL, NULL, extra));
	memset(&in, 0, sizeof(in));
	OK(cudaDeviceSynchronize());
	check_received(target);
	extra[2] = (void *)5; /* no such item */
	CHECK_INT(launch(function, 2, 3, 4, 5, 6, 7, 0, NULL, NULL, extra), cudaErrorInvalidValue);
	CHECK_INT(launch((CUfunction)&add_stub, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra),
		  cudaErrorInvalidResourceHandle);
}

/* NCCL asks for an event with a launch, and makes other streams wait for it. */
static void with_completion_event(float *target)
{
	launch_ex_fn *launch = (launch_ex_fn *)find_driver("cuLaunchKernelEx");
	struct parameters in = { 'f', 0x1122334455667788, 777, target };
	size_t size = sizeof(in);
	void *extra[] = { CU_LAUNCH_PARAM_BUFFER_POINTER, &in, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
			  CU_LAUNCH_PARAM_END };
	CUlaunchAttribute attributes[2] = { { .id = 10 },
					    { .id = CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT } };
	CUlaunchConfig config = { 2, 3, 4, 5, 6, 7, 1234, NULL, attributes, 2 };
	cudaFunction_t function;
	cudaEvent_t event;
	cudaStream_t stream;
	struct gate gate;

	make_gate(&gate);
	OK(cudaGetFuncBySymbol(&function, &add_stub));
	OK(cudaStreamCreate(&stream));
	OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
	config.hStream = stream;
	attributes[1].value.launchCompletionEvent.event = event;
	close_gate(&gate, stream);
	OK(launch(&config, function, NULL, extra));
	FAILS(cudaEventQuery(event), cudaErrorNotReady);
	open_gate(&gate);
	OK(cudaEventSynchronize(event));
	check_received(target);
	OK(cudaEventDestroy(event));
	OK(cudaStreamDestroy(stream));
}

static void unknown_kernels(void)
{
	struct cudaFuncAttributes attributes;
	cudaFunction_t function;

	FAILS(cudaLaunchKernel(&unknown_stub, (dim3) { 1, 1, 1 }, (dim3) { 1, 1, 1 }, NULL, 0,
			       NULL),
	      cudaErrorNotSupported);
	FAILS(cudaLaunchKernel(image, (dim3) { 1, 1, 1 }, (dim3) { 1, 1, 1 }, NULL, 0, NULL),
	      cudaErrorInvalidDeviceFunction);
	FAILS(cudaGetFuncBySymbol(&function, image), cudaErrorInvalidDeviceFunction);
	OK(cudaFuncGetAttributes(&attributes, &unknown_stub));
	CHECK_INT(attributes.sharedSizeBytes, 0);
	FAILS(cudaFuncGetAttributes(&attributes, image), cudaErrorInvalidDeviceFunction);
}

static void attributes_and_limits(void)
{
	struct cudaFuncAttributes attributes;
	const char *name = NULL;

	OK(cudaFuncGetAttributes(&attributes, &add_stub));
	CHECK_INT(attributes.sharedSizeBytes, 3000);
	OK(cudaFuncSetAttribute(&add_stub, cudaFuncAttributeMaxDynamicSharedMemorySize, 1000));
	OK(cudaFuncGetName(&name, &add_stub));
	CHECK_TEXT(name, "_Z3addcytPf");
	FAILS(cudaLaunchKernel(&add_stub, (dim3) { 0, 1, 1 }, (dim3) { 1, 1, 1 }, NULL, 0, NULL),
	      cudaErrorInvalidConfiguration);
	FAILS(cudaLaunchKernel(&add_stub, (dim3) { 1, 1, 1 }, (dim3) { 32, 33, 1 }, NULL, 0, NULL),
	      cudaErrorInvalidConfiguration);
}

/* What stands between <<< and >>> goes through a stack of the thread. */
static void pushed_configurations(void)
{
	dim3 grid, block;
	size_t shared = 0;
	cudaStream_t stream = NULL;

	CHECK_INT(__cudaPushCallConfiguration((dim3) { 1, 2, 3 }, (dim3) { 4, 5, 6 }, 7,
					      cudaStreamLegacy),
		  0);
	CHECK_INT(__cudaPushCallConfiguration((dim3) { 9, 9, 9 }, (dim3) { 9, 9, 9 }, 9,
					      cudaStreamPerThread),
		  0);
	OK(__cudaPopCallConfiguration(&grid, &block, &shared, &stream));
	CHECK(grid.x == 9 && stream == cudaStreamPerThread);
	OK(__cudaPopCallConfiguration(&grid, &block, &shared, &stream));
	CHECK(grid.x == 1 && grid.z == 3 && block.y == 5 && shared == 7 &&
	      stream == cudaStreamLegacy);
	FAILS(__cudaPopCallConfiguration(&grid, &block, &shared, &stream),
	      cudaErrorMissingConfiguration);
}

int main(void)
{
	void **binary = register_kernels();
	void *target;
	float value = -1;

	OK(cudaMalloc(&target, sizeof(float)));
	OK(cudaMemset(target, 0, sizeof(float)));
	FAILS(cudaLaunchKernel(&add_stub, (dim3) { 1, 1, 1 }, (dim3) { 1, 1, 1 }, NULL, 0, NULL),
	      cudaErrorNotSupported);
	CHECK_INT(softcuda_add_resolver(resolve_nothing), 0);
	CHECK_INT(softcuda_add_resolver(resolve_add), 0);
	by_pointers(target);
	by_buffer(target);
	with_completion_event(target);
	OK(cudaMemcpy(&value, target, sizeof(value), cudaMemcpyDeviceToHost));
	CHECK(value == 3);
	unknown_kernels();
	attributes_and_limits();
	pushed_configurations();
	softcuda_remove_resolver(resolve_add);
	FAILS(cudaLaunchKernel(&add_stub, (dim3) { 1, 1, 1 }, (dim3) { 1, 1, 1 }, NULL, 0, NULL),
	      cudaErrorNotSupported);
	__cudaUnregisterFatBinary(binary);
	FAILS(cudaLaunchKernel(&add_stub, (dim3) { 1, 1, 1 }, (dim3) { 1, 1, 1 }, NULL, 0, NULL),
	      cudaErrorInvalidDeviceFunction);
	binary = register_kernels(); /* a library that is loaded again */
	CHECK_INT(softcuda_add_resolver(resolve_add), 0);
	by_pointers(target);
	__cudaUnregisterFatBinary(binary);
	OK(cudaFree(target));
	return 0;
}
