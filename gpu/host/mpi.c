/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpi.c - the bootstrap over the MPI that the process has
 *
 * MPI has no ABI of its own; this is Open MPI's (3 to 5: handles are addresses of objects that the
 * library exports), found at run time, so that nothing of hawser needs MPI to be built or to start.
 * Other MPIs: fill in a struct ha_gpu_bootstrap, it takes one function.
 */
#include "gpu/host/bootstrap.h"

#include "base/log.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <ifaddrs.h>
#include <limits.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct mpi {
	void *library, *world, *byte;
	int (*initialized)(int *);
	int (*init)(int *, char ***);
	int (*finalize)(void);
	int (*comm_rank)(void *, int *);
	int (*comm_size)(void *, int *);
	int (*alltoall)(const void *, int, void *, void *, int, void *, void *);
	bool ours; /* we have called MPI_Init */
};

static bool find_symbols(struct mpi *m)
{
	const struct {
		void **to;
		const char *name;
	} want[] = {
		{ &m->world, "ompi_mpi_comm_world" },
		{ &m->byte, "ompi_mpi_byte" },
		{ (void **)&m->initialized, "MPI_Initialized" },
		{ (void **)&m->init, "MPI_Init" },
		{ (void **)&m->finalize, "MPI_Finalize" },
		{ (void **)&m->comm_rank, "MPI_Comm_rank" },
		{ (void **)&m->comm_size, "MPI_Comm_size" },
		{ (void **)&m->alltoall, "MPI_Alltoall" },
	};

	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		*want[i].to = dlsym(m->library, want[i].name);
		if (!*want[i].to)
			return false;
	}
	return true;
}

/* The one that the program is linked with, or the system's. */
static int load_library(struct mpi *m)
{
	static const char *const names[] = { NULL, "libmpi.so.40", "libmpi.so" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		m->library = dlopen(names[i], RTLD_NOW | RTLD_GLOBAL);
		if (m->library && find_symbols(m))
			return 0;
		if (m->library)
			dlclose(m->library);
	}
	HA_WARN("MPI", "no Open MPI in this process or on this system (libmpi.so.40): use the TCP "
		       "bootstrap, or fill in your own");
	return -ENOENT;
}

static int alltoall(void *self, const void *send, void *receive, size_t bytes)
{
	struct mpi *m = self;

	if (bytes > INT_MAX)
		return -EMSGSIZE;
	return m->alltoall(send, (int)bytes, m->byte, receive, (int)bytes, m->byte, m->world) ? -EIO
											      : 0;
}

static void close_mpi(void *self)
{
	struct mpi *m = self;

	if (m->ours)
		m->finalize();
	dlclose(m->library);
	free(m);
}

/* The first address that is up and no loopback; else a loopback, for jobs on one host. */
static void own_address(char text[64])
{
	struct ifaddrs *list, *i;

	strcpy(text, "127.0.0.1");
	if (getifaddrs(&list))
		return;
	for (i = list; i; i = i->ifa_next)
		if (i->ifa_addr && i->ifa_addr->sa_family == AF_INET && i->ifa_flags & IFF_UP &&
		    !(i->ifa_flags & IFF_LOOPBACK)) {
			inet_ntop(AF_INET, &((struct sockaddr_in *)i->ifa_addr)->sin_addr, text,
				  64);
			break;
		}
	freeifaddrs(list);
}

int ha_gpu_bootstrap_mpi(struct ha_gpu_bootstrap *b)
{
	struct mpi *m = calloc(1, sizeof(*m));
	int on = 0, r = m ? load_library(m) : -ENOMEM;

	if (r) {
		free(m);
		return r;
	}
	m->initialized(&on);
	m->ours = !on;
	if (!on && m->init(NULL, NULL)) {
		HA_WARN("MPI", "MPI_Init failed: start the program with mpirun");
		dlclose(m->library);
		free(m);
		return -EIO;
	}
	memset(b, 0, sizeof(*b));
	m->comm_rank(m->world, &b->rank);
	m->comm_size(m->world, &b->size);
	own_address(b->address);
	b->self = m;
	b->alltoall = alltoall;
	b->close = close_mpi;
	return 0;
}
