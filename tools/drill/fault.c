/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/drill/fault.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tools/drill/port.h"

const char *fault_name(enum fault_kind kind)
{
	static const char *const names[] = { "cut", "drop", "rate", "port" };

	return names[kind];
}

/* ---- software NICs ---- */

struct change {
	const struct fault *fault;
	const struct sr_faults *before; /* NULL: apply */
	struct sr_faults *seen;         /* what was in force */
};

static void change_apply(struct sr_faults *faults, void *arg)
{
	const struct change *change = arg;
	const struct fault *fault = change->fault;

	*change->seen = *faults;
	switch (fault->kind) {
	case FAULT_CUT:
		faults->cut = 1;
		break;
	case FAULT_DROP:
		faults->tx.drop_ppm = faults->rx.drop_ppm = fault->drop_ppm;
		break;
	case FAULT_RATE:
		faults->rate = fault->bytes_per_ms;
		break;
	case FAULT_PORT:
		break;
	}
}

/* Only what this drill has changed: somebody else's faults stay. */
static void change_undo(struct sr_faults *faults, void *arg)
{
	const struct change *change = arg;

	switch (change->fault->kind) {
	case FAULT_CUT:
		faults->cut = change->before->cut;
		break;
	case FAULT_DROP:
		faults->tx.drop_ppm = change->before->tx.drop_ppm;
		faults->rx.drop_ppm = change->before->rx.drop_ppm;
		break;
	case FAULT_RATE:
		faults->rate = change->before->rate;
		break;
	case FAULT_PORT:
		break;
	}
}

/* -ESRCH: the process has closed it. */
static int change_soft_nic(const struct fault_place *place,
			   void (*change)(struct sr_faults *faults, void *arg), struct change *arg)
{
	char selector[SR_DEVICE_NAME_MAX + 16];
	struct sr_control_entry *entry;
	int n, err;

	snprintf(selector, sizeof(selector), "%s:%u", place->device, place->pid);
	entry = sr_control_list(selector, &n);
	if (n <= 0) {
		free(entry);
		return n < 0 && n != -ENOENT ? n : -ESRCH;
	}
	err = sr_control_change(&entry[0], change, arg);
	free(entry);
	return err;
}

/* ---- all ---- */

int fault_saved_open(struct fault_saved *saved)
{
	*saved = (struct fault_saved) { .routes4 = -1, .routes6 = -1, .addresses6 = -1 };
	saved->routes4 = port_memory();
	saved->routes6 = port_memory();
	saved->addresses6 = port_memory();
	if (saved->routes4 >= 0 && saved->routes6 >= 0 && saved->addresses6 >= 0)
		return 0;
	fault_saved_close(saved);
	return -EMFILE;
}

static void close_one(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void fault_saved_close(struct fault_saved *saved)
{
	close_one(&saved->routes4);
	close_one(&saved->routes6);
	close_one(&saved->addresses6);
}

static int place_apply(const struct fault *fault, struct fault_saved *saved, unsigned i)
{
	struct change change = { .fault = fault, .seen = &saved->before[i] };

	if (fault->kind != FAULT_PORT) {
		saved->touched[i] = true; /* first: whoever is killed in between has it put back */
		return change_soft_nic(&fault->place[i], change_apply, &change);
	}
	saved->was_up[i] = port_is_up(fault->place[i].netdev);
	if (!saved->was_up[i])
		return -ENETDOWN;
	saved->touched[i] = true;
	return port_take_down(fault->place[i].netdev, saved);
}

int fault_apply(const struct fault *fault, struct fault_saved *saved)
{
	int err = 0;

	for (unsigned i = 0; i < fault->places && !err; i++)
		err = place_apply(fault, saved, i);
	return err;
}

/* Backwards: what was changed twice gets what was there before the first change. */
int fault_undo(const struct fault *fault, struct fault_saved *saved)
{
	int first = 0;

	for (unsigned i = fault->places; i-- > 0;) {
		struct change change = { .fault = fault, .before = &saved->before[i] };
		int err;

		if (!saved->touched[i])
			continue;
		err = fault->kind == FAULT_PORT
			      ? port_put_back(fault->place[i].netdev, saved)
			      : change_soft_nic(&fault->place[i], change_undo, &change);
		if (!err || err == -ESRCH)
			saved->touched[i] = false;
		else if (!first)
			first = err;
	}
	return first;
}
