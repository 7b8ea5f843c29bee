/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * window.c - memory that was registered at every rank
 *
 * Windows are numbered in the order of their registration, which is the same everywhere: one that
 * is refused has its number, too, which stays unused at this rank. With the device it is registered
 * at once, so that an error is the caller's; with a connection when the first operation needs it
 * there.
 */
#include "plugin/rma/comm.h"

#include "base/log.h"
#include "plugin/device/mr.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NUMBERS 65536 /* the core's limit */

/*
 * May the processor write all of it? The kernel's list of mappings says so, and costs a
 * registration nothing. GPU memory of the usual kind is not mapped, or mapped without any right;
 * managed memory and that of GPUs that share the host's address space is.
 */
static bool is_writable(const void *data, size_t size)
{
	uintptr_t at = (uintptr_t)data, end = at + size;
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];

	if (!maps)
		return false;
	while (at < end && fgets(line, sizeof(line), maps)) {
		uintptr_t first, behind;
		char rights[5];

		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", &first, &behind, rights) != 3 ||
		    behind <= at)
			continue;
		if (first > at || rights[0] != 'r' || rights[1] != 'w')
			break;
		at = behind;
	}
	fclose(maps);
	return at >= end;
}

bool ha_rma_within(const struct ha_rma_window *w, uint64_t offset, uint64_t size)
{
	return !size || (w && offset <= w->size && size <= w->size - offset);
}

static int grow_table(struct ha_rma *rma)
{
	unsigned room = rma->room ? 2 * rma->room : 16;
	struct ha_rma_window **larger;

	if (rma->nwindows < rma->room)
		return 0;
	larger = realloc(rma->window, room * sizeof(struct ha_rma_window *));
	if (!larger)
		return ha_rma_fail(rma, -ENOMEM, "a window cannot be numbered");
	rma->window = larger;
	rma->room = room;
	return 0;
}

static int report_full(void)
{
	HA_WARN(NULL,
		"one-sided: a communicator numbers %d windows, those that were given back among "
		"them, and these are used up: keep windows registered instead of registering them "
		"again, or make a new communicator",
		NUMBERS);
	return -ENOSPC;
}

static int take_number(struct ha_rma *rma, uint32_t *number)
{
	int err;

	pthread_mutex_lock(&rma->lock);
	err = rma->nwindows == NUMBERS ? report_full() : grow_table(rma);
	if (!err) {
		*number = rma->nwindows++;
		rma->window[*number] = NULL;
	}
	pthread_mutex_unlock(&rma->lock);
	return err;
}

int ha_rma_window_on(struct ha_rma_window *w, struct ha_bundle *bundle, struct ha_mr ***mr,
		     unsigned *nmr)
{
	if (w->number >= *nmr) {
		unsigned n = w->number + 16;
		struct ha_mr **larger = realloc(*mr, n * sizeof(struct ha_mr *));

		if (!larger)
			return -ENOMEM;
		memset(larger + *nmr, 0, (n - *nmr) * sizeof(struct ha_mr *));
		*mr = larger;
		*nmr = n;
	}
	if ((*mr)[w->number])
		return 0;
	return ha_reg_mr(bundle, w->addr, w->size, w->type, w->offset, w->fd, w->flags,
			 &(*mr)[w->number]);
}

static int offer_window(struct ha_rma_source *s, struct ha_rma_window *w)
{
	int err = ha_rma_window_on(w, (struct ha_bundle *)s->recv, &s->mr, &s->nmr);

	return err ? err : ha_offer(s->recv, w->number, s->mr[w->number]);
}

int ha_rma_offer_all(struct ha_rma *rma, struct ha_rma_source *s)
{
	int err = 0;

	for (unsigned i = 0; i < rma->nwindows && !err; i++)
		if (rma->window[i])
			err = offer_window(s, rma->window[i]);
	return err;
}

void ha_rma_window_free(struct ha_rma_window *w)
{
	ha_gdr_unmap(&w->pages);
	ha_unhold_mr(w->held);
	if (w->fd >= 0)
		close(w->fd);
	free(w);
}

static struct ha_rma_window *new_window(void *data, size_t size, int type, uint64_t offset, int fd,
					unsigned flags)
{
	struct ha_rma_window *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->addr = data;
	w->size = size;
	w->type = type;
	w->offset = offset;
	w->flags = flags;
	w->reach = is_writable(data, size) ? HA_RMA_DIRECT : HA_RMA_UNREACHED;
	LIST_INIT(&w->pages);
	w->fd = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1; /* last: errno is the caller's */
	return w;
}

/*
 * GPU memory that is not mapped is reached through GDRCopy, page by page as counters are used: a
 * GPU has little room for such mappings. The first page is mapped at once, so that what cannot be
 * is the caller's error.
 */
static int find_reach(struct ha_rma_window *w)
{
	char why[HA_GDR_WHY] = "it is not a GPU's, or its address is no multiple of 8";
	volatile uint64_t *word;
	int err = -EIO;

	if (w->reach != HA_RMA_UNREACHED || !(w->flags & HA_MR_FORCE_SO))
		return 0;
	if (w->type != HA_MEM_HOST && (uintptr_t)w->addr % sizeof(*word) == 0)
		err = ha_gdr_map(&w->pages, (uintptr_t)w->addr, &word, why);
	if (!err) {
		w->reach = HA_RMA_GDRCOPY;
		return 0;
	}
	HA_WARN(NULL,
		"one-sided: %zu bytes of %s memory at %p cannot hold signals: this process cannot "
		"write it, and not through GDRCopy: %s; NCCL's own transport can (HA_NCCL_GIN=0)",
		w->size, w->type == HA_MEM_HOST ? "host" : "GPU", w->addr, why);
	return -EOPNOTSUPP;
}

static int add_window(struct ha_rma *rma, struct ha_rma_window *w)
{
	struct ha_rma_source *s;
	int err = 0;

	pthread_mutex_lock(&rma->lock);
	rma->window[w->number] = w;
	rma->gpu += w->type != HA_MEM_HOST;
	TAILQ_FOREACH(s, &rma->sources, link)
		if (offer_window(s, w))
			err = ha_rma_fail(rma, -ENOMEM, "a window cannot be registered");
	pthread_mutex_unlock(&rma->lock);
	return err;
}

int ha_rma_register(struct ha_rma *rma, void *data, size_t size, int type, uint64_t offset, int fd,
		    unsigned flags, struct ha_rma_window **out)
{
	struct ha_rma_window *w;
	uint32_t number;
	int err = take_number(rma, &number);

	*out = NULL;
	if (err)
		return err;
	w = new_window(data, size, type, offset, fd, flags);
	if (!w)
		return -ENOMEM;
	w->number = number;
	err = fd >= 0 && w->fd < 0 ? -errno : find_reach(w);
	if (!err)
		err = ha_hold_mr(rma->ctx, rma->listen->dev, data, size, type, offset, fd, flags,
				 &w->held);
	if (err) {
		ha_rma_window_free(w);
		return err;
	}
	err = add_window(rma, w);
	if (!err)
		*out = w;
	return err;
}
