/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank of a collnet communicator is killed: the others' operations end with an error within
 * seconds, also at those that have no connection with it, and never in a hang.
 */
#include "tests/base/share.h"
#include "tests/plugin/nccl/rig.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/perf/collnet_table.h"

#define RANKS 5 /* 0 has lanes with 1, 2 and 4, none with 3's end of it */
#define DEAD 3
#define WORDS 5000
#define LIMIT_S 10.0 /* a loaded machine; the error itself takes milliseconds */

static struct shared {
	uint8_t handle[RANKS][NCCL_NET_HANDLE_MAXSIZE];
	atomic_int listening;
	atomic_int sums[RANKS];
	_Atomic double killed;
	_Atomic double took[RANKS];
} * shared;

static void rank_main(int argc, char **argv, int rank)
{
	struct rig_deadline deadline = rig_deadline("the death of a rank");
	static float data[WORDS];
	struct ha_collnet_table table;
	void *handles[RANKS], *listen, *comm, *mr;
	ncclResult_t result = ncclSuccess;
	struct rig rig;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	rig_open(&rig, argc, argv);
	CHECK(!ha_collnet_table_open(&table, &rig.plugin, rig.version, rig_logger), "%s",
	      rig_last_log());
	OK(ha_collnet_table_listen(&table, 0, shared->handle[rank], &listen));
	atomic_fetch_add(&shared->listening, 1);
	while (atomic_load(&shared->listening) < RANKS)
		rig_pause(&deadline);
	for (int r = 0; r < RANKS; r++)
		handles[r] = shared->handle[r];
	OK(ha_collnet_table_connect(&table, handles, RANKS, rank, listen, &comm));
	OK(ha_collnet_table_close_listen(&table, listen));
	OK(ha_collnet_table_reg(&table, comm, data, sizeof(data), NCCL_PTR_HOST, &mr));
	while (result == ncclSuccess) {
		void *request = NULL;
		int done = 0;

		while (result == ncclSuccess && !request) {
			result =
				ha_collnet_table_iallreduce(&table, comm, data, data, WORDS,
							    ncclFloat32, ncclSum, mr, mr, &request);
			rig_pause(&deadline);
		}
		while (result == ncclSuccess && !done) {
			result = ha_collnet_table_test(&table, request, &done, NULL);
			rig_pause(&deadline);
		}
		atomic_fetch_add(&shared->sums[rank], result == ncclSuccess);
	}
	CHECK(atomic_load(&shared->killed) > 0, "result %d, and nobody has died: %s", result,
	      rig_last_warning());
	atomic_store(&shared->took[rank], rig_now() - atomic_load(&shared->killed));
	CHECK(result == ncclRemoteError, "result %d", result);
	CHECK(rig_warnings() >= 1, "no line about it");
	OK(ha_collnet_table_dereg(&table, comm, mr));
	OK(ha_collnet_table_close_coll(&table, comm));
	_exit(0);
}

int main(int argc, char **argv)
{
	struct rig_deadline deadline = rig_deadline("some sums");
	struct share share;
	pid_t pid[RANKS];
	int status;

	setenv("HA_NCCL_COLLNET", "1", 1);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	CHECK(shared != MAP_FAILED, "memory");
	for (int r = 0; r < RANKS; r++) {
		pid[r] = fork();
		if (!pid[r])
			rank_main(argc, argv, r);
	}
	for (int r = 0; r < RANKS; r++) {
		while (atomic_load(&shared->sums[r]) < 3) {
			CHECK(waitpid(-1, &status, WNOHANG) <= 0, "a rank ended with status %d",
			      status);
			rig_pause(&deadline);
		}
	}
	share = share_read();
	atomic_store(&shared->killed, rig_now());
	kill(pid[DEAD], SIGKILL);
	for (int r = 0; r < RANKS; r++) {
		CHECK(waitpid(pid[r], &status, 0) == pid[r], "waitpid");
		CHECK(r == DEAD || (WIFEXITED(status) && !WEXITSTATUS(status)),
		      "rank %d: status %d", r, status);
		share_check_limit(&share, "the error after the rank's end",
				  atomic_load(&shared->took[r]), LIMIT_S);
	}
	return 0;
}
