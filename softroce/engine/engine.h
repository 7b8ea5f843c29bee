/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine.h - the RoCEv2 protocol engine: what the outside may ask of it
 *
 * The engine is a set of pure state machines. It owns no thread, no lock, no socket and no clock:
 * packets, time and work requests go in by calls, packets, completions and events come out through
 * the two ops tables. All calls on one
 * NIC, and on any object created from it, must be serialised by the caller (the UDP provider holds
 * one lock per NIC, the simulator has one thread). Upcalls run inside the call that caused them;
 * they must not call back into the engine.
 *
 * Work requests, completions and attributes are the public ones of <infiniband/verbs.h>, so nothing
 * is converted between an application and the engine. Times are nanoseconds of the caller's
 * monotonic clock.
 *
 * Functions return 0 or a negative errno, or a pointer or NULL with *err set, unless they say
 * otherwise.
 */
#ifndef SOFTROCE_ENGINE_H
#define SOFTROCE_ENGINE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#define SR_UDP_PORT 4791 /* RoCEv2 destination port (IBTA annex A17) */
#define SR_MAX_SGE 16
#define SR_MAX_INLINE 512
#define SR_HDR_MAX 64 /* BTH and every extended header that may follow it */
#define SR_MTU_MAX 4096
/* entries of the GID table in use: IPv4-mapped or IPv6 address, then link-local if any */
#define SR_GIDS 2

struct sr_nic;
struct sr_pd;
struct sr_mr;
struct sr_cq;
struct sr_srq;
struct sr_qp;

/* Where a packet goes or comes from. */
struct sr_path {
	uint8_t src[16]; /* our GID (an IPv4 address in ::ffff:a.b.c.d form) */
	uint8_t dst[16]; /* the peer's */
	uint8_t tclass;  /* IPv4 TOS / IPv6 traffic class, DSCP << 2 | ECN */
	uint8_t ttl;
	/* UDP source port the specification's entropy rule gives; a wire may ignore it */
	uint16_t sport;
};

/*
 * One outgoing packet from BTH to pad, without ICRC: the wire adds IP, UDP and ICRC. hdr is valid
 * during send() only.
 * The payload memory stays valid until the next flush() has returned. `stable`: nobody may change
 * these bytes before the packet is acknowledged (a requester's buffer); otherwise (a read response)
 * the wire must copy before it computes the ICRC.
 */
struct sr_frame {
	const struct sr_path *path;
	uint8_t hdr[SR_HDR_MAX];
	uint16_t hdr_len;
	uint8_t pad; /* 0..3 zero bytes behind the payload; hdr's BTH already says so */
	bool stable;
	uint8_t iov_n;
	uint32_t payload_len;
	struct iovec iov[SR_MAX_SGE];
};

struct sr_wire_ops {
	/* Take one packet. 0, or -EAGAIN when full: the engine keeps it and tries again at the next
	 * sr_nic_progress(). */
	int (*send)(void *wire, const struct sr_frame *frame);
	/* End of a batch: hand everything to the network. */
	void (*flush)(void *wire);
};

struct sr_event_ops {
	/* An armed completion queue got a completion that its arming asked for (now disarmed). */
	void (*completion)(void *user, struct sr_cq *cq);
	/* type and the object it is about, as ibv_get_async_event() reports them; object is the
	 * `user` pointer given at creation of the queue pair, CQ or SRQ, NULL for port and device
	 * events. */
	void (*async)(void *user, enum ibv_event_type type, void *object);
	/*
	 * `len` bytes that the peer of a queue pair writes are about to be placed at `to`. For
	 * simulators.
	 */
	void (*placing)(void *user, void *to, const void *from, uint32_t len);
};

struct sr_nic_config {
	const char *name;
	union ibv_gid gid[SR_GIDS]; /* all-zero = unused */
	enum ibv_mtu active_mtu;
	uint32_t seed; /* for QPNs, keys and initial random state */
	/* unacknowledged request packets per queue pair; 0 = the engine's default */
	uint32_t max_inflight;
	/* retry_cnt 7 means without end, as Linux's rdma_rxe takes it, not seven times */
	bool retry_forever;
	const struct sr_wire_ops *wire_ops;
	void *wire;
	const struct sr_event_ops *event_ops;
	void *user; /* given to event_ops */
};

/* ---- the NIC ---- */
struct sr_nic *sr_nic_create(const struct sr_nic_config *config, int *err);
/* Frees the NIC and every object still on it; outstanding work is forgotten without completions. */
void sr_nic_destroy(struct sr_nic *nic);
void sr_nic_query_device(const struct sr_nic *nic, struct ibv_device_attr *attr);
void sr_nic_query_port(const struct sr_nic *nic, struct ibv_port_attr *attr);

/* One packet from BTH to pad, ICRC checked and removed by the wire. path: src = our address it was
 * sent to, dst = its sender. */
void sr_nic_receive(struct sr_nic *nic, uint64_t now, const struct sr_path *path,
		    const void *packet, uint32_t len);
/* Run due timers and transmit what may be transmitted, at most `budget` packets (0 = no limit).
 * Ends with one flush(). True when more could be sent at once; false also when the wire was full:
 * call again when it has room. */
bool sr_nic_progress(struct sr_nic *nic, uint64_t now, unsigned budget);
/* The same after a post, without a limit: of the acknowledgements that wait, one goes with it, the
 * others with the next one, or at the next sr_nic_progress(). */
void sr_nic_send_posted(struct sr_nic *nic, uint64_t now);
/* Some were left by the last post, and nothing is due: they may wait for one look that finds
 * nothing. True once a post. */
bool sr_nic_acks_left(struct sr_nic *nic, uint64_t now);
/*
 * In place of sr_nic_progress() after packets were received: the acknowledgements that they asked
 * for wait for the next packet, whose run they end, or for the next sr_nic_progress(); at `until`
 * that is due. False, and it is due now: something else is to be sent, one of them is for more than
 * a few bytes, or there are some that have waited already.
 */
bool sr_nic_let_acks_wait(struct sr_nic *nic, uint64_t now, uint64_t until);
/* Some wait now. */
bool sr_nic_acks_wait(const struct sr_nic *nic);
/* When sr_nic_progress() must next be called although no packet arrives: 0 = at once (work was
 * posted or answers are owed, and the wire was not full), UINT64_MAX = never. May be early, is
 * never late. */
uint64_t sr_nic_deadline(const struct sr_nic *nic);
/* The port goes down or up: packets stop both ways, PORT_ERR / PORT_ACTIVE events. */
void sr_nic_set_link(struct sr_nic *nic, bool up);
/* A new address or MTU on the port; GID_CHANGE event. */
void sr_nic_set_gid(struct sr_nic *nic, unsigned index, const union ibv_gid *gid);
/* Every shared receive queue fails: SRQ_ERR for each; what needs a receive from it finds none. */
void sr_nic_fail_srqs(struct sr_nic *nic);
/* The device dies: DEVICE_FATAL, every queue pair dead and mute, posts and modifies fail with -EIO;
 * only destruction works. */
void sr_nic_kill(struct sr_nic *nic);

/* Counters, named as the kernel names its own (`ha status` and ethtool users know them). */
struct sr_counters {
	uint64_t sent_pkts, rcvd_pkts, sent_bytes, rcvd_bytes, duplicate_request,
		out_of_seq_request, rcvd_rnr_err, send_rnr_err, rcvd_seq_err, ack_deferred,
		ack_waited, /* times that acknowledgements waited for a packet to go with */
		retry_exceeded_err, retry_rnr_exceeded_err, completer_retry_err, send_err,
		dropped_no_qp, dropped_bad_header, dropped_bad_key, dropped_link_down,
		dropped_wrong_peer,
		/* answers to nothing that is under way; datagrams with another Q_Key; messages of
		 * unreliable services without a receive, or broken; requests answered with a fatal
		 * NAK */
		dropped_answer, dropped_bad_qkey, dropped_no_receive, dropped_message,
		refused_request;
};
const struct sr_counters *sr_nic_counters(const struct sr_nic *nic);

/* ---- protection domains and memory ---- */
struct sr_pd *sr_pd_create(struct sr_nic *nic, int *err);
int sr_pd_destroy(struct sr_pd *pd); /* -EBUSY while it is in use */
/* access: enum ibv_access_flags. iova is the address remote keys see (usually addr). */
struct sr_mr *sr_mr_create(struct sr_pd *pd, void *addr, size_t length, uint64_t iova, int access,
			   int *err);
int sr_mr_destroy(struct sr_mr *mr);
int sr_mr_rereg(struct sr_mr *mr, int flags, struct sr_pd *pd, void *addr, size_t length,
		int access);
uint32_t sr_mr_lkey(const struct sr_mr *mr);
uint32_t sr_mr_rkey(const struct sr_mr *mr);
/* A memory window, not bound; sr_mr_rkey() is its key. It is bound and invalidated by work
 * requests: of a posted IBV_WR_BIND_MW the engine reads rkey (the new one), and of bind_info what
 * its mr points to only while posting. */
struct sr_mr *sr_mw_create(struct sr_pd *pd, enum ibv_mw_type type, int *err);
int sr_mw_destroy(struct sr_mr *mw);

/* ---- address handles ---- */
/*
 * What ibv_send_wr's wr.ud.ah points to: the public struct first, behind it where a datagram goes.
 */
struct sr_ah {
	struct ibv_ah ah;
	struct sr_path path;
};
/*
 * Fills in the path. 0, or -EINVAL: no address that a RoCE packet can be sent to from a GID that we
 * have.
 */
int sr_ah_resolve(const struct sr_nic *nic, const struct ibv_ah_attr *attr, struct sr_path *path);

/* ---- completion queues ---- */
struct sr_cq *sr_cq_create(struct sr_nic *nic, int cqe, void *user, int *err);
int sr_cq_destroy(struct sr_cq *cq); /* -EBUSY while a queue pair uses it */
int sr_cq_resize(struct sr_cq *cq, int cqe);
int sr_cq_capacity(const struct sr_cq *cq);
void *sr_cq_user(const struct sr_cq *cq);
int sr_cq_poll(struct sr_cq *cq, int n, struct ibv_wc *wc);
/* True without the NIC's lock when a poll would find nothing: one acquire load. */
bool sr_cq_empty(const struct sr_cq *cq);
void sr_cq_arm(struct sr_cq *cq, bool solicited_only);

/* ---- shared receive queues ---- */
struct sr_srq *sr_srq_create(struct sr_pd *pd, const struct ibv_srq_init_attr *attr, void *user,
			     int *err);
int sr_srq_destroy(struct sr_srq *srq);
int sr_srq_modify(struct sr_srq *srq, const struct ibv_srq_attr *attr, int mask);
void sr_srq_query(const struct sr_srq *srq, struct ibv_srq_attr *attr);
int sr_srq_post(struct sr_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

/* ---- queue pairs ---- */
struct sr_qp_init {
	enum ibv_qp_type type;
	struct sr_cq *send_cq, *recv_cq;
	struct sr_srq *srq; /* or NULL */
	struct ibv_qp_cap cap;
	bool sq_sig_all;
	/*
	 * UD: the general service interface, which has the number 1; one per NIC, -EBUSY when there
	 * is one
	 */
	bool gsi;
	void *user;
};
/* writes the granted cap back */
struct sr_qp *sr_qp_create(struct sr_pd *pd, struct sr_qp_init *init, int *err);
int sr_qp_destroy(struct sr_qp *qp);
uint32_t sr_qp_num(const struct sr_qp *qp);
/* Packets of a reliable connection that were sent and are not acknowledged yet. */
uint32_t sr_qp_inflight(const struct sr_qp *qp);
enum ibv_qp_state sr_qp_state(const struct sr_qp *qp);
int sr_qp_modify(struct sr_qp *qp, uint64_t now, const struct ibv_qp_attr *attr, int mask);
void sr_qp_query(const struct sr_qp *qp, struct ibv_qp_attr *attr, struct ibv_qp_init_attr *init);
/* Queue work; nothing is transmitted before the next sr_nic_progress(). */
int sr_qp_post_send(struct sr_qp *qp, uint64_t now, struct ibv_send_wr *wr,
		    struct ibv_send_wr **bad);
int sr_qp_post_recv(struct sr_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

#endif
