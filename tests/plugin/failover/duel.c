/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/plugin/failover/duel.h"

#include "softroce/control.h"
#include "softroce/settings.h"
#include "tests/base/folder.h"
#include "tests/plugin/nccl/rig.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tools/status_view.h"

static const char *const end_name[ENDS] = { "sender", "receiver" };

/* ---- failing ---- */

static void path_of(const struct duel *d, enum duel_end end, const char *what, char *path,
		    size_t size)
{
	snprintf(path, size, "%s/%s.%s", d->dir, what, end_name[end]);
}

/* The end of a file: most of what a process has said last, or a whole report of a sanitizer. */
static void print_tail(const char *path, long most)
{
	char line[2048];
	FILE *f = fopen(path, "r");

	if (!f)
		return;
	fseek(f, 0, SEEK_END);
	fseek(f, ftell(f) > most ? ftell(f) - most : 0, SEEK_SET);
	fprintf(stderr, "--- %s\n", path);
	while (fgets(line, sizeof(line), f))
		fputs(line, stderr);
	fclose(f);
}

static void kill_ends(struct duel *d)
{
	for (int end = 0; end < ENDS; end++)
		if (d->pid[end] > 0)
			kill(d->pid[end], SIGUSR1); /* it prints what it is at */
	usleep(200000);
	for (int end = 0; end < ENDS; end++)
		if (d->pid[end] > 0) {
			kill(d->pid[end], SIGKILL);
			waitpid(d->pid[end], NULL, 0);
		}
}

void duel_fail(struct duel *d, const char *file, int line, const char *what, const char *format,
	       ...)
{
	char path[128];
	va_list args;

	fflush(stdout);
	fprintf(stderr, "%s:%d: does not hold: %s: ", file, line, what);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, "\n");
	kill_ends(d);
	for (int end = 0; end < ENDS; end++) {
		path_of(d, end, "log", path, sizeof(path));
		print_tail(path, 12000);
	}
	folder_remove(d->dir);
	exit(1);
}

struct duel_wait duel_wait(const char *what)
{
	return (struct duel_wait) { .until = rig_now() + RIG_WAIT_S, .what = what };
}

void duel_pause(struct duel *d, struct duel_wait *wait)
{
	int status;

	for (int end = 0; end < ENDS; end++)
		if (d->pid[end] > 0 && waitpid(d->pid[end], &status, WNOHANG) == d->pid[end]) {
			d->pid[end] = 0;
			HOLDS(d, !wait->what, "%s: the %s has ended, status %#x", wait->what,
			      end_name[end], status);
		}
	HOLDS(d, rig_now() < wait->until, "%s: %d s without an end", wait->what, RIG_WAIT_S);
	usleep(500);
}

/* ---- set-up and end ---- */

static void set_environment(const struct duel *d, enum duel_end end)
{
	char text[128];

	snprintf(text, sizeof(text), "%s/events.%s", d->dir, end_name[end]);
	setenv("HA_NCCL_EVENTS", text, 1);
	snprintf(text, sizeof(text), "%s/pages.%s", d->dir, end_name[end]);
	setenv("HA_NCCL_STATUS_DIR", text, 1);
	/* receives complete before their data, as on hardware */
	setenv("HA_NCCL_POLL_ALWAYS", "0", 1);
	for (int i = 0; i < DUEL_ENV && d->setup.env[i]; i++)
		putenv((char *)d->setup.env[i]);
	for (int i = 0; i < DUEL_ENV && d->setup.env_of[end][i]; i++)
		putenv((char *)d->setup.env_of[end][i]);
	setenv("RIG_VERBOSE", "1", 1); /* the log is the file behind stderr */
}

static void start_end(struct duel *d, enum duel_end end)
{
	char path[128];
	int fd;

	d->pid[end] = fork();
	HOLDS(d, d->pid[end] >= 0, "fork");
	if (d->pid[end])
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	path_of(d, end, "log", path, sizeof(path));
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
	if (fd < 0 || dup2(fd, 2) < 0)
		_exit(3);
	set_environment(d, end);
	exit(duel_end(&d->setup, d->shared, end));
}

/* NICs and faults of their own, in subnets that no other kind of test has: other tests may run at
 * the same time. */
static void isolate_nics(const struct duel *d)
{
	unsigned net = (unsigned)getpid() % 250;
	char text[128];
	int n;

	snprintf(text, sizeof(text), "%s/control", d->dir);
	CHECK(!mkdir(text, 0700), "%s: %s", text, strerror(errno));
	setenv("SOFTROCE_CONTROL", text, 1);
	n = snprintf(text, sizeof(text), "127.170.%u.0/24,127.171.%u.0/24", net, net);
	if (d->setup.nics > 2)
		snprintf(text + n, sizeof(text) - (size_t)n, ",127.172.%u.0/24", net);
	setenv("SOFTROCE_DEVICES", text, 1);
	sr_settings_reload();
}

void duel_open(struct duel *d, const struct duel_setup *setup)
{
	struct duel_wait wait = duel_wait("connections and first messages");
	const char *tmp = getenv("TMPDIR");

	memset(d, 0, sizeof(*d));
	d->setup = *setup;
	d->setup.lanes += !setup->lanes;
	d->setup.threads += !setup->threads;
	d->setup.version = setup->version ? setup->version : 12;
	d->setup.largest = setup->largest ? setup->largest : 4 << 20;
	snprintf(d->dir, sizeof(d->dir), "%.40s/hawser-duel-XXXXXX", tmp ? tmp : "/tmp");
	HOLDS(d, mkdtemp(d->dir), "%s", d->dir);
	isolate_nics(d);
	d->shared = mmap(NULL, sizeof(*d->shared), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	HOLDS(d, d->shared != MAP_FAILED, "memory");
	for (int i = 0; i < DUEL_LANES; i++)
		atomic_store(&d->shared->last[i], UINT64_MAX);
	start_end(d, SENDER);
	start_end(d, RECEIVER);
	for (int end = 0; end < ENDS; end++)
		while (atomic_load(&d->shared->ready[end]) < (int)d->setup.lanes)
			duel_pause(d, &wait);
	duel_flow(d, 20);
}

void duel_flow(struct duel *d, unsigned n)
{
	struct duel_wait wait = duel_wait("messages");
	unsigned long long until[DUEL_LANES];

	for (unsigned i = 0; i < d->setup.lanes; i++)
		until[i] = atomic_load(&d->shared->whole[i]) + n;
	for (unsigned i = 0; i < d->setup.lanes; i++)
		while (atomic_load(&d->shared->whole[i]) < until[i]) {
			for (int end = 0; end < ENDS; end++)
				HOLDS(d, !atomic_load(&d->shared->failed[end]),
				      "an error of the %s", end_name[end]);
			duel_pause(d, &wait);
		}
}

static void await_exit(struct duel *d, enum duel_end end)
{
	struct duel_wait wait =
		duel_wait(end == SENDER ? "the sender's exit" : "the receiver's exit");
	int status;

	while (waitpid(d->pid[end], &status, WNOHANG) != d->pid[end]) {
		HOLDS(d, rig_now() < wait.until, "%s", wait.what);
		usleep(1000);
	}
	d->pid[end] = 0;
	HOLDS(d, WIFEXITED(status) && !WEXITSTATUS(status), "the %s ends with status %#x",
	      end_name[end], status);
}

void duel_close(struct duel *d)
{
	struct duel_wait wait = duel_wait("the last messages");

	atomic_store(&d->shared->stop, true);
	while (!atomic_load(&d->shared->over[SENDER]) || !atomic_load(&d->shared->over[RECEIVER]))
		duel_pause(d, &wait);
	atomic_store(&d->shared->leave, true);
	await_exit(d, SENDER);
	await_exit(d, RECEIVER);
	munmap(d->shared, sizeof(*d->shared));
	folder_remove(d->dir);
}

void duel_allow_errors(struct duel *d)
{
	atomic_store(&d->shared->may_fail, true);
}

void duel_await_errors(struct duel *d)
{
	struct duel_wait wait = duel_wait("errors at both ends");

	for (int end = 0; end < ENDS; end++)
		while (atomic_load(&d->shared->failed[end]) < (int)d->setup.lanes)
			duel_pause(d, &wait);
}

/* ---- faults ---- */

struct fault {
	struct sr_faults faults;
	bool heal;
};

/* One more fault, beside what is in force already. */
static void apply_fault(struct sr_faults *faults, void *arg)
{
	const struct fault *f = arg;

	if (f->heal) {
		*faults = (struct sr_faults) { .kill = faults->kill,
					       .srq_errors = faults->srq_errors };
		return;
	}
	faults->cut |= f->faults.cut;
	faults->kill |= f->faults.kill;
	faults->restore = f->faults.restore;
	memcpy(faults->restore_as, f->faults.restore_as, sizeof(faults->restore_as));
	faults->srq_errors += f->faults.srq_errors;
	if (f->faults.speed)
		faults->speed = f->faults.speed;
	if (f->faults.rate)
		faults->rate = f->faults.rate;
	faults->tx.blackhole |= f->faults.tx.blackhole;
	faults->rx.blackhole |= f->faults.rx.blackhole;
	if (f->faults.tx.drop_ppm)
		faults->tx.drop_ppm = faults->rx.drop_ppm = f->faults.tx.drop_ppm;
}

static void inject_fault(struct duel *d, enum duel_end end, int nic, struct fault fault)
{
	struct duel_wait wait = duel_wait("a fault");
	struct sr_control_entry *entry;
	char selector[64];
	int n, err;

	snprintf(selector, sizeof(selector), "soft%d:%d", nic, (int)d->pid[end]);
	do {
		entry = sr_control_list(selector, &n);
		HOLDS(d, n == 1, "%d devices are %s", n, selector);
		err = sr_control_change(entry, apply_fault, &fault);
		free(entry);
		duel_pause(d, &wait);
	} while (err == -EBUSY); /* a busy machine */
	HOLDS(d, !err, "%s: %s", selector, strerror(-err));
}

void duel_cut(struct duel *d, enum duel_end end, int nic)
{
	inject_fault(d, end, nic, (struct fault) { .faults.cut = 1 });
}

void duel_heal(struct duel *d, enum duel_end end, int nic)
{
	inject_fault(d, end, nic, (struct fault) { .heal = true });
}

void duel_kill(struct duel *d, enum duel_end end, int nic)
{
	inject_fault(d, end, nic, (struct fault) { .faults.kill = 1 });
}

void duel_restore(struct duel *d, enum duel_end end, int nic, const char *name)
{
	struct fault fault = { .faults.restore = 1 };

	snprintf(fault.faults.restore_as, sizeof(fault.faults.restore_as), "%s", name ? name : "");
	inject_fault(d, end, nic, fault);
}

void duel_fail_srqs(struct duel *d, enum duel_end end, int nic)
{
	inject_fault(d, end, nic, (struct fault) { .faults.srq_errors = 1 });
}

void duel_negotiate(struct duel *d, enum duel_end end, int nic, unsigned mbps)
{
	inject_fault(d, end, nic, (struct fault) { .faults.speed = mbps });
}

void duel_fork(struct duel *d, enum duel_end end)
{
	atomic_fetch_add(&d->shared->fork[end], 1);
}

void duel_await_forks(struct duel *d)
{
	struct duel_wait wait = duel_wait("forks");

	for (int end = 0; end < ENDS; end++)
		while (atomic_load(&d->shared->forked[end]) < atomic_load(&d->shared->fork[end]))
			duel_pause(d, &wait);
}

void duel_stop(struct duel *d, enum duel_end end, unsigned seconds)
{
	HOLDS(d, !kill(d->pid[end], SIGSTOP), "%s", strerror(errno));
	sleep(seconds);
	HOLDS(d, !kill(d->pid[end], SIGCONT), "%s", strerror(errno));
}

void duel_blackhole(struct duel *d, enum duel_end end, int nic, bool tx)
{
	struct fault fault = { 0 };

	if (tx)
		fault.faults.tx.blackhole = 1;
	else
		fault.faults.rx.blackhole = 1;
	inject_fault(d, end, nic, fault);
}

void duel_drop(struct duel *d, enum duel_end end, int nic, unsigned percent)
{
	inject_fault(d, end, nic,
		     (struct fault) { .faults.tx.drop_ppm = percent * (SR_PPM / 100) });
}

void duel_rate(struct duel *d, enum duel_end end, int nic, unsigned kbs)
{
	inject_fault(d, end, nic, (struct fault) { .faults.rate = kbs }); /* bytes per ms */
}

/* ---- what was said ---- */

static int search_file(const struct duel *d, enum duel_end end, const char *file, const char *a,
		       const char *b, char *first, size_t size)
{
	char path[128], line[4096];
	int n = 0;
	FILE *f;

	path_of(d, end, file, path, sizeof(path));
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f)) {
		if ((a && !strstr(line, a)) || (b && !strstr(line, b)))
			continue;
		if (!n++ && first) {
			line[strcspn(line, "\n")] = 0;
			snprintf(first, size, "%s", line);
		}
	}
	if (f)
		fclose(f);
	return n;
}

int duel_events(struct duel *d, enum duel_end end, const char *a, const char *b)
{
	return search_file(d, end, "events", a, b, NULL, 0);
}

void duel_await_events(struct duel *d, enum duel_end end, const char *a, const char *b, int n)
{
	char what[160];
	struct duel_wait wait = duel_wait(what);

	snprintf(what, sizeof(what), "the %s's event %s %s", end_name[end], a, b ? b : "");
	while (duel_events(d, end, a, b) < n)
		duel_pause(d, &wait);
}

void duel_expect_no_timeout(struct duel *d)
{
	static const char *const causes[] = { CAUSE("timeout"), CAUSE("heartbeat"),
					      CAUSE("work_failed") };

	for (int end = 0; end < ENDS; end++)
		for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++)
			HOLDS(d, !duel_events(d, end, causes[i], NULL),
			      "the %s waited for a time-out: %s", end_name[end], causes[i]);
}

bool duel_event(struct duel *d, enum duel_end end, const char *a, const char *b, char *line,
		size_t size)
{
	return search_file(d, end, "events", a, b, line, size) > 0;
}

double duel_number(const char *line, const char *name)
{
	char key[64];
	const char *at;

	snprintf(key, sizeof(key), "\"%s\":", name);
	at = strstr(line, key);
	return at ? strtod(at + strlen(key), NULL) : -1;
}

int duel_logged(struct duel *d, enum duel_end end, const char *text)
{
	return search_file(d, end, "log", text, NULL, NULL, 0);
}

static struct ha_status_found *scan_status(struct duel *d, enum duel_end end)
{
	struct ha_status_found *found;
	char path[128];
	size_t n;

	path_of(d, end, "pages", path, sizeof(path));
	HOLDS(d, !ha_status_scan(path, &found, &n) && n == 1 && found->page, "the %s's status page",
	      end_name[end]);
	return found;
}

void duel_status(struct duel *d, enum duel_end end, char *text, size_t size)
{
	struct ha_status_found *found = scan_status(d, end);
	FILE *f = fmemopen(text, size, "w");

	HOLDS(d, f, "memory");
	ha_status_print(found, 1, d->dir, HA_STATUS_EVENTS, f);
	HOLDS(d, ftell(f) < (long)size - 1 && !fclose(f), "it is longer than %zu bytes", size);
	ha_status_scan_free(found, 1);
}

void duel_status_json(struct duel *d, enum duel_end end, char *text, size_t size)
{
	struct ha_status_found *found = scan_status(d, end);
	FILE *f = fmemopen(text, size, "w");

	HOLDS(d, f && !ha_status_print_json(found, 1, f), "memory");
	HOLDS(d, ftell(f) < (long)size - 1 && !fclose(f), "it is longer than %zu bytes", size);
	ha_status_scan_free(found, 1);
}

struct ha_status_connection duel_connection(struct duel *d, enum duel_end end)
{
	struct ha_status_connection connection = { 0 };
	struct ha_status_found *found = scan_status(d, end);

	for (int i = HA_STATUS_CONNECTIONS - 1; i >= 0; i--)
		if (found->page->connection[i].used)
			connection = found->page->connection[i];
	ha_status_scan_free(found, 1);
	return connection;
}

int duel_main(int argc, char **argv, const struct duel_test *tests, int n)
{
	int ran = 0;

	for (int i = 0; i < n; i++)
		if (argc < 2 || !strcmp(argv[1], tests[i].name)) {
			double start = rig_now();

			tests[i].run();
			printf("%s: %.1f s\n", tests[i].name, rig_now() - start);
			fflush(stdout);
			ran++;
		}
	if (!ran)
		fprintf(stderr, "no test is called %s\n", argv[1]);
	return !ran;
}
