/* SPDX-License-Identifier: BSD-3-Clause */
/* manager.c - channels: what opens and ends ids and ports; see manager.h */
#include "softroce/cm/manager.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* opening and closing of channels; before sr_cm_lock */
static pthread_mutex_t incarnation_lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, sr_cm_channel) channels = LIST_HEAD_INITIALIZER(channels);

/* ---- fork ---- */

static void fork_prepare(void)
{
	pthread_mutex_lock(&incarnation_lock);
	pthread_mutex_lock(&sr_cm_lock);
}

static void fork_parent(void)
{
	pthread_mutex_unlock(&sr_cm_lock);
	pthread_mutex_unlock(&incarnation_lock);
}

/* Connections are the parent's, as its queue pairs are: the child's copy is forgotten. */
static void fork_child(void)
{
	LIST_INIT(&channels);
	LIST_INIT(&sr_cm_ids);
	sr_cm_ports_forget();
	fork_parent();
}

static void follow_forks(void)
{
	pthread_atfork(fork_prepare, fork_parent, fork_child);
}

static const struct sr_cm_handlers handlers = {
	.message = sr_cm_message,
	.timers = sr_cm_timers,
	.ports_gone = sr_cm_early_forget,
	.follow_forks = follow_forks,
};

/* ---- ids ---- */

static struct sr_cm_note *find_note(const struct sr_cm_id *id)
{
	struct sr_cm_note *note;

	TAILQ_FOREACH(note, &id->channel->notes, link)
		if (note->id == id || note->fresh == id)
			break;
	return note;
}

/* The events of an id that nobody will take: the requests among them are refused. */
static void notes_drop(struct sr_cm_id *id)
{
	struct sr_cm_note *note;

	/* from the front each time: others may have gone with the last */
	while ((note = find_note(id))) {
		sr_cm_unlink(id->channel, note);
		if (note->fresh)
			note->id->waiting--;
		if (note->fresh && note->fresh != id)
			sr_cm_id_free(note->fresh);
		free(note);
	}
}

void sr_cm_id_free(struct sr_cm_id *id)
{
	sr_cm_send_end(id);
	notes_drop(id);
	LIST_REMOVE(id, link);
	free(id);
}

/* ---- channels ---- */

int sr_cm_open(void)
{
	static uint64_t incarnations;
	struct sr_cm_channel *channel = calloc(1, sizeof(*channel));

	if (!channel)
		return -ENOMEM;
	TAILQ_INIT(&channel->notes);
	channel->fd = eventfd(0, EFD_CLOEXEC);
	if (channel->fd < 0) {
		int err = -errno;

		free(channel);
		return err;
	}
	pthread_mutex_lock(&incarnation_lock);
	pthread_mutex_lock(&sr_cm_lock);
	sr_cm_handle(&handlers);
	channel->incarnation = ++incarnations;
	LIST_INSERT_HEAD(&channels, channel, link);
	pthread_mutex_unlock(&sr_cm_lock);
	pthread_mutex_unlock(&incarnation_lock);
	return channel->fd;
}

struct sr_cm_channel *sr_cm_channel_of(int fd)
{
	struct sr_cm_channel *channel;

	LIST_FOREACH(channel, &channels, link)
		if (channel->fd == fd)
			break;
	return channel;
}

static void channel_ids_free(struct sr_cm_channel *channel)
{
	struct sr_cm_id *id = LIST_FIRST(&sr_cm_ids);

	while (id) {
		if (id->channel != channel) {
			id = LIST_NEXT(id, link);
			continue;
		}
		sr_cm_id_free(id);
		id = LIST_FIRST(&sr_cm_ids); /* others may have gone with it */
	}
}

bool sr_cm_close(int fd)
{
	struct sr_cm_channel *channel;
	bool last;

	pthread_mutex_lock(&incarnation_lock);
	pthread_mutex_lock(&sr_cm_lock);
	channel = sr_cm_channel_of(fd);
	if (channel) {
		channel_ids_free(channel);
		LIST_REMOVE(channel, link);
	}
	last = channel && LIST_EMPTY(&channels);
	pthread_mutex_unlock(&sr_cm_lock);
	if (last)
		sr_cm_ports_end();
	pthread_mutex_unlock(&incarnation_lock);
	if (channel)
		close(channel->fd);
	free(channel);
	return channel;
}

/* ---- processes ---- */

/* A process that ends without saying so: its peers learn of it as from the kernel. */
__attribute__((destructor)) static void process_end(void)
{
	struct sr_cm_id *id;

	if (pthread_mutex_trylock(&sr_cm_lock))
		return;
	LIST_FOREACH(id, &sr_cm_ids, link)
		sr_cm_send_end(id);
	pthread_mutex_unlock(&sr_cm_lock);
}
