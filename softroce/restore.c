/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * restore.c - a NIC that has failed comes back
 *
 * As after a reset of its firmware, or a removal and a rescan of its PCI function: it is listed
 * again, by its old name or another, with the address it had (so its GUID too); whatever was opened
 * before stays dead. The dead NIC is kept aside until those who had it open have closed it, because
 * they may look at its empty completion queues without a lock.
 */
#include "softroce/adapter.h"
#include "softroce/settings.h"
#include "softroce/udp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

typedef bool name_free_fn(const struct sr_adapter *adapter, const char *name);

struct sr_past {
	LIST_ENTRY(sr_past) link;
	struct sr_nic *nic;
	unsigned incarnation;
	int opens;
};

/* Its NIC is dead; *asked: its return is wanted. */
static bool is_dead(struct sr_adapter *adapter, bool *asked)
{
	bool dead;

	pthread_mutex_lock(&adapter->lock);
	dead = adapter->dead && adapter->nic;
	*asked = adapter->faults.restore;
	pthread_mutex_unlock(&adapter->lock);
	return dead;
}

bool sr_adapter_stays(struct sr_adapter *adapter)
{
	bool asked;

	return is_dead(adapter, &asked);
}

static void rename_to(struct sr_adapter *adapter, const char *name, name_free_fn *name_free)
{
	if (!*name || !strcmp(name, adapter->spec.name))
		return;
	if (!sr_device_name_valid(name) || !name_free(adapter, name)) {
		sr_log_line("%s keeps its name: '%s' is none, or another device has it",
			    adapter->spec.name, name);
		return;
	}
	snprintf(adapter->spec.name, sizeof(adapter->spec.name), "%s", name);
}

/* Its thread has ended. */
static void make_anew(struct sr_adapter *adapter, struct sr_past *past, name_free_fn *name_free)
{
	*past = (struct sr_past) { .nic = adapter->nic,
				   .incarnation = adapter->incarnation,
				   .opens = adapter->opens };
	if (past->opens) {
		LIST_INSERT_HEAD(&adapter->past, past, link);
	} else {
		sr_nic_destroy(past->nic);
		free(past);
	}
	/* An interface may have other addresses by now. Elsewhere the sockets stay: one that is
	 * closed keeps its port for as long as a thread waits on it, and with another address it
	 * would be another device. */
	if (adapter->spec.kind == SR_DEVICE_INTERFACE) {
		sr_udp_destroy(adapter->udp);
		adapter->udp = NULL;
	}
	pthread_mutex_lock(&adapter->lock);
	adapter->nic = NULL;
	LIST_INIT(&adapter->contexts);
	adapter->listed = NULL;
	adapter->dead = false;
	adapter->holders = adapter->opens = 0;
	adapter->incarnation++;
	rename_to(adapter, adapter->faults.restore_as, name_free);
	adapter->faults = (struct sr_faults) { 0 };
	adapter->srq_errors = adapter->speed_reported = 0;
	pthread_mutex_unlock(&adapter->lock);
}

bool sr_adapter_away(struct sr_adapter *adapter, name_free_fn *name_free)
{
	struct sr_past *past;
	bool asked;

	if (!is_dead(adapter, &asked))
		return false;
	past = asked ? malloc(sizeof(*past)) : NULL;
	if (!past)
		return true;
	sr_worker_stop(adapter);
	sr_control_close(&adapter->control);
	make_anew(adapter, past, name_free);
	return false;
}

void sr_past_close(struct sr_adapter *adapter, unsigned incarnation)
{
	struct sr_past *past;

	LIST_FOREACH(past, &adapter->past, link)
		if (past->incarnation == incarnation)
			break;
	if (!past || --past->opens)
		return; /* the parent's, of a child after fork() */
	LIST_REMOVE(past, link);
	sr_nic_destroy(past->nic);
	free(past);
}

void sr_adapter_abandon(struct sr_adapter *adapter)
{
	if (adapter->opens || !sr_adapter_stays(adapter))
		return;
	sr_worker_stop(adapter);
	sr_nic_destroy(adapter->nic);
	adapter->nic = NULL;
}
