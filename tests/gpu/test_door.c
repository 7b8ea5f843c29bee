/* SPDX-License-Identifier: BSD-3-Clause */
/* test_door.c - unauthenticated peers that connect while a job's processes look for each other */
#include "gpu/device/world.h"
#include "gpu/host/door.h"
#include "gpu/host/messages.h"
#include "gpu/host/stream.h"
#include "tests/ina/switch/named.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LIMIT_MS 100000
#define UNAUTHENTICATED 12
/* well before the limit, and before the five seconds that each unauthenticated peer used to cost */
#define SOON UINT64_C(30000000000)

static char root[80];
static atomic_int full; /* so often there is no descriptor for who dials */

int accept4(int fd, struct sockaddr *address, socklen_t *bytes, int flags)
{
	if (atomic_load(&full) > 0) {
		atomic_fetch_sub(&full, 1);
		errno = EMFILE;
		return -1;
	}
	return (int)syscall(SYS_accept4, fd, address, bytes, flags);
}

struct rank {
	int rank, unauthenticated, silent[UNAUTHENTICATED]; /* connections that say nothing */
	struct ha_gpu_bootstrap b, spied;
	struct ha_gpu_messages *messages;
	uint64_t took;
};

static struct rank rank[2];

static void *connect_bootstrap(void *arg)
{
	struct rank *r = arg;
	uint64_t start = ha_gpu_now();

	CHECK(!ha_gpu_bootstrap_tcp(&r->b, root, r->rank, 2, 7, LIMIT_MS));
	r->took = ha_gpu_now() - start;
	return NULL;
}

static void crowd_in(struct rank *r, const char *where)
{
	while (r->unauthenticated < UNAUTHENTICATED) {
		r->silent[r->unauthenticated] = ha_gpu_stream_connect(where, LIMIT_MS);
		CHECK(r->silent[r->unauthenticated++] >= 0);
	}
}

/* Unauthenticated peers are there before rank 1, and say nothing. */
static void meet_with_unauthenticated(void)
{
	pthread_t t;

	CHECK(!ha_gpu_stream_free_local(root));
	for (int i = 0; i < 2; i++)
		rank[i] = (struct rank) { .rank = i };
	CHECK(!pthread_create(&t, NULL, connect_bootstrap, &rank[0]));
	crowd_in(&rank[0], root);
	connect_bootstrap(&rank[1]);
	pthread_join(t, NULL);
}

static void close_bootstraps(void)
{
	for (int i = 0; i < 2; i++) {
		ha_gpu_bootstrap_close(&rank[i].b);
		while (rank[i].unauthenticated)
			close(rank[i].silent[--rank[i].unauthenticated]);
	}
}

/* Whoever dials is let in as soon as that is possible; until then nobody looks again and again. */
static void no_descriptors(void)
{
	pthread_t t;

	CHECK(!ha_gpu_stream_free_local(root));
	for (int i = 0; i < 2; i++)
		rank[i] = (struct rank) { .rank = i };
	atomic_store(&full, 20);
	CHECK(!pthread_create(&t, NULL, connect_bootstrap, &rank[0]));
	connect_bootstrap(&rank[1]);
	pthread_join(t, NULL);
	CHECK_INT(atomic_load(&full), 0);
	CHECK(rank[0].took >= 20 * UINT64_C(10000000));
	close_bootstraps();
}

static void silent_at_the_bootstrap(void)
{
	meet_with_unauthenticated();
	CHECK(rank[0].took < SOON);
	close_bootstraps();
}

/* Rank 1 learns where rank 0 listens, and so do unauthenticated peers, which are faster. */
static int alltoall_and_crowd(void *self, const void *send, void *receive, size_t bytes)
{
	struct rank *r = self;
	int result = r->b.alltoall(r->b.self, send, receive, bytes);

	if (!result && r->rank && bytes > 80)
		crowd_in(r, receive);
	return result;
}

static void *open_messages(void *arg)
{
	struct rank *r = arg;
	uint64_t start = ha_gpu_now();

	r->spied = r->b;
	r->spied.self = r;
	r->spied.alltoall = alltoall_and_crowd;
	r->spied.ended_rank = NULL;
	CHECK(!ha_gpu_messages_open(&r->spied, LIMIT_MS, &r->messages));
	r->took = ha_gpu_now() - start;
	return NULL;
}

static void *open_quietly(void *arg)
{
	struct rank *r = arg;

	CHECK(!ha_gpu_messages_open(&r->b, LIMIT_MS, &r->messages));
	return NULL;
}

static void silent_at_the_messages(void)
{
	pthread_t t;

	meet_with_unauthenticated();
	CHECK(!pthread_create(&t, NULL, open_messages, &rank[0]));
	open_messages(&rank[1]);
	pthread_join(t, NULL);
	CHECK_INT(rank[1].unauthenticated, UNAUTHENTICATED);
	CHECK(rank[0].took < SOON);
	for (int i = 0; i < 2; i++)
		ha_gpu_messages_close(rank[i].messages);
	close_bootstraps();
}

/* A lane was made for whatever row a peer named, without end. */
static void a_row_that_cannot_be(void)
{
	uint64_t end = ha_gpu_now() + UINT64_C(120000000000);
	struct ha_gpu_message message = { .type = HA_GPU_MESSAGE_PROVED };
	struct ha_gpu_channel to, from;
	pthread_t t;
	int r;

	meet_with_unauthenticated();
	CHECK(!pthread_create(&t, NULL, open_messages, &rank[0]));
	open_messages(&rank[1]);
	pthread_join(t, NULL);
	CHECK(!ha_gpu_messages_lane(rank[1].messages, 0, HA_GPU_ROWS_MAX - 1, &to) &&
	      !ha_gpu_messages_lane(rank[0].messages, 1, HA_GPU_ROWS_MAX - 1, &from));
	CHECK(!to.send(to.self, &message));
	while (!(r = from.receive(from.self, &message)))
		CHECK(ha_gpu_now() < end);
	CHECK_INT(r, 1); /* the last row can be */
	CHECK(!ha_gpu_messages_lane(rank[1].messages, 0, HA_GPU_ROWS_MAX, &to));
	CHECK(!to.send(to.self, &message));
	while (!(r = from.receive(from.self, &message)))
		CHECK(ha_gpu_now() < end);
	CHECK_INT(r, -EPIPE);
	for (int i = 0; i < 2; i++)
		ha_gpu_messages_close(rank[i].messages);
	close_bootstraps();
}

/* ---- a peer that takes nothing ---- */

#define MESSAGES 200000u /* far more than the buffers of a socket hold */

/*
 * Rank 1 reads nothing while rank 0 sends: nobody waits for it with the peer's lock, in which rank
 * 0 would not receive from rank 1 either. Once it reads, all is there.
 */
static void slow_listener(void)
{
	struct ha_gpu_channel to, from;
	struct ha_gpu_message message = { .type = 1 };
	pthread_t t;
	unsigned n = 0;
	int r;

	CHECK(!ha_gpu_stream_free_local(root));
	for (int i = 0; i < 2; i++)
		rank[i] = (struct rank) { .rank = i };
	CHECK(!pthread_create(&t, NULL, connect_bootstrap, &rank[0]));
	connect_bootstrap(&rank[1]);
	pthread_join(t, NULL);
	CHECK(!pthread_create(&t, NULL, open_quietly, &rank[0]));
	open_quietly(&rank[1]);
	pthread_join(t, NULL);
	CHECK_INT(ha_gpu_messages_lane(rank[0].messages, 1, 3, &to), 0);
	CHECK_INT(ha_gpu_messages_lane(rank[1].messages, 0, 3, &from), 0);
	for (message.incarnation = 0; message.incarnation < MESSAGES; message.incarnation++)
		CHECK_INT(to.send(to.self, &message), 0);
	while (n < MESSAGES) {
		r = from.receive(from.self, &message);
		CHECK(r >= 0);
		if (r)
			CHECK_INT(message.incarnation, n++);
		else
			CHECK_INT(to.receive(to.self, &message), 0);
	}
	for (int i = 0; i < 2; i++) {
		ha_gpu_messages_close(rank[i].messages);
		ha_gpu_bootstrap_close(&rank[i].b);
	}
}

/* ---- one of three goes when all know where to dial, and has dialled nobody: the others waited for
 * it until the limit ---- */

static struct rank three[3];

static int alltoall_and_close(void *self, const void *send, void *receive, size_t bytes)
{
	struct rank *r = self;

	if (r->b.alltoall)
		r->b.alltoall(r->b.self, send, receive, bytes);
	ha_gpu_bootstrap_close(&r->b);
	return -EPIPE;
}

static void *one_of_three(void *arg)
{
	struct rank *r = arg;
	uint64_t start;

	CHECK(!ha_gpu_bootstrap_tcp(&r->b, root, r->rank, 3, 7, LIMIT_MS));
	r->spied = r->b;
	if (r->rank == 2) {
		r->spied.self = r;
		r->spied.alltoall = alltoall_and_close;
		r->spied.ended_rank = NULL;
	}
	start = ha_gpu_now();
	CHECK(ha_gpu_messages_open(&r->spied, LIMIT_MS, &r->messages) < 0);
	ha_gpu_bootstrap_close(&r->b);
	r->took = ha_gpu_now() - start;
	return NULL;
}

static void gone_before_the_messages(void)
{
	pthread_t t[3];

	CHECK(!ha_gpu_stream_free_local(root));
	for (int i = 0; i < 3; i++) {
		three[i] = (struct rank) { .rank = i };
		CHECK(!pthread_create(&t[i], NULL, one_of_three, &three[i]));
	}
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	for (int i = 0; i < 2; i++)
		CHECK(three[i].took < SOON);
}

/* ---- the door by itself ---- */

static unsigned good;

static bool check_card(void *self, int fd, const void *card)
{
	if (memcmp(card, "friend", 6))
		return false;
	good++;
	close(fd);
	return true;
}

static void *friend_in_pieces(void *unused)
{
	int fd = ha_gpu_stream_connect(root, LIMIT_MS);

	CHECK(fd >= 0);
	for (unsigned i = 0; i < 6; i++) {
		CHECK(!ha_gpu_stream_send(fd, &"friend"[i], 1, LIMIT_MS));
		usleep(2000);
	}
	close(fd);
	return NULL;
}

/* Unauthenticated peers that go at once, say something else, or say too little; more of them than
 * are kept waiting. */
static void friend_among_many(void)
{
	int listener, missing, fd[300];
	pthread_t t;

	CHECK(!ha_gpu_stream_free_local(root));
	listener = ha_gpu_stream_listen(root);
	CHECK(listener >= 0);
	for (unsigned i = 0; i < 300; i++) {
		fd[i] = ha_gpu_stream_connect(root, LIMIT_MS);
		CHECK(fd[i] >= 0);
		if (i % 3 == 0)
			CHECK(!ha_gpu_stream_send(fd[i], "foes..", 6, LIMIT_MS));
		else if (i % 3 == 1)
			CHECK(!ha_gpu_stream_send(fd[i], "fri", 3, LIMIT_MS));
	}
	CHECK(!pthread_create(&t, NULL, friend_in_pieces, NULL));
	CHECK_INT(ha_gpu_door_open(listener, 6, 1, LIMIT_MS, check_card, NULL, NULL, &missing), 0);
	CHECK_INT(missing, 0);
	CHECK_INT(good, 1);
	pthread_join(t, NULL);
	CHECK_INT(ha_gpu_door_open(listener, 6, 2, 50, check_card, NULL, NULL, &missing),
		  -ETIMEDOUT);
	CHECK_INT(missing, 2);
	for (unsigned i = 0; i < 300; i++)
		close(fd[i]);
	close(listener);
}

static const struct named_test tests[] = {
	{ "no_descriptors", no_descriptors },
	{ "silent_at_the_bootstrap", silent_at_the_bootstrap },
	{ "silent_at_the_messages", silent_at_the_messages },
	{ "a_row_that_cannot_be", a_row_that_cannot_be },
	{ "slow_listener", slow_listener },
	{ "gone_before_the_messages", gone_before_the_messages },
	{ "crowd", friend_among_many },
};

int main(int argc, char **argv)
{
	return NAMED_TESTS_RUN(tests, argc, argv);
}
