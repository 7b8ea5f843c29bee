/* SPDX-License-Identifier: BSD-3-Clause */
/* The fail-safe contract of the hints: whatever an agent does or is, a reader gets an answer at
 * once, and never a share that no living agent has given for this flow. */
#include "plugin/balance/hints.h"

#include "base/check.h"
#include "base/clock.h"

#include <fcntl.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define STALE (2 * HA_NS_PER_S)
#define SRC 0x0100000a
#define DST 0x0200000a

static char dir[64], path[96];
static struct mpib_hint_shm *shm; /* the agent's mapping */
static struct ha_hints h;
static uint64_t now = 1000;

static void agent_makes_file(mode_t mode, off_t size)
{
	int fd;

	unlink(path);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
	CHECK(fd >= 0);
	CHECK(!fchmod(fd, mode));
	CHECK(!ftruncate(fd, size));
	if (shm)
		munmap(shm, sizeof(*shm));
	shm = mmap(NULL, sizeof(*shm), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(shm != MAP_FAILED);
	close(fd);
	if (size < (off_t)sizeof(*shm))
		return;
	shm->header = (struct mpib_hint_header) { MPIB_HINT_MAGIC, MPIB_HINT_MAX_ENTRIES, 1, 0 };
	mpib_hint_put(&shm->entries[3], 256, SRC, DST);
}

static void advance_heartbeat(void)
{
	shm->header.beat++;
}

static bool look_after(uint64_t later)
{
	now += later;
	return ha_hints_look(&h, now);
}

static void open_fresh_hints(void)
{
	agent_makes_file(0644, sizeof(*shm));
	CHECK(!ha_hints_open(&h, path, STALE));
	look_after(0);
	advance_heartbeat();
	look_after(100 * HA_NS_PER_MS);
	CHECK_INT(h.state, HA_HINTS_FRESH);
}

static enum ha_hint read_hint(uint32_t slot, uint32_t *bw)
{
	*bw = 12345;
	return ha_hints_read(&h, slot, SRC, DST, bw);
}

static void expect_hint(enum ha_hint want)
{
	uint32_t bw;

	CHECK_TEXT(ha_hint_text(read_hint(3, &bw)), ha_hint_text(want));
	CHECK_INT(bw, want == HA_HINT_OK ? 256 : 12345);
}

static void a_living_agent_is_followed(void)
{
	uint32_t bw;

	open_fresh_hints();
	expect_hint(HA_HINT_OK);
	mpib_hint_write(&shm->entries[3], 1024);
	CHECK_INT(read_hint(3, &bw), HA_HINT_OK);
	CHECK_INT(bw, 1024);
	mpib_hint_write(&shm->entries[3], 0);
	CHECK_INT(read_hint(3, &bw), HA_HINT_OK);
	CHECK_INT(bw, 0);
	ha_hints_close(&h);
	expect_hint(HA_HINT_NONE);
}

static void absence_is_no_advice(void)
{
	unlink(path);
	CHECK(!ha_hints_open(&h, path, STALE));
	expect_hint(HA_HINT_NONE);
	CHECK(!look_after(0)); /* as before: absent */
	CHECK_INT(h.state, HA_HINTS_ABSENT);
	expect_hint(HA_HINT_NONE);
	agent_makes_file(0644, sizeof(*shm));
	CHECK(look_after(HA_NS_PER_MS)); /* it comes up later */
	CHECK_INT(h.state, HA_HINTS_WAITING);
	expect_hint(HA_HINT_NONE);
	advance_heartbeat();
	CHECK(look_after(HA_NS_PER_MS));
	expect_hint(HA_HINT_OK);
	ha_hints_close(&h);
}

static void a_file_from_yesterday_is_no_advice(void)
{
	agent_makes_file(0644, sizeof(*shm));
	CHECK(!ha_hints_open(&h, path, STALE));
	for (int i = 0; i < 5; i++) {
		look_after(HA_NS_PER_S);
		expect_hint(HA_HINT_NONE);
	}
	CHECK_INT(h.state, HA_HINTS_STALE);
	ha_hints_close(&h);
}

static void a_hanging_agent_goes_stale_and_comes_back(void)
{
	open_fresh_hints();
	CHECK(!look_after(STALE));
	expect_hint(HA_HINT_OK);
	CHECK(look_after(1)); /* one event */
	CHECK_INT(h.state, HA_HINTS_STALE);
	expect_hint(HA_HINT_NONE);
	CHECK(!look_after(10 * HA_NS_PER_S)); /* and no second */
	advance_heartbeat();
	CHECK(look_after(1));
	expect_hint(HA_HINT_OK);
	ha_hints_close(&h);
}

static void an_agent_without_heartbeat_is_followed(void)
{
	agent_makes_file(0644, sizeof(*shm));
	shm->header.beat = 0;
	CHECK(!ha_hints_open(&h, path, STALE));
	look_after(0);
	expect_hint(HA_HINT_OK);
	look_after(100 * HA_NS_PER_S);
	expect_hint(HA_HINT_OK);
	ha_hints_close(&h);
}

static void a_share_past_1024_means_everything_on_sup(void)
{
	static const uint32_t past[] = { 1025, 4096, 0x80000000, UINT32_MAX };
	uint32_t bw;

	open_fresh_hints();
	for (size_t i = 0; i < sizeof(past) / sizeof(past[0]); i++) {
		mpib_hint_write(&shm->entries[3], past[i]);
		bw = 0;
		CHECK_INT(read_hint(3, &bw), HA_HINT_OK);
		CHECK_INT(bw, MPIB_HINT_MAX_BW);
	}
	mpib_hint_write(&shm->entries[3], 256);
	expect_hint(HA_HINT_OK);
	ha_hints_close(&h);
}

static void a_writer_that_died_in_the_middle_is_noticed(void)
{
	open_fresh_hints();
	shm->entries[3].seq |= 1;
	for (int i = 0; i < 1000; i++)
		expect_hint(HA_HINT_TORN);
	mpib_hint_write(&shm->entries[3], 256); /* the next agent mends it */
	expect_hint(HA_HINT_OK);
	CHECK_INT(shm->entries[3].seq & 1, 0);
	ha_hints_close(&h);
}

static void another_flows_entry_is_refused(void)
{
	uint32_t bw;

	open_fresh_hints();
	mpib_hint_put(&shm->entries[3], 256, SRC, DST + 1);
	expect_hint(HA_HINT_FOREIGN);
	mpib_hint_put(&shm->entries[3], 0, 0, 0); /* freed */
	expect_hint(HA_HINT_FOREIGN);
	mpib_hint_put(&shm->entries[3], 256, SRC, DST);
	expect_hint(HA_HINT_OK);
	CHECK_INT(read_hint(MPIB_NO_SLOT, &bw), HA_HINT_NONE);
	CHECK_INT(read_hint(MPIB_HINT_MAX_ENTRIES, &bw), HA_HINT_NONE);
	ha_hints_close(&h);
}

static void expect_refused(const char *why)
{
	look_after(HA_NS_PER_MS);
	advance_heartbeat();
	look_after(HA_NS_PER_MS);
	CHECK_INT(h.state, HA_HINTS_REFUSED);
	CHECK_TEXT(h.why, why);
	expect_hint(HA_HINT_NONE);
}

static void files_that_are_none_are_refused(void)
{
	char other[128];

	CHECK(!ha_hints_open(&h, path, STALE));
	agent_makes_file(0666, sizeof(*shm));
	expect_refused("others may write to it");
	agent_makes_file(0644, sizeof(*shm) + 1);
	expect_refused("its size is wrong");
	agent_makes_file(0644, sizeof(*shm));
	shm->header.magic++;
	expect_refused("it holds no hints");
	shm->header.magic--;
	shm->header.max_entries = 1 << 20;
	expect_refused("it holds no hints");
	shm->header.max_entries = MPIB_HINT_MAX_ENTRIES;
	snprintf(other, sizeof(other), "%s/other", dir);
	CHECK(!rename(path, other) && !symlink(other, path));
	expect_refused("it is no file");
	CHECK(!unlink(path) && !mkfifo(path, 0644));
	expect_refused("it is no file"); /* and nobody waits for a writer */
	CHECK(!unlink(path) && !mkdir(path, 0755));
	expect_refused("it is no file");
	CHECK(!rmdir(path) && !rename(other, path));
	look_after(HA_NS_PER_MS);
	advance_heartbeat();
	look_after(HA_NS_PER_MS);
	expect_hint(HA_HINT_OK);
	if (!geteuid()) {
		CHECK(!chown(path, 12345, 0));
		expect_refused("it is another user's");
	}
	ha_hints_close(&h);
	agent_makes_file(0644, 100); /* shorter: mapping that would kill its reader */
	CHECK(!ha_hints_open(&h, path, STALE));
	look_after(HA_NS_PER_MS);
	CHECK_TEXT(h.why, "its size is wrong");
	expect_hint(HA_HINT_NONE);
	ha_hints_close(&h);
}

static void a_file_that_turns_into_nonsense_is_dropped(void)
{
	open_fresh_hints();
	shm->header.magic = 0;
	CHECK(look_after(HA_NS_PER_MS));
	CHECK_INT(h.state, HA_HINTS_REFUSED);
	expect_hint(HA_HINT_NONE);
	ha_hints_close(&h);
}

/* Removed and made again, as by a cleaner of /tmp and an agent that mends it. */
static void a_replaced_file_is_found(void)
{
	uint32_t bw;

	open_fresh_hints();
	unlink(path);
	CHECK(look_after(HA_NS_PER_MS));
	CHECK_INT(h.state, HA_HINTS_ABSENT);
	expect_hint(HA_HINT_NONE);
	for (int i = 0; i < HA_HINTS_FILES - 1; i++) {
		agent_makes_file(0644, sizeof(*shm));
		mpib_hint_write(&shm->entries[3], (uint32_t)i);
		look_after(HA_NS_PER_MS);
		advance_heartbeat();
		look_after(HA_NS_PER_MS);
		CHECK_INT(read_hint(3, &bw), HA_HINT_OK);
		CHECK_INT(bw, i);
	}
	agent_makes_file(0644, sizeof(*shm));
	expect_refused("it was replaced too often; a new process will read it again");
	ha_hints_close(&h);
}

static void a_path_that_is_too_long(void)
{
	char longest[400];

	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = 0;
	CHECK_INT(ha_hints_open(&h, longest, STALE), -36);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
/* A process that the kernel kills at its first system call but read, write and exit (seccomp(2),
 * strict) reads on. */
static void a_read_makes_no_system_call(void)
{
	int status;
	pid_t child;

	open_fresh_hints();
	child = fork();
	if (!child) {
		uint32_t bw = 0, right = 0;

		if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))
			_exit(77);
		for (int i = 0; i < 100000; i++)
			right += ha_hints_read(&h, 3, SRC, DST, &bw) == HA_HINT_OK && bw == 256;
		syscall(SYS_exit, right != 100000);
	}
	CHECK_INT(waitpid(child, &status, 0), child);
	CHECK(WIFEXITED(status));
	CHECK(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 77);
	ha_hints_close(&h);
}
#else
static void a_read_makes_no_system_call(void)
{
	/* the sanitizer makes some of its own */
}
#endif

/* ---- writer and reader at once ---- */

static atomic_bool stop;

/* Pairs of share and address that belong together, so that a mixture shows. */
static void *write_for_ever(void *arg)
{
	for (uint32_t i = 0; !atomic_load_explicit(&stop, memory_order_relaxed); i++)
		mpib_hint_put(&shm->entries[3], i % 1025, SRC, DST + i % 1025 % 2);
	return NULL;
}

static void no_reader_sees_a_mixture(void)
{
	uint64_t kinds[HA_HINT_KINDS] = { 0 };
	pthread_t writer;
	uint32_t bw;

	open_fresh_hints();
	CHECK(!pthread_create(&writer, NULL, write_for_ever, NULL));
	for (int i = 0;
	     i < 300000 || (i < 300000000 && !(kinds[HA_HINT_OK] && kinds[HA_HINT_FOREIGN])); i++) {
		enum ha_hint hint = read_hint(3, &bw);

		kinds[hint]++;
		/* Even shares belong to DST. */
		CHECK(hint != HA_HINT_OK || (bw <= 1024 && !(bw & 1)) || bw == 256);
	}
	atomic_store_explicit(&stop, true, memory_order_relaxed);
	pthread_join(writer, NULL);
	CHECK(kinds[HA_HINT_OK] && kinds[HA_HINT_FOREIGN]);
	CHECK_INT(kinds[HA_HINT_NONE], 0);
	ha_hints_close(&h);
}

int main(void)
{
	strcpy(dir, "/tmp/hawser-hints-XXXXXX");
	CHECK(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/hints", dir);
	a_living_agent_is_followed();
	absence_is_no_advice();
	a_file_from_yesterday_is_no_advice();
	a_hanging_agent_goes_stale_and_comes_back();
	an_agent_without_heartbeat_is_followed();
	a_share_past_1024_means_everything_on_sup();
	a_writer_that_died_in_the_middle_is_noticed();
	another_flows_entry_is_refused();
	files_that_are_none_are_refused();
	a_file_that_turns_into_nonsense_is_dropped();
	a_replaced_file_is_found();
	a_path_that_is_too_long();
	a_read_makes_no_system_call();
	no_reader_sees_a_mixture();
	unlink(path);
	return rmdir(dir) ? 1 : 0;
}
