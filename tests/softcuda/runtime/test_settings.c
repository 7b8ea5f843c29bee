/* SPDX-License-Identifier: BSD-3-Clause */
/* The environment, read well or refused in one line that names the variable; and processes that
 * were forked. */
#include "tests/softcuda/runtime/support.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Run `child` in a new process with NAME=VALUE; collect what it says. Returns its exit status. */
static int run_child(const char *name, const char *value, int (*child)(void), char *said,
		     size_t size)
{
	int pipes[2], status;
	size_t length = 0;
	ssize_t part;

	CHECK(pipe(pipes) == 0);
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		dup2(pipes[1], STDERR_FILENO);
		close(pipes[0]);
		close(pipes[1]);
		if (name != NULL)
			setenv(name, value, 1);
		_exit(child());
	}
	close(pipes[1]);
	while ((part = read(pipes[0], said + length, size - 1 - length)) > 0)
		length += (size_t)part;
	said[length] = '\0';
	close(pipes[0]);
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int use_twice(void)
{
	void *pointer;
	int count;
	if (cudaGetDeviceCount(&count) != cudaErrorInitializationError)
		return 1;
	return cudaMalloc(&pointer, 1) == cudaErrorInitializationError ? 0 : 2;
}

static int report_count(void)
{
	int count = 0;
	cudaError_t error = cudaGetDeviceCount(&count);
	if (count == 0)
		return error == cudaErrorNoDevice ? 100 : 101;
	return error == cudaSuccess ? count : 102;
}

static size_t count_lines(const char *text)
{
	size_t lines = 0;
	for (; *text != '\0'; text++)
		lines += *text == '\n';
	return lines;
}

static void check_refused(const char *name, const char *value)
{
	char said[1000];

	CHECK_INT(run_child(name, value, use_twice, said, sizeof(said)), 0);
	CHECK_INT(count_lines(said), 1);
	CHECK(strncmp(said, "softcuda: ", 10) == 0);
	CHECK(strstr(said, name) != NULL && strstr(said, value) != NULL);
}

static void check_accepted(const char *name, const char *value, int devices)
{
	char said[1000];

	CHECK_INT(run_child(name, value, report_count, said, sizeof(said)), devices);
	CHECK_TEXT(said, "");
}

static void check_values(void)
{
	static const char *const no_count[] = {
		"0", "33", "-1", "4x", "1e1", "four", "99999999999999999999"
	};
	static const char *const no_size[] = { "0", "63M", "2000G", "16GB",
					       "M", "-1G", "1.5G",  "18446744073709551616" };

	for (size_t i = 0; i < sizeof(no_count) / sizeof(no_count[0]); i++)
		check_refused("SOFTCUDA_DEVICES", no_count[i]);
	for (size_t i = 0; i < sizeof(no_size) / sizeof(no_size[0]); i++)
		check_refused("SOFTCUDA_MEMORY", no_size[i]);
	check_refused("SOFTCUDA_NVLINK", "13");
	check_accepted(NULL, NULL, 8);
	check_accepted("SOFTCUDA_DEVICES", "", 8);
	check_accepted("SOFTCUDA_DEVICES", "32", 32);
	check_accepted("SOFTCUDA_MEMORY", "64M", 8);
	check_accepted("SOFTCUDA_NVLINK", "12", 8);
	check_refused("SOFTCUDA_YIELD_NAP_US", "10001");
	check_accepted("SOFTCUDA_YIELD_NAP_US", "10000", 8);
	/* CUDA's own rules: the list ends at the first entry that names no device; one named twice
	 * hides all. */
	check_accepted("CUDA_VISIBLE_DEVICES", "5,1", 2);
	check_accepted("CUDA_VISIBLE_DEVICES", "5,8,1", 1);
	check_accepted("CUDA_VISIBLE_DEVICES", "1,1", 100);
	check_accepted("CUDA_VISIBLE_DEVICES", "", 100);
	check_accepted("CUDA_VISIBLE_DEVICES", "-1", 100);
}

static int check_order(void)
{
	char first[32], fifth[32];
	int all;
	OK(cudaDeviceGetPCIBusId(first, sizeof(first), 0));
	OK(cudaGetDeviceCount(&all));
	CHECK_INT(all, 2);
	snprintf(fifth, sizeof(fifth), ":%02X:00.0", 5 + 1); /* device n is on bus n + 1 */
	return strstr(first, fifth) != NULL ? 0 : 1;
}

/* ---- what is not there ---- */

cudaError_t cudaMallocManaged(void **pointer, size_t size, unsigned flags);

static int use_missing(void)
{
	void *pointer;
	for (int i = 0; i < 3; i++)
		FAILS(cudaMallocManaged(&pointer, 100, 1), cudaErrorNotSupported);
	return 0;
}

static void missing_function_is_named(void)
{
	char said[1000];

	CHECK_INT(run_child(NULL, NULL, use_missing, said, sizeof(said)), 0);
	CHECK_INT(count_lines(said), 1);
	CHECK(strstr(said, "cudaMallocManaged is not there") != NULL);
}

/* ---- fork ---- */

static int use_after_fork(void)
{
	void *pointer;
	if (cudaMalloc(&pointer, 1) != cudaErrorInitializationError)
		return 1;
	return cudaSetDevice(0) == cudaErrorInitializationError ? 0 : 2;
}

static void use_after_fork_is_refused(void)
{
	char said[1000];
	void *pointer;

	OK(cudaMalloc(&pointer, 1));
	CHECK_INT(run_child(NULL, NULL, use_after_fork, said, sizeof(said)), 0);
	CHECK_INT(count_lines(said), 1);
	CHECK(strstr(said, "fork") != NULL);
	OK(cudaFree(pointer)); /* the parent goes on */
}

int main(void)
{
	char said[1000];

	unsetenv("SOFTCUDA_DEVICES");
	unsetenv("CUDA_VISIBLE_DEVICES");
	check_values();
	CHECK_INT(run_child("CUDA_VISIBLE_DEVICES", "5,1", check_order, said, sizeof(said)), 0);
	missing_function_is_named();
	use_after_fork_is_refused();
	return 0;
}
