/* SPDX-License-Identifier: BSD-3-Clause */
/* A file that takes the place of another one at once, and leaves it alone where it could not be
 * written; and the hash of bytes. */
#include "base/check.h"
#include "base/hash.h"
#include "base/newfile.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/hawser-newfile-XXXXXX", path[64];

static void check_text(const char *text)
{
	char found[64] = "";
	FILE *file = fopen(path, "r");

	CHECK(file);
	CHECK(fgets(found, sizeof(found), file));
	fclose(file);
	CHECK(!strcmp(found, text));
}

/* Nothing else is in the folder. */
static void check_alone(void)
{
	DIR *dir = opendir(folder);
	const struct dirent *entry;
	unsigned files = 0;

	CHECK(dir);
	while ((entry = readdir(dir)))
		files += *entry->d_name != '.';
	closedir(dir);
	CHECK_INT(files, 1);
}

static void takes_the_place(void)
{
	struct ha_new_file file;

	for (unsigned i = 0; i < 2; i++) {
		CHECK_INT(ha_new_file_open(&file, path), 0);
		fprintf(file.out, i ? "new" : "old");
		if (i)
			check_text("old");
		CHECK_INT(ha_new_file_close(&file), 0);
	}
	check_text("new");
	check_alone();
}

/* What a killed process of the same number has left, or a link that somebody has put there, is not
 * written to. */
static void replaces_what_was_left(void)
{
	struct ha_new_file file;
	char left[128];

	snprintf(left, sizeof(left), "%s.%d", path, (int)getpid());
	CHECK(!symlink(path, left));
	CHECK_INT(ha_new_file_open(&file, path), 0);
	fprintf(file.out, "third");
	CHECK(!fflush(file.out));
	check_text("new");
	CHECK_INT(ha_new_file_close(&file), 0);
	check_text("third");
	check_alone();
}

/* A device that takes nothing stands for a full disk; seen at the end, or before. */
static void keeps_the_old_one(bool unbuffered)
{
	struct ha_new_file file;

	CHECK_INT(ha_new_file_open(&file, path), 0);
	fclose(file.out);
	file.out = fopen("/dev/full", "w");
	CHECK(file.out);
	if (unbuffered)
		setbuf(file.out, NULL);
	fprintf(file.out, "lost");
	CHECK_INT(ha_new_file_close(&file), unbuffered ? -EIO : -ENOSPC);
	check_text("third");
	check_alone();
	CHECK_INT(ha_new_file_open(&file, "/nowhere/at/all"), -ENOENT);
}

/* The vectors of its authors (draft-eastlake-fnv). */
static void hashes(void)
{
	CHECK(ha_hash_text(HA_HASH_START, "") == UINT64_C(0xcbf29ce484222325));
	CHECK(ha_hash_text(HA_HASH_START, "a") == UINT64_C(0xaf63dc4c8601ec8c));
	CHECK(ha_hash_text(HA_HASH_START, "foobar") == UINT64_C(0x85944171f73967e8));
}

int main(void)
{
	CHECK(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/file", folder);
	takes_the_place();
	replaces_what_was_left();
	keeps_the_old_one(false);
	keeps_the_old_one(true);
	hashes();
	CHECK(!unlink(path));
	CHECK(!rmdir(folder));
	return 0;
}
