/* SPDX-License-Identifier: BSD-3-Clause */
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/config.h"
#include "base/process.h"
#include "tools/nccl/log.h"
#include "tools/nccl/options.h"
#include "tools/nccl/witness.h"
#include "tools/status_read.h"

#define PLUGIN "libnccl-net-ha.so"
#define USING "Using network "
#define LOOKS 40         /* for the protection to become known ... */
#define LOOK_NS 25000000 /* ... so long between two */
#define DEVICES_MOST 8

/* ---- NCCL's log ---- */

static bool names_network(const char *message)
{
	static const char *const words[] = { "external network plugin",
					     "Loaded net plugin",
					     USING,
					     "via NET/",
					     ": protected",
					     "not protected" };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strstr(message, words[i]))
			return true;
	return false;
}

/* Keeps the first of each kind: lines that differ in numbers alone say nothing new. */
static void line_keep(struct nccl_witness *w, const char *message)
{
	size_t alike = strcspn(message, "0123456789");

	for (int i = 0; i < NCCL_LINES; i++) {
		if (w->lines[i][0] && !strncmp(w->lines[i], message, alike))
			return;
		if (w->lines[i][0])
			continue;
		snprintf(w->lines[i], NCCL_LINES_SIZE, "%s", message);
		return;
	}
}

static void network_keep(struct nccl_witness *w, const char *name)
{
	for (int s = 0; s < HA_SIDES; s++) {
		if (!strcmp(w->networks[s], name))
			return;
		if (w->networks[s][0])
			continue;
		snprintf(w->networks[s], sizeof(w->networks[s]), "%s", name);
		return;
	}
}

static void log_take(void *context, const char *message)
{
	struct nccl_witness *w = context;
	const char *using = strstr(message, USING);

	if (names_network(message))
		line_keep(w, message);
	if (using && !w->asked)
		network_keep(w, using + strlen(USING));
}

/* ---- the plugin's status page ---- */

static int plugin_look(struct dl_phdr_info *info, size_t size, void *context)
{
	bool *loaded = context;

	if (info->dlpi_name && strstr(info->dlpi_name, PLUGIN))
		*loaded = true;
	return *loaded;
}

/* The devices that connections use: which carry, and which stand by. */
struct nics {
	bool carries[HA_STATUS_DEVICES], stands_by[HA_STATUS_DEVICES];
};

static void connection_take(struct nccl_witness *w, struct nics *nics,
			    const struct ha_status_connection *c)
{
	w->connections++;
	if (c->protection == HA_PROTECTION_YES)
		w->protected ++;
	if (c->protection == HA_PROTECTION_NO) {
		w->unprotected++;
		snprintf(w->why_not, sizeof(w->why_not), "%s",
			 ha_event_cause_text(c->protection_cause));
	}
	for (unsigned i = 0; i < c->nrails && i < HA_STATUS_RAILS; i++) {
		const struct ha_status_rail *rail = &c->rail[i];

		if (rail->device >= HA_STATUS_DEVICES || rail->state != HA_STATUS_RAIL_UP)
			continue;
		if (rail->weight)
			nics->carries[rail->device] = true;
		else
			nics->stands_by[rail->device] = true;
	}
}

static void nics_print(const struct nics *nics, const struct ha_status_page *page, char *text,
		       size_t size)
{
	static const char *const labels[] = { "", "standby " };
	size_t used = 0;

	text[0] = 0;
	for (int pass = 0; pass < 2; pass++) {
		const bool *use = pass ? nics->stands_by : nics->carries;

		for (int i = 0; i < HA_STATUS_DEVICES && used < size; i++)
			if (use[i])
				used += (size_t)snprintf(text + used, size - used, "%s%s%s",
							 used ? ", " : "", labels[pass],
							 page->device[i].name);
	}
}

static void page_take(struct nccl_witness *w, const struct ha_status_page *page)
{
	struct nics nics = { 0 };

	w->page = true;
	snprintf(w->plugin, sizeof(w->plugin), "%s", page->header.plugin);
	snprintf(w->hawser, sizeof(w->hawser), "%s", page->header.hawser);
	for (int i = 0; i < HA_STATUS_CONNECTIONS; i++)
		if (page->connection[i].used)
			connection_take(w, &nics, &page->connection[i]);
	if (w->connections)
		nics_print(&nics, page, w->nics, sizeof(w->nics));
}

/* The pages of this process: one for each context of the plugin. */
static void pages_look(struct nccl_witness *w)
{
	struct ha_status_page *page = malloc(sizeof(*page));
	char folder[HA_CONFIG_TEXT_MAX], pattern[HA_CONFIG_TEXT_MAX + 32];
	struct ha_config config;
	const char *why;
	glob_t files;
	int fd;

	(void)ha_config_load_env(&config);
	w->connections = w->protected = w->unprotected = 0;
	if (!page || !ha_process_expand(config.status_dir, folder, sizeof(folder)))
		goto out;
	snprintf(pattern, sizeof(pattern), "%s/%d*", folder, (int)getpid());
	if (glob(pattern, 0, NULL, &files))
		goto out;
	for (size_t i = 0; i < files.gl_pathc; i++) {
		fd = open(files.gl_pathv[i], O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
		if (fd < 0)
			continue;
		if (!ha_status_read(fd, page, &why) && page->header.pid == (uint32_t)getpid())
			page_take(w, page);
		close(fd);
	}
	globfree(&files);
out:
	free(page);
}

void nccl_witness_take(struct nccl_witness *w, const struct nccl_options *o)
{
	const struct nccl_net *nets[HA_SIDES] = { o->net, o->versus };
	struct timespec pause = { 0, LOOK_NS };

	*w = (struct nccl_witness) { .asked = o->net != NULL };
	for (int s = 0; s < HA_SIDES; s++)
		if (nets[s])
			snprintf(w->networks[s], sizeof(w->networks[s]), "%s", nets[s]->nccl_name);
	(void)dl_iterate_phdr(plugin_look, &w->loaded);
	if (w->loaded)
		pages_look(w);
	for (int i = 0; i < LOOKS && w->connections > w->protected + w->unprotected; i++) {
		nanosleep(&pause, NULL);
		pages_look(w);
	}
	w->log = nccl_log_read(log_take, w);
}

/* ---- all processes ---- */

static bool same_network(const struct nccl_witness *all, int count, int side)
{
	for (int i = 1; i < count; i++)
		if (strcmp(all[i].networks[side], all[0].networks[side]))
			return false;
	return true;
}

static size_t protection_text(const struct nccl_witness *all, int count, char *text, size_t size)
{
	int connections = 0, protected = 0, unprotected = 0;
	const char *why = "";

	for (int i = 0; i < count; i++) {
		connections += all[i].connections;
		protected += all[i].protected;
		unprotected += all[i].unprotected;
		why = all[i].unprotected ? all[i].why_not : why;
	}
	if (!connections)
		return (size_t)snprintf(text, size, ", which has no connections (yet)");
	if (protected == connections)
		return (size_t)snprintf(text, size, ", all %d ends of connections protected",
					connections);
	if (unprotected)
		return (size_t)snprintf(
			text, size,
			", %d of %d ends of connections NOT protected (%s; `ha status` says more)",
			unprotected, connections, why);
	return (size_t)snprintf(text, size, ", %d of %d ends of connections protected so far",
				protected, connections);
}

void nccl_witness_text(const struct nccl_witness *all, int count, int side, char *text, size_t size)
{
	const struct nccl_witness *first = &all[0];
	bool hawser = !strcmp(first->networks[side], "HA");
	size_t used;

	if (!same_network(all, count, side)) {
		snprintf(text, size, "the ranks do not agree: %s on rank 0, %s on another",
			 first->networks[side], all[count - 1].networks[side]);
		return;
	}
	if (!first->networks[side][0] && first->page && first->connections) {
		hawser = true;
		used = (size_t)snprintf(text, size, "HA (its status page has connections)");
	} else if (!first->networks[side][0]) {
		snprintf(text, size, "unknown: %s; NCCL_DEBUG=INFO with NCCL_DEBUG_FILE says which",
			 first->loaded ? "hawser's plugin is loaded and carries nothing"
				       : "hawser's plugin is not loaded");
		return;
	} else {
		used = (size_t)snprintf(text, size, "%s", first->networks[side]);
	}
	if (!hawser || used >= size)
		return;
	if (!first->page) {
		snprintf(text + used, size - used,
			 " (no status page: whether it is protected is not known)");
		return;
	}
	used += (size_t)snprintf(text + used, size - used, ", hawser %s, %s", first->hawser,
				 first->plugin);
	if (used < size)
		used += protection_text(all, count, text + used, size - used);
	if (used < size && first->nics[0])
		snprintf(text + used, size - used, "; rank 0 uses %s", first->nics);
}
