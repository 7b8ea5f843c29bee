/* SPDX-License-Identifier: BSD-3-Clause */
/* test_late.c - a backend that answers late, says two things at once, or does not read for a while:
 * no rank stays behind, no word is lost */
#include "ina/host/front/front.h"
#include "ina/host/shm/server.h"
#include "tests/ina/switch/named.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define MANY 48

static char path[64];
static struct ina_shm_server *server;
static pthread_t thread;
static pthread_mutex_t serving = PTHREAD_MUTEX_INITIALIZER; /* held: the backend hangs */
static atomic_bool stop, answer_later, end_at_once;
static struct ina_shm_peer *asker;
static uint32_t asker_serial;
static atomic_uint joins, leaves;

static void ignore_peer(void *arg, struct ina_shm_peer *p)
{
}

static void answer_create(void *arg, struct ina_shm_peer *p, uint32_t serial,
			  const struct ina_shm_create *spec)
{
	uint8_t ticket[HA_INA_TICKET] = { 1 };

	ina_shm_answer_ticket(p, serial, ticket);
}

static void answer_joined(struct ina_shm_peer *p, uint32_t serial)
{
	ina_shm_answer_joined(p, serial, 1000 + atomic_load(&joins), 0, 2);
	if (atomic_load(&end_at_once))
		ina_shm_peer_state(p, 1000 + atomic_load(&joins), -ECANCELED,
				   "it was over before it began");
}

static void handle_join(void *arg, struct ina_shm_peer *p, uint32_t serial,
			const uint8_t ticket[HA_INA_TICKET], uint32_t rank)
{
	asker = p;
	asker_serial = serial;
	atomic_fetch_add(&joins, 1);
	if (!atomic_load(&answer_later))
		answer_joined(p, serial);
}

static void handle_leave(void *arg, struct ina_shm_peer *p, uint32_t serial, uint32_t handle,
			 int err)
{
	CHECK(handle > 1000 && handle <= 1000 + atomic_load(&joins));
	atomic_fetch_add(&leaves, 1);
	ina_shm_answer_left(p, serial, handle);
}

static void ignore_bell(void *arg, struct ina_shm_peer *p)
{
}

static void release_peer(void *arg, struct ina_shm_peer *p, const char *why)
{
	ina_shm_peer_release(p);
}

static const struct ina_shm_server_ops ops = { ignore_peer,  answer_create, handle_join,
					       handle_leave, ignore_bell,   release_peer };

static void *serve_clients(void *arg)
{
	while (!atomic_load(&stop)) {
		pthread_mutex_lock(&serving);
		ina_shm_server_poll(server, 0);
		pthread_mutex_unlock(&serving);
		usleep(500);
	}
	return NULL;
}

static struct ha_ina *open_with_server(void)
{
	const struct ina_shm_server_config config = { .path = path };
	struct ha_ina *ina;
	char why[256];

	snprintf(path, sizeof(path), "/tmp/ina-late-%d.sock", (int)getpid());
	server = ina_shm_server_open(&config, &ops, NULL, why, sizeof(why));
	CHECK(server);
	CHECK_INT(pthread_create(&thread, NULL, serve_clients, NULL), 0);
	CHECK_INT(ha_ina_open(&ina,
			      &(struct ha_ina_options) { .backend = path,
							 .buffer = MANY * (size_t)HA_INA_SEGMENT },
			      why, sizeof(why)),
		  0);
	return ina;
}

static void backend_ends(void)
{
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	ina_shm_server_close(server);
}

static void close_with_server(struct ha_ina *ina)
{
	ha_ina_close(ina);
	backend_ends();
}

static void wait_leaves(unsigned n)
{
	for (unsigned i = 0; i < 20000 && atomic_load(&leaves) < n; i++)
		usleep(5000);
	CHECK_INT(atomic_load(&leaves), n);
}

/* The caller has given up when the backend takes its rank in: the rank is left at once, and there
 * is room for another. */
static void join_too_late(void)
{
	static const uint8_t ticket[HA_INA_TICKET] = { 1 };
	struct ha_ina *ina = open_with_server();
	struct ha_ina_group *g;

	ina_front_time_limit_ms = 100;
	atomic_store(&answer_later, true);
	CHECK_INT(ha_ina_group_join(ina, ticket, 0, &g), -ETIMEDOUT);
	CHECK(!g && strstr(ha_ina_error(ina), "has not answered"));
	for (unsigned i = 0; i < 20000 && !atomic_load(&joins); i++)
		usleep(5000); /* a busy machine's backend learns of it only now */
	pthread_mutex_lock(&serving);
	answer_joined(asker, asker_serial);
	pthread_mutex_unlock(&serving);
	wait_leaves(1);
	atomic_store(&answer_later, false);
	ina_front_time_limit_ms = 20000;
	CHECK_INT(ha_ina_group_join(ina, ticket, 0, &g), 0);
	ha_ina_group_leave(g);
	wait_leaves(2);
	close_with_server(ina);
}

/* The group's end comes right behind the answer: the caller learns of both, whatever it does in
 * between. */
static void ended_at_once(void)
{
	static const uint8_t ticket[HA_INA_TICKET] = { 1 };
	struct ha_ina *ina = open_with_server();
	struct ha_ina_group *g;

	atomic_store(&end_at_once, true);
	for (unsigned n = 0; n < 50; n++) {
		CHECK_INT(ha_ina_group_join(ina, ticket, 0, &g), 0);
		for (unsigned i = 0; i < 20000 && !ha_ina_group_state(g); i++)
			usleep(5000);
		CHECK_INT(ha_ina_group_state(g), -ECANCELED);
		CHECK(strstr(ha_ina_error(ina), "before it began"));
		ha_ina_group_leave(g);
	}
	wait_leaves(50);
	close_with_server(ina);
}

/* The client's end of the connection: the one that has our server at its other end. */
static int client_fd(void)
{
	for (int fd = 3; fd < 256; fd++) {
		struct sockaddr_un address = { 0 };
		socklen_t size = sizeof(address);

		if (!getpeername(fd, (struct sockaddr *)&address, &size) &&
		    address.sun_family == AF_UNIX && !strcmp(address.sun_path, path))
			return fd;
	}
	return -1;
}

/* A backend that does not read for a while, and many who leave: each is received, in the end. */
static void leave_when_full(void)
{
	static const uint8_t ticket[HA_INA_TICKET] = { 1 };
	struct ha_ina *ina = open_with_server();
	struct ha_ina_group *g[MANY];
	int least = 1;

	for (unsigned i = 0; i < MANY; i++)
		CHECK_INT(ha_ina_group_join(ina, ticket, 0, &g[i]), 0);
	CHECK_INT(setsockopt(client_fd(), SOL_SOCKET, SO_SNDBUF, &least, sizeof(least)), 0);
	pthread_mutex_lock(&serving);
	for (unsigned i = 0; i < MANY; i++)
		ha_ina_group_leave(g[i]);
	usleep(20000);
	CHECK_INT(atomic_load(&leaves), 0);
	pthread_mutex_unlock(&serving);
	wait_leaves(MANY);
	CHECK_INT(ha_ina_group_join(ina, ticket, 0, &g[0]), 0);
	ha_ina_group_leave(g[0]);
	wait_leaves(MANY + 1);
	close_with_server(ina);
}

struct asking {
	struct ha_ina *ina;
	int err;
	char said[300];
};

static void *ask_to_join(void *arg)
{
	static const uint8_t ticket[HA_INA_TICKET] = { 1 };
	struct asking *a = arg;
	struct ha_ina_group *g;

	a->err = ha_ina_group_join(a->ina, ticket, 0, &g);
	snprintf(a->said, sizeof(a->said), "%s", ha_ina_error(a->ina));
	return NULL;
}

static unsigned count_questions(struct ha_ina *ina)
{
	const struct ina_front_question *q;
	unsigned n = 0;

	pthread_mutex_lock(&ina->lock);
	LIST_FOREACH(q, &ina->questions.list, link)
		n++;
	pthread_mutex_unlock(&ina->lock);
	return n;
}

/* Closed while other threads wait for the backend's answers: they come back, and the context exists
 * until the last of them has. */
static void closed_while_asking(void)
{
	struct ha_ina *ina = open_with_server();
	struct asking a[4];
	pthread_t asker_thread[4];

	atomic_store(&answer_later, true);
	for (unsigned i = 0; i < 4; i++) {
		a[i] = (struct asking) { .ina = ina };
		CHECK_INT(pthread_create(&asker_thread[i], NULL, ask_to_join, &a[i]), 0);
	}
	while (count_questions(ina) < 4)
		usleep(1000);
	pthread_mutex_lock(&ina->lock); /* each of them holds it, and so does who opened it */
	CHECK_INT(ina->refs, 5);
	pthread_mutex_unlock(&ina->lock);
	ha_ina_close(ina);
	for (unsigned i = 0; i < 4; i++) {
		pthread_join(asker_thread[i], NULL);
		CHECK_INT(a[i].err, -ENOTCONN);
		CHECK(strstr(a[i].said, "closed"));
	}
	backend_ends();
}

static const struct named_test tests[] = {
	{ "join_too_late", join_too_late },
	{ "ended_at_once", ended_at_once },
	{ "leave_when_full", leave_when_full },
	{ "closed_while_asking", closed_while_asking },
};

int main(int argc, char **argv)
{
	CHECK_INT(argc, 2); /* each in a process of its own: the counts are the program's */
	alarm(850);
	return NAMED_TESTS_RUN(tests, argc, argv);
}
