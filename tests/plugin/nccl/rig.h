/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rig.h - what the contract tests share: a loaded plugin, a connection to itself, bounded waiting,
 * log lines kept
 *
 * A test is a program with one argument, the interface version. It drives the plugin through the
 * conversion that `ha perf` uses, over the software NIC, and ends at the first thing that does not
 * hold. Every wait is bounded: a hang is a failure with the name of what was waited for.
 */
#ifndef HA_TESTS_NCCL_RIG_H
#define HA_TESTS_NCCL_RIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin/nccl/abi/types.h"
#include "tools/perf/plugin.h"

#define RIG_SKIP 77
/* longer than any machine needs, beside twenty other programs too: what takes this long hangs */
#define RIG_WAIT_S 600

/* Ends the program with a line when the condition does not hold. Not base/check.h's: the plugin's
 * last lines go with it, and every one says why. */
#define CHECK(condition, ...)                                                  \
	do {                                                                   \
		if (!(condition))                                              \
			rig_fail(__FILE__, __LINE__, #condition, __VA_ARGS__); \
	} while (0)
#define OK(call) CHECK((call) == ncclSuccess, "%s", rig_last_log())

void rig_fail(const char *file, int line, const char *what, const char *format, ...)
	__attribute__((noreturn, format(printf, 4, 5)));

struct rig {
	struct ha_plugin plugin;
	int version;
};

/* A connection of this process to itself. */
struct rig_pair {
	uint8_t handle[NCCL_NET_HANDLE_MAXSIZE];
	void *listen, *send, *recv;
};

/* For tests in which nothing fails, before rig_open: the longest time-outs of which none is a
 * warning itself. A busy machine, whose NICs get no processor for half a second, breaks no path. */
void rig_expect_calm(void);
/* At their end: no warning was logged. A standby has five seconds to come up, whatever the
 * time-outs: where others had the processors meanwhile the test ends as not decided. */
void rig_check_calm(void);
/* Takes the version from argv, loads and initialises the plugin over the software NIC. */
void rig_open(struct rig *rig, int argc, char **argv);
/* The parts of it: the environment and the argument; dlopen and the table; init. */
void rig_prepare(struct rig *rig, int argc, char **argv);
void rig_load(struct rig *rig, const char *path);
ncclResult_t rig_init(struct rig *rig);
const char *rig_plugin_path(void);
/* finalize where the version has it, then dlclose. */
void rig_close(struct rig *rig);

void rig_pair_open(struct rig *rig, struct rig_pair *pair);
void rig_pair_open_on(struct rig *rig, struct rig_pair *pair, int dev);
/* From a listener's handle: drives connect on `dev` and accept until both ends are there. */
void rig_pair_connect(struct rig *rig, struct rig_pair *pair, int dev);
void rig_pair_close(struct rig *rig, struct rig_pair *pair);
/* All of them at once, which share `devices` devices from `dev` on. */
void rig_pairs_open(struct rig *rig, struct rig_pair *pair, int n, int dev, int devices);

void *rig_reg(struct rig *rig, void *comm, void *data, size_t size);
/* The table's own regMr and regMrDmaBuf, with any type. */
ncclResult_t rig_reg_type(struct rig *rig, void *comm, void *data, size_t size, int type,
			  void **mhandle);
/*
 * The table's own isend and irecv, which see *request as the caller left it; from v9 on, 0x1 there
 * is NCCL's sentinel.
 */
ncclResult_t rig_raw_isend(struct rig *rig, void *comm, void *data, long size, int tag,
			   void *mhandle, void **request);
ncclResult_t rig_raw_irecv(struct rig *rig, void *comm, int n, void **data, long *sizes, int *tags,
			   void **mhandles, void **request);

/* Post, again and again until there is a request. */
void *rig_isend(struct rig *rig, void *comm, void *data, size_t size, int tag, void *mhandle);
void *rig_irecv(struct rig *rig, void *comm, void *data, size_t size, int tag, void *mhandle);
void *rig_irecvs(struct rig *rig, void *comm, int n, void **data, size_t *sizes, int *tags,
		 void **mhandles);
/* Tests until the request is done; sizes may be NULL. */
void rig_wait(struct rig *rig, void *request, int *sizes);
/* The same, but an error may come too: returns it. */
ncclResult_t rig_wait_any(struct rig *rig, void *request, int *sizes);
/* One message of `size` bytes from pair's send to its recv, and every byte compared. */
void rig_exchange(struct rig *rig, struct rig_pair *pair, size_t size);

/* A deadline of RIG_WAIT_S from now; rig_pause lets others run and fails after it. */
struct rig_deadline {
	double at;
	const char *what;
};
struct rig_deadline rig_deadline(const char *what);
void rig_pause(struct rig_deadline *deadline);
double rig_now(void); /* seconds, monotonic */

/* Bytes that differ for every seed and place. */
void rig_fill(void *data, size_t size, uint32_t seed);
size_t rig_differ(const void *data, size_t size,
		  uint32_t seed); /* index of the first wrong byte, or size */

/* What the plugin logged: how many warnings so far, the last line, and whether a text was in any
 * line. */
int rig_warnings(void);
const char *rig_last_log(void);
const char *rig_last_warning(void);
/* The name of device 0 or 1: the software NIC's, or what RIG_DEVICES="rxe0,rxe1" says. */
const char *rig_device(int n);
bool rig_logged(const char *text);
/* A network namespace of this process's own with two islands, 10.77.1.1/24 on ha_i1 and
 * 10.77.2.1/24 on ha_i2. False: not here. */
bool rig_islands(void);
unsigned rig_log_lines(const char *text); /* that have it */
void rig_forget_log(void);
/* The lines that have a text in the file of HA_NCCL_EVENTS; 0 without a file. */
unsigned rig_count_events(const char *path, const char *text);
void rig_logger(ncclDebugLogLevel level, unsigned long subsys, const char *file, int line,
		const char *format, ...);

/*
 * Threads of this process. One that has been joined may still be listed by the kernel for a moment:
 * patient for `expected`.
 */
int rig_count_threads(int expected);
/* The same without threads that a context starts when it needs them (rig.c); waits for no more than
 * `expected`. */
int rig_count_lasting_threads(int expected);
/*
 * Until no more threads run than these, or a failed test after a long time. Before v11 there is no
 * finalize: the context goes on, with the threads that it starts when it needs them (not counted).
 */
void rig_await_threads(const struct rig *rig, int threads);
int rig_count_fds(void);
/* With a context that goes on, where connections end behind the call that closes them: until there
 * are no more lasting threads and descriptors than these. */
void rig_shrink_to(int threads, int fds);

#endif
