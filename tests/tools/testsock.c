/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * testsock - a small NCCL net plugin over TCP, to test the tools that drive plugins
 *
 * Two devices, both the loopback interface; up to 8 buffers in a grouped receive. A message is a
 * header and its bytes; what arrives before a receive with its tag is posted is kept. Progress is
 * made inside the calls, there are no threads. TESTSOCK_FAULT=KIND:N makes it misbehave at the N-th
 * occasion in a process (see fault_kinds), so that tests can show that a tool notices.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/tools/testsock.h"

#define REQUESTS 256 /* NCCL_NET_MAX_REQUESTS of up to 8 buffers */
#define HANDLE_MAGIC 0x74736f63u

static const char *const fault_kinds[TS_FAULTS] = {
	[TS_CORRUPT] = "corrupt", /* flips a bit of the N-th message that arrives */
	[TS_DROP] = "drop",       /* the N-th message is never sent, but reported so */
	[TS_SWAP] = "swap", /* messages N and N+1 arrive with each other's bytes, if equally long */
	[TS_STALE] = "stale",         /* the N-th message arrives, its bytes do not */
	[TS_SHORT] = "short",         /* the N-th receive reports one byte too few */
	[TS_NULL] = "null",           /* every N-th isend and irecv returns no request */
	[TS_ERROR] = "error",         /* the N-th isend fails */
	[TS_SENTINEL] = "sentinel",   /* the N-th irecv leaves *request as it was */
	[TS_UNTOUCHED] = "untouched", /* the N-th isend leaves *request as it was */
	[TS_DIE] = "die",             /* the process kills itself at the N-th isend */
	[TS_NO_ACCEPT] = "no-accept", /* accept never completes */
	[TS_NODEV] = "nodev",         /* there is no device */
	[TS_LEAVE] = "leave",         /* the process exits with status 7 at the N-th isend */
	[TS_QUIT] = "quit",           /* the process exits with status 0 at the N-th isend */
	[TS_DESERT] = "desert", /* the same, a second after its peer has lost the connection */
};

static struct {
	int kind; /* -1: none */
	long at, seen;
} fault = { .kind = -1 };

static ncclDebugLogger_t log_line;
static int live_comms;

/* Whether this is the occasion; every: each N-th one. */
static int fault_now(enum ts_fault kind, int every)
{
	if (fault.kind != (int)kind)
		return 0;
	fault.seen++;
	return every ? fault.seen % fault.at == 0 : fault.seen == fault.at;
}

struct ts_request {
	int used, done, receive, n, filled;
	size_t size;
	int sizes[TS_MAX_RECVS];
	size_t room[TS_MAX_RECVS];
	void *data[TS_MAX_RECVS];
	int tags[TS_MAX_RECVS], full[TS_MAX_RECVS];
	struct ts_comm *comm;
	uint64_t order;
};

struct ts_header {
	uint32_t tag, pad;
	uint64_t size;
};

/* A message that is being received, or waits for its receive. */
struct ts_message {
	TAILQ_ENTRY(ts_message) link;
	struct ts_header header;
	size_t got;
	char data[];
};

struct ts_comm {
	int fd, sending;
	struct ts_request requests[REQUESTS];
	uint64_t order;
	/* sending: bytes not yet taken by the kernel, oldest first */
	struct ts_header header;
	struct ts_request *writing;
	size_t written;
	/* receiving */
	struct ts_header arriving;
	size_t header_got;
	TAILQ_HEAD(, ts_message) kept;
	struct ts_message *current, *held;
};

struct ts_listen {
	int fd, accepted;
};

struct ts_handle {
	uint32_t magic;
	uint16_t port, pad;
};
_Static_assert(sizeof(struct ts_handle) <= NCCL_NET_HANDLE_MAXSIZE, "a handle has 128 bytes");

ncclResult_t ts_init(ncclDebugLogger_t logger)
{
	const char *text = getenv("TESTSOCK_FAULT"), *colon;

	log_line = logger;
	fault.kind = -1;
	fault.seen = 0;
	colon = text ? strchr(text, ':') : NULL;
	for (int i = 0; colon && i < TS_FAULTS; i++)
		if (strlen(fault_kinds[i]) == (size_t)(colon - text) &&
		    !strncmp(text, fault_kinds[i], (size_t)(colon - text)))
			fault.kind = i;
	fault.at = colon ? atol(colon + 1) : 0;
	if (logger)
		logger(NCCL_LOG_INFO, NCCL_NET, __FILE__, __LINE__, "NET/testsock: ready%s%s",
		       text ? ", fault " : "", text ? text : "");
	return ncclSuccess;
}

ncclResult_t ts_finalize(void)
{
	if (live_comms)
		fprintf(stderr, "testsock: finalized with %d open comms\n", live_comms);
	return live_comms ? ncclInvalidUsage : ncclSuccess;
}

ncclResult_t ts_devices(int *ndev)
{
	*ndev = fault.kind == TS_NODEV ? 0 : TS_DEVICES;
	return ncclSuccess;
}

/* ---- connections ---- */

ncclResult_t ts_listen(int dev, void *handle, void **comm)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(address);
	struct ts_handle h = { .magic = HANDLE_MAGIC };
	struct ts_listen *l;

	if (dev < 0 || dev >= TS_DEVICES)
		return ncclInvalidArgument;
	l = calloc(1, sizeof(*l));
	if (!l)
		return ncclSystemError;
	l->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (l->fd < 0 || bind(l->fd, (struct sockaddr *)&address, sizeof(address)) ||
	    listen(l->fd, 8) || getsockname(l->fd, (struct sockaddr *)&address, &length)) {
		free(l);
		return ncclSystemError;
	}
	h.port = ntohs(address.sin_port);
	memcpy(handle, &h, sizeof(h));
	*comm = l;
	live_comms++;
	return ncclSuccess;
}

static struct ts_comm *comm_new(int fd, int sending)
{
	struct ts_comm *c = calloc(1, sizeof(*c));
	int one = 1;

	if (!c)
		return NULL;
	c->fd = fd;
	c->sending = sending;
	TAILQ_INIT(&c->kept);
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	live_comms++;
	return c;
}

/* The pad word of the caller's handle counts calls: the first one only begins, as a real network
 * does. */
ncclResult_t ts_connect(int dev, void *handle, void **comm)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct ts_handle h;
	int fd;

	memcpy(&h, handle, sizeof(h));
	*comm = NULL;
	if (h.magic != HANDLE_MAGIC || dev < 0 || dev >= TS_DEVICES)
		return ncclInvalidArgument;
	if (!h.pad++) {
		memcpy(handle, &h, sizeof(h));
		return ncclSuccess;
	}
	address.sin_port = htons(h.port);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)))
		return ncclRemoteError;
	(void)fcntl(fd, F_SETFL, O_NONBLOCK);
	*comm = comm_new(fd, 1);
	return *comm ? ncclSuccess : ncclSystemError;
}

ncclResult_t ts_accept(void *listen_comm, void **comm)
{
	struct ts_listen *l = listen_comm;
	int fd;

	*comm = NULL;
	if (fault.kind == TS_NO_ACCEPT)
		return ncclSuccess;
	fd = accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd < 0)
		return errno == EAGAIN ? ncclSuccess : ncclSystemError;
	*comm = comm_new(fd, 0);
	return *comm ? ncclSuccess : ncclSystemError;
}

ncclResult_t ts_close_listen(void *comm)
{
	struct ts_listen *l = comm;

	close(l->fd);
	free(l);
	live_comms--;
	return ncclSuccess;
}

ncclResult_t ts_close(void *comm)
{
	struct ts_comm *c = comm;
	struct ts_message *m;

	while ((m = TAILQ_FIRST(&c->kept))) {
		TAILQ_REMOVE(&c->kept, m, link);
		free(m);
	}
	free(c->current);
	free(c->held);
	close(c->fd);
	free(c);
	live_comms--;
	return ncclSuccess;
}

ncclResult_t ts_reg(void *comm, void *data, size_t size, int type, void **mhandle)
{
	*mhandle = malloc(1);
	return *mhandle && type == NCCL_PTR_HOST ? ncclSuccess : ncclInvalidArgument;
}

ncclResult_t ts_dereg(void *comm, void *mhandle)
{
	free(mhandle);
	return ncclSuccess;
}

/* ---- messages ---- */

static struct ts_request *request_new(struct ts_comm *c)
{
	for (int i = 0; i < REQUESTS; i++) {
		struct ts_request *r = &c->requests[i];

		if (r->used)
			continue;
		*r = (struct ts_request) { .used = 1, .comm = c, .order = c->order++ };
		return r;
	}
	return NULL;
}

/* The oldest request that `wanted` accepts. */
static struct ts_request *request_oldest(struct ts_comm *c,
					 int (*wanted)(const struct ts_request *, int), int tag)
{
	struct ts_request *oldest = NULL;

	for (int i = 0; i < REQUESTS; i++) {
		struct ts_request *r = &c->requests[i];

		if (r->used && !r->done && wanted(r, tag) && (!oldest || r->order < oldest->order))
			oldest = r;
	}
	return oldest;
}

static int wants_any(const struct ts_request *r, int tag)
{
	return 1;
}

static int wants_tag(const struct ts_request *r, int tag)
{
	for (int i = 0; i < r->n; i++)
		if (r->tags[i] == tag && !r->full[i])
			return 1;
	return 0;
}

static ncclResult_t send_progress(struct ts_comm *c)
{
	ssize_t n;

	for (;;) {
		if (!c->writing) {
			c->writing = request_oldest(c, wants_any, 0);
			if (!c->writing)
				return ncclSuccess;
			c->header = (struct ts_header) { .tag = (uint32_t)c->writing->tags[0],
							 .size = c->writing->size };
			c->written = 0;
		}
		if (c->written < sizeof(c->header))
			n = send(c->fd, (char *)&c->header + c->written,
				 sizeof(c->header) - c->written, MSG_NOSIGNAL);
		else if (c->written < sizeof(c->header) + c->writing->size)
			n = send(c->fd,
				 (char *)c->writing->data[0] + c->written - sizeof(c->header),
				 sizeof(c->header) + c->writing->size - c->written, MSG_NOSIGNAL);
		else
			n = 0;
		if (n < 0)
			return errno == EAGAIN || errno == EINTR ? ncclSuccess : ncclRemoteError;
		c->written += (size_t)n;
		if (c->written < sizeof(c->header) + c->writing->size)
			continue;
		c->writing->done = 1;
		c->writing = NULL;
	}
}

/* Puts a complete message where its receive wants it; 0: no such receive is posted. */
static int message_deliver(struct ts_comm *c, const struct ts_message *m)
{
	struct ts_request *r = request_oldest(c, wants_tag, (int)m->header.tag);
	int i;

	if (!r)
		return 0;
	for (i = 0; r->tags[i] != (int)m->header.tag || r->full[i]; i++)
		;
	if (m->header.size <= r->room[i] && !fault_now(TS_STALE, 0))
		memcpy(r->data[i], m->data, m->header.size);
	if (fault_now(TS_CORRUPT, 0) && m->header.size)
		((char *)r->data[i])[m->header.size / 2] ^= 1;
	r->sizes[i] = (int)m->header.size - fault_now(TS_SHORT, 0);
	r->full[i] = 1;
	r->done = ++r->filled == r->n;
	return 1;
}

/* A message has arrived: swap it with the next one if that is the fault, then queue it. */
static void message_arrived(struct ts_comm *c, struct ts_message *m)
{
	struct ts_header header;

	if (!c->held && fault_now(TS_SWAP, 0)) {
		c->held = m;
		return;
	}
	if (c->held) {
		header = m->header;
		if (c->held->header.size == header.size) {
			m->header = c->held->header;
			c->held->header = header;
			TAILQ_INSERT_TAIL(&c->kept, m, link);
			TAILQ_INSERT_TAIL(&c->kept, c->held, link);
		} else {
			TAILQ_INSERT_TAIL(&c->kept, c->held, link);
			TAILQ_INSERT_TAIL(&c->kept, m, link);
		}
		c->held = NULL;
		return;
	}
	TAILQ_INSERT_TAIL(&c->kept, m, link);
}

static void kept_deliver(struct ts_comm *c)
{
	struct ts_message *m, *next;

	for (m = TAILQ_FIRST(&c->kept); m; m = next) {
		next = TAILQ_NEXT(m, link);
		if (!message_deliver(c, m))
			continue;
		TAILQ_REMOVE(&c->kept, m, link);
		free(m);
	}
}

static ncclResult_t receive_progress(struct ts_comm *c)
{
	ssize_t n;

	for (;;) {
		if (!c->current) {
			n = recv(c->fd, (char *)&c->arriving + c->header_got,
				 sizeof(c->arriving) - c->header_got, 0);
		} else {
			n = recv(c->fd, c->current->data + c->current->got,
				 c->current->header.size - c->current->got, 0);
		}
		if (!n)
			return ncclRemoteError;
		if (n < 0) {
			kept_deliver(c);
			return errno == EAGAIN || errno == EINTR ? ncclSuccess : ncclRemoteError;
		}
		if (!c->current) {
			c->header_got += (size_t)n;
			if (c->header_got < sizeof(c->arriving))
				continue;
			c->header_got = 0;
			c->current = calloc(1, sizeof(*c->current) + c->arriving.size);
			if (!c->current)
				return ncclSystemError;
			c->current->header = c->arriving;
		} else {
			c->current->got += (size_t)n;
		}
		if (c->current->got == c->current->header.size) {
			message_arrived(c, c->current);
			c->current = NULL;
		}
	}
}

ncclResult_t ts_isend(void *comm, void *data, size_t size, int tag, void **request)
{
	struct ts_comm *c = comm;
	struct ts_request *r;

	if (fault_now(TS_ERROR, 0))
		return ncclRemoteError;
	if (fault_now(TS_UNTOUCHED, 0))
		return ncclSuccess;
	if (fault_now(TS_DIE, 0))
		raise(SIGKILL);
	if (fault_now(TS_LEAVE, 0))
		_exit(7);
	if (fault_now(TS_QUIT, 0))
		_exit(0);
	if (fault_now(TS_DESERT, 0)) {
		(void)shutdown(c->fd, SHUT_RDWR);
		sleep(1);
		_exit(0);
	}
	*request = NULL;
	r = fault_now(TS_NULL, 1) ? NULL : request_new(c);
	if (!r)
		return ncclSuccess;
	r->size = size;
	r->data[0] = data;
	r->tags[0] = tag;
	r->sizes[0] = (int)size;
	r->n = 1;
	r->done = fault_now(TS_DROP, 0);
	*request = r;
	return send_progress(c);
}

ncclResult_t ts_irecv(void *comm, int n, void **data, const size_t *sizes, int *tags,
		      void **request)
{
	struct ts_comm *c = comm;
	struct ts_request *r;

	if (fault_now(TS_SENTINEL, 0))
		return ncclSuccess;
	*request = NULL;
	if (n < 1 || n > TS_MAX_RECVS)
		return ncclInvalidArgument;
	r = fault_now(TS_NULL, 1) ? NULL : request_new(c);
	if (!r)
		return ncclSuccess;
	r->receive = 1;
	r->n = n;
	for (int i = 0; i < n; i++) {
		r->data[i] = data[i];
		r->room[i] = sizes[i];
		r->tags[i] = tags[i];
	}
	kept_deliver(c);
	*request = r;
	return ncclSuccess;
}

/* Completes at once every other time: NULL means that there is nothing to wait for. */
ncclResult_t ts_iflush(void *comm, int n, void **data, int *sizes, void **mhandles, void **request)
{
	static int turn;
	struct ts_request *r = turn++ & 1 ? request_new(comm) : NULL;

	if (r)
		r->done = 1;
	*request = r;
	return ncclSuccess;
}

ncclResult_t ts_test(void *request, int *done, int *sizes)
{
	struct ts_request *r = request;
	ncclResult_t result;

	*done = 0;
	if (!r->used) {
		fprintf(stderr, "testsock: test of a request that is free\n");
		return ncclInvalidUsage;
	}
	if (!r->done) {
		result = r->comm->sending ? send_progress(r->comm) : receive_progress(r->comm);
		if (result != ncclSuccess && !r->done)
			return result;
	}
	if (!r->done)
		return ncclSuccess;
	for (int i = 0; sizes && i < r->n; i++)
		sizes[i] = r->sizes[i];
	*done = 1;
	r->used = 0;
	return ncclSuccess;
}
