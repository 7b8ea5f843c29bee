/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * server.h - the backend's end: clients that attach, ask for groups, and push requests
 *
 * Two threads at most touch a peer:
 *   the control thread   ina_shm_server_poll(), and from inside of it every callback
 *   the data thread      ina_shm_peer_next(), ina_shm_peer_respond(), ina_shm_peer_sleep(),
 *                        ina_shm_peer_awake(); may be the same
 * Answers (ina_shm_answer_*), ina_shm_peer_state() and ina_shm_peer_end() are for any thread, as
 * long as the peer has not been released.
 *
 * A peer dies in two phases: gone() says that it is no more (its socket is closed, nothing it had
 * asked will be received); its memory stays mapped until ina_shm_peer_release(), which the backend
 * calls when none of its threads touches it any more.
 *
 * What a client does wrong ends it, with one line, which is sent to it too (REFUSED); nothing more
 * is received from it, and the others receive nothing of it at all.
 */
#ifndef INA_SHM_SERVER_H
#define INA_SHM_SERVER_H

#include "ina/host/shm/memory.h"
#include "ina/host/shm/message.h"

struct ina_shm_server;
struct ina_shm_peer;

struct ina_shm_server_config {
	/* of the socket; what a dead backend left there is replaced, a living one's is not */
	const char *path;
	unsigned mode;    /* of the socket: who may attach; 0 = 0660 */
	uint32_t address; /* the card's IPv4, host order */
	unsigned peers;   /* at most; 0 = 64 */
	uint64_t bytes;   /* of memory, each, at most; 0 = 1 GiB */
};

struct ina_shm_server_ops {
	/* A client attaches. ATTACHED is sent to it after this: an honest one's ring is empty
	 * still. */
	void (*attach)(void *arg, struct ina_shm_peer *peer);
	/*
	 * Each is answered once, now or later: the first with ina_shm_answer_ticket(), or
	 * ..._refused(); and so on.
	 */
	void (*create)(void *arg, struct ina_shm_peer *peer, uint32_t serial,
		       const struct ina_shm_create *spec);
	void (*join)(void *arg, struct ina_shm_peer *peer, uint32_t serial,
		     const uint8_t ticket[HA_INA_TICKET], uint32_t rank);
	/*
	 * What it pushed for the group is in its ring already, and nothing follows. All of it gets
	 * its responses (-ECANCELED), then comes ina_shm_answer_left(). The handle may be nonsense:
	 * then ina_shm_answer_refused(-EINVAL).
	 * err: as in struct ina_shm_leave.
	 */
	void (*leave)(void *arg, struct ina_shm_peer *peer, uint32_t serial, uint32_t handle,
		      int err);
	/*
	 * The client has pushed, and the data thread was asleep (ina_shm_peer_sleep); or it may
	 * have: with every message of an attached one.
	 */
	void (*wake)(void *arg, struct ina_shm_peer *peer);
	/* The last callback. why: one line, with the process's id. Only for those who came. */
	void (*detach)(void *arg, struct ina_shm_peer *peer, const char *why);
};

/* NULL and why[size]. */
struct ina_shm_server *ina_shm_server_open(const struct ina_shm_server_config *config,
					   const struct ina_shm_server_ops *ops, void *arg,
					   char *why, size_t size);
/*
 * For poll(): readable when ina_shm_server_poll() has something to do. Without files for new
 * clients it looks for them again only when it is called: wait for a while, not for ever.
 */
int ina_shm_server_fd(const struct ina_shm_server *server);
/* Does what there is, after waiting for at most timeout_ms (-1: for ever) for it. */
void ina_shm_server_poll(struct ina_shm_server *server, int timeout_ms);
/* Every peer goes (gone()); those that are not released in it are to be released afterwards. */
void ina_shm_server_close(struct ina_shm_server *server);

/* Whatever the backend keeps about a peer. */
void ina_shm_peer_set(struct ina_shm_peer *peer, void *mine);
void *ina_shm_peer_get(const struct ina_shm_peer *peer);
pid_t ina_shm_peer_pid(const struct ina_shm_peer *peer); /* as SO_PEERCRED says it */
/* The copy buffer and its size. */
uint8_t *ina_shm_peer_buffer(const struct ina_shm_peer *peer, uint64_t *bytes);
/*
 * For ina_shm_guard_lost(): what was read from its memory is not what it wrote. ina_shm_peer_next()
 * then ends it.
 */
const _Atomic bool *ina_shm_peer_lost(const struct ina_shm_peer *peer);
void ina_shm_peer_release(struct ina_shm_peer *peer);

/*
 * 1 and a checked request (ina_shm_request_check; the group and its root are the backend's to
 * check); 0: none; -EPROTO: the client has done wrong and is being ended: gone() follows.
 */
int ina_shm_peer_next(struct ina_shm_peer *peer, struct ina_shm_request *request);
/* Exactly one for each request; wakes the client when it sleeps. */
void ina_shm_peer_respond(struct ina_shm_peer *peer, const struct ina_shm_response *response);
/* True: the ring is empty, and the next push brings bell(). False: look again. */
bool ina_shm_peer_sleep(struct ina_shm_peer *peer);
void ina_shm_peer_awake(struct ina_shm_peer *peer);

void ina_shm_answer_ticket(struct ina_shm_peer *peer, uint32_t serial,
			   const uint8_t ticket[HA_INA_TICKET]);
void ina_shm_answer_joined(struct ina_shm_peer *peer, uint32_t serial, uint32_t handle,
			   uint32_t rank, uint32_t ranks);
void ina_shm_answer_left(struct ina_shm_peer *peer, uint32_t serial, uint32_t handle);
/* err: negative errno; text: one line. */
void ina_shm_answer_refused(struct ina_shm_peer *peer, uint32_t serial, int err, const char *text);
/*
 * A group of this client has ended: err says how, text why. Its requests get their responses all
 * the same.
 */
void ina_shm_peer_state(struct ina_shm_peer *peer, uint32_t handle, int err, const char *text);
/* Ends the client for what it did: gone() follows from the control thread. */
void ina_shm_peer_end(struct ina_shm_peer *peer, const char *why);

#endif
