/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/ina/host/front/rig.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t backend;
static int backend_stdin = -1;
static char socket_path[64];
static pid_t owner; /* of the socket: the test's first process */

static struct shared {
	pthread_barrier_t barrier;
	uint8_t ticket[HA_INA_TICKET];
} * shared;

/* A backend that was killed leaves them, for the next one at this path. */
static void remove_socket(void)
{
	static char lock_path[sizeof(socket_path) + 8];

	if (getpid() != owner)
		return; /* a rank */
	snprintf(lock_path, sizeof(lock_path), "%s.lock", socket_path);
	unlink(socket_path);
	unlink(lock_path);
}

static void name_socket(void)
{
	if (owner == getpid())
		return;
	owner = getpid();
	snprintf(socket_path, sizeof(socket_path), "/tmp/ina-front-%d.sock", (int)owner);
	atexit(remove_socket);
}

void backend_start(const char *const *options)
{
	const char *argv[24] = { ADDING_BACKEND, "--socket", socket_path };
	int in[2], out[2], n = 3;
	char line[16];

	name_socket();
	setenv("NETCCL_BACKEND", socket_path, 1);
	while (options && *options)
		argv[n++] = *options++;
	CHECK(!pipe(in) && !pipe(out));
	backend = fork();
	CHECK(backend >= 0);
	if (!backend) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(in[0], 0);
		dup2(out[1], 1);
		for (int fd = 3; fd < 64; fd++)
			close(fd);
		execv(argv[0], (char *const *)argv);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	CHECK(read(out[0], line, sizeof(line)) > 0);
	close(out[0]);
	backend_stdin = in[1];
}

void backend_kill(void)
{
	kill(backend, SIGKILL);
	CHECK_INT(waitpid(backend, NULL, 0), backend);
	close(backend_stdin);
}

void backend_stop(void)
{
	int status;

	close(backend_stdin);
	CHECK_INT(waitpid(backend, &status, 0), backend);
	CHECK_INT(status, 0);
}

struct ha_ina *open_or_die(void)
{
	struct ha_ina *ina;
	char why[300] = "";
	int err = ha_ina_open(&ina, &(struct ha_ina_options) { 0 }, why, sizeof(why));

	if (err)
		fprintf(stderr, "open: %s\n", why);
	CHECK_INT(err, 0);
	return ina;
}

struct ha_ina_group *group_or_die(struct ha_ina *ina, unsigned ranks, unsigned rank)
{
	uint32_t member[HA_INA_RANKS] = { 1 };
	uint8_t ticket[HA_INA_TICKET];
	struct ha_ina_group *group;

	CHECK_INT(ha_ina_group_create(ina, member, ranks, "test", ticket), 0);
	CHECK_INT(ha_ina_group_join(ina, ticket, rank, &group), 0);
	return group;
}

struct ha_ina_op *post_or_die(struct ha_ina *ina, struct ha_ina_group *group,
			      const struct ha_ina_request *request)
{
	struct ha_ina_op *op;
	int err = ha_ina_post(group, request, &op);

	if (err)
		fprintf(stderr, "post: %s\n", ha_ina_error(ina));
	CHECK_INT(err, 0);
	return op;
}

int run_request(struct ha_ina *ina, struct ha_ina_group *group,
		const struct ha_ina_request *request)
{
	struct ha_ina_op *op = post_or_die(ina, group, request);
	int result = ha_ina_wait(op, TIME_LIMIT);

	CHECK(result != -ETIME);
	ha_ina_op_free(op);
	return result;
}

void ranks_meet(struct rank *r)
{
	pthread_barrier_wait(&shared->barrier);
}

static void be_rank(struct rank r, void (*fn)(struct rank *r))
{
	static uint32_t member[HA_INA_RANKS];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(850);
	r.ina = open_or_die();
	for (unsigned i = 0; i < r.ranks; i++)
		member[i] = ha_ina_address(r.ina);
	if (!r.rank)
		CHECK_INT(ha_ina_group_create(r.ina, member, r.ranks, "test", shared->ticket), 0);
	ranks_meet(&r);
	CHECK_INT(ha_ina_group_join(r.ina, shared->ticket, r.rank, &r.group), 0);
	CHECK(ha_ina_group_rank(r.group) == r.rank && ha_ina_group_ranks(r.group) == r.ranks);
	ranks_meet(&r);
	fn(&r);
	ranks_meet(&r);
	ha_ina_group_leave(r.group);
	ha_ina_close(r.ina);
	exit(0);
}

void ranks_start(unsigned ranks, void (*fn)(struct rank *r), void *arg, pid_t *pid)
{
	pthread_barrierattr_t attr;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	CHECK(shared != MAP_FAILED);
	pthread_barrierattr_init(&attr);
	pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(&shared->barrier, &attr, ranks);
	for (unsigned i = 0; i < ranks; i++) {
		pid[i] = fork();
		CHECK(pid[i] >= 0);
		if (!pid[i])
			be_rank((struct rank) { .rank = i, .ranks = ranks, .arg = arg }, fn);
	}
}

void ranks_wait(unsigned ranks, const pid_t *pid)
{
	bool well = true;

	for (unsigned i = 0; i < ranks; i++) {
		int status;

		CHECK_INT(waitpid(pid[i], &status, 0), pid[i]);
		if (status) {
			fprintf(stderr, "rank %u ended with status 0x%x\n", i, status);
			well = false;
		}
		for (unsigned j = 0; status && j < ranks; j++) /* the others would wait for it */
			if (j > i)
				kill(pid[j], SIGKILL);
	}
	CHECK(well);
}

void ranks_run(unsigned ranks, void (*fn)(struct rank *r), void *arg)
{
	pid_t pid[HA_INA_RANKS];

	ranks_start(ranks, fn, arg, pid);
	ranks_wait(ranks, pid);
}
