/* SPDX-License-Identifier: BSD-3-Clause */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/job/fault.h"
#include "tools/job/self.h"
#include "tools/perf/logger.h"
#include "tools/perf/plugin.h"

static const char *result_name(ncclResult_t result)
{
	static const char *const names[] = { "success",          "unhandled CUDA error",
					     "system error",     "internal error",
					     "invalid argument", "invalid usage",
					     "remote error",     "in progress",
					     "timeout" };

	return (unsigned)result < sizeof(names) / sizeof(names[0]) ? names[result]
								   : "an unknown result";
}

/*
 * What failed during init the plugin has just explained; later its last warning may be an old one.
 */
int ha_plugin_check(const struct ha_plugin *plugin, ncclResult_t result, const char *what)
{
	const char *link = plugin->initialized ? "; its last warning: " : ": ", *warning;

	if (result == ncclSuccess)
		return 0;
	warning = ha_logger_last_warning();
	return ha_fault(-EIO, "%s: plugin '%s' (v%d) returned %d (%s)%s%s", what, plugin->name,
			plugin->abi->version, result, result_name(result),
			*warning ? link
				 : "; it has logged no warning (NCCL_DEBUG=INFO shows all lines)",
			warning);
}

/* libnccl-net-<name>.so where it lies in relation to the running program. */
static void path_beside(char *path, size_t size, const char *name)
{
	char file[PATH_MAX];

	snprintf(file, sizeof(file), "libnccl-net-%s.so", name);
	ha_self_library(path, size, file);
}

/*
 * Whether NCCL would try libnccl-net-<name>.so after the name itself: not for paths, nor for
 * lib*.so.
 */
static bool is_short_name(const char *name)
{
	size_t n = strlen(name);

	return !strchr(name, '/') &&
	       !(!strncmp(name, "lib", 3) && n >= 3 && !strcmp(name + n - 3, ".so"));
}

static void *try_open(const char *path, char *error, size_t size)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	const char *text = library ? NULL : dlerror();

	if (!library)
		snprintf(error, size, "%s", text ? text : "dlopen failed");
	return library;
}

/* NCCL's two attempts; a third one beside this program spares setting LD_LIBRARY_PATH. */
static int library_open(struct ha_plugin *plugin, const char *name)
{
	char path[PATH_MAX], error[512] = "";
	struct link_map *map;

	if (name) {
		snprintf(path, sizeof(path), "%s", name);
		plugin->library = try_open(path, error, sizeof(error));
		if (!plugin->library && is_short_name(name)) {
			snprintf(path, sizeof(path), "libnccl-net-%s.so", name);
			plugin->library = try_open(path, error, sizeof(error));
		}
	}
	if (!plugin->library && (!name || is_short_name(name))) {
		path_beside(path, sizeof(path), name ? name : "ha");
		if (!name || !access(path, F_OK))
			plugin->library = try_open(path, error, sizeof(error));
	}
	if (!plugin->library)
		return ha_fault(-ENOENT, "plugin '%s' does not load: %s", name ? name : path,
				error);
	if (dlinfo(plugin->library, RTLD_DI_LINKMAP, &map) || !realpath(map->l_name, plugin->path))
		snprintf(plugin->path, sizeof(plugin->path), "%s", path);
	return 0;
}

/* NCCL takes the first that the library exports. */
static int table_choose(struct ha_plugin *plugin, int version)
{
	for (const struct ha_plugin_abi *const *abi = ha_plugin_abis; *abi; abi++) {
		if (version && (*abi)->version != version)
			continue;
		plugin->table = dlsym(plugin->library, (*abi)->symbol);
		if (plugin->table) {
			plugin->abi = *abi;
			plugin->abi->bind(plugin);
			return 0;
		}
	}
	if (version)
		return ha_fault(-ENOENT, "plugin %s does not export ncclNetPlugin_v%d",
				plugin->path, version);
	return ha_fault(-ENOENT, "plugin %s exports no net table (ncclNetPlugin_v6 to _v12)",
			plugin->path);
}

int ha_plugin_open(struct ha_plugin *plugin, const char *name, int version, uint64_t comm_id)
{
	int err;

	memset(plugin, 0, sizeof(*plugin));
	err = library_open(plugin, name);
	if (err)
		return err;
	err = table_choose(plugin, version);
	if (err)
		goto unload;
	err = ha_plugin_check(plugin, plugin->abi->init(plugin, comm_id, ha_logger_print), "init");
	if (err)
		goto unload;
	plugin->initialized = true;
	err = ha_plugin_check(plugin, plugin->count(&plugin->devices), "devices");
	if (!err && plugin->devices <= 0)
		err = ha_fault(
			-ENODEV,
			"plugin '%s' finds no device (NCCL_DEBUG=INFO shows what it looked at)%s%s",
			plugin->name, *ha_logger_last_warning() ? ": " : "",
			ha_logger_last_warning());
	if (err)
		ha_plugin_close(plugin);
	return err;
unload:
	dlclose(plugin->library);
	plugin->library = NULL;
	return err;
}

int ha_plugin_close(struct ha_plugin *plugin)
{
	int err = 0;

	if (!plugin->library)
		return 0;
	if (plugin->initialized && plugin->abi->finalize)
		err = ha_plugin_check(plugin, plugin->abi->finalize(plugin), "finalize");
	plugin->initialized = false;
	dlclose(plugin->library);
	plugin->library = NULL;
	return err;
}
