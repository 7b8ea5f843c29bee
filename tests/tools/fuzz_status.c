/* SPDX-License-Identifier: BSD-3-Clause */
/* A page as a broken or hostile process may leave it: the input is parts of one, the rest is zero;
 * its first byte chooses whether the header is mended, so that the records are reached, and how
 * short the file is. What is read can be shown. */
#include "base/check.h"
#include "tools/status_view.h"

#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The input once as the whole start, once spread over the tables, so that short inputs reach all of
 * them. */
static void lay_input(struct ha_status_page *page, const uint8_t *data, size_t size, unsigned how)
{
	size_t piece = size / 4;

	if (how & 2) {
		memcpy(page, data, size < sizeof(*page) ? size : sizeof(*page));
	} else if (piece) {
		memcpy(&page->totals, data, piece < 4096 ? piece : 4096);
		memcpy(&page->device[1], data + piece, piece < 4096 ? piece : 4096);
		memcpy(&page->connection[(how >> 4) * 32], data + 2 * piece,
		       piece < 4096 ? piece : 4096);
		memcpy(&page->event[(how >> 4) * 7], data + 3 * piece, piece < 4096 ? piece : 4096);
	}
	if (how & 1) {
		page->header.magic = HA_STATUS_MAGIC;
		page->header.version = HA_STATUS_VERSION;
		page->header.size = sizeof(*page);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct ha_status_page page, out;
	static FILE *nowhere;
	static int fd = -1;
	struct ha_status_found found = { .page = &out, .name = "1" };
	const char *why = NULL;
	unsigned how = size ? data[0] : 0;
	int err;

	if (!nowhere) {
		CHECK((nowhere = fopen("/dev/null", "w")) != NULL);
		CHECK((fd = memfd_create("page", MFD_CLOEXEC)) >= 0);
	}
	memset(&page, 0, sizeof(page));
	lay_input(&page, data, size, how);
	CHECK(!ftruncate(fd,
			 how & 4 ? (off_t)(sizeof(page) - (how >> 4) - 1) : (off_t)sizeof(page)));
	CHECK(pwrite(fd, &page, how & 4 ? sizeof(page) - (how >> 4) - 1 : sizeof(page), 0) > 0);
	err = ha_status_read(fd, &out, &why);
	CHECK(why && (!err == !*why || err == -11));
	if (how & 4)
		CHECK(err);
	else if (how & 1)
		CHECK(!err);
	if (err)
		return 0;
	ha_status_print(&found, 1, "dir", HA_STATUS_EVENTS, nowhere);
	CHECK(!ha_status_print_json(&found, 1, nowhere));
	return 0;
}
