/* SPDX-License-Identifier: BSD-3-Clause */
#include "softroce/pci.h"

#include "softroce/folder.h"
#include "softroce/settings.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static int folder_make(int dir, const char *path)
{
	return mkdirat(dir, path, 0700) && errno != EEXIST ? -errno : 0;
}

static int link_make(int dir, const char *folder, const char *name, const char *target)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return symlinkat(target, dir, path) && errno != EEXIST ? -errno : 0;
}

int sr_pci_folder(const struct sr_device_spec *spec, char *path, size_t len)
{
	unsigned ports = (unsigned)sr_settings()->card_ports;
	char root[256], function[64], class[96], own[160];
	int dir = sr_folder_open(), err;

	if (dir < 0)
		return dir;
	snprintf(function, sizeof(function), "pci/ffff:%02x:00.%x", 1 + spec->place / ports,
		 spec->place % ports);
	snprintf(class, sizeof(class), "%s/infiniband", function);
	snprintf(own, sizeof(own), "%s/%s", class, spec->name);
	err = folder_make(dir, "pci");
	if (!err)
		err = folder_make(dir, function);
	if (!err)
		err = link_make(dir, function, "subsystem", "..");
	if (!err)
		err = folder_make(dir, class);
	if (!err)
		err = folder_make(dir, own);
	if (!err)
		err = link_make(dir, own, "device", "../..");
	close(dir);
	if (!err &&
	    snprintf(path, len, "%s/%s", sr_folder_path(root, sizeof(root)), own) >= (int)len)
		err = -ENAMETOOLONG;
	return err;
}
