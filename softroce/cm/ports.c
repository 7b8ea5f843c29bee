/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ports.c - the ports, opened when first asked for, and the thread that receives from them; see
 * manager.h
 */
#include "softroce/cm/manager.h"
#include "softroce/udp.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static const struct sr_cm_handlers *handlers;
static struct sr_cm_port ports[SR_CM_PORTS];
static int port_count; /* 0: not opened */
static pthread_t thread;
static int kick = -1;
static bool stop, forks_followed;

void sr_cm_handle(const struct sr_cm_handlers *with)
{
	handlers = with;
}

static void messages_take(struct sr_cm_port *port)
{
	struct sr_mad mad;
	uint8_t gid[16];

	sr_cm_port_rearm(port);
	while (sr_cm_port_receive(port, &mad, gid))
		handlers->message(port, gid, &mad);
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
		due = handlers->timers(now);
		due = due > now ? due - now : 0;
		ts = (struct timespec) { due / 1000000000, due % 1000000000 };
		for (int i = 0; i < n; i++)
			fds[i] = (struct pollfd) { ports[i].fd, POLLIN, 0 };
		fds[n] = (struct pollfd) { kick, POLLIN, 0 };
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
		/* after the adapters' handlers: our locks are taken before theirs */
		if (!forks_followed)
			handlers->follow_forks();
		forks_followed = true;
	}
	if (kick >= 0)
		eventfd_write(kick, 1); /* whoever asks for a port is about to send */
	return port_count;
}

/* The last channel is closed. Under incarnation_lock alone: the thread takes the other one. */
void sr_cm_ports_end(void)
{
	pthread_mutex_lock(&sr_cm_lock);
	stop = true;
	pthread_mutex_unlock(&sr_cm_lock);
	if (!port_count)
		return;
	eventfd_write(kick, 1);
	pthread_join(thread, NULL);
	handlers->ports_gone();
	for (int i = 0; i < port_count; i++)
		sr_cm_port_close(&ports[i]);
	close(kick);
	kick = -1;
	port_count = 0;
}

void sr_cm_ports_forget(void)
{
	memset(ports, 0, sizeof(ports));
	port_count = 0;
	kick = -1;
}
