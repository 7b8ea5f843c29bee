/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugin/nccl/resident.h"

#include "base/log.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_NAME "libnccl-net.so"

static pthread_once_t stay_once = PTHREAD_ONCE_INIT, name_once = PTHREAD_ONCE_INIT;

static void stay_loaded(void)
{
	Dl_info self;

	if (!dladdr(&stay_once, &self) ||
	    !dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE))
		HA_WARN(NULL,
			"the plugin cannot stay loaded (%s): keep one communicator, or set "
			"NCCL_NET_PLUGIN_REF_COUNT=1",
			dlerror());
}

void ha_resident_stay(void)
{
	pthread_once(&stay_once, stay_loaded);
}

/* The loader looks there before it looks at our RUNPATH; who else lies there is not opened to
 * find out. */
static bool is_in_library_path(char *found, size_t len)
{
	const char *folders = getenv("LD_LIBRARY_PATH");

	for (size_t n; folders && *folders; folders += n + (folders[n] != 0)) {
		n = strcspn(folders, ":;");
		if (n && snprintf(found, len, "%.*s/" DEFAULT_NAME, (int)n, folders) < (int)len &&
		    !access(found, R_OK))
			return true;
	}
	return false;
}

static bool is_this_plugin(void *library)
{
	void *table = dlsym(library, "ncclNetPlugin_v12");
	Dl_info ours, theirs;

	return table && dladdr(&stay_once, &ours) && dladdr(table, &theirs) &&
	       ours.dli_fbase == theirs.dli_fbase;
}

bool ha_resident_by_nccl(void)
{
	const char *references = getenv("NCCL_NET_PLUGIN_REF_COUNT");

	return references && atoi(references) > 0;
}

static void take_default_name(void)
{
	char other[PATH_MAX], why[PATH_MAX + 64];
	void *library;

	if (ha_resident_by_nccl())
		return;
	if (is_in_library_path(other, sizeof(other))) {
		snprintf(why, sizeof(why), "that is %s here", other);
	} else {
		library = dlopen(DEFAULT_NAME, RTLD_NOW | RTLD_LOCAL);
		if (library && is_this_plugin(library)) {
			ha_resident_stay();
			return;
		}
		snprintf(why, sizeof(why), "%s",
			 library ? "that is another plugin here"
				 : "hawser/" DEFAULT_NAME " is not beside this one");
		if (library)
			dlclose(library);
	}
	HA_INFO(NULL,
		"NCCL 2.27 to 2.30 close the plugin with the last communicator and "
		"open " DEFAULT_NAME " for the next one, and %s: a "
		"program that makes another one then needs NCCL_NET_PLUGIN_REF_COUNT=1",
		why);
}

void ha_resident_stay_by_default_name(void)
{
	pthread_once(&name_once, take_default_name);
}
