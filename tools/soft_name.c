/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/soft_name.h"
#include "softroce/folder.h"
#include "tools/soft_job.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

void ha_soft_name(const struct sr_control_entry *entry, char *buf, size_t len)
{
	char address[INET6_ADDRSTRLEN];

	snprintf(buf, len, "%s@%s (pid %u, job %d)", entry->page.device,
		 sr_gid_text(entry->page.gid[0], address), entry->page.pid,
		 (int)ha_soft_job_of((pid_t)entry->page.pid));
}

int ha_soft_complain(const char *command, int err)
{
	char folder[256];

	fprintf(stderr,
		"ha %s: SOFTROCE_CONTROL=%s: %s; name the directory that the processes have\n",
		command, sr_folder_path(folder, sizeof(folder)), strerror(-err));
	return 1;
}
