/* SPDX-License-Identifier: BSD-3-Clause */
/* control.c - the owner's side of the control page; see control.h */
#include "softroce/control.h"
#include "softroce/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static void header_fill(struct sr_control_page *page, const char *name)
{
	size_t n = strcspn(name, ".");

	page->magic = SR_CONTROL_MAGIC;
	page->version = SR_CONTROL_VERSION;
	page->size = sizeof(*page);
	page->pid = getpid();
	memset(page->device, 0, sizeof(page->device));
	memcpy(page->device, name, n < sizeof(page->device) ? n : sizeof(page->device) - 1);
}

/*
 * The page gets its name when it is complete and locked, so that nobody can take it for a stale
 * one.
 */
static int page_create(struct sr_control *control)
{
	struct sr_control_page page = { 0 };
	char temporary[sizeof(control->name) + 8];
	int err;

	snprintf(temporary, sizeof(temporary), ".new-%s", control->name);
	unlinkat(control->dir, temporary, 0);
	control->page = openat(control->dir, temporary,
			       O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (control->page < 0)
		return -errno;
	header_fill(&page, control->name);
	if (flock(control->page, LOCK_EX | LOCK_NB) ||
	    pwrite(control->page, &page, sizeof(page), 0) != sizeof(page) ||
	    renameat(control->dir, temporary, control->dir, control->name)) {
		err = errno ? -errno : -ENOSPC;
		unlinkat(control->dir, temporary, 0);
		return err;
	}
	return 0;
}

static int bell_create(struct sr_control *control)
{
	char bell[sizeof(control->name) + 8];

	snprintf(bell, sizeof(bell), "%s.bell", control->name);
	unlinkat(control->dir, bell, 0);
	if (mkfifoat(control->dir, bell, 0600))
		return -errno;
	/* Open for writing too: a FIFO whose last writer leaves would stay readable for ever. */
	control->bell = openat(control->dir, bell, O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
	return control->bell < 0 ? -errno : 0;
}

int sr_control_open(struct sr_control *control, const char *device)
{
	int err;

	*control = (struct sr_control) { .dir = -1, .page = -1, .bell = -1 };
	snprintf(control->name, sizeof(control->name), "%s.%d", device, (int)getpid());
	control->dir = sr_folder_open();
	if (control->dir < 0)
		return control->dir;
	err = bell_create(control);
	if (!err)
		err = page_create(control);
	if (err)
		sr_control_close(control);
	return err;
}

void sr_control_forget(struct sr_control *control)
{
	if (control->bell >= 0)
		close(control->bell);
	if (control->page >= 0)
		close(control->page);
	if (control->dir >= 0)
		close(control->dir);
	control->dir = control->page = control->bell = -1;
}

void sr_control_remove(const struct sr_control *control)
{
	char bell[sizeof(control->name) + 8];

	if (control->dir < 0)
		return;
	snprintf(bell, sizeof(bell), "%s.bell", control->name);
	unlinkat(control->dir, control->name, 0);
	unlinkat(control->dir, bell, 0);
}

void sr_control_close(struct sr_control *control)
{
	sr_control_remove(control);
	sr_control_forget(control);
}

static void direction_clamp(struct sr_fault_dir *dir)
{
	uint64_t *times[] = { &dir->delay_ns, &dir->jitter_ns, &dir->reorder_ns };
	uint32_t *rates[] = { &dir->drop_ppm, &dir->dup_ppm, &dir->reorder_ppm };

	for (int i = 0; i < 3; i++) {
		if (*times[i] > SR_CONTROL_DELAY_MAX)
			*times[i] = SR_CONTROL_DELAY_MAX;
		if (*rates[i] > SR_PPM)
			*rates[i] = SR_PPM;
	}
}

int sr_control_read(struct sr_control *control, struct sr_faults *faults)
{
	struct sr_control_page page;
	char drain[64];

	while (read(control->bell, drain, sizeof(drain)) > 0)
		;
	if (pread(control->page, &page, sizeof(page), 0) != sizeof(page) ||
	    page.magic != SR_CONTROL_MAGIC || page.version != SR_CONTROL_VERSION ||
	    page.size != sizeof(page))
		return -EINVAL;
	direction_clamp(&page.faults.tx);
	direction_clamp(&page.faults.rx);
	page.faults.restore_as[SR_DEVICE_NAME_MAX - 1] = 0;
	*faults = page.faults;
	control->applied = page.faults_seq;
	return 0;
}

void sr_control_publish(struct sr_control *control, struct sr_control_page *page)
{
	const size_t owned = offsetof(struct sr_control_page, faults_seq);

	if (control->page < 0)
		return;
	header_fill(page, control->name);
	page->published = ++control->published;
	page->applied = control->applied;
	if (pwrite(control->page, page, owned, 0) != (ssize_t)owned)
		return; /* the folder is full: the counters there stay old, nothing else suffers */
}
