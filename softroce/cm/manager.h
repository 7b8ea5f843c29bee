/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * manager.h - the connection manager of this process, as the kernel's rdma_cm is one for the
 * machine
 *
 * A channel is what librdmacm has open as /dev/infiniband/rdma_cm: commands go in, events come out.
 * An id is a listener, or one end of a connection (RC, UC), or of the question where a datagram
 * service is (SIDR). Everything is under one lock; messages of peers and time-outs are handled by
 * one thread, which exists while a port is open.
 */
#ifndef SOFTROCE_CM_MANAGER_H
#define SOFTROCE_CM_MANAGER_H

#include "softroce/cm/port.h"

#include <netinet/in.h>
#include <pthread.h>
#include <rdma/rdma_user_cm.h>
#include <sys/queue.h>

#define SR_CM_BACKLOG 1024     /* requests that wait for a listener's program, at most */
#define SR_CM_QKEY 0x01234567u /* of datagram services that choose none (RDMA_UDP_QKEY) */

/* What librdmacm calls its events (enum rdma_cm_event_type). */
enum sr_cm_event {
	SR_CM_ADDR_RESOLVED,
	SR_CM_ADDR_ERROR,
	SR_CM_ROUTE_RESOLVED,
	SR_CM_ROUTE_ERROR,
	SR_CM_CONNECT_REQUEST,
	SR_CM_CONNECT_RESPONSE,
	SR_CM_CONNECT_ERROR,
	SR_CM_UNREACHABLE,
	SR_CM_REJECTED,
	SR_CM_ESTABLISHED,
	SR_CM_DISCONNECTED,
};

enum sr_cm_state {
	SR_CM_IDLE,
	SR_CM_BOUND,
	SR_CM_RESOLVED,
	SR_CM_LISTENING,
	SR_CM_ASKING,    /* REQ or SIDR_REQ sent */
	SR_CM_ASKED,     /* one received, the program has not answered */
	SR_CM_REPLIED,   /* REP sent */
	SR_CM_ANSWERED,  /* REP received, the program has not confirmed */
	SR_CM_CONNECTED, /* of datagrams: answered */
	SR_CM_LEAVING,   /* DREQ sent */
	SR_CM_ENDED,
};

struct sr_cm_channel {
	int fd;               /* readable while there is an event */
	uint64_t incarnation; /* another channel with the same number is another channel */
	TAILQ_HEAD(, sr_cm_note) notes;
	LIST_ENTRY(sr_cm_channel) link; /* in the process's list */
};

/* What the two ends agree on, by REQ and REP and what the program sets; under the lock. */
struct sr_cm_terms {
	uint8_t responder_resources, initiator_depth, retry_count, rnr_retry, mtu, tos, ack_timeout;
};

/* What was sent last and is repeated until it is answered; under the lock. */
struct sr_cm_repeat {
	uint8_t sent[SR_MAD_LEN];
	uint64_t due; /* 0: not */
	unsigned tries;
};

struct sr_cm_id {
	uint32_t handle;
	struct sr_cm_channel *channel;
	uint64_t uid; /* librdmacm's name; 0: it has not learned of it yet */
	uint16_t ps;
	uint8_t qp_type;
	enum sr_cm_state state;
	bool chosen;                  /* its port number was asked for, not given */
	struct sockaddr_in6 src, dst; /* or sockaddr_in */
	struct sr_cm_port *port;      /* NULL: any */
	bool routed;
	uint8_t gid[16]; /* the peer's */
	uint32_t local_id, remote_id, qpn, remote_qpn;
	/* the first that comes from the peer, and the first that goes to it */
	uint32_t psn, remote_psn;
	struct sr_cm_terms terms;
	uint64_t tid;
	uint32_t events;  /* taken by the program */
	unsigned waiting; /* of a listener: requests not taken by the program */
	struct sr_cm_repeat repeat;
	LIST_ENTRY(sr_cm_id) link; /* in sr_cm_ids */
};

LIST_HEAD(sr_cm_id_list, sr_cm_id);

/* An event on its way to the program. */
struct sr_cm_note {
	TAILQ_ENTRY(sr_cm_note) link; /* in its channel */
	struct sr_cm_id *id;          /* whose event it is */
	struct sr_cm_id *fresh;       /* of a connection request */
	struct rdma_ucm_event_resp event;
};

extern pthread_mutex_t sr_cm_lock;

/* ---- channels; each takes the lock itself ---- */
int sr_cm_open(void);     /* a descriptor, or -errno */
bool sr_cm_close(int fd); /* false: not one of ours */
/* Under the lock. */
struct sr_cm_channel *sr_cm_channel_of(int fd);

/* ---- under the lock ---- */
struct sr_cm_id *sr_cm_id_new(struct sr_cm_channel *channel, uint64_t uid, uint16_t ps,
			      uint8_t qp_type);
struct sr_cm_id *sr_cm_id_of(uint32_t handle);
/* Disconnects from the peer if there is one, forgets the id's events and frees it. */
void sr_cm_id_free(struct sr_cm_id *id);
void sr_cm_id_migrate(struct sr_cm_id *id, struct sr_cm_channel *to);
bool sr_cm_is_datagram(const struct sr_cm_id *id);
/* All ids. */
extern struct sr_cm_id_list sr_cm_ids;
/* The ports, opened when first asked for. How many, or -errno. */
int sr_cm_ports(struct sr_cm_port **ports);
/* The last channel is closed. Without the lock: the thread takes it. */
void sr_cm_ports_end(void);
/* In the child of a fork: they are the parent's. */
void sr_cm_ports_forget(void);

/* What the ports' thread calls, under the lock; set before the first port is opened. */
struct sr_cm_handlers {
	void (*message)(struct sr_cm_port *port, const uint8_t gid[16], const struct sr_mad *mad);
	uint64_t (*timers)(uint64_t now);
	void (*ports_gone)(void); /* not under the lock: the thread has ended */
	void (*follow_forks)(void);
};
void sr_cm_handle(const struct sr_cm_handlers *handlers);

/* An event for the id's program; fill it in and push it. NULL: no memory, or nobody to get it. */
struct sr_cm_note *sr_cm_note(struct sr_cm_id *id, enum sr_cm_event event, int status);
void sr_cm_push(struct sr_cm_note *note);
/* The channel's first event, the caller's to free; NULL: there is none. */
struct sr_cm_note *sr_cm_take(struct sr_cm_channel *channel);
void sr_cm_post_event(struct sr_cm_id *id, enum sr_cm_event event, int status);
/* Out of its channel's events. */
void sr_cm_unlink(struct sr_cm_channel *channel, struct sr_cm_note *note);

/* ---- messages ---- */
int sr_cm_connect(struct sr_cm_id *id, const struct rdma_ucm_conn_param *param);
int sr_cm_accept(struct sr_cm_id *id, const struct rdma_ucm_conn_param *param);
int sr_cm_reject(struct sr_cm_id *id, const void *data, unsigned len);
int sr_cm_disconnect(struct sr_cm_id *id);
void sr_cm_established(struct sr_cm_id *id);
/* One message that arrived at `port` from `gid`. */
void sr_cm_message(struct sr_cm_port *port, const uint8_t gid[16], const struct sr_mad *mad);
/* Repeats what is due; when to call it again, UINT64_MAX: never. */
uint64_t sr_cm_timers(uint64_t now);
/* The ports are about to go. */
void sr_cm_early_forget(void);
/* The id is about to go. */
void sr_cm_send_end(struct sr_cm_id *id);

/* ---- addresses ---- */
void sr_cm_gid_of(const void *sockaddr, uint8_t gid[16]);
uint16_t sr_cm_portnum(const void *sockaddr); /* host byte order */
void sr_cm_sockaddr(struct sockaddr_in6 *to, const uint8_t gid[16], uint16_t port);
bool sr_cm_any(const void *sockaddr);

#endif
