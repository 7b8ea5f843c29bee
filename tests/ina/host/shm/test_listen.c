/* SPDX-License-Identifier: BSD-3-Clause */
/* test_listen.c - many backends that start at once where a killed one has left its socket: one gets
 * the place, and keeps it */
#include "base/sockaddr.h"
#include "ina/host/shm/listen.h"
#include "tests/ina/switch/named.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STARTERS 8
#define ROUNDS 40

static char path[64];
static atomic_int serving, served;

/* The C library's; who finds that nobody listens there takes his time before he acts on it. */
int connect(int fd, const struct sockaddr *address, socklen_t size)
{
	int rc = (int)syscall(SYS_connect, fd, address, size), err = errno;

	if (rc && err == ECONNREFUSED)
		usleep(2000);
	errno = err;
	return rc;
}

/* As a killed backend leaves it. */
static void leave_dead(void)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	struct sockaddr_un address;

	CHECK_INT(ha_sockaddr_unix(path, &address), 0);
	CHECK_INT(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	close(fd);
}

/* Whoever dials the path reaches this one. */
static void check_reached(const struct ina_shm_place *place)
{
	struct sockaddr_un address;
	int client = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), accepted;

	CHECK_INT(ha_sockaddr_unix(path, &address), 0);
	CHECK_INT(connect(client, (struct sockaddr *)&address, sizeof(address)), 0);
	accepted = accept(place->fd, NULL, NULL);
	CHECK(accepted >= 0);
	close(accepted);
	close(client);
}

/* Until it has had the place once; with one of them there, the others get the error that another
 * backend is. */
static void *take_place(void *arg)
{
	struct ina_shm_place place;
	char why[256] = "";

	(void)arg;
	while (ina_shm_listen(path, 0600, &place, why, sizeof(why))) {
		CHECK(strstr(why, "another backend"));
		usleep(500);
	}
	CHECK_INT(atomic_fetch_add(&serving, 1), 0);
	usleep(1000); /* in which another one may think that it has found a dead one's */
	check_reached(&place);
	atomic_fetch_sub(&serving, 1);
	atomic_fetch_add(&served, 1);
	ina_shm_unlisten(path, &place);
	return NULL;
}

static void start_at_once(void)
{
	char lock[80];
	pthread_t thread[STARTERS];

	snprintf(path, sizeof(path), "/tmp/ina-listen-%d.sock", (int)getpid());
	snprintf(lock, sizeof(lock), "%s.lock", path);
	for (unsigned round = 0; round < ROUNDS; round++) {
		leave_dead();
		for (unsigned i = 0; i < STARTERS; i++)
			CHECK_INT(pthread_create(&thread[i], NULL, take_place, NULL), 0);
		for (unsigned i = 0; i < STARTERS; i++)
			CHECK_INT(pthread_join(thread[i], NULL), 0);
		CHECK(access(path, F_OK) && access(lock, F_OK)); /* nothing is left */
	}
	CHECK_INT(atomic_load(&served), STARTERS * ROUNDS);
}

/* What a killed backend leaves is a lock that nobody holds, too. */
static void left_lock(void)
{
	struct ina_shm_place place;
	char lock[80], why[256] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/tmp/ina-listen-%d.sock", (int)getpid());
	snprintf(lock, sizeof(lock), "%s.lock", path);
	f = fopen(lock, "w");
	CHECK(f);
	fclose(f);
	leave_dead();
	CHECK_INT(ina_shm_listen(path, 0600, &place, why, sizeof(why)), 0);
	check_reached(&place);
	ina_shm_unlisten(path, &place);
	CHECK(access(path, F_OK) && access(lock, F_OK));
}

int main(int argc, char **argv)
{
	static const struct named_test tests[] = { { "start_at_once", start_at_once },
						   { "left_lock", left_lock } };

	return NAMED_TESTS_RUN(tests, argc, argv);
}
