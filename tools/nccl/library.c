/* SPDX-License-Identifier: BSD-3-Clause */
#include <dlfcn.h>
#include <errno.h>
#include <glob.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/job/fault.h"
#include "tools/job/self.h"
#include "tools/nccl/library.h"

#define SONAME "libnccl.so.2"
/*
 * where a build and an installation keep the softcuda libraries, seen from the folder of the
 * program
 */
static const char *const soft_folders[] = { "%s/softcuda/nccl-%s*/" SONAME,
					    "%s/../lib/hawser/softcuda/nccl-%s*/" SONAME };

/* ---- finding it ---- */

/* The newest library of softcuda whose version begins so; false: there is none. */
static bool find_soft(const char *version, char path[PATH_MAX])
{
	char self[PATH_MAX], pattern[PATH_MAX + 128];
	bool found = false;
	glob_t files;

	ha_self_folder(self, sizeof(self));
	for (size_t i = 0; i < sizeof(soft_folders) / sizeof(soft_folders[0]) && !found; i++) {
		const char *best = NULL;

		snprintf(pattern, sizeof(pattern), soft_folders[i], self, version);
		if (glob(pattern, 0, NULL, &files))
			continue;
		for (size_t k = 0; k < files.gl_pathc; k++)
			if (!best || strverscmp(files.gl_pathv[k], best) > 0)
				best = files.gl_pathv[k];
		found = best && strlen(best) < PATH_MAX;
		if (found)
			strcpy(path, best);
		globfree(&files);
	}
	return found;
}

static int find_nccl(const char *what, char path[PATH_MAX])
{
	bool version = what[0] >= '0' && what[0] <= '9';

	if (strchr(what, '/')) {
		if (access(what, R_OK))
			return ha_fault(-ENOENT, "--nccl %s: %s", what, strerror(errno));
		snprintf(path, PATH_MAX, "%s", what);
		return 0;
	}
	if (!version && strcmp(what, "softcuda")) {
		snprintf(path, PATH_MAX, "%s", what);
		return 0;
	}
	if (find_soft(version ? what : "", path))
		return 0;
	return ha_fault(-ENOENT,
			"no NCCL%s%s was linked with softcuda here; scripts/install-deps nccl-all "
			"fetches what is known, the "
			"next build links it",
			version ? " " : "", version ? what : "");
}

/* ---- its functions ---- */

struct symbol {
	const char *name;
	size_t at; /* of the pointer in the table */
	bool optional;
};

#define NCCL_SYMBOL(member, name)                              \
	{                                                      \
		name, offsetof(struct nccl_api, member), false \
	}
#define NCCL_MAY(member, name)                                \
	{                                                     \
		name, offsetof(struct nccl_api, member), true \
	}
static const struct symbol nccl_symbols[] = {
	NCCL_SYMBOL(get_version, "ncclGetVersion"),
	NCCL_SYMBOL(get_unique_id, "ncclGetUniqueId"),
	NCCL_SYMBOL(comm_init, "ncclCommInitRankConfig"),
	NCCL_SYMBOL(comm_destroy, "ncclCommDestroy"),
	NCCL_SYMBOL(comm_abort, "ncclCommAbort"),
	NCCL_SYMBOL(comm_async_error, "ncclCommGetAsyncError"),
	NCCL_SYMBOL(error_string, "ncclGetErrorString"),
	NCCL_SYMBOL(last_error, "ncclGetLastError"),
	NCCL_SYMBOL(group_start, "ncclGroupStart"),
	NCCL_SYMBOL(group_end, "ncclGroupEnd"),
	NCCL_SYMBOL(all_reduce, "ncclAllReduce"),
	NCCL_SYMBOL(all_gather, "ncclAllGather"),
	NCCL_SYMBOL(reduce_scatter, "ncclReduceScatter"),
	NCCL_SYMBOL(broadcast, "ncclBroadcast"),
	NCCL_SYMBOL(reduce, "ncclReduce"),
	NCCL_SYMBOL(send, "ncclSend"),
	NCCL_SYMBOL(recv, "ncclRecv"),
	NCCL_SYMBOL(create_mulsum, "ncclRedOpCreatePreMulSum"),
	NCCL_SYMBOL(destroy_op, "ncclRedOpDestroy"),
	NCCL_MAY(mem_alloc, "ncclMemAlloc"),
	NCCL_MAY(mem_free, "ncclMemFree"),
	NCCL_MAY(comm_register, "ncclCommRegister"),
	NCCL_MAY(comm_deregister, "ncclCommDeregister"),
	NCCL_MAY(window_register, "ncclCommWindowRegister"),
	NCCL_MAY(window_deregister, "ncclCommWindowDeregister"),
};

#define CUDA_SYMBOL(member, name)                              \
	{                                                      \
		name, offsetof(struct cuda_api, member), false \
	}
#define CUDA_MAY(member, name)                                \
	{                                                     \
		name, offsetof(struct cuda_api, member), true \
	}
static const struct symbol cuda_symbols[] = {
	CUDA_SYMBOL(get_device_count, "cudaGetDeviceCount"),
	CUDA_SYMBOL(set_device, "cudaSetDevice"),
	CUDA_SYMBOL(malloc, "cudaMalloc"),
	CUDA_SYMBOL(free, "cudaFree"),
	CUDA_SYMBOL(memcpy, "cudaMemcpy"),
	CUDA_SYMBOL(memset, "cudaMemset"),
	CUDA_SYMBOL(stream_create, "cudaStreamCreateWithFlags"),
	CUDA_SYMBOL(stream_destroy, "cudaStreamDestroy"),
	CUDA_SYMBOL(stream_synchronize, "cudaStreamSynchronize"),
	CUDA_SYMBOL(event_create, "cudaEventCreate"),
	CUDA_SYMBOL(event_destroy, "cudaEventDestroy"),
	CUDA_SYMBOL(event_record, "cudaEventRecord"),
	CUDA_SYMBOL(event_query, "cudaEventQuery"),
	CUDA_SYMBOL(event_elapsed, "cudaEventElapsedTime"),
	CUDA_SYMBOL(error_string, "cudaGetErrorString"),
	CUDA_SYMBOL(runtime_version, "cudaRuntimeGetVersion"),
	CUDA_SYMBOL(pci_bus_id, "cudaDeviceGetPCIBusId"),
	CUDA_MAY(begin_capture, "cudaStreamBeginCapture"),
	CUDA_MAY(end_capture, "cudaStreamEndCapture"),
	CUDA_MAY(graph_instantiate, "cudaGraphInstantiateWithFlags"),
	CUDA_MAY(graph_launch, "cudaGraphLaunch"),
	CUDA_MAY(graph_destroy, "cudaGraphDestroy"),
	CUDA_MAY(graph_exec_destroy, "cudaGraphExecDestroy"),
};

static int symbols_load(void *handle, const struct symbol *symbols, size_t count, void *table,
			const char *path)
{
	for (size_t i = 0; i < count; i++) {
		void *function = dlsym(handle, symbols[i].name);

		if (!function && !symbols[i].optional)
			return ha_fault(-ENOSYS, "%s has no %s: it is too old, or something else",
					path, symbols[i].name);
		memcpy((char *)table + symbols[i].at, &function, sizeof(function));
	}
	return 0;
}

/* The file that the loader has chosen. */
static void path_of(void *handle, const char *name, char path[PATH_MAX])
{
	struct link_map *map = NULL;

	snprintf(path, PATH_MAX, "%s", name);
	if (dlinfo(handle, RTLD_DI_LINKMAP, &map) || !map || !map->l_name || !map->l_name[0])
		return;
	if (!realpath(map->l_name, path))
		snprintf(path, PATH_MAX, "%s", map->l_name);
}

/* The runtime that libnccl has brought along, else the one that the loader finds. */
static void *runtime_open(const char **name)
{
	static const char *const names[] = { "libcudart.so.12", "libcudart.so.13",
					     "libcudart.so.11.0", "libcudart.so.14",
					     "libcudart.so" };
	void *handle = NULL;

	for (size_t i = 0; i < 2 * sizeof(names) / sizeof(names[0]) && !handle; i++) {
		size_t k = i % (sizeof(names) / sizeof(names[0]));

		*name = names[k];
		handle = dlopen(names[k], RTLD_NOW | RTLD_GLOBAL | (i == k ? RTLD_NOLOAD : 0));
	}
	return handle;
}

int ha_library_open(struct ha_library *l, const char *path)
{
	void *nccl = dlopen(path, RTLD_NOW | RTLD_LOCAL), *cuda;
	const char *name;
	int err;

	*l = (struct ha_library) { 0 };
	if (!nccl)
		return ha_fault(-ENOENT, "%s cannot be opened: %s", path, dlerror());
	path_of(nccl, path, l->nccl_path);
	cuda = runtime_open(&name);
	if (!cuda)
		return ha_fault(-ENOENT,
				"no CUDA runtime on the loader's path (libcudart.so.12, .13, "
				".11.0): %s; add its "
				"folder to LD_LIBRARY_PATH",
				dlerror());
	path_of(cuda, name, l->cuda_path);
	l->soft = dlsym(cuda, "softcuda_add_resolver") != NULL;
	err = symbols_load(nccl, nccl_symbols, sizeof(nccl_symbols) / sizeof(nccl_symbols[0]),
			   &l->nccl, l->nccl_path);
	if (!err)
		err = symbols_load(cuda, cuda_symbols,
				   sizeof(cuda_symbols) / sizeof(cuda_symbols[0]), &l->cuda,
				   l->cuda_path);
	if (!err)
		err = l->nccl.get_version(&l->nccl_version);
	if (!err)
		err = l->cuda.runtime_version(&l->cuda_version);
	return err > 0 ? ha_fault(-EIO, "%s or %s does not say its version", l->nccl_path,
				  l->cuda_path)
		       : err;
}

/* ---- the probe ---- */

struct probe_answer {
	int err;
	struct ha_probe probe;
	char fault[PATH_MAX + 512];
};

static void probe_here(struct probe_answer *answer, const char *path)
{
	struct ha_library l;
	int error;

	answer->err = ha_library_open(&l, path);
	if (answer->err) {
		snprintf(answer->fault, sizeof(answer->fault), "%s", ha_fault_text());
		return;
	}
	answer->probe = (struct ha_probe) { .nccl_version = l.nccl_version,
					    .cuda_version = l.cuda_version,
					    .soft = l.soft };
	strcpy(answer->probe.nccl_path, l.nccl_path);
	strcpy(answer->probe.cuda_path, l.cuda_path);
	error = l.cuda.get_device_count(&answer->probe.devices);
	if (!error && answer->probe.devices > 0)
		return;
	answer->err = -ENODEV;
	snprintf(answer->fault, sizeof(answer->fault), "%s finds no GPU (%s)%s", l.cuda_path,
		 l.cuda.error_string(error),
		 l.soft ? ""
			: "; on a machine without one, --nccl softcuda runs NCCL on host memory");
}

static bool answer_read(int fd, struct probe_answer *answer)
{
	size_t got = 0;
	ssize_t n;

	while (got < sizeof(*answer)) {
		n = read(fd, (char *)answer + got, sizeof(*answer) - got);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		got += (size_t)n;
	}
	return true;
}

static int probe_path(struct ha_probe *probe, const char *path)
{
	struct probe_answer answer = { 0 };
	int ends[2], status = 0;
	bool whole;
	pid_t pid;

	if (pipe(ends))
		return ha_fault(-errno, "no pipe: %s", strerror(errno));
	fflush(NULL);
	pid = fork();
	if (!pid) {
		close(ends[0]);
		probe_here(&answer, path);
		_exit(write(ends[1], &answer, sizeof(answer)) != (ssize_t)sizeof(answer));
	}
	close(ends[1]);
	whole = pid > 0 && answer_read(ends[0], &answer);
	close(ends[0]);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (!whole && WIFSIGNALED(status))
		return ha_fault(-EIO, "%s: a process that opened it was killed by signal %d (%s)",
				path, WTERMSIG(status), strsignal(WTERMSIG(status)));
	if (!whole)
		return ha_fault(-EIO, "%s: a process that opened it ended with status %d", path,
				WEXITSTATUS(status));
	if (answer.err)
		return ha_fault(answer.err, "%s", answer.fault);
	*probe = answer.probe;
	return 0;
}

static int find_and_probe(struct ha_probe *probe, const char *what)
{
	char path[PATH_MAX];
	int err = find_nccl(what, path);

	return err ? err : probe_path(probe, path);
}

int ha_library_probe(struct ha_probe *probe, const char *what)
{
	char why[1024];
	int err;

	if (what)
		return find_and_probe(probe, what);
	err = find_and_probe(probe, SONAME);
	if (!err)
		return 0;
	snprintf(why, sizeof(why), "%s", ha_fault_text());
	ha_fault_clear();
	if (!find_and_probe(probe, "softcuda")) {
		snprintf(probe->instead, sizeof(probe->instead), "%s", why);
		return 0;
	}
	ha_fault_clear();
	return ha_fault(err,
			"%s; and no NCCL was linked with softcuda (scripts/install-deps nccl "
			"fetches it, the next build "
			"links it)",
			why);
}

/* ---- versions ---- */

const char *ha_nccl_version_text(int version, char text[32])
{
	/* since 2.9: major * 10000 + minor * 100 + patch */
	snprintf(text, 32, "%d.%d.%d", version / 10000, version / 100 % 100, version % 100);
	return text;
}

const char *ha_cuda_version_text(int version, char text[32])
{
	snprintf(text, 32, "%d.%d", version / 1000, version / 10 % 100);
	return text;
}
