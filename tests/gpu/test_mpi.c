/* SPDX-License-Identifier: BSD-3-Clause */
/* test_mpi.c - the bootstrap over MPI: started by mpirun, no MPI header and no MPI library at build
 * time */
#include "base/check.h"
#include "gpu/host/bootstrap.h"

#include <errno.h>

int main(int argc, char **argv)
{
	struct ha_gpu_bootstrap b;
	int send[64], receive[64];

	CHECK(!ha_gpu_bootstrap_mpi(&b));
	CHECK_INT(b.size, argc > 1 ? atoi(argv[1]) : 1);
	CHECK(b.size <= 64 && b.address[0]);
	for (int i = 0; i < b.size; i++)
		send[i] = b.rank * 100 + i;
	CHECK(!b.alltoall(b.self, send, receive, sizeof(int)));
	for (int i = 0; i < b.size; i++)
		CHECK_INT(receive[i], i * 100 + b.rank);
	CHECK_INT(ha_gpu_bootstrap_agree(&b, 0), 0);
	CHECK_INT(ha_gpu_bootstrap_agree(&b, b.rank == b.size - 1 ? -ENODEV : 0), -ENODEV);
	CHECK(!ha_gpu_bootstrap_allgather(&b, &b.rank, receive, sizeof(int)));
	for (int i = 0; i < b.size; i++)
		CHECK_INT(receive[i], i);
	ha_gpu_bootstrap_close(&b);
	return 0;
}
