/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * duel.h - a sender and a receiver in processes of their own, traffic between them, and faults of
 * their NICs
 *
 * The test itself is the third process: it never loads the plugin. It opens a duel, hurts single
 * NICs of single processes while messages flow, and looks at what both ends say: events (JSON), log
 * lines, the status page. Each message is compared byte by byte when it has arrived and once more
 * much later: nothing may write into a buffer after its receive (message.h). Waits are bounded by
 * RIG_WAIT_S and nothing else is timed.
 */
#ifndef HA_TESTS_FAILOVER_DUEL_H
#define HA_TESTS_FAILOVER_DUEL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "include/hawser/status.h"
#include "softroce/faults.h"
#include "tests/plugin/failover/message.h"

enum duel_end { SENDER, RECEIVER, ENDS };

#define DUEL_LANES 32
#define DUEL_ENV 12

/* What a test may choose; all zero is good. */
struct duel_setup {
	unsigned lanes;            /* connections; 0 = 1 */
	unsigned threads;          /* at each end; 0 = 1 */
	size_t largest;            /* bytes of the largest message; 0 = 4 MiB */
	int version;               /* of NCCL's interface; 0 = 12 */
	unsigned nics;             /* at each end, soft0, soft1, ...; 0 = 2, at most 3 */
	bool no_warning;           /* neither end may warn of anything */
	bool fused;                /* the connections are on one device made of soft0 and soft1 */
	int nic[ENDS];             /* else on this one of each end */
	const char *env[DUEL_ENV]; /* NAME=value for both ends, and for one */
	const char *env_of[ENDS][DUEL_ENV];
};

/* What the processes share. */
struct duel_shared {
	atomic_int ready[ENDS]; /* lanes that are connected */
	atomic_bool listening;
	atomic_bool stop;                /* receivers begin nothing new; */
	atomic_ullong last[DUEL_LANES];  /* with this many messages in all, once that is known */
	atomic_ullong whole[DUEL_LANES]; /* messages that arrived and were compared */
	atomic_bool over[ENDS];          /* all lanes have ended, one way or the other */
	atomic_bool may_fail;
	atomic_int failed[ENDS];             /* lanes that ended with an error, */
	atomic_int fork[ENDS], forked[ENDS]; /* children that an end is to have, and has */
	atomic_bool leave;
	uint8_t handle[DUEL_LANES][128];
};

struct duel {
	struct duel_setup setup;
	struct duel_shared *shared;
	pid_t pid[ENDS];
	char dir[64]; /* events, logs, pages, faults */
};

/* Both ends are connected and messages flow. */
void duel_open(struct duel *d, const struct duel_setup *setup);
/* Another n messages arrive on every connection. */
void duel_flow(struct duel *d, unsigned n);
/* What has begun ends; both processes close in order and exit without a complaint. */
void duel_close(struct duel *d);
/* From here on connections may end with an error. */
void duel_allow_errors(struct duel *d);
/* All of them do, at both ends. That they came at once is shown by what brought them:
 * duel_expect_no_timeout. */
void duel_await_errors(struct duel *d);
/* For duel_setup.env: time-outs that only a defect reaches, so that a busy machine brings none of
 * them into a test. */
#define DUEL_LATE_TIMEOUTS                                                             \
	"HA_NCCL_QP_TIMEOUT=24", "HA_NCCL_HEARTBEAT_MS=60000", "HA_NCCL_RTO_MS=60000", \
		"HA_NCCL_SILENCE_MS=0"
/* Neither end has seen a path fail by silence, or by retries of its NIC that were exhausted. */
void duel_expect_no_timeout(struct duel *d);

/* ---- faults: of the NIC `soft<nic>` of one end ---- */
void duel_cut(struct duel *d, enum duel_end end, int nic);
void duel_heal(struct duel *d, enum duel_end end, int nic);
void duel_kill(struct duel *d, enum duel_end end, int nic);
/* A killed one is listed again; NULL: by its old name. */
void duel_restore(struct duel *d, enum duel_end end, int nic, const char *name);
void duel_blackhole(struct duel *d, enum duel_end end, int nic, bool tx);
/* Its shared receive queues fail. */
void duel_fail_srqs(struct duel *d, enum duel_end end, int nic);
/* Its port goes down and comes back with this speed. */
void duel_negotiate(struct duel *d, enum duel_end end, int nic, unsigned mbps);
void duel_drop(struct duel *d, enum duel_end end, int nic, unsigned percent);
/* No more leaves it than so many kB/s. */
void duel_rate(struct duel *d, enum duel_end end, int nic, unsigned kbs);

/* ---- faults of an end's process ---- */
/* It forks, in the middle of what it does; the child stays as long as its parent. Only asks for
 * it. */
void duel_fork(struct duel *d, enum duel_end end);
void duel_await_forks(struct duel *d);
/* SIGSTOP, and after so many seconds SIGCONT. */
void duel_stop(struct duel *d, enum duel_end end, unsigned seconds);

/* ---- what an end has said ---- */
/* Lines of its events that have all of these texts; NULL = whatever. */
int duel_events(struct duel *d, enum duel_end end, const char *a, const char *b);
void duel_await_events(struct duel *d, enum duel_end end, const char *a, const char *b, int n);
/* Parts of such lines. */
#define EVENT(name) "\"event\":\"" name "\""
#define CAUSE(name) "\"cause\":\"" name "\""
/* The first such line, without its end. False: none. */
bool duel_event(struct duel *d, enum duel_end end, const char *a, const char *b, char *line,
		size_t size);
/* A number of a line of JSON; -1 = it is not there. */
double duel_number(const char *line, const char *name);
/* Lines of its log that have the text. */
int duel_logged(struct duel *d, enum duel_end end, const char *text);
/* The connection (the first) on its status page. */
struct ha_status_connection duel_connection(struct duel *d, enum duel_end end);
/* What `ha status` prints of it. */
void duel_status(struct duel *d, enum duel_end end, char *text, size_t size);
/* What `ha status --json` prints of it. */
void duel_status_json(struct duel *d, enum duel_end end, char *text, size_t size);

/* Bounded waiting, as tests/plugin/nccl/rig.h does it, for the test's own process: fails when an
 * end has died. */
struct duel_wait {
	double until;
	const char *what;
};
struct duel_wait duel_wait(const char *what);
void duel_pause(struct duel *d, struct duel_wait *wait);
void duel_fail(struct duel *d, const char *file, int line, const char *what, const char *format,
	       ...) __attribute__((noreturn, format(printf, 5, 6)));
#define HOLDS(d, condition, ...)                                                   \
	do {                                                                       \
		if (!(condition))                                                  \
			duel_fail(d, __FILE__, __LINE__, #condition, __VA_ARGS__); \
	} while (0)

/* end.c: the incarnation of one end's process. */
int duel_end(const struct duel_setup *setup, struct duel_shared *shared, enum duel_end end);

/* Tests of one program by their names: runs argv[1], or all. */
struct duel_test {
	const char *name;
	void (*run)(void);
};
int duel_main(int argc, char **argv, const struct duel_test *tests, int n);

#endif
