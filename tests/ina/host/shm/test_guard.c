/* SPDX-License-Identifier: BSD-3-Clause */
/* test_guard.c - memory that a client takes away again, or that is not there: the backend's process
 * runs, and this client alone is lost */
#include "ina/host/shm/memory.h"
#include "tests/ina/host/shm/no_seals.h"
#include "tests/ina/switch/named.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SEGMENTS 4u
#define PAGE 4096u

/* A client's and the backend's view of the same file, which stays open. */
static int share_memory(struct ina_shm_memory *client, struct ina_shm_memory *backend)
{
	char why[300] = "";
	int file;

	CHECK_INT(ina_shm_memory_make(client, SEGMENTS, &file, why, sizeof(why)), 0);
	if (ina_shm_memory_take(backend, file, 1u << 30, why, sizeof(why)))
		fprintf(stderr, "%s\n", why);
	CHECK(backend->map);
	CHECK(!ina_shm_guard_lost(&backend->guard->lost));
	return file;
}

static uint64_t count_pages(int file)
{
	struct stat st;

	CHECK_INT(fstat(file, &st), 0);
	return (uint64_t)st.st_blocks * 512 / PAGE;
}

/* Once the backend has it, no hole can be made in it, and no further mapping: not by any of the
 * ways to. */
static void no_holes(void)
{
	struct ina_shm_memory client, backend;
	int file = share_memory(&client, &backend);

	CHECK_INT(fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, INA_SHM_BUFFER,
			    HA_INA_SEGMENT),
		  -1);
	CHECK_INT(errno, EPERM);
	CHECK_INT(madvise(client.buffer, HA_INA_SEGMENT, MADV_REMOVE), -1);
	CHECK_INT(ftruncate(file, 4096), -1);
	CHECK(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) == MAP_FAILED);
	client.buffer[7] = 42; /* what is mapped stays so */
	CHECK_INT(backend.buffer[7], 42);
	backend.buffer[8] = 43;
	CHECK_INT(client.buffer[8], 43);
	CHECK(count_pages(file) >= backend.bytes / PAGE);
	ina_shm_memory_drop(&client);
	ina_shm_memory_drop(&backend);
	close(file);
}

/* As many pages as there must be, but some of them beyond the end, and as many holes before it:
 * they are filled before anybody believes in them. */
static void hidden_holes(void)
{
	struct ina_shm_memory backend;
	struct ina_shm_header header;
	uint64_t bytes = ina_shm_bytes(1);
	int file = memfd_create("test", MFD_ALLOW_SEALING);
	char why[300] = "";

	ina_shm_header_fill(&header, 1);
	CHECK_INT(ftruncate(file, (off_t)bytes), 0);
	CHECK_INT(fallocate(file, 0, 0, INA_SHM_BUFFER), 0);
	CHECK_INT(fallocate(file, FALLOC_FL_KEEP_SIZE, (off_t)bytes, HA_INA_SEGMENT), 0);
	CHECK_INT(pwrite(file, &header, sizeof(header), 0), sizeof(header));
	CHECK_INT(fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
	CHECK_INT(count_pages(file), bytes / PAGE);
	CHECK_INT(ina_shm_memory_take(&backend, file, 1u << 30, why, sizeof(why)), 0);
	CHECK_INT(count_pages(file), (bytes + HA_INA_SEGMENT) / PAGE);
	ina_shm_memory_drop(&backend);
	close(file);
}

static void *read_pages(void *arg)
{
	const volatile uint8_t *at = arg;
	unsigned sum = 0;

	for (unsigned i = 0; i < 2 * HA_INA_SEGMENT; i += PAGE)
		sum += at[i];
	return (void *)(uintptr_t)(sum != 0); // NOLINT(performance-no-int-to-ptr)
}

/* Pages that were there are not any more: threads that touch them read zeros, and learn that they
 * are lost; the memory of another client is what it was. */
static void lost_pages_read_as_zeros(void)
{
	struct ina_shm_memory client, backend, other_client, other;
	int file, other_file;
	pthread_t thread[4];
	void *found;

	other_file = share_memory(&other_client, &other);
	no_seals = true;
	file = share_memory(&client, &backend);
	memset(client.buffer, 1, client.buffer_bytes);
	memset(other_client.buffer, 2, other_client.buffer_bytes);
	CHECK_INT(ftruncate(file, 4096), 0);
	for (unsigned i = 0; i < 4; i++)
		CHECK_INT(pthread_create(&thread[i], NULL, read_pages,
					 backend.buffer + i * (HA_INA_SEGMENT / 2)),
			  0);
	for (unsigned i = 0; i < 4; i++) {
		CHECK_INT(pthread_join(thread[i], &found), 0);
		CHECK(!found);
	}
	CHECK(ina_shm_guard_lost(&backend.guard->lost));
	/* all of it is there again, and nobody else's */
	backend.buffer[backend.buffer_bytes - 1] = 5;
	CHECK_INT(backend.buffer[backend.buffer_bytes - 1], 5);
	CHECK(!ina_shm_guard_lost(&other.guard->lost));
	CHECK_INT(other.buffer[HA_INA_SEGMENT], 2);
	ina_shm_memory_drop(&client);
	ina_shm_memory_drop(&backend);
	close(file);
	/* in the same place, perhaps: nothing is left of it */
	no_seals = false;
	file = share_memory(&client, &backend);
	ina_shm_memory_drop(&client);
	ina_shm_memory_drop(&backend);
	close(file);
	ina_shm_memory_drop(&other_client);
	ina_shm_memory_drop(&other);
	close(other_file);
}

/* A page that is nobody's: the process dies of it, as without guards. */
static void foreign_page_ends_process(void)
{
	struct ina_shm_memory client, backend;
	int file, status;
	pid_t child;

	signal(SIGBUS, SIG_DFL); /* and not a sanitizer's: its report is another end */
	file = share_memory(&client, &backend);
	child = fork();
	if (!child) {
		int empty = memfd_create("test", 0);
		volatile uint8_t *at = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, empty, 0);

		alarm(850);
		setrlimit(RLIMIT_CORE, &(struct rlimit) { 0 });
		_exit(at[0]);
	}
	CHECK(waitpid(child, &status, 0) == child);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
	ina_shm_memory_drop(&client);
	ina_shm_memory_drop(&backend);
	close(file);
}

int main(int argc, char **argv)
{
	static const struct named_test tests[] = {
		{ "no_holes", no_holes },
		{ "hidden_holes", hidden_holes },
		{ "lost", lost_pages_read_as_zeros },
		{ "elsewhere", foreign_page_ends_process },
	};

	return NAMED_TESTS_RUN(tests, argc, argv);
}
