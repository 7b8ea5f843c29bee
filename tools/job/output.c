/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/job/output.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/job/fault.h"
#include "tools/job/options.h"

/* Nothing is created: a run that fails leaves no empty file behind. */
static int folder_check(const char *option, const char *path)
{
	char folder[PATH_MAX];
	char *slash;

	if (snprintf(folder, sizeof(folder), "%s", path) >= (int)sizeof(folder))
		return ha_fault(-ENAMETOOLONG, "%s %s: the name is too long", option, path);
	slash = strrchr(folder, '/');
	if (!slash)
		strcpy(folder, ".");
	else
		slash[slash == folder] = 0;
	if (access(folder, W_OK | X_OK))
		return ha_fault(-errno,
				"%s %s: %s: %s; name a file in a directory that you may write to",
				option, path, folder, strerror(errno));
	return 0;
}

int ha_output_check(const char *option, const char *path)
{
	struct stat st;

	if (!path)
		return 0;
	if (stat(path, &st))
		return folder_check(option, path);
	if (S_ISDIR(st.st_mode))
		return ha_fault(-EISDIR, "%s %s: it is a directory; name a file", option, path);
	if (access(path, W_OK))
		return ha_fault(-errno, "%s %s: %s; name a file that you may write to", option,
				path, strerror(errno));
	return 0;
}

int ha_replaced_check(const char *option, const char *path)
{
	int err = ha_output_check(option, path);

	return err || !path ? err : folder_check(option, path);
}

static bool have_program(const char *name)
{
	const char *path = getenv("PATH");
	char copy[4096], file[4200], *save, *folder;

	snprintf(copy, sizeof(copy), "%s", path ? path : "");
	for (folder = strtok_r(copy, ":", &save); folder; folder = strtok_r(NULL, ":", &save)) {
		snprintf(file, sizeof(file), "%s/%s", folder, name);
		if (!access(file, X_OK))
			return true;
	}
	return false;
}

int ha_picture_check(const char *option, const char *path)
{
	if (path && !have_program("gnuplot"))
		return ha_fault(-ENOENT, "%s needs gnuplot (Debian: gnuplot-nox)", option);
	return ha_output_check(option, path);
}

int ha_outputs_check(const struct ha_run_options *run)
{
	int err = ha_output_check("--json", run->json ? run->json_file : NULL);

	return err ? err : ha_output_check("--timeline", run->timeline);
}
