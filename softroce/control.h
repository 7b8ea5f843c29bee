/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * control.h - the control page: how somebody outside a process sees and hurts the devices inside it
 *
 * Each opened device has two files in a folder of its user (/dev/shm/softroce-<uid>, or
 * SOFTROCE_CONTROL):
 *   <device>.<pid>       the page: address, state and counters (written by the owner), faults
 *                        (written by tools)
 *   <device>.<pid>.bell  a FIFO: a byte written to it makes the owner look at the page, at once and
 *                        also when it sleeps
 *
 * The owner never maps the page, it reads it with pread() when the bell rings: a page that somebody
 * truncates or fills with garbage cannot crash it, and a device without faults pays nothing. The
 * owner holds a flock() on the page for its incarnation; a page nobody holds is stale, and whoever
 * finds it removes it.
 */
#ifndef SOFTROCE_CONTROL_H
#define SOFTROCE_CONTROL_H

#include "softroce/devices.h"
#include "softroce/engine/engine.h"
#include "softroce/faults.h"

#include <sys/types.h>

#define SR_CONTROL_MAGIC 0x43505253u /* "SRPC" in memory */
#define SR_CONTROL_VERSION 6
#define SR_CONTROL_DELAY_MAX 10000000000ull /* ns; longer delays in a page are cut to this */

/* What the wire counts beside the engine's counters. */
struct sr_wire_counters {
	uint64_t bad_icrc, runt, lost_by_fault, delayed_by_fault, send_errors, syscalls_sent,
		syscalls_received;
};

struct sr_control_page {
	uint32_t magic, version, size;
	uint32_t pid;
	char device[SR_DEVICE_NAME_MAX];
	uint8_t gid[2][16];
	uint32_t link_up, dead;
	uint64_t published; /* counts the owner's updates */
	uint64_t applied;   /* faults_seq of the faults in force */
	struct sr_counters counters;
	struct sr_wire_counters wire;
	/* From here on the tools write. */
	uint64_t faults_seq; /* counts changes of faults */
	struct sr_faults faults;
};
static_assert(sizeof(struct sr_counters) == 25 * 8, "shared between processes");
static_assert(sizeof(struct sr_control_page) == 104 + 25 * 8 + 7 * 8 + 8 + 144,
	      "shared between processes");

/* ---- the owner's side ---- */
struct sr_control {
	int dir, page, bell; /* descriptors, -1 when closed; poll `bell` for reading */
	char name[SR_DEVICE_NAME_MAX + 16];
	uint64_t published, applied;
};

/*
 * Make the page and the bell of a device of this process. 0 or -errno: the device works without a
 * page too.
 */
int sr_control_open(struct sr_control *control, const char *device);
void sr_control_close(struct sr_control *control);
/* Remove the files only: for a process that ends with the device open. */
void sr_control_remove(const struct sr_control *control);
/* Close the descriptors without removing the files: for a child after fork(). */
void sr_control_forget(struct sr_control *control);
/*
 * Silence the bell and read the faults. 0, or -EINVAL when the page makes no sense (the faults in
 * force stay).
 */
int sr_control_read(struct sr_control *control, struct sr_faults *faults);
/* Write address, state and counters; `page` is filled in but for the header. */
void sr_control_publish(struct sr_control *control, struct sr_control_page *page);

/* ---- the tools' side ---- */
struct sr_control_entry {
	char name[SR_DEVICE_NAME_MAX + 16]; /* of the page's file */
	struct sr_control_page page;        /* as last read; checked */
};

/*
 * The devices of all processes of this user that `selector` means: "soft0" in every process,
 * "soft0@127.1.0.3" or
 * "soft0:PID" one, NULL all. Returns a malloc'ed array and its length in *n, or NULL with *n the
 * negative errno or 0.
 */
struct sr_control_entry *sr_control_list(const char *selector, int *n);
/*
 * Change the faults of one device: `change` is applied to what is in force. Waits until the owner
 * says it has done so; 0, -ESRCH when it is gone, -ETIMEDOUT when it is stopped, -EBUSY when it has
 * not done so in a minute. After these two the change takes effect when the owner gets to it.
 */
int sr_control_change(struct sr_control_entry *entry,
		      void (*change)(struct sr_faults *faults, void *arg), void *arg);
/*
 * Ask the owner to write its counters now and read them; as sr_control_change(), but for five
 * seconds at most: -ETIMEDOUT or -EBUSY leaves the last ones.
 */
int sr_control_refresh(struct sr_control_entry *entry);

#endif
