/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugin/balance/hints.h"

#include "base/trust.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int ha_hints_open(struct ha_hints *h, const char *path, uint64_t stale_ns)
{
	memset(h, 0, sizeof(*h));
	h->why = "";
	h->stale_ns = stale_ns;
	return snprintf(h->path, sizeof(h->path), "%s", path) < (int)sizeof(h->path)
		       ? 0
		       : -ENAMETOOLONG;
}

void ha_hints_close(struct ha_hints *h)
{
	atomic_store_explicit(&h->shm, NULL, memory_order_release);
	for (unsigned i = 0; i < h->nfiles; i++)
		munmap((void *)(uintptr_t)h->file[i], sizeof(*h->file[i]));
	h->nfiles = 0;
}

/* Another user who may write to the file could also make it shorter, which kills whoever reads
 * it. */
static const char *find_file_fault(const struct stat *st)
{
	const char *fault = ha_trust_fault(st);

	if (!fault && st->st_size != (off_t)sizeof(struct mpib_hint_shm))
		fault = "its size is wrong";
	return fault;
}

static const struct mpib_hint_shm *map_file(const char *path, struct stat *st, const char **why)
{
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	const struct mpib_hint_shm *shm;
	void *at = MAP_FAILED;

	*why = "it cannot be opened";
	if (fd < 0)
		return NULL;
	if (!fstat(fd, st)) {
		*why = find_file_fault(st);
		if (!*why)
			at = mmap(NULL, sizeof(*shm), PROT_READ, MAP_SHARED, fd, 0);
	}
	close(fd);
	if (at == MAP_FAILED) {
		*why = *why ? *why : "it cannot be mapped";
		return NULL;
	}
	shm = at;
	if (__atomic_load_n(&shm->header.magic, __ATOMIC_ACQUIRE) == MPIB_HINT_MAGIC &&
	    shm->header.max_entries == MPIB_HINT_MAX_ENTRIES)
		return shm;
	*why = "it holds no hints";
	munmap(at, sizeof(*shm));
	return NULL;
}

static enum ha_hints_state refuse_file(struct ha_hints *h, const char *why)
{
	h->why = why;
	return HA_HINTS_REFUSED;
}

static const struct mpib_hint_shm *get_current_file(const struct ha_hints *h)
{
	return h->nfiles && !h->gone ? h->file[h->nfiles - 1] : NULL;
}

/* A file that we do not have yet. */
static enum ha_hints_state open_new_file(struct ha_hints *h, uint64_t now)
{
	const struct mpib_hint_shm *shm;
	const char *why;
	struct stat st;

	if (h->nfiles == HA_HINTS_FILES)
		return refuse_file(h,
				   "it was replaced too often; a new process will read it again");
	shm = map_file(h->path, &st, &why);
	if (!shm)
		return refuse_file(h, why);
	h->file[h->nfiles++] = shm;
	h->gone = false;
	h->dev = st.st_dev;
	h->ino = st.st_ino;
	h->heartbeat = __atomic_load_n(&shm->header.beat, __ATOMIC_RELAXED);
	h->heartbeat_at = now;
	/* A file from yesterday looks as good as a current one until the heartbeat moves. */
	return h->heartbeat ? HA_HINTS_WAITING : HA_HINTS_FRESH;
}

static enum ha_hints_state check_heartbeat(struct ha_hints *h, const struct mpib_hint_shm *shm,
					   uint64_t now)
{
	uint32_t heartbeat = __atomic_load_n(&shm->header.beat, __ATOMIC_RELAXED);

	if (heartbeat != h->heartbeat) {
		h->heartbeat = heartbeat;
		h->heartbeat_at = now;
		return HA_HINTS_FRESH;
	}
	if (!heartbeat)
		return HA_HINTS_FRESH;
	if (now - h->heartbeat_at > h->stale_ns)
		return HA_HINTS_STALE;
	return h->state == HA_HINTS_WAITING || h->state == HA_HINTS_STALE ? h->state
									  : HA_HINTS_FRESH;
}

static enum ha_hints_state check_file(struct ha_hints *h, uint64_t now)
{
	const struct mpib_hint_shm *shm;
	const char *why;
	struct stat st;

	if (lstat(h->path, &st)) {
		h->gone = true;
		return errno == ENOENT || errno == ENOTDIR
			       ? HA_HINTS_ABSENT
			       : refuse_file(h, "it cannot be looked at");
	}
	why = find_file_fault(&st);
	if (why)
		return refuse_file(h, why);
	shm = get_current_file(h);
	if (!shm || st.st_dev != h->dev || st.st_ino != h->ino)
		return open_new_file(h, now);
	if (__atomic_load_n(&shm->header.magic, __ATOMIC_ACQUIRE) != MPIB_HINT_MAGIC)
		return refuse_file(h, "it holds no hints");
	return check_heartbeat(h, shm, now);
}

bool ha_hints_look(struct ha_hints *h, uint64_t now)
{
	enum ha_hints_state before = h->state;

	h->why = "";
	h->state = check_file(h, now);
	/* Release: a reader that has the pointer finds the mapping. */
	atomic_store_explicit(&h->shm, h->state == HA_HINTS_FRESH ? get_current_file(h) : NULL,
			      memory_order_release);
	return h->state != before;
}

const char *ha_hints_state_text(enum ha_hints_state state)
{
	static const char *const texts[] = {
		[HA_HINTS_ABSENT] = "there is no file of hints; is ha-agent running?",
		[HA_HINTS_REFUSED] = "the file of hints is refused",
		[HA_HINTS_WAITING] = "the agent has not written a heartbeat yet",
		[HA_HINTS_FRESH] = "fresh",
		[HA_HINTS_STALE] = "the agent's heartbeat has stopped: it hangs or has ended",
	};

	return texts[state];
}

const char *ha_hint_text(enum ha_hint hint)
{
	static const char *const texts[HA_HINT_KINDS] = {
		[HA_HINT_OK] = "followed",
		[HA_HINT_NONE] = "none",
		[HA_HINT_TORN] = "torn",
		[HA_HINT_FOREIGN] = "of another flow",
	};

	return hint < HA_HINT_KINDS ? texts[hint] : "unknown";
}
