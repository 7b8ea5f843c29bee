/* SPDX-License-Identifier: BSD-3-Clause */
/* manager.c - channels, ids, events and the thread; see manager.h */
#include "softroce/cm/manager.h"
#include "softroce/devices.h"
#include "softroce/udp.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

pthread_mutex_t sr_cm_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t life_lock = PTHREAD_MUTEX_INITIALIZER; /* opening and closing of channels; before sr_cm_lock */
static struct sr_cm_channel *channels;
static struct sr_cm_id *ids;
static uint32_t last_handle;
static struct sr_cm_port ports[SR_CM_PORTS];
static int port_count; /* 0: not opened */
static pthread_t thread;
static int kick = -1;
static bool stop, forks_followed;

/* ---- the thread ---- */

static void messages_take(struct sr_cm_port *port)
{
	struct sr_mad mad;
	uint8_t gid[16];

	sr_cm_port_rearm(port);
	while (sr_cm_port_receive(port, &mad, gid))
		sr_cm_message(port, gid, &mad);
}

static void *thread_run(void *arg)
{
	struct pollfd fds[SR_CM_PORTS + 1];
	uint64_t now, due;
	eventfd_t value;

	pthread_mutex_lock(&sr_cm_lock);
	while (!stop) {
		struct timespec ts;
		int n = port_count;

		now = sr_now();
		due = sr_cm_timers(now);
		due = due > now ? due - now : 0;
		ts = (struct timespec){ due / 1000000000, due % 1000000000 };
		for (int i = 0; i < n; i++)
			fds[i] = (struct pollfd){ ports[i].fd, POLLIN, 0 };
		fds[n] = (struct pollfd){ kick, POLLIN, 0 };
		pthread_mutex_unlock(&sr_cm_lock);
		ppoll(fds, n + 1, &ts, NULL);
		pthread_mutex_lock(&sr_cm_lock);
		if (fds[n].revents)
			eventfd_read(kick, &value);
		for (int i = 0; i < n && !stop; i++)
			if (fds[i].revents)
				messages_take(&ports[i]);
	}
	pthread_mutex_unlock(&sr_cm_lock);
	return arg;
}

static int thread_start(void)
{
	sigset_t all, old;
	int err;

	kick = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (kick < 0)
		return -errno;
	stop = false;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old); /* signals are the application's */
	err = -pthread_create(&thread, NULL, thread_run, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err) {
		close(kick);
		kick = -1;
	} else {
		pthread_setname_np(thread, "softroce-cm");
	}
	return err;
}

/* ---- fork ---- */

static void fork_prepare(void)
{
	pthread_mutex_lock(&life_lock);
	pthread_mutex_lock(&sr_cm_lock);
}

static void fork_parent(void)
{
	pthread_mutex_unlock(&sr_cm_lock);
	pthread_mutex_unlock(&life_lock);
}

/* Connections are the parent's, as its queue pairs are: the child's copy is forgotten. */
static void fork_child(void)
{
	channels = NULL;
	ids = NULL;
	memset(ports, 0, sizeof(ports));
	port_count = 0;
	kick = -1;
	fork_parent();
}

int sr_cm_ports(struct sr_cm_port **out)
{
	*out = ports;
	if (!port_count) {
		int n = sr_cm_ports_open(ports), err = n > 0 ? thread_start() : n;

		if (err) {
			for (int i = 0; i < n; i++)
				sr_cm_port_close(&ports[i]);
			return err;
		}
		port_count = n;
		if (!forks_followed) /* after the adapters' handlers: our locks are taken before theirs */
			pthread_atfork(fork_prepare, fork_parent, fork_child);
		forks_followed = true;
	}
	if (kick >= 0)
		eventfd_write(kick, 1); /* whoever asks for a port is about to send */
	return port_count;
}

/* The last channel is closed. Under life_lock alone: the thread takes the other one. */
static void everything_end(void)
{
	pthread_mutex_lock(&sr_cm_lock);
	stop = true;
	pthread_mutex_unlock(&sr_cm_lock);
	if (!port_count)
		return;
	eventfd_write(kick, 1);
	pthread_join(thread, NULL);
	sr_cm_early_forget();
	for (int i = 0; i < port_count; i++)
		sr_cm_port_close(&ports[i]);
	close(kick);
	kick = -1;
	port_count = 0;
}

/* ---- events ---- */

struct sr_cm_note *sr_cm_note(struct sr_cm_id *id, enum sr_cm_event event, int status)
{
	struct sr_cm_note *note = id->uid ? calloc(1, sizeof(*note)) : NULL;

	if (!note)
		return NULL;
	note->id = id;
	note->event.uid = id->uid;
	note->event.id = id->handle;
	note->event.event = event;
	note->event.status = (uint32_t)status;
	return note;
}

void sr_cm_push(struct sr_cm_note *note)
{
	struct sr_cm_channel *channel = note->id->channel;

	if (!channel->first)
		eventfd_write(channel->fd, 1);
	*channel->last = note;
	channel->last = &note->next;
}

void sr_cm_tell(struct sr_cm_id *id, enum sr_cm_event event, int status)
{
	struct sr_cm_note *note = sr_cm_note(id, event, status);

	if (note)
		sr_cm_push(note);
}

static void note_unlink(struct sr_cm_channel *channel, struct sr_cm_note **link)
{
	struct sr_cm_note *note = *link;
	eventfd_t value;

	*link = note->next;
	note->next = NULL;
	if (channel->last == &note->next)
		channel->last = link;
	if (!channel->first)
		eventfd_read(channel->fd, &value);
}

struct sr_cm_note *sr_cm_take(struct sr_cm_channel *channel)
{
	struct sr_cm_note *note = channel->first;

	if (!note)
		return NULL;
	note_unlink(channel, &channel->first);
	note->id->events++;
	if (note->fresh)
		note->id->waiting--;
	return note;
}

/* The events of an id that nobody will take: the requests among them are refused. */
static void notes_drop(struct sr_cm_id *id)
{
	struct sr_cm_note **link = &id->channel->first;

	while (*link) {
		struct sr_cm_note *note = *link;

		if (note->id != id && note->fresh != id) {
			link = &note->next;
			continue;
		}
		note_unlink(id->channel, link);
		if (note->fresh)
			note->id->waiting--;
		if (note->fresh && note->fresh != id)
			sr_cm_id_free(note->fresh);
		free(note);
	}
}

/* ---- ids ---- */

bool sr_cm_is_datagram(const struct sr_cm_id *id)
{
	return id->qp_type == IBV_QPT_UD || id->ps == RDMA_PS_UDP || id->ps == RDMA_PS_IPOIB;
}

struct sr_cm_id *sr_cm_ids(void)
{
	return ids;
}

struct sr_cm_id *sr_cm_id_new(struct sr_cm_channel *channel, uint64_t uid, uint16_t ps, uint8_t qp_type)
{
	struct sr_cm_id *id = calloc(1, sizeof(*id));
	uint32_t random[4];

	if (!id)
		return NULL;
	if (getrandom(random, sizeof(random), 0) != sizeof(random)) {
		free(id);
		return NULL;
	}
	id->handle = ++last_handle;
	id->channel = channel;
	id->uid = uid;
	id->ps = ps;
	id->qp_type = qp_type;
	id->local_id = random[0];
	id->psn = random[1] & 0xffffff;
	id->tid = (uint64_t)random[2] << 32 | random[3];
	id->next = ids;
	ids = id;
	return id;
}

struct sr_cm_id *sr_cm_id_of(uint32_t handle)
{
	struct sr_cm_id *id = ids;

	while (id && id->handle != handle)
		id = id->next;
	return id;
}

void sr_cm_id_free(struct sr_cm_id *id)
{
	struct sr_cm_id **link = &ids;

	sr_cm_goodbye(id);
	notes_drop(id);
	while (*link != id)
		link = &(*link)->next;
	*link = id->next;
	free(id);
}

void sr_cm_id_migrate(struct sr_cm_id *id, struct sr_cm_channel *to)
{
	struct sr_cm_channel *from = id->channel;
	struct sr_cm_note **link = &from->first;

	if (from == to)
		return;
	id->channel = to;
	while (*link) {
		struct sr_cm_note *note = *link;

		if (note->id != id) {
			link = &note->next;
			continue;
		}
		if (note->fresh)
			note->fresh->channel = to;
		note_unlink(from, link);
		sr_cm_push(note);
	}
}

/* ---- channels ---- */

int sr_cm_open(void)
{
	static uint64_t lives;
	struct sr_cm_channel *channel = calloc(1, sizeof(*channel));

	if (!channel)
		return -ENOMEM;
	channel->last = &channel->first;
	channel->fd = eventfd(0, EFD_CLOEXEC);
	if (channel->fd < 0) {
		free(channel);
		return -errno;
	}
	pthread_mutex_lock(&life_lock);
	pthread_mutex_lock(&sr_cm_lock);
	channel->life = ++lives;
	channel->next = channels;
	channels = channel;
	pthread_mutex_unlock(&sr_cm_lock);
	pthread_mutex_unlock(&life_lock);
	return channel->fd;
}

struct sr_cm_channel *sr_cm_channel_of(int fd)
{
	struct sr_cm_channel *channel = channels;

	while (channel && channel->fd != fd)
		channel = channel->next;
	return channel;
}

static void channel_ids_free(struct sr_cm_channel *channel)
{
	struct sr_cm_id *id = ids;

	while (id) {
		if (id->channel != channel) {
			id = id->next;
			continue;
		}
		sr_cm_id_free(id);
		id = ids; /* others may have gone with it */
	}
}

bool sr_cm_close(int fd)
{
	struct sr_cm_channel *channel, **link = &channels;
	bool last;

	pthread_mutex_lock(&life_lock);
	pthread_mutex_lock(&sr_cm_lock);
	channel = sr_cm_channel_of(fd);
	if (channel) {
		channel_ids_free(channel);
		while (*link != channel)
			link = &(*link)->next;
		*link = channel->next;
	}
	last = channel && !channels;
	pthread_mutex_unlock(&sr_cm_lock);
	if (last)
		everything_end();
	pthread_mutex_unlock(&life_lock);
	if (channel)
		close(channel->fd);
	free(channel);
	return channel;
}

/* ---- processes ---- */

/* A process that ends without saying so: its peers learn of it as from the kernel. */
__attribute__((destructor)) static void process_end(void)
{
	if (pthread_mutex_trylock(&sr_cm_lock))
		return;
	for (struct sr_cm_id *id = ids; id; id = id->next)
		sr_cm_goodbye(id);
	pthread_mutex_unlock(&sr_cm_lock);
}

/* ---- addresses ---- */

void sr_cm_gid_of(const void *sockaddr, uint8_t gid[16])
{
	const struct sockaddr_in *in = sockaddr;
	const struct sockaddr_in6 *in6 = sockaddr;

	if (in->sin_family == AF_INET)
		sr_gid_from_ipv4(gid, ntohl(in->sin_addr.s_addr));
	else
		memcpy(gid, &in6->sin6_addr, 16);
}

uint16_t sr_cm_portnum(const void *sockaddr)
{
	return ntohs(((const struct sockaddr_in *)sockaddr)->sin_port); /* at the same place in both */
}

void sr_cm_sockaddr(struct sockaddr_in6 *to, const uint8_t gid[16], uint16_t port)
{
	struct sockaddr_in *in = (struct sockaddr_in *)(void *)to;

	memset(to, 0, sizeof(*to));
	to->sin6_family = AF_INET6;
	to->sin6_port = htons(port);
	if (!sr_gid_ipv4(gid)) {
		memcpy(&to->sin6_addr, gid, 16);
		return;
	}
	in->sin_family = AF_INET;
	in->sin_addr.s_addr = htonl(sr_gid_ipv4(gid));
}

bool sr_cm_any(const void *sockaddr)
{
	static const uint8_t zero[16], mapped[16] = { [10] = 0xff, [11] = 0xff };
	uint8_t gid[16];

	sr_cm_gid_of(sockaddr, gid);
	return !memcmp(gid, zero, 16) || !memcmp(gid, mapped, 16);
}
