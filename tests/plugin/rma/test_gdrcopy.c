/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counters in GPU memory that this process can reach through GDRCopy only: with a library of the
 * tests' own, while cables are cut, and with everything that may be missing or fail.
 */
#include "tests/plugin/rma/team.h"

#include "base/check.h"
#include "base/log.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MEMORY ((size_t)16 << 20)

/* The last warning about one-sided operations; any thread may log. */
static char line[1024];
static pthread_mutex_t line_lock = PTHREAD_MUTEX_INITIALIZER;

static void record_line(int level, unsigned long flags, const char *file, int at,
			const char *format, ...) __attribute__((format(printf, 5, 6)));

static void record_line(int level, unsigned long flags, const char *file, int at,
			const char *format, ...)
{
	char text[sizeof(line)];
	va_list arguments;

	if (level != HA_LOG_WARN)
		return;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	fprintf(stderr, "%s\n", text);
	if (!strstr(text, "one-sided: "))
		return;
	pthread_mutex_lock(&line_lock);
	memcpy(line, text, sizeof(line));
	pthread_mutex_unlock(&line_lock);
}

static bool has_logged(const char *part)
{
	bool found;

	pthread_mutex_lock(&line_lock);
	found = strstr(line, part) != NULL;
	pthread_mutex_unlock(&line_lock);
	return found;
}

static void forget_line(void)
{
	pthread_mutex_lock(&line_lock);
	*line = 0;
	pthread_mutex_unlock(&line_lock);
}

/* The library as the loader finds it for the plugin; NULL: it is none of ours. */
static struct fake_gdr *find_fake(void)
{
	void *library = dlopen("libgdrapi.so.2", RTLD_NOW);
	struct fake_gdr *(*get)(void) = NULL;
	void (*memory)(size_t) = NULL;
	struct fake_gdr *gdr;

	if (library) {
		*(void **)&get = dlsym(library, "fake_gdr");
		*(void **)&memory = dlsym(library, "fake_gdr_memory");
	}
	if (!get || !memory)
		return NULL;
	memory(MEMORY);
	gdr = get();
	/* Whoever goes there directly gets a fault. */
	CHECK(write(gdr->fd, gdr->gpu, 8) < 0);
	CHECK_INT(errno, EFAULT);
	return gdr;
}

static void nothing_left(const struct fake_gdr *gdr)
{
	CHECK_INT(gdr->pinned, 0);
	CHECK_INT(gdr->mapped, 0);
	CHECK_INT(gdr->misused, 0);
}

static void run_flow(struct fake_gdr *gdr, uint64_t seed)
{
	struct team t;

	team_open_gdr(&t, 3, 6000, gdr, seed);
	CHECK_INT(gdr->opens, 1);
	CHECK_INT(gdr->pinned, 3); /* a page for the counters of each rank, none for data */
	team_flow(&t, 1500);
	team_finish(&t);
	CHECK_INT(gdr->mapped, 3);
	team_close(&t);
	nothing_left(gdr);
}

static void signals_in_gpu_memory(struct fake_gdr *gdr)
{
	run_flow(gdr, 21);
}

/* What was mapped begins before what was asked for. */
static void begins_before(struct fake_gdr *gdr)
{
	gdr->below = 8192;
	gdr->used = FAKE_GDR_PAGE;
	run_flow(gdr, 22);
}

static void cut_now_and_then(struct fake_gdr *gdr)
{
	struct team t;

	team_open_gdr(&t, 3, 6000, gdr, 23);
	team_flow(&t, 200);
	for (int i = 0; i < 6; i++) {
		team_cut(i % 2, true);
		team_flow(&t, 30 + (unsigned)team_random(&t, 300));
		team_cut(i % 2, false);
		team_flow(&t, (unsigned)team_random(&t, 600));
	}
	team_finish(&t);
	team_close(&t);
	nothing_left(gdr);
}

/* ---- pages, as they are needed ---- */

#define FAR (5 * FAKE_GDR_PAGE - 8) /* the last counter of a window of five pages */

static struct ha_rma_window *five_pages(struct team *t, struct team_rank *r)
{
	struct fake_gdr *gdr = t->gdr;
	uint64_t offset = (gdr->used + FAKE_GDR_PAGE - 1) & ~(uint64_t)(FAKE_GDR_PAGE - 1);
	struct ha_rma_window *w;

	gdr->used = offset + 5 * FAKE_GDR_PAGE;
	CHECK_INT(ha_rma_register(r->rma, gdr->gpu + offset, 5 * FAKE_GDR_PAGE, HA_MEM_CUDA, offset,
				  gdr->fd, 1, &w),
		  0);
	return w;
}

/* Until `counter` is there, or rank 1 has an error; which is returned. */
static int add_far(struct team *t, struct ha_rma_window *w, const uint64_t *counter, uint64_t value)
{
	struct ha_rma_put put = {
		.rank = 1, .signal = HA_RMA_ADD, .value = value, .signals = w, .signal_offset = FAR
	};
	uint64_t before = __atomic_load_n(counter, __ATOMIC_ACQUIRE);
	struct ha_rma_op *op;
	int err = 0, done;

	CHECK_INT(ha_rma_put(t->rank[0].rma, &put, &op), 0);
	while (!err && __atomic_load_n(counter, __ATOMIC_ACQUIRE) == before) {
		if (op) {
			CHECK_INT(ha_rma_test(t->rank[0].rma, op, &done), 0);
			op = done ? NULL : op;
		}
		CHECK_INT(ha_rma_progress(t->rank[0].rma), 0);
		err = ha_rma_progress(t->rank[1].rma);
		usleep(10);
	}
	return err;
}

static void far_page(struct fake_gdr *gdr, int fail)
{
	struct ha_rma_window *w[2];
	const uint64_t *counter;
	struct team t;

	team_open_gdr(&t, 2, 6000, gdr, 24);
	for (int i = 0; i < 2; i++)
		w[i] = five_pages(&t, &t.rank[i]);
	counter = (const uint64_t *)(gdr->view + gdr->used - 8);
	CHECK_INT(gdr->pinned, 4); /* the team's own, and the first page of each */
	if (fail) {
		gdr->fail_map_at = gdr->maps + 1;
		CHECK_INT(add_far(&t, w[0], counter, 7), -EIO);
		CHECK(has_logged("one-sided: what another rank sent is lost"));
		CHECK_INT(ha_rma_error(t.rank[1].rma), -EIO);
	} else {
		CHECK_INT(add_far(&t, w[0], counter, 7), 0);
		CHECK_INT(add_far(&t, w[0], counter, UINT64_MAX - 1), 0);
		CHECK_INT(*counter, 5);
		CHECK_INT(gdr->pinned, 5);
		CHECK_INT(ha_rma_deregister(t.rank[1].rma, w[1]), 0);
		CHECK_INT(gdr->pinned, 3);
	}
	team_close(&t);
	nothing_left(gdr);
}

static void pages_as_needed(struct fake_gdr *gdr)
{
	far_page(gdr, 0);
}

static void page_refused(struct fake_gdr *gdr)
{
	far_page(gdr, 1);
}

/* ---- what is missing ---- */

/* A window for signals is refused with this in the line; one for data alone is not. */
static void check_refused(struct team *t, struct fake_gdr *gdr, const char *why)
{
	struct team_rank *r = &t->rank[0];
	struct ha_rma_window *w;

	forget_line();
	CHECK_INT(ha_rma_register(r->rma, gdr->gpu, 8192, HA_MEM_CUDA, 0, gdr->fd, 1, &w),
		  -EOPNOTSUPP);
	CHECK(!w);
	CHECK(has_logged("8192 bytes of GPU memory"));
	CHECK(has_logged(why));
	CHECK(has_logged("HA_NCCL_GIN=0"));
	CHECK(!has_logged("\n"));
	nothing_left(gdr);
}

static void expect_refusal(struct fake_gdr *gdr, const char *why)
{
	struct ha_rma_window *w;
	struct team t;

	team_open(&t, 2, 4096, HA_MEM_HOST, 25);
	check_refused(&t, gdr, why);
	CHECK_INT(ha_rma_register(t.rank[0].rma, gdr->gpu, 8192, HA_MEM_CUDA, 0, gdr->fd, 0, &w),
		  0);
	CHECK_INT(ha_rma_register(t.rank[1].rma, gdr->gpu, 8192, HA_MEM_CUDA, 0, gdr->fd, 0, &w),
		  0);
	team_flow(&t, 20); /* nothing of it did harm */
	team_finish(&t);
	team_close(&t);
}

/* The module is loaded later: the next registration finds it. */
static void no_module(struct fake_gdr *gdr)
{
	struct ha_rma_window *w;
	struct team t;

	team_open(&t, 1, 4096, HA_MEM_HOST, 26);
	gdr->no_module = 1;
	check_refused(&t, gdr, "modprobe gdrdrv");
	gdr->no_module = 0;
	CHECK_INT(ha_rma_register(t.rank[0].rma, gdr->gpu, 8192, HA_MEM_CUDA, 0, gdr->fd, 1, &w),
		  0);
	CHECK_INT(gdr->mapped, 1);
	team_close(&t);
	nothing_left(gdr);
}

static void old_library(struct fake_gdr *gdr)
{
	gdr->minor = 0;
	expect_refusal(gdr, "version 2.0: install GDRCopy 2.1 or a newer 2.x");
	CHECK_INT(gdr->opens, 0);
}

static void pin_fails(struct fake_gdr *gdr)
{
	gdr->fail_pin_at = 1;
	expect_refusal(gdr, "gdr_pin_buffer failed (12)");
}

static void info_fails(struct fake_gdr *gdr)
{
	gdr->fail_info_at = 1;
	expect_refusal(gdr, "gdr_get_info failed (5)");
}

static void map_fails(struct fake_gdr *gdr)
{
	gdr->fail_map_at = 1;
	expect_refusal(gdr, "gdr_map failed (11)");
}

/* Memory without rights that is no GPU's. */
static void not_the_gpus(struct fake_gdr *gdr)
{
	struct fake_gdr other = *gdr;

	other.gpu += MEMORY;
	expect_refusal(&other, "gdr_pin_buffer failed (22)");
	nothing_left(gdr);
}

/* Without the stand-in there is no memory of its own; ours is as much without rights. */
static void check_without_library(const char *why)
{
	struct fake_gdr none = { .size = MEMORY, .fd = -1 };

	none.gpu = mmap(NULL, MEMORY, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(none.gpu != MAP_FAILED);
	none.fd = memfd_create("gpu", MFD_CLOEXEC);
	CHECK(!ftruncate(none.fd, (off_t)MEMORY));
	expect_refusal(&none, why);
}

static const struct {
	const char *name;
	void (*run)(struct fake_gdr *gdr);
} tests[] = {
	{ "signals", signals_in_gpu_memory },
	{ "begins_before", begins_before },
	{ "cuts", cut_now_and_then },
	{ "pages", pages_as_needed },
	{ "page_refused", page_refused },
	{ "no_module", no_module },
	{ "old", old_library },
	{ "pin_fails", pin_fails },
	{ "info_fails", info_fails },
	{ "map_fails", map_fails },
	{ "not_the_gpus", not_the_gpus },
};

int main(int argc, char **argv)
{
	struct fake_gdr *gdr = find_fake();

	ha_log_set_sink(record_line);
	CHECK_INT(argc, 2);
	if (!strcmp(argv[1], "absent")) {
		CHECK(!gdr);
		check_without_library("there is no libgdrapi.so.2: install GDRCopy");
		return 0;
	}
	if (!strcmp(argv[1], "no_symbol")) {
		CHECK(!gdr);
		check_without_library(
			"has no gdr_runtime_get_version: install GDRCopy 2.1 or newer");
		return 0;
	}
	CHECK(gdr);
	for (unsigned i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		if (!strcmp(argv[1], tests[i].name)) {
			tests[i].run(gdr);
			return 0;
		}
	fprintf(stderr, "no test %s\n", argv[1]);
	return 1;
}
