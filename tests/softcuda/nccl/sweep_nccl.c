/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sweep_nccl LIBNCCL [OPTION...]: NCCL itself, all collectives with all types and operators, every
 * element compared
 *
 *   --ranks N         ranks, each a process (2)
 *   --gpus N          GPUs of a process; ranks must be a multiple (1)
 *   --hosts N         NCCL finds the ranks on so many hosts (as many as processes)
 *   --operations LIST comma-separated, of: all_reduce all_gather reduce_scatter reduce broadcast
 *                     alltoall gatherv (all)
 *   --types LIST      numbers of ncclDataType_t (all)
 *   --operators LIST  of reductions: numbers of ncclRedOp_t, 5 and 6 premultiplied sums by value
 *                     and by pointer (all)
 *   --sizes LIST      elements of a rank (1,3,1000,100003)
 *   --repeat N        rounds over everything (1)
 *   --group N         operations in one group (1), each with a part of the buffers
 *   --register        buffers from ncclMemAlloc, registered with the communicator
 *
 * NCCL's environment is the caller's. Prints what it did; the exit status is 1 when anything is
 * wrong.
 */
#include "tests/softcuda/nccl/nccl_api.h"
#include "tests/softcuda/nccl/sweep_options.h"

#include "softcuda/nccl/reduce.h"
#include "softcuda/nccl/small_float.h"

#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* What the processes share. */
struct shared {
	struct nccl_id id;
	volatile int id_is_there;
	volatile unsigned long operations[RANKS_MAX];
	volatile unsigned long refused[RANKS_MAX];
};

/* One GPU of a process. */
struct gpu {
	int rank;
	nccl_comm comm;
	cuda_stream stream;
	char *input;
	char *output;
	void *input_handle;
	void *output_handle;
	void *scalar; /* on the device */
	int operator_by_value;
	int operator_by_pointer;
};

struct sweep {
	const struct sweep_options *options;
	size_t part_bytes; /* of a buffer, for one operation of a group */
	struct shared *shared;
	struct nccl_api api;
	struct gpu gpus[GPUS_MAX];
	char *host; /* of a part */
	size_t buffer_bytes;
};

/* One operation of all ranks. */
struct round {
	enum operation operation;
	enum element_type type;
	int operator;
	size_t count;
	int root;
	bool in_place;
	unsigned salt;
	int part; /* of the buffers */
};

static int input_value(const struct round *round, int rank, size_t index)
{
	int value =
		(int)((index * 2654435761u >> 9) + (size_t)rank * 7 + index / 89 + round->salt) % 3;

	value = value < 0 ? value + 3 : value;
	return round->operator== 1 ? value / 2 + 1 : value; /* products of ones and twos */
}

static double reduced_value(const struct round *round, int ranks, size_t index)
{
	double result = input_value(round, 0, index);

	for (int r = 1; r < ranks; r++) {
		double value = input_value(round, r, index);

		if (round->operator== 1)
			result *= value;
		else if (round->operator== 2)
			result = value > result ? value : result;
		else if (round->operator== 3)
			result = value < result ? value : result;
		else
			result += value;
	}
	if (round->operator== OPERATOR_BY_VALUE || round->operator== OPERATOR_BY_POINTER)
		result *= 2;
	if (round->operator== OPERATOR_AVERAGE) {
		result /= ranks;
		if (round->type <= ELEMENT_UINT64)
			result = trunc(result);
	}
	return result;
}

static bool is_reduction(enum operation operation)
{
	return operation == ALL_REDUCE || operation == REDUCE_SCATTER || operation == REDUCE_ROOT;
}

/* Elements of the gatherv's part of each rank: all different, one of them empty. */
static size_t part_count(const struct round *round, int rank)
{
	return rank == 1 ? 0 : round->count / (size_t)(rank + 1);
}

static size_t input_count(const struct round *round, int ranks)
{
	if (round->operation == REDUCE_SCATTER || round->operation == ALLTOALL)
		return round->count * (size_t)ranks;
	return round->count;
}

static size_t output_count(const struct round *round, int ranks)
{
	if (round->operation == ALL_GATHER || round->operation == ALLTOALL ||
	    round->operation == GATHERV)
		return round->count * (size_t)ranks;
	return round->count;
}

/* False: this element is not written. */
static bool expected_value(const struct round *round, int rank, int ranks, size_t index,
			   double *value)
{
	int part = (int)(index / round->count);
	size_t within = index % round->count;

	switch (round->operation) {
	case ALL_GATHER:
		*value = input_value(round, part, within);
		return true;
	case ALLTOALL:
		*value = input_value(round, part, (size_t)rank * round->count + within);
		return true;
	case GATHERV:
		*value = input_value(round, part, within);
		return within < part_count(round, part);
	case BROADCAST:
		*value = input_value(round, round->root, index);
		return true;
	case REDUCE_SCATTER:
		*value = reduced_value(round, ranks, (size_t)rank * round->count + index);
		return true;
	case REDUCE_ROOT:
		*value = reduced_value(round, ranks, index);
		return rank == round->root;
	default:
		*value = reduced_value(round, ranks, index);
		return true;
	}
}

static void store_value(char *to, enum element_type type, double value)
{
	float as_float = (float)value;
	int64_t as_integer = (int64_t)value;
	uint16_t half = float_to_half(as_float);
	uint16_t bfloat16 = float_to_bfloat16(as_float);
	uint8_t e4m3 = float_to_e4m3(as_float);
	uint8_t e5m2 = float_to_e5m2(as_float);
	const void *bits = &as_integer;

	if (type == ELEMENT_FLOAT)
		bits = &as_float;
	if (type == ELEMENT_DOUBLE)
		bits = &value;
	if (type == ELEMENT_HALF)
		bits = &half;
	if (type == ELEMENT_BFLOAT16)
		bits = &bfloat16;
	if (type == ELEMENT_FLOAT8_E4M3)
		bits = &e4m3;
	if (type == ELEMENT_FLOAT8_E5M2)
		bits = &e5m2;
	memcpy(to, bits, element_bytes(type));
}

static double load_value(const char *from, enum element_type type)
{
	uint64_t bits = 0;
	double as_double;

	memcpy(&bits, from, element_bytes(type));
	memcpy(&as_double, &bits, sizeof(as_double));
	switch (type) {
	case ELEMENT_FLOAT:
		return float_of_bits((uint32_t)bits);
	case ELEMENT_DOUBLE:
		return as_double;
	case ELEMENT_HALF:
		return half_to_float((uint16_t)bits);
	case ELEMENT_BFLOAT16:
		return bfloat16_to_float((uint16_t)bits);
	case ELEMENT_FLOAT8_E4M3:
		return e4m3_to_float((uint8_t)bits);
	case ELEMENT_FLOAT8_E5M2:
		return e5m2_to_float((uint8_t)bits);
	default:
		return (double)bits;
	}
}

/* Sums of small integers are exact; an average of floats is a sum of rounded products. */
static double tolerance_of(const struct round *round)
{
	if (round->operator!= OPERATOR_AVERAGE ||
	    round->type <= ELEMENT_UINT64 || !is_reduction(round->operation))
		return 0;
	switch (round->type) {
	case ELEMENT_FLOAT:
		return 1e-5;
	case ELEMENT_DOUBLE:
		return 1e-12;
	case ELEMENT_HALF:
		return 1e-2;
	case ELEMENT_BFLOAT16:
		return 6e-2;
	default:
		return 1;
	}
}

static char *output_of_round(const struct sweep *sweep, const struct round *round,
			     const struct gpu *gpu)
{
	size_t offset = (size_t)gpu->rank * round->count * element_bytes(round->type);
	size_t part = (size_t)round->part * sweep->part_bytes;

	if (!round->in_place || round->operation == ALLTOALL || round->operation == GATHERV)
		return gpu->output + part;
	if (round->operation == REDUCE_SCATTER)
		return gpu->input + part + offset;
	if (round->operation == ALL_GATHER)
		return gpu->output + part;
	return gpu->input + part;
}

static char *input_of_round(const struct sweep *sweep, const struct round *round,
			    const struct gpu *gpu)
{
	size_t offset = (size_t)gpu->rank * round->count * element_bytes(round->type);
	size_t part = (size_t)round->part * sweep->part_bytes;

	if (round->in_place && round->operation == ALL_GATHER)
		return gpu->output + part + offset;
	return gpu->input + part;
}

static void fill_buffers(struct sweep *sweep, const struct round *round, struct gpu *gpu)
{
	size_t bytes = element_bytes(round->type);
	size_t count = input_count(round, sweep->options->ranks);

	memset(sweep->host, 0x77, output_count(round, sweep->options->ranks) * bytes);
	check_cuda(sweep->api.copy(output_of_round(sweep, round, gpu), sweep->host,
				   output_count(round, sweep->options->ranks) * bytes,
				   CUDA_COPY_ANY),
		   "cudaMemcpy");
	for (size_t i = 0; i < count; i++)
		store_value(sweep->host + i * bytes, round->type, input_value(round, gpu->rank, i));
	check_cuda(sweep->api.copy(input_of_round(sweep, round, gpu), sweep->host, count * bytes,
				   CUDA_COPY_ANY),
		   "cudaMemcpy");
}

static void check_buffers(struct sweep *sweep, const struct round *round, struct gpu *gpu)
{
	size_t bytes = element_bytes(round->type);
	size_t count = output_count(round, sweep->options->ranks);
	double tolerance = tolerance_of(round);
	unsigned long wrong = 0;
	double expected;

	check_cuda(sweep->api.copy(sweep->host, output_of_round(sweep, round, gpu), count * bytes,
				   CUDA_COPY_ANY),
		   "cudaMemcpy");
	for (size_t i = 0; i < count; i++) {
		double got = load_value(sweep->host + i * bytes, round->type);

		if (!expected_value(round, gpu->rank, sweep->options->ranks, i, &expected))
			continue;
		if (fabs(got - expected) <= tolerance)
			continue;
		if (!wrong++)
			fprintf(stderr,
				"%s type %d operator %d count %zu root %d in place %d: rank %d, "
				"element %zu is %g, expected %g\n",
				sweep_operation_names[round->operation], round->type,
				round->operator, round->count, round->root, round->in_place,
				gpu->rank, i, got, expected);
	}
	if (wrong) {
		fprintf(stderr, "rank %d: %lu of %zu elements are wrong\n", gpu->rank, wrong,
			count);
		exit(1);
	}
}

static int operator_of(const struct round *round, const struct gpu *gpu)
{
	if (round->operator== OPERATOR_BY_VALUE)
		return gpu->operator_by_value;
	if (round->operator== OPERATOR_BY_POINTER)
		return gpu->operator_by_pointer;
	return round->operator;
}

static int enqueue_alltoall(struct sweep *sweep, const struct round *round, struct gpu *gpu)
{
	size_t bytes = round->count * element_bytes(round->type);
	char *input = input_of_round(sweep, round, gpu);
	char *output = output_of_round(sweep, round, gpu);
	int result = 0;

	for (int r = 0; r < sweep->options->ranks && !result; r++) {
		result = sweep->api.send(input + (size_t)r * bytes, round->count, round->type, r,
					 gpu->comm, gpu->stream);
		if (!result)
			result = sweep->api.recv(output + (size_t)r * bytes, round->count,
						 round->type, r, gpu->comm, gpu->stream);
	}
	return result;
}

/* Broadcasts of different sizes in one group: NCCL makes an AllGatherV of them where it has
 * that. */
static int enqueue_gatherv(struct sweep *sweep, const struct round *round, struct gpu *gpu)
{
	size_t bytes = round->count * element_bytes(round->type);
	char *input = input_of_round(sweep, round, gpu);
	char *output = output_of_round(sweep, round, gpu);
	int result = 0;

	for (int r = 0; r < sweep->options->ranks && !result; r++)
		result = sweep->api.broadcast(input, output + (size_t)r * bytes,
					      part_count(round, r), round->type, r, gpu->comm,
					      gpu->stream);
	return result;
}

static int enqueue_operation(struct sweep *sweep, const struct round *round, struct gpu *gpu)
{
	const struct nccl_api *api = &sweep->api;
	char *input = input_of_round(sweep, round, gpu);
	char *output = output_of_round(sweep, round, gpu);
	int operator= operator_of(round, gpu);

	switch (round->operation) {
	case ALL_REDUCE:
		return api->all_reduce(input, output, round->count, round->type, operator,
				       gpu->comm, gpu->stream);
	case ALL_GATHER:
		return api->all_gather(input, output, round->count, round->type, gpu->comm,
				       gpu->stream);
	case REDUCE_SCATTER:
		return api->reduce_scatter(input, output, round->count, round->type, operator,
					   gpu->comm, gpu->stream);
	case REDUCE_ROOT:
		return api->reduce(input, output, round->count, round->type, operator, round->root,
				   gpu->comm, gpu->stream);
	case BROADCAST:
		return api->broadcast(input, output, round->count, round->type, round->root,
				      gpu->comm, gpu->stream);
	case ALLTOALL:
		return enqueue_alltoall(sweep, round, gpu);
	default:
		return enqueue_gatherv(sweep, round, gpu);
	}
}

/* All operations of a group differ in their data. */
static struct round part_of_round(const struct round *round, int part)
{
	struct round own = *round;

	own.part = part;
	own.salt += (unsigned)part;
	return own;
}

static int enqueue_group(struct sweep *sweep, const struct round *round)
{
	int result = 0;

	for (int p = 0; p < sweep->options->group; p++) {
		struct round part = part_of_round(round, p);

		for (int g = 0; g < sweep->options->gpus && !result; g++)
			result = enqueue_operation(sweep, &part, &sweep->gpus[g]);
	}
	return result;
}

static void for_all_parts(struct sweep *sweep, const struct round *round,
			  void (*act)(struct sweep *sweep, const struct round *round,
				      struct gpu *gpu))
{
	for (int p = 0; p < sweep->options->group; p++) {
		struct round part = part_of_round(round, p);

		for (int g = 0; g < sweep->options->gpus; g++)
			act(sweep, &part, &sweep->gpus[g]);
	}
}

static void run_round(struct sweep *sweep, const struct round *round)
{
	int first_rank = sweep->gpus[0].rank;
	int result;
	int end;

	for_all_parts(sweep, round, fill_buffers);
	check_nccl(&sweep->api, sweep->api.group_start(), "ncclGroupStart");
	result = enqueue_group(sweep, round);
	end = sweep->api.group_end();
	/* invalid argument or usage: e.g. sums of 8-bit floats on this GPU */
	if (result == 4 || result == 5) {
		sweep->shared->refused[first_rank]++;
		return;
	}
	check_nccl(&sweep->api, result, sweep_operation_names[round->operation]);
	check_nccl(&sweep->api, end, "ncclGroupEnd");
	for (int g = 0; g < sweep->options->gpus; g++)
		check_cuda(sweep->api.stream_synchronize(sweep->gpus[g].stream),
			   "cudaStreamSynchronize");
	for_all_parts(sweep, round, check_buffers);
	sweep->shared->operations[first_rank] += (unsigned long)sweep->options->group;
}

static void create_operators(struct sweep *sweep, enum element_type type)
{
	char factor[8] = { 0 };

	store_value(factor, type, 2);
	for (int g = 0; g < sweep->options->gpus; g++) {
		struct gpu *gpu = &sweep->gpus[g];

		check_cuda(sweep->api.copy(gpu->scalar, factor, sizeof(factor), CUDA_COPY_ANY),
			   "cudaMemcpy");
		check_nccl(&sweep->api,
			   sweep->api.create_premultiply(&gpu->operator_by_value, factor, type,
							 NCCL_SCALAR_ON_HOST, gpu->comm),
			   "create");
		check_nccl(&sweep->api,
			   sweep->api.create_premultiply(&gpu->operator_by_pointer, gpu->scalar,
							 type, NCCL_SCALAR_ON_DEVICE, gpu->comm),
			   "create");
	}
}

static void destroy_operators(struct sweep *sweep)
{
	for (int g = 0; g < sweep->options->gpus; g++) {
		struct gpu *gpu = &sweep->gpus[g];

		check_nccl(&sweep->api,
			   sweep->api.destroy_operator(gpu->operator_by_value, gpu->comm),
			   "destroy");
		check_nccl(&sweep->api,
			   sweep->api.destroy_operator(gpu->operator_by_pointer, gpu->comm),
			   "destroy");
	}
}

static void sweep_operation(struct sweep *sweep, enum operation operation, enum element_type type,
			    unsigned salt)
{
	int operators = is_reduction(operation) ? OPERATORS : 1;

	for (int o = 0; o < operators; o++) {
		if (!sweep->options->operators[o] && operators > 1)
			continue;
		for (int s = 0; s < sweep->options->size_count; s++) {
			struct round round = {
				.operation = operation,
				.type = type,
				.operator= o,
				.count = sweep->options->sizes[s],
				.root = (int)((salt + (unsigned)s) %
					      (unsigned)sweep->options->ranks),
				.in_place = (salt + (unsigned)o + (unsigned)s) & 1,
				.salt = salt + (unsigned)o,
			};

			run_round(sweep, &round);
		}
	}
}

/* 8-bit floats came with NCCL 2.24; earlier versions read behind their tables. */
static int count_types(const struct sweep *sweep)
{
	int version;

	check_nccl(&sweep->api, sweep->api.get_version(&version), "ncclGetVersion");
	return version < 22400 ? ELEMENT_FLOAT8_E4M3 : ELEMENT_TYPE_COUNT;
}

static void sweep_everything(struct sweep *sweep)
{
	int types = count_types(sweep);
	unsigned salt = 0;

	for (int i = 0; i < sweep->options->repeat; i++) {
		for (int t = 0; t < types; t++) {
			if (!sweep->options->types[t])
				continue;
			create_operators(sweep, (enum element_type)t);
			for (int o = 0; o < OPERATION_COUNT; o++) {
				if (sweep->options->operations[o])
					sweep_operation(sweep, (enum operation)o,
							(enum element_type)t, salt++);
			}
			destroy_operators(sweep);
		}
	}
}

static void get_buffer(struct sweep *sweep, struct gpu *gpu, char **buffer, void **handle)
{
	void *address;

	if (!sweep->options->registered) {
		check_cuda(sweep->api.allocate(&address, sweep->buffer_bytes), "cudaMalloc");
	} else {
		check_nccl(&sweep->api, sweep->api.mem_alloc(&address, sweep->buffer_bytes),
			   "ncclMemAlloc");
		check_nccl(&sweep->api,
			   sweep->api.comm_register(gpu->comm, address, sweep->buffer_bytes,
						    handle),
			   "ncclCommRegister");
	}
	*buffer = address;
}

static void put_buffer(struct sweep *sweep, struct gpu *gpu, char *buffer, void *handle)
{
	if (!sweep->options->registered) {
		check_cuda(sweep->api.release(buffer), "cudaFree");
		return;
	}
	check_nccl(&sweep->api, sweep->api.comm_deregister(gpu->comm, handle),
		   "ncclCommDeregister");
	check_nccl(&sweep->api, sweep->api.mem_free(buffer), "ncclMemFree");
}

static void open_gpus(struct sweep *sweep, int process)
{
	const struct sweep_options *options = sweep->options;

	check_nccl(&sweep->api, sweep->api.group_start(), "ncclGroupStart");
	for (int g = 0; g < options->gpus; g++) {
		struct gpu *gpu = &sweep->gpus[g];
		int processes_of_host = options->ranks / options->gpus / options->hosts;

		gpu->rank = process * options->gpus + g;
		check_cuda(sweep->api.set_device(process % processes_of_host * options->gpus + g),
			   "cudaSetDevice");
		check_cuda(sweep->api.stream_create(&gpu->stream), "cudaStreamCreate");
		check_cuda(sweep->api.allocate(&gpu->scalar, 8), "cudaMalloc");
		check_nccl(&sweep->api,
			   sweep->api.comm_init(&gpu->comm, options->ranks, sweep->shared->id,
						gpu->rank),
			   "ncclCommInitRank");
	}
	check_nccl(&sweep->api, sweep->api.group_end(), "ncclGroupEnd");
	for (int g = 0; g < options->gpus; g++) {
		struct gpu *gpu = &sweep->gpus[g];

		get_buffer(sweep, gpu, &gpu->input, &gpu->input_handle);
		get_buffer(sweep, gpu, &gpu->output, &gpu->output_handle);
	}
}

static void close_gpus(struct sweep *sweep)
{
	for (int g = 0; g < sweep->options->gpus; g++) {
		struct gpu *gpu = &sweep->gpus[g];

		put_buffer(sweep, gpu, gpu->input, gpu->input_handle);
		put_buffer(sweep, gpu, gpu->output, gpu->output_handle);
	}
	check_nccl(&sweep->api, sweep->api.group_start(), "ncclGroupStart");
	for (int g = 0; g < sweep->options->gpus; g++)
		check_nccl(&sweep->api, sweep->api.comm_finalize(sweep->gpus[g].comm),
			   "ncclCommFinalize");
	check_nccl(&sweep->api, sweep->api.group_end(), "ncclGroupEnd");
	for (int g = 0; g < sweep->options->gpus; g++)
		check_nccl(&sweep->api, sweep->api.comm_destroy(sweep->gpus[g].comm),
			   "ncclCommDestroy");
}

static void run_process(const struct sweep_options *options, struct shared *shared, int process)
{
	static struct sweep sweep;
	int processes = options->ranks / options->gpus;
	size_t largest = 0;
	char host[32];

	snprintf(host, sizeof(host), "sweep-%d-%d", getppid(),
		 process * options->hosts / processes);
	setenv("NCCL_HOSTID", host, 0);
	sweep.options = options;
	sweep.shared = shared;
	load_nccl(&sweep.api, options->library);
	for (int s = 0; s < options->size_count; s++)
		largest = options->sizes[s] > largest ? options->sizes[s] : largest;
	sweep.part_bytes = largest * (size_t)options->ranks * 8 + 64;
	sweep.buffer_bytes = sweep.part_bytes * (size_t)options->group;
	sweep.host = malloc(sweep.part_bytes);
	if (process == 0) {
		check_nccl(&sweep.api, sweep.api.get_id(&shared->id), "ncclGetUniqueId");
		shared->id_is_there = 1;
	}
	while (!shared->id_is_there)
		usleep(1000);
	open_gpus(&sweep, process);
	sweep_everything(&sweep);
	close_gpus(&sweep);
	free(sweep.host);
}

/* The processes of one sweep are killed as soon as one of them has failed. */
static bool wait_for_processes(const pid_t *pids, int count)
{
	bool good = true;
	int status;
	pid_t pid;

	while ((pid = wait(&status)) > 0) {
		if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
			continue;
		if (WIFSIGNALED(status) && good)
			fprintf(stderr, "sweep_nccl: process %d ended by signal %d\n", (int)pid,
				WTERMSIG(status));
		for (int i = 0; good && i < count; i++)
			kill(pids[i], SIGKILL);
		good = false;
	}
	return good;
}

int main(int argc, char **argv)
{
	struct sweep_options options = { 0 };
	struct shared *shared;
	pid_t pids[RANKS_MAX];
	int processes;

	sweep_parse_options(&options, argc, argv);
	processes = options.ranks / options.gpus;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED)
		return 1;
	for (int p = 0; p < processes; p++) {
		pids[p] = fork();
		if (pids[p] == 0) {
			run_process(&options, shared, p);
			return 0;
		}
	}
	if (!wait_for_processes(pids, processes))
		return 1;
	printf("%d ranks, %d processes, %d hosts: %lu operations right, %lu refused by NCCL\n",
	       options.ranks, processes, options.hosts, shared->operations[0], shared->refused[0]);
	return shared->operations[0] ? 0 : 1;
}
