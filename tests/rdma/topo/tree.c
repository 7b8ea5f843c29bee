/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/rdma/topo/tree.h"

#include <errno.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "tests/base/folder.h"

void tree_make(struct tree *t)
{
	strcpy(t->root, "/tmp/hawser-sysfs-XXXXXX");
	CHECK(mkdtemp(t->root));
}

void tree_remove(struct tree *t)
{
	CHECK(!folder_remove(t->root));
}

/* The full path, with its parent folders made. */
static const char *path_prepare(const struct tree *t, const char *path, char *full)
{
	snprintf(full, PATH_MAX, "%s%s", t->root, path);
	for (char *slash = strchr(full + strlen(t->root) + 1, '/'); slash;
	     slash = strchr(slash + 1, '/')) {
		*slash = 0;
		CHECK(!mkdir(full, 0755) || errno == EEXIST);
		*slash = '/';
	}
	return full;
}

void tree_file(const struct tree *t, const char *path, const char *text)
{
	char full[PATH_MAX];
	FILE *f = fopen(path_prepare(t, path, full), "w");

	CHECK(f);
	fputs(text, f);
	fclose(f);
}

void tree_link(const struct tree *t, const char *path, const char *target)
{
	char full[PATH_MAX], full_target[PATH_MAX];

	path_prepare(t, target, full_target);
	CHECK(!symlink(full_target, path_prepare(t, path, full)));
}

void tree_nic(const struct tree *t, const char *name, const char *pci_path, int numa_node)
{
	char path[PATH_MAX], text[16];

	snprintf(path, sizeof(path), "%s/numa_node", pci_path);
	snprintf(text, sizeof(text), "%d\n", numa_node);
	tree_file(t, path, text);
	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/device", name);
	tree_link(t, path, pci_path);
}
