/* SPDX-License-Identifier: BSD-3-Clause */
#include "softroce/adapter.h"
#include "base/clamp.h"
#include "base/names.h"
#include "softroce/limit.h"
#include "softroce/settings.h"
#include "softroce/udp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

/*
 * A packet's share of a socket's receive buffer: 4 KiB of payload, headers, and what the kernel
 * adds.
 */
#define PACKET_TRUESIZE 8192
#define INFLIGHT_MIN 16
#define INFLIGHT_MAX 256

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static struct sr_adapter adapters[SR_DEVICES_MAX]; /* under table_lock, as is adapter_count */
static int adapter_count = -1;                     /* -1: SOFTROCE_DEVICES has not been read yet */

static void complaint_print(void *user, const char *line)
{
	sr_log_line("%s", line);
}

/* Everything but the name and the lock, as before the device was listed for the first time. */
static void adapter_reset(struct sr_adapter *adapter)
{
	adapter->holders = adapter->opens = 0;
	LIST_INIT(&adapter->past);
	memset(adapter->taken, 0, sizeof(adapter->taken));
	adapter->nic = NULL;
	adapter->udp = NULL;
	adapter->link = (struct sr_netif) { 0 };
	adapter->faults = (struct sr_faults) { 0 };
	adapter->control = (struct sr_control) { .dir = -1, .page = -1, .bell = -1 };
	LIST_INIT(&adapter->contexts);
	adapter->listed = NULL;
	adapter->wake_at = 0;
	adapter->stop = adapter->dead = adapter->link_reported = false;
	adapter->deferred = 0;
	memset(&adapter->acks, 0, sizeof(adapter->acks));
	atomic_init(&adapter->wanted, 0);
	atomic_init(&adapter->polled_at, 0);
	adapter->kick = adapter->watch = -1;
}

static void adapter_init(struct sr_adapter *adapter, const struct sr_device_spec *spec)
{
	adapter->spec = *spec;
	pthread_mutex_init(&adapter->lock, NULL);
	adapter_reset(adapter);
}

/* ---- fork: the child owns nothing of the parent's NICs ---- */

static void fork_prepare(void)
{
	pthread_mutex_lock(&table_lock);
	for (int i = 0; i < adapter_count; i++)
		pthread_mutex_lock(&adapters[i].lock);
}

static void fork_parent(void)
{
	for (int i = adapter_count - 1; i >= 0; i--)
		pthread_mutex_unlock(&adapters[i].lock);
	pthread_mutex_unlock(&table_lock);
}

/*
 * The worker does not exist in the child and the packets are the parent's: the descriptors go,
 * objects made before the fork answer with errors (the engine is leaked, its memory is the child's
 * own copy), and the table starts afresh.
 */
static void fork_child(void)
{
	for (int i = adapter_count - 1; i >= 0; i--) {
		struct sr_adapter *adapter = &adapters[i];

		if (adapter->udp)
			sr_udp_forget(adapter->udp);
		if (adapter->kick >= 0)
			close(adapter->kick);
		if (adapter->watch >= 0)
			close(adapter->watch);
		sr_control_forget(&adapter->control);
		adapter_reset(adapter);
		adapter->incarnation++;
		pthread_mutex_unlock(&adapter->lock);
	}
	pthread_mutex_unlock(&table_lock);
}

/* The peer would ask again for an acknowledgement, and nobody would be there. */
static void send_what_waits(struct sr_adapter *adapter)
{
	if (pthread_mutex_trylock(&adapter->lock))
		return;
	if (adapter->nic && sr_nic_acks_wait(adapter->nic))
		sr_nic_progress(adapter->nic, sr_now(), 0);
	pthread_mutex_unlock(&adapter->lock);
}

/* A process that ends without closing its devices leaves no pages behind. (One that dies does;
 * whoever looks next removes them.) Workers and other threads may still run: nothing else is
 * touched, but for dead NICs that nobody has open. */
__attribute__((destructor)) static void process_end(void)
{
	if (pthread_mutex_trylock(&table_lock))
		return; /* another thread is opening or closing at this very moment */
	for (int i = 0; i < adapter_count; i++) {
		send_what_waits(&adapters[i]);
		sr_control_remove(&adapters[i].control);
		sr_adapter_abandon(&adapters[i]);
	}
	pthread_mutex_unlock(&table_lock);
}

static void report_unknown_name(const char *name, const char *nearest)
{
	sr_log_line(
		"%s is set, but there is no such variable%s%s; `softroce-run --help` lists them",
		name, nearest ? "; did you mean " : "", nearest ? nearest : "");
}

static void table_read(void)
{
	struct sr_device_spec specs[SR_DEVICES_MAX];

	if (adapter_count >= 0)
		return;
	ha_names_check("SOFTROCE_", sr_settings_names, sr_settings_names_count,
		       report_unknown_name);
	adapter_count = sr_devices_parse(sr_settings()->devices, specs, SR_DEVICES_MAX,
					 complaint_print, NULL);
	for (int i = 0; i < adapter_count; i++)
		adapter_init(&adapters[i], &specs[i]);
	pthread_atfork(fork_prepare, fork_parent, fork_child);
}

/* ---- the address ---- */

static uint32_t get_random32(void)
{
	uint32_t value;

	if (getrandom(&value, sizeof(value), 0) != sizeof(value))
		value = (uint32_t)sr_now() ^ (uint32_t)getpid() << 16;
	return value;
}

static int subnet_try(struct sr_adapter *adapter, uint32_t address)
{
	uint8_t gid[16];
	int err;

	sr_gid_from_ipv4(gid, address);
	err = sr_udp_bind(adapter->udp, 0, gid, 0);
	if (!err)
		memcpy(adapter->taken, gid, 16);
	return err;
}

/*
 * The address this process had before, else the lowest free one: binding the port is what makes it
 * ours.
 */
static int subnet_take(struct sr_adapter *adapter)
{
	uint32_t base = sr_gid_ipv4(adapter->spec.gid), size = 1u << (32 - adapter->spec.prefix);
	uint32_t before = sr_gid_ipv4(adapter->taken);
	int err;

	if (before && !subnet_try(adapter, before))
		return 0;
	for (uint32_t host = 1; host < size - 1; host++) {
		err = subnet_try(adapter, base + host);
		if (err != -EADDRINUSE)
			return err;
	}
	return -EADDRINUSE;
}

static int interface_take(struct sr_adapter *adapter)
{
	for (int i = 0; i < SR_NETIF_GIDS; i++) {
		int err = sr_udp_bind(adapter->udp, i, adapter->link.gid[i], adapter->link.ifindex);

		/*
		 * An IPv6 address still being checked for duplicates comes later, with a netlink
		 * message.
		 */
		if (err == -EADDRNOTAVAIL && adapter->spec.kind == SR_DEVICE_INTERFACE)
			memset(adapter->link.gid[i], 0, 16);
		else if (err)
			return err;
	}
	return 0;
}

/* Why the device is not in the list, and what to do about it. */
static const char *address_reason(const struct sr_adapter *adapter, int err)
{
	if (err == -ENODEV && adapter->spec.kind == SR_DEVICE_INTERFACE)
		return "there is no such interface here (`ip link` lists them)";
	if (err == -ENODEV || err == -EADDRNOTAVAIL)
		return "no interface of this machine has its address (`ip address` lists them; is "
		       "`lo` up?)";
	if (err == -EADDRINUSE && adapter->spec.kind == SR_DEVICE_SUBNET)
		return "UDP port 4791 is taken on every address of its subnet; name a larger one, "
		       "or see whether another "
		       "RoCE stack (rdma_rxe) holds the port";
	if (err == -EADDRINUSE)
		return "another process has its address, and a software NIC belongs to one "
		       "process; give each its own "
		       "address, or a loopback subnet such as 127.1.0.0/16";
	return strerror(-err);
}

static void address_complain(const struct sr_adapter *adapter, int err)
{
	const char *what = adapter->spec.kind == SR_DEVICE_INTERFACE ? adapter->spec.ifname : NULL;
	char address[INET6_ADDRSTRLEN];

	sr_log_line("%s (%s) is skipped: %s", adapter->spec.name,
		    what ? what : sr_gid_text(adapter->spec.gid, address),
		    address_reason(adapter, err));
}

/*
 * What SOFTROCE_RATE says of the device at its place in the list, and SOFTROCE_UPSTREAM of all of
 * this process.
 */
static void limit_set(struct sr_adapter *adapter)
{
	static struct sr_limit upstream;
	int64_t own = sr_limit_parse(sr_settings()->rate, (unsigned)(adapter - adapters)),
		all = sr_limit_parse(sr_settings()->upstream, 0);

	atomic_store_explicit(&upstream.rate, all > 0 ? (uint64_t)all : 0, memory_order_relaxed);
	sr_udp_limit(adapter->udp, own > 0 ? (uint64_t)own : 0, all > 0 ? &upstream : NULL);
}

static int address_take(struct sr_adapter *adapter)
{
	int err;

	adapter->udp = sr_udp_create(sr_settings()->gso, get_random32(), &adapter->faults, &err);
	if (!adapter->udp)
		return err;
	limit_set(adapter);
	if (adapter->spec.kind == SR_DEVICE_SUBNET) {
		err = subnet_take(adapter);
		if (!err)
			err = sr_netif_read(&adapter->link, &adapter->spec, adapter->taken);
	} else {
		err = sr_netif_read(&adapter->link, &adapter->spec, NULL);
		if (!err)
			err = interface_take(adapter);
	}
	if (err) {
		sr_udp_destroy(adapter->udp);
		adapter->udp = NULL;
	}
	return err;
}

/* May it have this name when it is back? */
static bool name_free(const struct sr_adapter *adapter, const char *name)
{
	for (int i = 0; i < adapter_count; i++)
		if (&adapters[i] != adapter && !strcmp(adapters[i].spec.name, name))
			return false;
	return true;
}

int sr_adapter_list(struct sr_adapter **out, int max)
{
	int n = 0;

	pthread_mutex_lock(&table_lock);
	table_read();
	for (int i = 0; i < adapter_count && n < max; i++) {
		int err = 0;

		if (sr_adapter_away(&adapters[i], name_free))
			continue;
		if (!adapters[i].udp)
			err = address_take(&adapters[i]);
		if (err) {
			address_complain(&adapters[i], err);
			continue;
		}
		adapters[i].holders++;
		out[n++] = &adapters[i];
	}
	pthread_mutex_unlock(&table_lock);
	return n;
}

void sr_adapter_release(struct sr_adapter *adapter, unsigned incarnation)
{
	pthread_mutex_lock(&table_lock);
	if (adapter->incarnation == incarnation && !--adapter->holders &&
	    !sr_adapter_stays(adapter)) {
		sr_udp_destroy(adapter->udp);
		adapter->udp = NULL;
	}
	pthread_mutex_unlock(&table_lock);
}

/* ---- the NIC ---- */

static uint32_t inflight_choose(const struct sr_adapter *adapter)
{
	uint32_t n = sr_udp_receive_buffer(adapter->udp) / PACKET_TRUESIZE;

	if (sr_settings()->max_inflight)
		return sr_settings()->max_inflight;
	/* The peer's buffer is taken to be like ours: as much may be on its way as fits there. */
	return (uint32_t)ha_clamp(n, INFLIGHT_MIN, INFLIGHT_MAX);
}

static void control_complain(const char *device, int err)
{
	const char *folder = sr_settings()->control_dir;

	if (folder && err == -ENOENT)
		sr_log_line("%s works, but `ha cut` and its like cannot reach it: "
			    "SOFTROCE_CONTROL=%.200s is no directory; make it "
			    "(mkdir -m 700), or unset the variable",
			    device, folder);
	else
		sr_log_line(
			"%s works, but `ha cut` and its like cannot reach it: no control page (%s)",
			device, strerror(-err));
}

static int nic_start(struct sr_adapter *adapter, const struct sr_event_ops *events)
{
	struct sr_nic_config config = {
		.name = adapter->spec.name,
		.active_mtu = sr_netif_ib_mtu(&adapter->link),
		.seed = get_random32(),
		.max_inflight = inflight_choose(adapter),
		.wire_ops = &sr_udp_wire_ops,
		.wire = adapter->udp,
		.event_ops = events,
		.user = adapter,
	};
	int err;

	memcpy(config.gid, adapter->link.gid, sizeof(config.gid));
	adapter->faults = (struct sr_faults) { 0 };
	adapter->stop = adapter->dead = false;
	adapter->deferred = 0;
	memset(&adapter->acks, 0, sizeof(adapter->acks));
	adapter->nic = sr_nic_create(&config, &err);
	if (!adapter->nic)
		return err;
	adapter->link_reported = adapter->link.up;
	if (!adapter->link.up)
		sr_nic_set_link(adapter->nic, false);
	err = sr_control_open(&adapter->control, adapter->spec.name);
	if (err)
		control_complain(adapter->spec.name, err);
	sr_adapter_follow_control(adapter);
	err = sr_worker_start(adapter);
	if (err) {
		sr_control_close(&adapter->control);
		sr_nic_destroy(adapter->nic);
		adapter->nic = NULL;
	}
	return err;
}

int sr_adapter_open(struct sr_adapter *adapter, const struct sr_event_ops *events)
{
	int err = 0;

	pthread_mutex_lock(&table_lock);
	if (sr_adapter_away(adapter, name_free))
		err = -ENODEV;
	else if (!adapter->udp)
		err = address_take(adapter);
	if (!err) {
		adapter->holders++;
		if (!adapter->opens)
			err = nic_start(adapter, events);
		if (err && !--adapter->holders) {
			sr_udp_destroy(adapter->udp);
			adapter->udp = NULL;
		}
	}
	if (!err)
		adapter->opens++;
	pthread_mutex_unlock(&table_lock);
	return err;
}

void sr_adapter_close(struct sr_adapter *adapter, unsigned incarnation)
{
	pthread_mutex_lock(&table_lock);
	if (adapter->incarnation != incarnation)
		sr_past_close(adapter, incarnation);
	else if (!--adapter->opens && !sr_adapter_stays(adapter)) {
		sr_worker_stop(adapter);
		sr_control_close(&adapter->control);
		sr_nic_destroy(adapter->nic);
		adapter->nic = NULL;
	}
	pthread_mutex_unlock(&table_lock);
	sr_adapter_release(adapter, incarnation);
}

/* The incarnation first: who holds one that is over must not look at the NIC, which the next may be
 * starting at this moment without the lock. */
static bool is_open_in(const struct sr_adapter *adapter, unsigned incarnation)
{
	return adapter->incarnation == incarnation && adapter->nic;
}

bool sr_adapter_try_enter(struct sr_adapter *adapter, unsigned incarnation)
{
	if (pthread_mutex_trylock(&adapter->lock))
		return false;
	if (is_open_in(adapter, incarnation))
		return true;
	pthread_mutex_unlock(&adapter->lock);
	return false;
}

bool sr_adapter_enter(struct sr_adapter *adapter, unsigned incarnation)
{
	if (pthread_mutex_trylock(&adapter->lock)) {
		atomic_fetch_add_explicit(&adapter->wanted, 1, memory_order_relaxed);
		pthread_mutex_lock(&adapter->lock);
		atomic_fetch_sub_explicit(&adapter->wanted, 1, memory_order_relaxed);
	}
	if (is_open_in(adapter, incarnation))
		return true;
	pthread_mutex_unlock(&adapter->lock);
	return false;
}

void sr_adapter_leave(struct sr_adapter *adapter)
{
	uint64_t wake_at = adapter->wake_at;
	bool kick = wake_at && !adapter->deferred &&
		    (sr_nic_deadline(adapter->nic) < wake_at ||
		     sr_udp_deadline(adapter->udp) < wake_at || sr_udp_blocked(adapter->udp));

	if (kick)
		adapter->wake_at = 0; /* once is enough */
	pthread_mutex_unlock(&adapter->lock);
	if (kick)
		eventfd_write(adapter->kick, 1);
}

int sr_adapter_pollfds(struct pollfd *fds, int max)
{
	int n = 0;

	if (pthread_mutex_trylock(&table_lock))
		return -EBUSY;
	for (int i = 0; i < adapter_count && n + SR_GIDS <= max; i++) {
		struct sr_adapter *adapter = &adapters[i];

		if (!adapter->opens)
			continue;
		if (pthread_mutex_trylock(&adapter->lock)) {
			n = -EBUSY;
			break;
		}
		n += sr_udp_pollfds(adapter->udp, fds + n, true);
		pthread_mutex_unlock(&adapter->lock);
	}
	pthread_mutex_unlock(&table_lock);
	return n;
}
