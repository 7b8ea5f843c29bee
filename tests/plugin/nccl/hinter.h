/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hinter.h - an agent that is a thread of the test: it gives every flow one slot, and the test
 * itself writes the hint
 *
 * hinter_prepare makes a directory and points the plugin's variables at it; the file and the thread
 * come when the test asks for them. Included by one file of a program.
 */
#ifndef HA_TESTS_NCCL_HINTER_H
#define HA_TESTS_NCCL_HINTER_H

#include "include/mpib_agent_iface.h"
#include "tests/plugin/nccl/rig.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define HINTER_SLOT 17

static struct {
	char dir[64], socket_path[96], hints_path[96];
	struct mpib_hint_shm *shm;
	atomic_uint registered, deregistered;
	atomic_bool full;          /* it has no slot left */
	struct mpib_register flow; /* of the last registration */
	int listener;
} hinter;

static bool hinter_answer(int fd)
{
	union {
		struct mpib_msg_header header;
		struct mpib_register reg;
		struct mpib_deregister dereg;
	} m;
	struct mpib_register_response yes = { { MPIB_REG_MAGIC, sizeof(yes), MPIB_MSG_RESPONSE, 0 },
					      MPIB_STATUS_OK,
					      HINTER_SLOT };
	struct mpib_deregister_response bye = {
		{ MPIB_REG_MAGIC, sizeof(bye), MPIB_MSG_RESPONSE, 0 }, MPIB_STATUS_OK
	};

	if (recv(fd, &m, sizeof(m.header), MSG_WAITALL) != sizeof(m.header) ||
	    m.header.length > sizeof(m))
		return false;
	if (recv(fd, (char *)&m + sizeof(m.header), m.header.length - sizeof(m.header),
		 MSG_WAITALL) <= 0)
		return false;
	if (m.header.type == MPIB_MSG_DEREGISTER) {
		atomic_fetch_add(&hinter.deregistered, 1);
		return send(fd, &bye, sizeof(bye), MSG_NOSIGNAL) == sizeof(bye);
	}
	hinter.flow = m.reg;
	if (hinter.full) {
		yes.status = MPIB_STATUS_NO_SLOT;
		yes.hint_slot = MPIB_NO_SLOT;
	}
	atomic_fetch_add(&hinter.registered, 1);
	return send(fd, &yes, sizeof(yes), MSG_NOSIGNAL) == sizeof(yes);
}

static void *hinter_main(void *arg)
{
	int fd;

	while ((fd = accept(hinter.listener, NULL, NULL)) >= 0) {
		while (hinter_answer(fd))
			;
		close(fd);
	}
	return arg;
}

static inline void hinter_prepare(void)
{
	snprintf(hinter.dir, sizeof(hinter.dir), "/tmp/ha-hinter-XXXXXX");
	CHECK(mkdtemp(hinter.dir), "mkdtemp");
	snprintf(hinter.socket_path, sizeof(hinter.socket_path), "%s/agent.sock", hinter.dir);
	snprintf(hinter.hints_path, sizeof(hinter.hints_path), "%s/hints", hinter.dir);
	setenv("HA_NCCL_AGENT_SOCKET", hinter.socket_path, 1);
	setenv("HA_NCCL_AGENT_HINTS", hinter.hints_path, 1);
}

static inline void hinter_start(void)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	pthread_t thread;

	snprintf(at.sun_path, sizeof(at.sun_path), "%s", hinter.socket_path);
	hinter.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(hinter.listener >= 0 && !bind(hinter.listener, (struct sockaddr *)&at, sizeof(at)) &&
		      !listen(hinter.listener, 8),
	      "socket");
	CHECK(!pthread_create(&thread, NULL, hinter_main, NULL) && !pthread_detach(thread),
	      "thread");
}

static inline void hinter_make_hints(void)
{
	int fd = open(hinter.hints_path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	CHECK(fd >= 0 && !fchmod(fd, 0644) && !ftruncate(fd, sizeof(*hinter.shm)), "hints");
	hinter.shm = mmap(NULL, sizeof(*hinter.shm), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(hinter.shm != MAP_FAILED, "mmap");
	close(fd);
	hinter.shm->header.max_entries = MPIB_HINT_MAX_ENTRIES;
	__atomic_store_n(&hinter.shm->header.magic, MPIB_HINT_MAGIC, __ATOMIC_RELEASE);
}

static inline void hinter_write(uint32_t sup_bw)
{
	mpib_hint_put(&hinter.shm->entries[HINTER_SLOT], sup_bw, hinter.flow.sout_src_ip,
		      hinter.flow.sout_dst_ip);
}

/* A hint for some other flow. */
static inline void hinter_write_foreign(void)
{
	mpib_hint_put(&hinter.shm->entries[HINTER_SLOT], 512, hinter.flow.sout_src_ip + 1,
		      hinter.flow.sout_dst_ip);
}

static inline void hinter_remove(void)
{
	unlink(hinter.socket_path);
	unlink(hinter.hints_path);
	rmdir(hinter.dir);
}

#endif
