/* SPDX-License-Identifier: BSD-3-Clause */
/* rig.h - backends in threads of this process, and clients that connect to them over their real
 * sockets and shared memory */
#ifndef HA_TESTS_BACKEND_RIG_H
#define HA_TESTS_BACKEND_RIG_H

#include "ina/host/backend/backend.h"
#include "ina/host/shm/client.h"
#include "tests/ina/host/backend/fabric.h"

#define RIG_HOSTS 8
#define RIG_ADDR(host) (0x0a000001u + (uint32_t)(host))

struct rig_host {
	struct ha_backend *backend;
	char path[128];
	pthread_t thread;
	_Atomic bool stop;
	bool running;
};

struct rig {
	char dir[64];
	struct fabric *fabric; /* NULL: packet loopback */
	unsigned hosts, workers, switch_ms;
	bool loop_worker, loop_balancer;
	struct rig_host host[RIG_HOSTS];
};

/* Where the switch falls silent, it is given up after so long; it is a thread, which a busy machine
 * lets wait. */
#define RIG_SILENT_MS 4000

/* Zero: extended frames, 1024 slots, a lease of 300 ms, a minute for a silent switch. */
struct rig_options {
	unsigned hosts, workers, switch_ms;
	bool old_frames, loopback, loop_worker, loop_balancer;
};

void rig_open(struct rig *r, const struct rig_options *options);
void rig_close(struct rig *r);
/* Backends of other processes, at these sockets. */
void rig_adopt(struct rig *r, char *const *path, unsigned hosts);
void rig_host_start(struct rig *r, unsigned host);
void rig_host_stop(struct rig *r, unsigned host);

struct rig_client {
	struct ina_shm_client shm;
	uint32_t serial;
	uint64_t sequence;
	struct ina_shm_state state; /* the last one that came; handle 0: none */
	unsigned states;
};

void rig_attach(struct rig *r, unsigned host, struct rig_client *c);
void rig_detach(struct rig_client *c);
/* The answer of a question; its serial is set here. False: the socket has ended. */
bool rig_ask(struct rig_client *c, struct ina_shm_message *m);
/* The next answer, whatever it is about. False: the socket has ended, or ten seconds were not
 * enough. */
bool rig_receive(struct rig_client *c, struct ina_shm_message *m);
/* 0 or the errno of the refusal, whose text is in c->state. */
int rig_create(struct rig_client *c, const uint32_t *member, unsigned ranks,
	       uint8_t ticket[HA_INA_TICKET]);
int rig_join(struct rig_client *c, const uint8_t ticket[HA_INA_TICKET], unsigned rank,
	     uint32_t *handle);
int rig_leave(struct rig_client *c, uint32_t handle);

struct rig_request {
	uint32_t handle, bytes;
	uint64_t offset;
	uint8_t coll, type, root;
};
/* Its sequence. */
uint64_t rig_post(struct rig_client *c, const struct rig_request *q);
/*
 * Time limit with what shared memory brings is counted in turns that this process had, half a
 * minute of them on an idle machine, and not in time: where it gets few turns, so do those that it
 * waits for.
 */
#define RIG_TURNS 400000u
#define RIG_TURN_US 50u
/* The next response; CHECKs that it comes within RIG_TURNS. */
struct ina_shm_response rig_response(struct rig_client *c);
/* Until the backend has reported that a group ended, or its socket has; false: ten seconds were not
 * enough. */
bool rig_await_state(struct rig_client *c);
/* Until the socket has ended. */
bool rig_await_end(struct rig_client *c);
void rig_pause(unsigned us);

#endif
