/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/host/shm/client.h"

#include "base/clock.h"
#include "base/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/*
 * While a backend that hangs has its queue full there is nothing to wait for, -EAGAIN: one tries
 * again.
 */
static int try_for_a_while(const char *path, const int *give_up)
{
	int64_t until = ha_monotonic_ms() + INA_SHM_TIME_LIMIT_MS;
	int fd;

	while ((fd = ha_socket_connect_unix(path, SOCK_SEQPACKET, 0)) == -EAGAIN) {
		if (ina_shm_given_up(give_up))
			return -ECANCELED;
		if (ha_monotonic_ms() >= until)
			return fd;
		poll(NULL, 0, INA_SHM_LOOK_MS);
	}
	return fd;
}

static int connect_backend(const char *path, const int *give_up, char *why, size_t size)
{
	int err = try_for_a_while(path, give_up);

	if (err >= 0)
		return err;
	if (err == -ENAMETOOLONG) {
		snprintf(why, size, "the path of the backend's socket is too long: %s", path);
		return -EINVAL;
	}
	if (err == -EMFILE || err == -ENFILE) {
		snprintf(why, size, "socket: %s", strerror(-err));
		return err;
	}
	if (err == -ECANCELED) {
		snprintf(why, size, "%s: given up while the backend had not answered", path);
		return err;
	}
	if (err == -EACCES || err == -EPERM) {
		snprintf(why, size,
			 "%s: this user may not attach to the backend: see its socket's owner and "
			 "mode",
			 path);
		return err;
	}
	if (err == -EAGAIN) {
		snprintf(why, size, "%s: the backend has not answered for %d s", path,
			 INA_SHM_TIME_LIMIT_MS / 1000);
		return -ENOTCONN;
	}
	snprintf(why, size,
		 "%s: no backend (%s): start ha-backend on this host, or set NETCCL_BACKEND", path,
		 strerror(-err));
	return -ENOTCONN;
}

/* Asks, and waits for this type of answer. */
static int ask_backend(int fd, const struct ina_shm_message *question, int file, uint32_t type,
		       const int *give_up, struct ina_shm_message *m, char *why, size_t size)
{
	int64_t until = ha_monotonic_ms() + INA_SHM_TIME_LIMIT_MS, left;
	const char *what = "";
	int other, err = ina_shm_message_send(fd, question, file);

	if (err && err != -ENOTCONN) { /* who has gone may have said why */
		snprintf(why, size, "nothing can be sent to the backend: %s", strerror(-err));
		return err;
	}
	while ((left = until - ha_monotonic_ms()) > 0) {
		struct pollfd p = { fd, POLLIN, 0 };

		if (ina_shm_given_up(give_up)) {
			snprintf(why, size, "given up while the backend had not answered");
			return -ECANCELED;
		}
		poll(&p, 1, left < INA_SHM_LOOK_MS || !give_up ? (int)left : INA_SHM_LOOK_MS);
		err = ina_shm_message_receive(fd, m, false, &other, &what);
		if (!err)
			continue;
		if (err > 0 && m->type == type)
			return 0;
		if (err > 0 && m->type == INA_SHM_REFUSED) {
			snprintf(why, size, "the backend says: %s", m->state.text);
			return m->state.result;
		}
		snprintf(why, size, "the backend %s%s",
			 err == -ENOTCONN ? "has gone" : "answers nonsense: ", what);
		return err > 0 ? -EPROTO : err;
	}
	snprintf(why, size, "the backend has not answered for %d s", INA_SHM_TIME_LIMIT_MS / 1000);
	return -ENOTCONN;
}

int ina_shm_client_open(struct ina_shm_client *client, const char *path, uint32_t segments,
			const int *give_up, char *why, size_t size)
{
	struct ina_shm_message m = { .type = INA_SHM_HELLO,
				     .serial = 1,
				     .hello = { INA_SHM_MAGIC, INA_SHM_VERSION, 0 } },
			       got;
	int file = -1, err;

	*client = (struct ina_shm_client) { .fd = connect_backend(path, give_up, why, size) };
	if (client->fd < 0)
		return client->fd;
	err = ask_backend(client->fd, &m, -1, INA_SHM_WELCOME, give_up, &got, why, size);
	if (err)
		goto failed;
	client->address = got.hello.address;
	if (got.hello.magic != INA_SHM_MAGIC || got.hello.version != INA_SHM_VERSION) {
		snprintf(why, size,
			 "the backend has another version: library and backend must come from "
			 "the same release");
		err = -EPROTO;
		goto failed;
	}
	err = ina_shm_memory_make(&client->memory, segments, &file, why, size);
	if (err)
		goto failed;
	m = (struct ina_shm_message) { .type = INA_SHM_ATTACH,
				       .serial = 2,
				       .bytes = client->memory.bytes };
	err = ask_backend(client->fd, &m, file, INA_SHM_ATTACHED, give_up, &got, why, size);
	close(file);
	if (!err)
		return 0;
failed:
	ina_shm_client_close(client);
	return err;
}

void ina_shm_client_close(struct ina_shm_client *client)
{
	if (client->fd >= 0)
		close(client->fd);
	client->fd = -1;
	ina_shm_memory_drop(&client->memory);
}

int ina_shm_client_bell(struct ina_shm_client *client)
{
	static const struct ina_shm_message bell = { .type = INA_SHM_BELL };
	int err;

	if (!ina_shm_ring_bell(&client->memory.requests))
		return 0;
	err = ina_shm_message_send(client->fd, &bell, -1);
	/* it has other messages of ours to read, and they wake it as well */
	return err == -EAGAIN ? 0 : err;
}
