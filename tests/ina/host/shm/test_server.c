/* SPDX-License-Identifier: BSD-3-Clause */
/* test_server.c - a backend's end and clients: attaching, requests, answers, and clients that do
 * wrong or die */
#include "base/sockaddr.h"
#include "ina/host/shm/client.h"
#include "ina/host/shm/server.h"
#include "tests/ina/switch/named.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TIME_LIMIT_MS 60000 /* for anything to come; beside other work */

static char path[64];
static struct ina_shm_server *server;
static struct ina_shm_peer *peer; /* the one that came last */
static unsigned came_n, gone_n, bell_n, create_n;
static char last[400];
static unsigned dawdle_us; /* in accept_peer() */
static atomic_bool stop;
static pthread_t thread;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void accept_peer(void *arg, struct ina_shm_peer *p)
{
	peer = p;
	came_n++;
	usleep(dawdle_us);
	CHECK(ina_shm_peer_sleep(p));
}

static void answer_create(void *arg, struct ina_shm_peer *p, uint32_t serial,
			  const struct ina_shm_create *spec)
{
	uint8_t ticket[HA_INA_TICKET] = { (uint8_t)spec->ranks, 42 };

	create_n++;
	if (spec->member[0])
		ina_shm_answer_ticket(p, serial, ticket);
	else
		ina_shm_answer_refused(p, serial, -EAGAIN, "nothing\nfree");
}

static void answer_join(void *arg, struct ina_shm_peer *p, uint32_t serial,
			const uint8_t ticket[HA_INA_TICKET], uint32_t rank)
{
	CHECK_INT(ticket[1], 42);
	ina_shm_answer_joined(p, serial, 77, rank, ticket[0]);
}

static void answer_leave(void *arg, struct ina_shm_peer *p, uint32_t serial, uint32_t handle,
			 int err)
{
	ina_shm_peer_state(p, handle, -ECANCELED, "over");
	ina_shm_answer_left(p, serial, handle);
}

/* Answers every request with its sequence and its bytes. */
static void answer_requests(void *arg, struct ina_shm_peer *p)
{
	struct ina_shm_request request;
	int got;

	bell_n++;
	do {
		ina_shm_peer_awake(p);
		while ((got = ina_shm_peer_next(p, &request)) > 0) {
			struct ina_shm_response response = { request.sequence, 0, request.bytes };

			ina_shm_peer_respond(p, &response);
		}
		if (got < 0)
			return;
	} while (!ina_shm_peer_sleep(p));
}

static void release_peer(void *arg, struct ina_shm_peer *p, const char *why)
{
	gone_n++;
	snprintf(last, sizeof(last), "%s", why);
	ina_shm_peer_release(p);
}

static const struct ina_shm_server_ops ops = { accept_peer,  answer_create,   answer_join,
					       answer_leave, answer_requests, release_peer };

static void *serve_clients(void *arg)
{
	while (!atomic_load(&stop)) {
		pthread_mutex_lock(&lock);
		ina_shm_server_poll(server, 0);
		pthread_mutex_unlock(&lock);
		struct pollfd p = { ina_shm_server_fd(server), POLLIN, 0 };
		poll(&p, 1, 10);
	}
	return NULL;
}

static void start_server(unsigned peers)
{
	struct ina_shm_server_config config = {
		.path = path, .address = 0x0a000001, .peers = peers, .bytes = 64u << 20
	};
	char why[256] = "";

	snprintf(path, sizeof(path), "/tmp/ina-shm-%d.sock", (int)getpid());
	came_n = gone_n = bell_n = create_n = 0;
	*last = 0;
	atomic_store(&stop, false);
	server = ina_shm_server_open(&config, &ops, NULL, why, sizeof(why));
	if (!server)
		fprintf(stderr, "%s\n", why);
	CHECK(server);
	CHECK_INT(pthread_create(&thread, NULL, serve_clients, NULL), 0);
}

static void stop_server(void)
{
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	ina_shm_server_close(server);
	CHECK_INT(came_n, gone_n);
	CHECK_INT(access(path, F_OK), -1);
}

static void open_client(struct ina_shm_client *client)
{
	char why[256] = "";
	int err = ina_shm_client_open(client, path, 2, NULL, why, sizeof(why));

	if (err)
		fprintf(stderr, "%s\n", why);
	CHECK_INT(err, 0);
}

/* Waits until so many have gone. */
static void wait_gone(unsigned n)
{
	for (unsigned i = 0; i < TIME_LIMIT_MS / 5; i++) {
		bool done;

		pthread_mutex_lock(&lock);
		done = gone_n >= n;
		pthread_mutex_unlock(&lock);
		if (done)
			return;
		usleep(5000);
	}
	CHECK(!"a client that ended was noticed");
}

/* The next message that is no bell. */
static int receive_message(struct ina_shm_client *client, struct ina_shm_message *m)
{
	const char *why = "";
	int file, err;

	for (;;) {
		struct pollfd p = { client->fd, POLLIN, 0 };

		CHECK(poll(&p, 1, TIME_LIMIT_MS) > 0);
		err = ina_shm_message_receive(client->fd, m, false, &file, &why);
		CHECK_INT(file, -1);
		if (err && (err < 0 || m->type != INA_SHM_BELL))
			return err;
	}
}

static void messages_are_answered(void)
{
	struct ina_shm_client client;
	struct ina_shm_message m, got;

	start_server(0);
	open_client(&client);
	CHECK_INT(client.address, 0x0a000001);
	m = (struct ina_shm_message) { .type = INA_SHM_CREATE,
				       .serial = 5,
				       .create = { .ranks = 3 } };
	CHECK_INT(ina_shm_message_send(client.fd, &m, -1), 0);
	CHECK_INT(receive_message(&client, &got), 1);
	CHECK(got.type == INA_SHM_REFUSED && got.serial == 5 && got.state.result == -EAGAIN);
	CHECK_TEXT(got.state.text, "nothing free");
	m.create.member[0] = 1;
	CHECK_INT(ina_shm_message_send(client.fd, &m, -1), 0);
	CHECK_INT(receive_message(&client, &got), 1);
	CHECK(got.type == INA_SHM_TICKET && got.ticket[0] == 3);
	m = (struct ina_shm_message) { .type = INA_SHM_JOIN, .serial = 6, .join.rank = 2 };
	memcpy(m.join.ticket, got.ticket, HA_INA_TICKET);
	CHECK_INT(ina_shm_message_send(client.fd, &m, -1), 0);
	CHECK_INT(receive_message(&client, &got), 1);
	CHECK(got.type == INA_SHM_JOINED && got.joined.handle == 77 && got.joined.rank == 2 &&
	      got.joined.ranks == 3);
	m = (struct ina_shm_message) { .type = INA_SHM_LEAVE,
				       .serial = 7,
				       .leave = { .handle = 77 } };
	CHECK_INT(ina_shm_message_send(client.fd, &m, -1), 0);
	CHECK_INT(receive_message(&client, &got), 1);
	CHECK(got.type == INA_SHM_STATE && got.state.result == -ECANCELED);
	CHECK_INT(receive_message(&client, &got), 1);
	CHECK(got.type == INA_SHM_LEFT && got.serial == 7);
	ina_shm_client_close(&client);
	wait_gone(1);
	CHECK(strstr(last, "its socket was closed"));
	stop_server();
}

static struct ina_shm_request request_of(uint64_t sequence)
{
	return (struct ina_shm_request) { .sequence = sequence,
					  .offset = 256 * (sequence % 1000),
					  .bytes = 256,
					  .coll = HA_INA_ALL_REDUCE,
					  .type = HA_INA_INT32 };
}

/* Many requests both ways, with both sides asleep in between. */
static void many_requests_both_ways(void)
{
	struct ina_shm_client client;
	uint64_t asked = 0, answered = 0;

	start_server(0);
	open_client(&client);
	while (answered < 50000) {
		struct ina_shm_response response;
		struct ina_shm_message m;
		const char *why;
		int file;

		if (asked < 50000 && asked - answered < INA_SHM_ENTRIES) {
			struct ina_shm_request r = request_of(asked);

			CHECK_INT(ina_shm_ring_push(&client.memory.requests, &r), 0);
			CHECK_INT(ina_shm_client_bell(&client), 0);
			asked++;
			if (asked % 97)
				continue;
		}
		while (ina_shm_ring_pop(&client.memory.responses, &response) > 0) {
			CHECK_INT(response.sequence, answered);
			CHECK_INT(response.met, 256);
			answered++;
		}
		if (answered < asked && ina_shm_ring_sleep(&client.memory.responses)) {
			struct pollfd p = { client.fd, POLLIN, 0 };

			CHECK_INT(poll(&p, 1, TIME_LIMIT_MS), 1);
			ina_shm_ring_awake(&client.memory.responses);
			CHECK_INT(ina_shm_message_receive(client.fd, &m, false, &file, &why), 1);
			CHECK_INT(m.type, INA_SHM_BELL);
		}
	}
	ina_shm_client_close(&client);
	wait_gone(1);
	stop_server();
}

/* ATTACHED is sent to a client after the backend has attached it: its first request finds somebody
 * asleep, whom the bell wakes. */
static void came_first(void)
{
	dawdle_us = 30000;
	many_requests_both_ways();
}

/* What the client is sent when it has done something wrong; and that it is the end. */
static void ends_with(struct ina_shm_client *client, unsigned n, const char *text)
{
	struct ina_shm_message m;

	CHECK_INT(receive_message(client, &m), 1);
	CHECK(m.type == INA_SHM_REFUSED && !m.serial);
	if (!strstr(m.state.text, text))
		fprintf(stderr, "said: %s\n", m.state.text);
	CHECK(strstr(m.state.text, text));
	CHECK_INT(receive_message(client, &m), -ENOTCONN);
	wait_gone(n);
	CHECK(strstr(last, text));
	ina_shm_client_close(client);
}

/* After a request that ends the client: a backend that was awake may have read it, and closed the
 * socket, before the bell. */
static void ring_after_the_last(struct ina_shm_client *client)
{
	int err = ina_shm_client_bell(client);

	CHECK(!err || err == -ENOTCONN);
}

static void wrong_request(struct ina_shm_client *client, struct ina_shm_request r)
{
	CHECK_INT(ina_shm_ring_push(&client->memory.requests, &r), 0);
	ring_after_the_last(client);
}

static void send_message(struct ina_shm_client *client, uint32_t type, int file)
{
	struct ina_shm_message m = { .type = type };

	CHECK_INT(ina_shm_message_send(client->fd, &m, file), 0);
}

static void ask_outside(struct ina_shm_client *client)
{
	struct ina_shm_request r = request_of(1);

	r.offset = client->memory.buffer_bytes;
	wrong_request(client, r);
}

static void tear_requests(struct ina_shm_client *client)
{
	atomic_store(&client->memory.requests.ends->tail.value, 5000);
	send_message(client, INA_SHM_BELL, -1);
}

/* It says that it has read more responses than there were. */
static void tear_responses(struct ina_shm_client *client)
{
	struct ina_shm_request r = request_of(1);

	atomic_store(&client->memory.responses.ends->head.value, 5000);
	/* the backend compares it only when the ring seems full: after so many responses */
	for (unsigned i = 0; i < INA_SHM_ENTRIES; i++) {
		while (ina_shm_ring_push(&client->memory.requests, &r) == -EAGAIN)
			usleep(100);
		CHECK_INT(ina_shm_client_bell(client), 0);
	}
	while (ina_shm_ring_push(&client->memory.requests, &r) == -EAGAIN)
		usleep(100);
	ring_after_the_last(client);
}

static void send_welcome(struct ina_shm_client *client)
{
	send_message(client, INA_SHM_WELCOME, -1);
}

static void send_part(struct ina_shm_client *client)
{
	CHECK_INT(send(client->fd, path, 3, 0), 3);
}

static void send_file(struct ina_shm_client *client)
{
	send_message(client, INA_SHM_BELL, 0);
}

static void attach_again(struct ina_shm_client *client)
{
	send_message(client, INA_SHM_ATTACH, -1);
}

static void check_alive(struct ina_shm_client *client)
{
	struct ina_shm_request r = request_of(9);
	struct ina_shm_response response;

	CHECK_INT(ina_shm_ring_push(&client->memory.requests, &r), 0);
	CHECK_INT(ina_shm_client_bell(client), 0);
	for (unsigned i = 0; !ina_shm_ring_pop(&client->memory.responses, &response); i++) {
		CHECK(i < TIME_LIMIT_MS / 5);
		usleep(5000);
	}
	CHECK_INT(response.sequence, 9);
}

/* Each hostile client ends alone; a good one beside them goes on. */
static void hostile_clients_end_alone(void)
{
	static const struct {
		void (*attack)(struct ina_shm_client *client);
		const char *why;
	} attacks[] = {
		{ ask_outside, "outside of the copy buffer" },
		{ tear_requests, "torn" },
		{ tear_responses, "response ring is torn" },
		{ send_welcome, "none that the other side may send" },
		{ send_part, "none that the other side may send" },
		{ send_file, "a file came with a message" },
		{ attach_again, "attached twice" },
	};
	const unsigned n = sizeof(attacks) / sizeof(*attacks);
	struct ina_shm_client bystander, client;

	start_server(0);
	open_client(&bystander);
	for (unsigned i = 0; i < n; i++) {
		open_client(&client);
		attacks[i].attack(&client);
		ends_with(&client, i + 1, attacks[i].why);
	}
	check_alive(&bystander);
	ina_shm_client_close(&bystander);
	wait_gone(n + 1);
	stop_server();
}

/* A file of the client's choice: only a sealed memory file with all its pages, of the right shape,
 * is mapped. */
static void refused_file(int file, const char *text)
{
	struct ina_shm_client client = { .fd = socket(AF_UNIX, SOCK_SEQPACKET, 0) };
	struct ina_shm_message m = { .type = INA_SHM_HELLO,
				     .hello = { INA_SHM_MAGIC, INA_SHM_VERSION, 0 } };
	struct sockaddr_un address;

	CHECK(file >= 0);
	CHECK_INT(ha_sockaddr_unix(path, &address), 0);
	CHECK_INT(connect(client.fd, (struct sockaddr *)&address, sizeof(address)), 0);
	CHECK_INT(ina_shm_message_send(client.fd, &m, -1), 0);
	CHECK_INT(receive_message(&client, &m), 1);
	m = (struct ina_shm_message) { .type = INA_SHM_ATTACH };
	CHECK_INT(ina_shm_message_send(client.fd, &m, file), 0);
	CHECK_INT(receive_message(&client, &m), 1);
	CHECK_INT(m.type, INA_SHM_REFUSED);
	if (!strstr(m.state.text, text))
		fprintf(stderr, "said: %s\n", m.state.text);
	CHECK(strstr(m.state.text, text));
	CHECK_INT(receive_message(&client, &m), -ENOTCONN);
	close(client.fd);
	close(file);
}

static int make_sealed_file(uint64_t bytes, bool whole, const struct ina_shm_header *header)
{
	int file = memfd_create("test", MFD_ALLOW_SEALING);

	CHECK_INT(ftruncate(file, (off_t)bytes), 0);
	if (whole)
		CHECK_INT(fallocate(file, 0, 0, (off_t)bytes), 0);
	if (header)
		CHECK_INT(pwrite(file, header, sizeof(*header), 0), sizeof(*header));
	CHECK_INT(fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
	return file;
}

static void wrong_files_are_refused(void)
{
	struct ina_shm_header header;
	int unsealed = memfd_create("test", MFD_ALLOW_SEALING), last_seal;

	start_server(0);
	CHECK_INT(ftruncate(unsealed, (off_t)ina_shm_bytes(1)), 0);
	refused_file(open("/dev/zero", O_RDWR), "memfd_create");
	refused_file(open("/proc/self/exe", O_RDONLY), "memfd_create");
	refused_file(unsealed, "not sealed");
	last_seal = make_sealed_file(ina_shm_bytes(1), true, NULL);
	CHECK_INT(fcntl(last_seal, F_ADD_SEALS, F_SEAL_SEAL), 0);
	refused_file(last_seal, "sealed against holes");
	refused_file(make_sealed_file(4096, true, NULL), "too small");
	refused_file(make_sealed_file(ina_shm_bytes(100), false, NULL),
		     "larger than the backend allows");
	refused_file(make_sealed_file(ina_shm_bytes(1), false, NULL), "holes");
	refused_file(make_sealed_file(ina_shm_bytes(1), true, NULL), "not one of hawser's");
	ina_shm_header_fill(&header, 2);
	refused_file(make_sealed_file(ina_shm_bytes(1), true, &header),
		     "size is not what its header says");
	header.version++;
	refused_file(make_sealed_file(ina_shm_bytes(2), true, &header), "same release");
	stop_server();
}

/* A killed process is noticed although its child has a copy of the socket. */
static void killed_client_is_noticed(void)
{
	int ready[2];
	char byte;
	pid_t parent;

	CHECK_INT(pipe(ready), 0);
	start_server(0);
	parent = fork();
	if (!parent) {
		struct ina_shm_client client;
		pid_t child;

		open_client(&client);
		child = fork();
		if (child) {
			CHECK_INT(write(ready[1], &child, sizeof(child)), sizeof(child));
			raise(SIGKILL);
		}
		pause();
	}
	CHECK_INT(read(ready[0], &parent, sizeof(parent)), sizeof(parent)); /* the grandchild */
	wait_gone(1);
	CHECK(strstr(last, "ended") || strstr(last, "closed"));
	kill(parent, SIGKILL);
	CHECK(wait(NULL) > 0);
	(void)byte;
	stop_server();
}

/* Nobody takes a living backend's socket; a dead one's is replaced; who is one too many is refused;
 * who says nothing makes room. */
static void who_gets_a_place(void)
{
	struct ina_shm_server_config config = { .path = path };
	struct ina_shm_client one, two;
	struct sockaddr_un address;
	char why[256];
	int silent, left;

	start_server(2);
	CHECK(!ina_shm_server_open(&config, &ops, NULL, why, sizeof(why)));
	CHECK(strstr(why, "another backend"));
	silent = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	CHECK_INT(ha_sockaddr_unix(path, &address), 0);
	CHECK_INT(connect(silent, (struct sockaddr *)&address, sizeof(address)), 0);
	open_client(&one);
	open_client(&two); /* in the silent one's place */
	CHECK_INT(ina_shm_client_open(&(struct ina_shm_client) { 0 }, path, 2, NULL, why,
				      sizeof(why)),
		  -EAGAIN);
	CHECK(strstr(why, "as many clients as it takes"));
	ina_shm_client_close(&one);
	wait_gone(1);
	open_client(&one);
	ina_shm_client_close(&one);
	ina_shm_client_close(&two);
	wait_gone(3);
	close(silent);
	stop_server();
	CHECK_INT(ina_shm_client_open(&one, path, 2, NULL, why, sizeof(why)), -ENOTCONN);
	CHECK(strstr(why, "start ha-backend"));
	left = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	CHECK_INT(bind(left, (struct sockaddr *)&address, sizeof(address)), 0);
	close(left); /* as a killed backend leaves it */
	start_server(0);
	open_client(&one);
	ina_shm_client_close(&one);
	stop_server();
}

/* No file descriptor is left for a client that waits: the backend does not run in circles over it,
 * and takes it when one is there. */
static void no_files(void)
{
	struct sockaddr_un address;
	struct ina_shm_server_config config = { .path = path };
	struct rlimit limit, none;
	struct timespec before, after;
	struct pollfd p = { -1, POLLIN, 0 };
	char why[256];
	int waits;

	snprintf(path, sizeof(path), "/tmp/ina-no-files-%d.sock", (int)getpid());
	server = ina_shm_server_open(&config, &ops, NULL, why, sizeof(why));
	CHECK(server && !ha_sockaddr_unix(path, &address));
	waits = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	CHECK_INT(connect(waits, (struct sockaddr *)&address, sizeof(address)), 0);
	CHECK_INT(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = (struct rlimit) { (rlim_t)waits + 1, limit.rlim_max };
	CHECK_INT(setrlimit(RLIMIT_NOFILE, &none), 0);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
	for (unsigned n = 0; n < 10; n++)
		ina_shm_server_poll(server, 40);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
	CHECK((after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1000000 <
	      100);
	p.fd = ina_shm_server_fd(server);
	CHECK_INT(poll(&p, 1, 10), 0); /* nor does who waits for it */
	CHECK_INT(setrlimit(RLIMIT_NOFILE, &limit), 0);
	CHECK_INT(ina_shm_message_send(waits,
				       &(struct ina_shm_message) {
					       .type = INA_SHM_HELLO,
					       .hello = { INA_SHM_MAGIC, INA_SHM_VERSION, 0 } },
				       -1),
		  0);
	p.fd = waits;
	for (unsigned n = 0; n < 100 && !poll(&p, 1, 0); n++)
		ina_shm_server_poll(server, 20);
	CHECK_INT(poll(&p, 1, 0), 1); /* WELCOME */
	close(waits);
	ina_shm_server_close(server);
}

/* The file that came could not be taken, for there are no more: that is what the client receives,
 * and not that it sent none. */
static void no_file_for_memory(void)
{
	struct ina_shm_message m = { .type = INA_SHM_HELLO,
				     .hello = { INA_SHM_MAGIC, INA_SHM_VERSION, 0 } };
	struct ina_shm_server_config config = { .path = path };
	struct ina_shm_client client = { .fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0) };
	struct rlimit limit, none;
	struct sockaddr_un address;
	char why[256];
	int file, last_file;

	snprintf(path, sizeof(path), "/tmp/ina-no-file-%d.sock", (int)getpid());
	server = ina_shm_server_open(&config, &ops, NULL, why, sizeof(why));
	CHECK(server && !ha_sockaddr_unix(path, &address));
	CHECK_INT(connect(client.fd, (struct sockaddr *)&address, sizeof(address)), 0);
	CHECK_INT(ina_shm_message_send(client.fd, &m, -1), 0);
	for (unsigned n = 0; n < 5; n++)
		ina_shm_server_poll(server, 0);
	CHECK_INT(receive_message(&client, &m), 1);
	CHECK_INT(m.type, INA_SHM_WELCOME);
	CHECK_INT(ina_shm_memory_make(&client.memory, 1, &file, why, sizeof(why)), 0);
	last_file = dup(file);
	CHECK_INT(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = (struct rlimit) { (rlim_t)last_file + 1, limit.rlim_max };
	CHECK_INT(setrlimit(RLIMIT_NOFILE, &none), 0);
	m = (struct ina_shm_message) { .type = INA_SHM_ATTACH, .bytes = client.memory.bytes };
	CHECK_INT(ina_shm_message_send(client.fd, &m, file), 0);
	for (unsigned n = 0; n < 5; n++)
		ina_shm_server_poll(server, 0);
	CHECK_INT(setrlimit(RLIMIT_NOFILE, &limit), 0);
	CHECK_INT(receive_message(&client, &m), 1);
	CHECK_INT(m.type, INA_SHM_REFUSED);
	if (!strstr(m.state.text, "LimitNOFILE"))
		fprintf(stderr, "said: %s\n", m.state.text);
	CHECK(strstr(m.state.text, "LimitNOFILE"));
	ina_shm_client_close(&client);
	close(file);
	close(last_file);
	ina_shm_server_close(server);
}

/* A client's socket is full when it is to ring: what fills it wakes the backend, too. */
static void bell_when_full(void)
{
	struct ina_shm_message m = { .type = INA_SHM_CREATE,
				     .serial = 1,
				     .create = { .ranks = 2 } };
	struct ina_shm_request r = request_of(5);
	struct ina_shm_response response;
	struct ina_shm_client client;
	int least = 1, err;

	start_server(0);
	open_client(&client);
	CHECK_INT(setsockopt(client.fd, SOL_SOCKET, SO_SNDBUF, &least, sizeof(least)), 0);
	pthread_mutex_lock(&lock); /* the backend has other things to do */
	while (!(err = ina_shm_message_send(client.fd, &m, -1)))
		;
	CHECK_INT(err, -EAGAIN);
	CHECK_INT(ina_shm_ring_push(&client.memory.requests, &r), 0);
	CHECK_INT(ina_shm_client_bell(&client), 0);
	pthread_mutex_unlock(&lock);
	for (unsigned i = 0; !ina_shm_ring_pop(&client.memory.responses, &response); i++) {
		CHECK(i < TIME_LIMIT_MS / 5);
		usleep(5000);
	}
	CHECK_INT(response.sequence, 5);
	ina_shm_client_close(&client);
	wait_gone(1);
	stop_server();
}

/* Of a client that did wrong nothing more is received, whatever it had sent already. */
static void nothing_received_after_the_end(void)
{
	struct ina_shm_message m = { .type = INA_SHM_ATTACH };
	struct ina_shm_client client;

	start_server(0);
	open_client(&client);
	pthread_mutex_lock(&lock);
	CHECK_INT(ina_shm_message_send(client.fd, &m, -1), 0);
	m = (struct ina_shm_message) { .type = INA_SHM_CREATE,
				       .serial = 1,
				       .create = { .ranks = 2 } };
	for (unsigned i = 0; i < 3; i++)
		CHECK_INT(ina_shm_message_send(client.fd, &m, -1), 0);
	pthread_mutex_unlock(&lock);
	ends_with(&client, 1, "attached twice");
	CHECK_INT(create_n, 0);
	stop_server();
}

static const struct named_test tests[] = {
	{ "messages", messages_are_answered },
	{ "requests", many_requests_both_ways },
	{ "came_first", came_first },
	{ "hostile", hostile_clients_end_alone },
	{ "files", wrong_files_are_refused },
	{ "killed", killed_client_is_noticed },
	{ "places", who_gets_a_place },
	{ "no_files", no_files },
	{ "no_file_for_memory", no_file_for_memory },
	{ "bell_when_full", bell_when_full },
	{ "nothing_received_after_the_end", nothing_received_after_the_end },
};

int main(int argc, char **argv)
{
	return NAMED_TESTS_RUN(tests, argc, argv);
}
