/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/host/shm/message.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define HEAD offsetof(struct ina_shm_message, hello)
#define FILES 4 /* that are taken note of, to close them */

static const uint16_t body[INA_SHM_TYPES] = {
	[INA_SHM_HELLO] = sizeof(struct ina_shm_hello),
	[INA_SHM_WELCOME] = sizeof(struct ina_shm_hello),
	[INA_SHM_ATTACH] = sizeof(uint64_t),
	[INA_SHM_CREATE] = sizeof(struct ina_shm_create),
	[INA_SHM_TICKET] = HA_INA_TICKET,
	[INA_SHM_JOIN] = sizeof(struct ina_shm_join),
	[INA_SHM_JOINED] = sizeof(struct ina_shm_joined),
	[INA_SHM_LEAVE] = sizeof(struct ina_shm_leave),
	[INA_SHM_LEFT] = sizeof(uint32_t),
	[INA_SHM_STATE] = sizeof(struct ina_shm_state),
	[INA_SHM_REFUSED] = sizeof(struct ina_shm_state),
};

#define BIT(type) (1u << (type))
#define FROM_CLIENT                                                                           \
	(BIT(INA_SHM_HELLO) | BIT(INA_SHM_ATTACH) | BIT(INA_SHM_CREATE) | BIT(INA_SHM_JOIN) | \
	 BIT(INA_SHM_LEAVE) | BIT(INA_SHM_BELL))
#define FROM_BACKEND                                                                           \
	(BIT(INA_SHM_WELCOME) | BIT(INA_SHM_ATTACHED) | BIT(INA_SHM_TICKET) |                  \
	 BIT(INA_SHM_JOINED) | BIT(INA_SHM_LEFT) | BIT(INA_SHM_STATE) | BIT(INA_SHM_REFUSED) | \
	 BIT(INA_SHM_BELL))

size_t ina_shm_message_bytes(uint32_t type)
{
	return type && type < INA_SHM_TYPES ? HEAD + body[type] : 0;
}

static bool is_line(const char *text, size_t size)
{
	size_t n = strnlen(text, size);

	for (size_t i = 0; i < n; i++)
		if ((unsigned char)text[i] < ' ')
			return false;
	return n < size;
}

static bool body_is_sound(const struct ina_shm_message *m)
{
	switch (m->type) {
	case INA_SHM_CREATE:
		return m->create.ranks >= 2 && m->create.ranks <= HA_INA_RANKS &&
		       is_line(m->create.name, INA_SHM_NAME);
	case INA_SHM_JOIN:
		return m->join.rank < HA_INA_RANKS;
	case INA_SHM_LEAVE:
		return m->leave.result <= 0 && m->leave.result > -4096;
	case INA_SHM_JOINED:
		return m->joined.ranks >= 2 && m->joined.ranks <= HA_INA_RANKS &&
		       m->joined.rank < m->joined.ranks;
	case INA_SHM_STATE:
	case INA_SHM_REFUSED:
		return m->state.result < 0 && m->state.result > -4096 &&
		       is_line(m->state.text, INA_SHM_TEXT);
	default:
		return true;
	}
}

int ina_shm_message_check(const struct ina_shm_message *message, size_t bytes, bool from_client,
			  const char **why)
{
	if (bytes < HEAD || !ina_shm_message_bytes(message->type) ||
	    !(BIT(message->type) & (from_client ? FROM_CLIENT : FROM_BACKEND)))
		*why = "a message is none that the other side may send";
	else if (bytes != ina_shm_message_bytes(message->type))
		*why = "a message has the wrong length";
	else if (!body_is_sound(message))
		*why = "a message's contents cannot be";
	else
		return 0;
	return -EPROTO;
}

int ina_shm_message_send(int fd, const struct ina_shm_message *message, int file)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { .align = { .cmsg_len = CMSG_LEN(sizeof(int)),
				 .cmsg_level = SOL_SOCKET,
				 .cmsg_type = SCM_RIGHTS } };
	struct iovec part = { (void *)message, ina_shm_message_bytes(message->type) };
	struct msghdr all = { .msg_iov = &part, .msg_iovlen = 1 };

	if (file >= 0) {
		memcpy(CMSG_DATA(&control.align), &file, sizeof(file));
		all.msg_control = &control;
		all.msg_controllen = sizeof(control);
	}
	while (sendmsg(fd, &all, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		if (errno != EINTR)
			return errno == EPIPE || errno == ECONNRESET ? -ENOTCONN : -errno;
	return 0;
}

/* The first file that came along; the others are closed. */
static int files_of(struct msghdr *all)
{
	int first = -1;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(all); c; c = CMSG_NXTHDR(all, c)) {
		size_t n = c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS
				   ? (c->cmsg_len - CMSG_LEN(0)) / sizeof(int)
				   : 0;

		for (size_t i = 0; i < n; i++) {
			int file;

			memcpy(&file, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
			if (first < 0)
				first = file;
			else
				close(file);
		}
	}
	return first;
}

/* Who closed with our message unread may have sent one before: it comes after the error. */
static ssize_t receive_one(int fd, struct msghdr *all)
{
	bool reset = false;
	ssize_t n;

	for (;;) {
		n = recvmsg(fd, all, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
		if (n >= 0 || (errno != EINTR && (errno != ECONNRESET || reset)))
			return n;
		reset = reset || errno == ECONNRESET;
	}
}

/* What came, of n bytes, with the file or -1; 0 or a negative errno with *why. */
static int check_received(const struct msghdr *all, const struct ina_shm_message *message, size_t n,
			  int file, bool from_client, const char **why)
{
	int err;

	if (!n)
		return -ENOTCONN;
	if (all->msg_flags & MSG_TRUNC) {
		*why = "a message is too long";
		return -EPROTO;
	}
	err = ina_shm_message_check(message, n, from_client, why);
	if (err)
		return err;
	/* the kernel could not give it to us */
	if (file < 0 && all->msg_flags & MSG_CTRUNC) {
		*why = "the file that came could not be taken: a larger LimitNOFILE for the "
		       "backend (ulimit -n), or fewer processes on this host";
		return -EPROTO;
	}
	if (file >= 0 && message->type != INA_SHM_ATTACH) {
		*why = "a file came with a message that has none";
		return -EPROTO;
	}
	return 0;
}

int ina_shm_message_receive(int fd, struct ina_shm_message *message, bool from_client, int *file,
			    const char **why)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(FILES * sizeof(int))];
	} control;
	struct iovec part = { message, sizeof(*message) };
	struct msghdr all = { .msg_iov = &part,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	ssize_t n;
	int err;

	*file = -1;
	memset(message, 0, sizeof(*message));
	n = receive_one(fd, &all);
	if (n < 0)
		return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -ENOTCONN;
	*file = files_of(&all);
	err = check_received(&all, message, (size_t)n, *file, from_client, why);
	if (!err)
		return 1;
	if (*file >= 0) {
		close(*file);
		*file = -1;
	}
	return err;
}
