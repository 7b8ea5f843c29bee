/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/config_entry.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

const struct ha_config_entry ha_config_entries[HA_CONFIG_COUNT] = {
#define X(type_, field, name_, def_, min_, max_, choices_, status_, group_, help_) \
	[HA_CFG_##field] = {                                                       \
		.name = name_,                                                     \
		.type = HA_CONFIG_##type_,                                         \
		.offset = offsetof(struct ha_config, field),                       \
		.def = def_,                                                       \
		.min = min_,                                                       \
		.max = max_,                                                       \
		.choices = choices_,                                               \
		.status = HA_CONFIG_##status_,                                     \
		.group = HA_CONFIG_##group_,                                       \
		.help = help_,                                                     \
	},
#include "base/config_table.h"
#undef X
};

const struct ha_config_ignored ha_config_ignored[] = {
	{ "NCCL_IBVERBS_LIB", "HA_NCCL_VERBS is the one", NULL },
	{ "NCCL_IB_MQP_RETRY_ALL",
	  "a queue pair that cannot be changed ends its path, and the next one is made", "0" },
	{ "NCCL_IB_MQP_RETRY_CNT",
	  "a queue pair that cannot be changed ends its path, and the next one is made", NULL },
	{ "NCCL_IB_MQP_RETRY_SLEEP_MSEC",
	  "a queue pair that cannot be changed ends its path, and the next one is made", NULL },
	{ "NCCL_IB_PREPOST_RECEIVE_WORK_REQUESTS",
	  "receives are always posted before their data can come", "1" },
	{ "NCCL_IB_QUERY_PORT_SPEED", "the speed of a port is what the driver says of it", NULL },
	{ "NCCL_IB_RECEIVER_SIDE_MATCHING_SCHEME",
	  "arrivals are matched by the slot and generation in their immediate", NULL },
	{ "NCCL_IB_RESILIENCY_PORT_FAILOVER_MAX_ATTEMPTS",
	  "a request is posted again as often as it takes; HA_NCCL_MAX_RETRIES limits the time "
	  "without a path",
	  NULL },
	{ "NCCL_IB_RESILIENCY_PORT_FAILOVER_PROBE_DELAY",
	  "both ends agree what has arrived before anything is sent again", NULL },
	{ "NCCL_IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_BATCH_INTERVAL",
	  "three probes and their answers prove a path that is made anew", NULL },
	{ "NCCL_IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_BATCH_SIZE",
	  "three probes and their answers prove a path that is made anew", NULL },
	{ "NCCL_IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_SEQUENCE_SIZE",
	  "three probes and their answers prove a path that is made anew", NULL },
	{ "NCCL_IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_TIMEOUT",
	  "three probes and their answers prove a path that is made anew", NULL },
	{ "NCCL_IB_RESILIENCY_PORT_RECOVERY_ATTEMPTS_MAX",
	  "a path that failed is tried again for good, more and more rarely", NULL },
	{ "NCCL_IB_RETRY_CNT",
	  "HA_NCCL_QP_RETRY_CNT is the one: the software time-out is computed from it", NULL },
	{ "NCCL_IB_TIMEOUT",
	  "HA_NCCL_FORCE_IB_TIMEOUT is the one: the software time-out is computed from it", NULL },
	{ "NCCL_IB_WARN_RAIL_LOCAL", "`ha topo` shows which devices share a rail", "0" },
};

const int ha_config_ignored_count = sizeof(ha_config_ignored) / sizeof(ha_config_ignored[0]);

const struct ha_config_core ha_config_core[] = {
	{ "NCCL_NET", "which transport is used: `HA`, hawser's name, or not set" },
	{ "NCCL_NET_DISABLE_INTRA", "whether ranks of one host may use the network" },
	{ "NCCL_NET_FORCE_FLUSH", "calls the plugin's flush after every receive into GPU memory; "
				  "NCCL_GDR_FLUSH_DISABLE=1 here would undo it" },
	{ "NCCL_NET_FORCE_MERGE", "which devices NCCL asks the plugin to fuse" },
	{ "NCCL_NET_GDR_C2C", "whether GPU memory behind a C2C link counts as near" },
	{ "NCCL_NET_GDR_LEVEL", "how near a GPU must be for its memory to be registered" },
	{ "NCCL_NET_GDR_MLOPART", "whether memory of a partition of a GPU is registered" },
	{ "NCCL_NET_GDR_READ", "whether sends read GPU memory directly" },
	{ "NCCL_NET_MERGE_LEVEL", "which devices NCCL asks the plugin to fuse" },
	{ "NCCL_NET_MERGE_POLICY", "which devices NCCL asks the plugin to fuse" },
	{ "NCCL_NET_OPTIONAL_RECV_COMPLETION",
	  "whether the plugin learns that a receive needs no completion; followed" },
	{ "NCCL_NET_OVERHEAD", "a latency for NCCL's choice of algorithms" },
	{ "NCCL_NET_PLUGIN", "which plugin is loaded: `ha`, or its path" },
	{ "NCCL_NET_PLUGIN_REF_COUNT", "when a plugin is unloaded" },
	{ "NCCL_NET_SHARED_BUFFERS", "whether channels share buffers" },
	{ "NCCL_NET_SHARED_COMMS", "whether channels share connections" },
};

const int ha_config_core_count = sizeof(ha_config_core) / sizeof(ha_config_core[0]);

#define FLAG "Set to anything but 0: "

const struct ha_config_elsewhere ha_config_elsewhere[] = {
	{ "NETCCL_BACKEND", "/run/hawser/ina.sock", "ha-backend, libhawser-ina.so",
	  "The backend's socket: it listens there, clients attach there." },
	{ "NETCCL_COPY_BUFFER", "64M", "libhawser-ina.so",
	  "Bytes of the copy buffer of a context, with K, M or G; rounded up to segments of 2 "
	  "MiB." },
	{ "NETCCL_FRONTEND_LOOPBACK", "", "libhawser-ina.so",
	  FLAG "no backend, the library answers itself as if every rank had brought what this one "
	       "did." },
	{ "NETCCL_BIND_ADDR", "", "ha-backend", "The IPv4 address of its card, as `--bind`." },
	{ "NETCCL_LB_LOOPBACK", "", "ha-backend",
	  FLAG
	  "no network, operations come back from the load balancer, as if this rank were all." },
	{ "NETCCL_WORKER_LOOPBACK", "", "ha-backend", FLAG "the same from the workers." },
	{ "NETCCL_PACKET_LOOPBACK", "", "ha-backend",
	  FLAG "the same from packets that the slot core has added." },
	{ "NETCCL_LIBRARY", "", "netccl",
	  "The path of libhawser-ina.so; then it is looked for nowhere else." },
	{ "NETCCL_QUANT", "block", "netccl",
	  "`block`, an exponent for each 64 elements, or `factor`, one factor for a tensor; the "
	  "same on all ranks." },
	{ "NETCCL_RETRY_OPS", "32", "netccl",
	  "Operations without the network after a failure before it is tried again, 1 to 4096; the "
	  "same on all ranks." },
};

const int ha_config_elsewhere_count = sizeof(ha_config_elsewhere) / sizeof(ha_config_elsewhere[0]);

void ha_config_entry_store(const struct ha_config_entry *entry, struct ha_config *config,
			   int64_t value)
{
	void *field = (char *)config + entry->offset;

	switch (entry->type) {
	case HA_CONFIG_BOOL:
		*(bool *)field = value != 0;
		break;
	case HA_CONFIG_INT:
	case HA_CONFIG_ENUM:
		*(int *)field = (int)value;
		break;
	case HA_CONFIG_SIZE:
		*(uint64_t *)field = (uint64_t)value;
		break;
	case HA_CONFIG_STR:
		break;
	}
}

int64_t ha_config_entry_number(const struct ha_config_entry *entry, const struct ha_config *config)
{
	const void *field = (const char *)config + entry->offset;

	switch (entry->type) {
	case HA_CONFIG_BOOL:
		return *(const bool *)field;
	case HA_CONFIG_INT:
	case HA_CONFIG_ENUM:
		return *(const int *)field;
	case HA_CONFIG_SIZE:
		return (int64_t)(*(const uint64_t *)field);
	case HA_CONFIG_STR:
		break;
	}
	return 0;
}

/* The text of choice `index`; *len 0 when there is none. */
static const char *choice_at(const char *choices, int64_t index, int *len)
{
	while (index-- > 0) {
		choices += strcspn(choices, "|");
		if (*choices)
			choices++;
	}
	*len = (int)strcspn(choices, "|");
	return choices;
}

int ha_config_entry_choice(const struct ha_config_entry *entry, const char *text)
{
	for (int64_t i = 0; i <= entry->max; i++) {
		int len;
		const char *choice = choice_at(entry->choices, i, &len);

		if ((int)strlen(text) == len && !strncasecmp(text, choice, (size_t)len))
			return (int)i;
	}
	return -1;
}

const char *ha_config_entry_text(const struct ha_config_entry *entry, int64_t value, char *buf,
				 size_t len)
{
	const char *choice;
	int n;

	switch (entry->type) {
	case HA_CONFIG_BOOL:
	case HA_CONFIG_INT:
	case HA_CONFIG_SIZE:
		snprintf(buf, len, "%" PRId64, value);
		break;
	case HA_CONFIG_ENUM:
		choice = choice_at(entry->choices, value, &n);
		snprintf(buf, len, "%.*s", n, choice);
		break;
	case HA_CONFIG_STR:
		snprintf(buf, len, "%s", entry->choices);
		break;
	}
	return buf;
}

const char *ha_config_entry_accepts(const struct ha_config_entry *entry, char *buf, size_t len)
{
	switch (entry->type) {
	case HA_CONFIG_BOOL:
		snprintf(buf, len, "0 or 1");
		break;
	case HA_CONFIG_INT:
		snprintf(buf, len, "a whole number from %" PRId64 " to %" PRId64, entry->min,
			 entry->max);
		break;
	case HA_CONFIG_SIZE:
		snprintf(buf, len,
			 "a number of bytes (K, M and G may follow) from %" PRId64 " to %" PRId64,
			 entry->min, entry->max);
		break;
	case HA_CONFIG_ENUM:
		snprintf(buf, len, "one of %s", entry->choices);
		break;
	case HA_CONFIG_STR:
		snprintf(buf, len, "a text of less than %d bytes", HA_CONFIG_TEXT_MAX);
		break;
	}
	return buf;
}
