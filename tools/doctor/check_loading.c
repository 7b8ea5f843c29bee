/* SPDX-License-Identifier: BSD-3-Clause */
/* Would NCCL load the plugin: which one, by which interface, with which library of verbs. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/version.h"
#include "tools/doctor/checks.h"
#include "tools/nccl/library.h"

#define NETWORK "HA"
#define COST_OTHER "NCCL uses another network, and no failure is survived"

static void mend_path(const struct doctor_host *host, struct doctor_finding *finding)
{
	const char *slash = strrchr(host->own_plugin, '/');

	if (slash)
		doctor_mend(finding, "export NCCL_NET_PLUGIN=%s", host->own_plugin);
	else
		doctor_mend(finding, "install libnccl-net-ha.so (package libnccl-net-ha), then "
				     "export NCCL_NET_PLUGIN=ha");
}

static void find_other_plugin(const struct doctor_host *host, struct doctor_report *report)
{
	const struct doctor_library *plugin = &host->plugin;
	struct doctor_finding *f;

	if (!plugin->net)
		f = doctor_add(report, DOCTOR_ERROR, "plugin", plugin->path,
			       "NCCL would open it, and it has no network interface of NCCL");
	else
		f = doctor_add(
			report, DOCTOR_ERROR, "plugin", plugin->path,
			"NCCL would load this plugin, whose network is %s and not hawser's %s",
			plugin->network, NETWORK);
	doctor_cost(f, COST_OTHER);
	mend_path(host, f);
}

static void find_no_plugin(const struct doctor_host *host, struct doctor_report *report)
{
	const char *names = host->env("NCCL_NET_PLUGIN");
	struct doctor_finding *f;

	if (!names)
		f = doctor_add(
			report, DOCTOR_ERROR, "plugin", "NCCL_NET_PLUGIN",
			"it is not set, and there is no libnccl-net.so: NCCL loads no plugin");
	else
		f = doctor_add(report, DOCTOR_ERROR, "plugin", "NCCL_NET_PLUGIN",
			       "NCCL_NET_PLUGIN=%.128s cannot be opened: %.300s", names,
			       host->plugin.error);
	doctor_cost(f, COST_OTHER);
	mend_path(host, f);
}

/* NCCL 2.27 to 2.30 close a plugin with the last communicator and forget its name
 * (plugin/nccl/resident.h). */
static void check_second_communicator(const struct doctor_host *host, struct doctor_report *report)
{
	struct doctor_finding *f;

	if (host->default_name || host->env("NCCL_NET_PLUGIN_REF_COUNT"))
		return;
	if (host->nccl.nccl_version &&
	    (host->nccl.nccl_version < 22700 || host->nccl.nccl_version >= 23100))
		return;
	f = doctor_add(report, DOCTOR_WARNING, "plugin.again", host->plugin.path,
		       "there is no hawser/libnccl-net.so beside it");
	doctor_cost(f, "a communicator after a program's last one is without hawser (NCCL 2.27 to "
		       "2.30)");
	doctor_mend(f, "export NCCL_NET_PLUGIN_REF_COUNT=1");
}

/* Hosts of a job need one version of the plugin; --fabric measures with what is built into `ha`. */
static void check_version(const struct doctor_host *host, struct doctor_report *report)
{
	const struct doctor_library *plugin = &host->plugin;
	struct doctor_finding *f;

	if (!strcmp(plugin->hawser, ha_version))
		return;
	f = doctor_add(report, DOCTOR_WARNING, "plugin.version", plugin->path,
		       "the plugin is %s%s, this program hawser %s",
		       *plugin->hawser ? "hawser " : "an older hawser", plugin->hawser, ha_version);
	doctor_cost(f, "`ha doctor --fabric` measures with this program's version and not with the "
		       "job's; `ha status` may not show the job");
	doctor_mend(f, "install plugin and tools of one version");
}

void doctor_check_plugin(const struct doctor_host *host, struct doctor_report *report)
{
	const struct doctor_library *plugin = &host->plugin;
	const char *names = host->env("NCCL_NET_PLUGIN");
	struct doctor_finding *f;

	if (names && !strcasecmp(names, "none")) {
		f = doctor_add(report, DOCTOR_ERROR, "plugin", "NCCL_NET_PLUGIN",
			       "NCCL_NET_PLUGIN=none: NCCL loads no plugin");
		doctor_cost(f, COST_OTHER);
		mend_path(host, f);
		return;
	}
	if (!plugin->found) {
		find_no_plugin(host, report);
		return;
	}
	if (strcmp(plugin->network, NETWORK)) {
		find_other_plugin(host, report);
		return;
	}
	doctor_add(report, DOCTOR_FINE, "plugin", plugin->path,
		   "NCCL loads hawser, interface versions up to %d",
		   doctor_highest_version(plugin->net, 31));
	check_second_communicator(host, report);
	check_version(host, report);
}

static void check_interface(const struct doctor_host *host, struct doctor_report *report)
{
	int version = host->nccl.nccl_version, called = doctor_nccl_interface(version);
	struct doctor_finding *f;
	char text[32];

	ha_nccl_version_text(version, text);
	called = doctor_highest_version(host->plugin.net, called);
	if (called) {
		doctor_add(report, DOCTOR_FINE, "nccl", host->nccl.path,
			   "NCCL %s calls version %d of the interface", text, called);
		return;
	}
	f = doctor_add(report, DOCTOR_ERROR, "nccl", host->nccl.path,
		       "NCCL %s has no interface version in common with the plugin", text);
	doctor_cost(f, COST_OTHER);
	doctor_mend(f, "install NCCL 2.13 or later");
}

void doctor_check_nccl(const struct doctor_host *host, struct doctor_report *report)
{
	struct doctor_finding *f;

	if (host->nccl.found && host->nccl.nccl_version) {
		if (host->plugin.net)
			check_interface(host, report);
		return;
	}
	if (host->nccl.found)
		f = doctor_add(report, DOCTOR_NOTE, "nccl", host->nccl.path,
			       "it has no ncclGetVersion: it is no NCCL");
	else
		f = doctor_add(report, DOCTOR_NOTE, "nccl", NULL,
			       "%s cannot be opened; a framework may bring its own",
			       host->nccl.name);
	doctor_cost(f, "which interface version NCCL calls is not known");
	doctor_mend(f, "ha doctor --nccl PATH, with the libnccl.so.2 of the job");
}

/* The library lists fewer devices than the kernel: a provider is missing. */
static void check_providers(const struct doctor_host *host, struct doctor_report *report)
{
	char path[PATH_MAX];
	struct dirent *entry;
	DIR *folder;

	snprintf(path, sizeof(path), "%s/sys/class/infiniband", host->config->sysfs_root);
	folder = opendir(path);
	if (!folder)
		return;
	while ((entry = readdir(folder))) {
		bool listed = entry->d_name[0] == '.';
		struct doctor_finding *f;

		for (int i = 0; host->topo->list && host->topo->list[i]; i++)
			listed |= !strcmp(host->topo->list[i]->name, entry->d_name);
		if (listed)
			continue;
		f = doctor_add(report, DOCTOR_WARNING, "verbs.provider", entry->d_name,
			       "the kernel has this device, %s does not list it", host->verbs);
		doctor_cost(f, "no job can use it");
		doctor_mend(f,
			    "apt-get install ibverbs-providers (dnf: libibverbs); in a container "
			    "give it /dev/infiniband");
	}
	closedir(folder);
}

void doctor_check_verbs(const struct doctor_host *host, struct doctor_report *report)
{
	struct doctor_finding *f;

	if (host->verbs) {
		doctor_add(report, DOCTOR_FINE, "verbs", NULL, "devices come from %s", host->verbs);
		if (strcmp(host->config->verbs, "soft"))
			check_providers(host, report);
		return;
	}
	f = doctor_add(report, DOCTOR_ERROR, "verbs", NULL, "%s",
		       host->from_devices.n ? host->from_devices.text[0]
					    : "no library of verbs can be opened");
	doctor_cost(f, "hawser has no device, and NCCL uses another network");
	if (!strcmp(host->config->verbs, "soft"))
		doctor_mend(f, "apt-get install hawser-softroce, or unset HA_NCCL_VERBS: soft asks "
			       "for the software NIC");
	else
		doctor_mend(f, "apt-get install libibverbs1 ibverbs-providers (dnf: libibverbs)");
}
