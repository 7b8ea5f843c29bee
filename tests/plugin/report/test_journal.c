/* SPDX-License-Identifier: BSD-3-Clause */
/* Events: the line in the log, the line of JSON, the status page; and what is there when the disk
 * or the table is full, or the directory another's. */
#include "base/check.h"
#include "base/log.h"
#include "base/process.h"
#include "base/process_list.h"
#include "plugin/bundle.h"
#include "plugin/connect/setup.h"
#include "plugin/ctx.h"
#include "plugin/device/device.h"
#include "plugin/failover/failover.h"
#include "plugin/report/event_json.h"
#include "plugin/report/journal.h"
#include "plugin/report/status.h"
#include "plugin/transfer/guard.h"
#include "tests/base/lines.h"
#include "tests/plugin/dummy.h"
#include "tools/status_read.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char dir[64], pages[80], file[80];
static struct world w;
static struct ha_listen *listen;
static struct ha_send *send;
static struct ha_recv *recv;

static void prepare_world(const char *events, const char *status_dir)
{
	world_prepare(&w);
	strcpy(w.config.events, events);
	strcpy(w.config.status_dir, status_dir);
	w.config.source[HA_CFG_status_dir] = HA_CONFIG_SET; /* also under virtual time */
	lines_catch();
}

static void open_connection(const char *events, const char *status_dir)
{
	prepare_world(events, status_dir);
	CHECK_INT(world_open_over(&w, NULL, NULL), 0);
	world_connect(&w, &listen, &send, &recv);
}

/* The text of the events file, at most so much. */
static const char *read_events(void)
{
	static char text[1 << 16];
	FILE *in = fopen(file, "r");
	size_t n;

	CHECK(in);
	n = fread(text, 1, sizeof(text) - 1, in);
	text[n] = 0;
	fclose(in);
	return text;
}

static int count_text(const char *text, const char *part)
{
	int n = 0;

	for (; (text = strstr(text, part)) != NULL; text += strlen(part))
		n++;
	return n;
}

static struct ha_status_found *found;
static size_t nfound;

/* The page of the connecting host: the second of this process. */
static const struct ha_status_page *read_page(void)
{
	ha_status_scan_free(found, nfound);
	CHECK_INT(ha_status_scan(pages, &found, &nfound), 0);
	CHECK_INT(nfound, 2);
	CHECK(found[0].page && found[1].page && !found[1].ended && !found[1].foreign);
	CHECK(!strncmp(found[1].name, found[0].name, strlen(found[0].name)) &&
	      strstr(found[1].name, ".1"));
	return found[1].page;
}

static void report_event(enum ha_event_kind kind, enum ha_event_cause cause)
{
	ha_journal_event(w.b,
			 &(struct ha_event) { .kind = kind, .cause = cause, .bundle = &send->b });
}

/* The status page of a connection of one rail. */
static void check_page(const struct ha_status_page *page)
{
	const struct ha_status_connection *c = &page->connection[0];

	CHECK_INT(page->header.pid, getpid());
	CHECK_TEXT(page->header.hawser, HAWSER_VERSION);
	CHECK_INT(page->totals.connections, 1);
	CHECK_INT(page->totals.events[HA_EVENT_CONNECTED], 1);
	CHECK(c->used && c->sends && !c->lost && c->protection == HA_PROTECTION_NO);
	CHECK_TEXT(c->name, send->b.name);
	CHECK_INT(c->nrails, 1);
	CHECK_INT(c->rail[0].state, HA_STATUS_RAIL_UP);
	CHECK_INT(c->rail[0].weight, 1024);
	CHECK_TEXT(page->device[c->rail[0].device].name, "dummy0:1");
}

/* Its only rail was suspected and fenced, and the connection failed over twice. */
static void report_failures(void)
{
	struct ha_rail *r = &send->b.rail[0];
	struct ha_event suspected = {
		.kind = HA_EVENT_SUSPECTED, .cause = HA_CAUSE_TIMEOUT, .bundle = &send->b, .rail = r
	};
	struct ha_event fenced = { .kind = HA_EVENT_FENCED, .bundle = &send->b, .rail = r };
	struct ha_event over = { .kind = HA_EVENT_FAILED_OVER,
				 .cause = HA_CAUSE_PORT_DOWN,
				 .bundle = &send->b,
				 .rail = r,
				 .requests = 3,
				 .bytes = 4096,
				 .stall_ns = 5000000,
				 .registration_ns = 500000 };

	r->epoch = 7;
	r->state = HA_RAIL_DOWN;
	ha_journal_eventf(w.b, &suspected, "nothing for %d ms", 1000);
	CHECK(lines_contain("rail 0 (dummy0:1 to ") &&
	      lines_contain("epoch 7) suspected: nothing for 1000 ms"));
	CHECK_INT(lines_warnings(), 1);
	ha_journal_event(w.b, &fenced);
	CHECK_INT(lines_warnings(), 1);
	ha_journal_event(w.b, &over);
	over.stall_ns = 2500000;
	ha_journal_event(w.b, &over);
	CHECK(lines_contain("3 requests (4096 bytes) replayed, 2.500 ms without progress, 0.500 ms "
			    "of it registering: "
			    "port down"));
}

static void check_failures(const struct ha_status_page *page)
{
	const struct ha_status_connection *c = &page->connection[0];

	CHECK_INT(c->protection, HA_PROTECTION_NO);
	CHECK_INT(c->protection_cause, HA_CAUSE_RAIL_LOST);
	CHECK_INT(c->failovers, 2);
	CHECK_INT(c->replayed_requests, 6);
	CHECK_INT(c->replayed_bytes, 8192);
	CHECK_INT(c->stall_last, 2500000);
	CHECK_INT(c->stall_worst, 5000000);
	CHECK_INT(c->rail[0].state, HA_STATUS_RAIL_DOWN);
	CHECK_INT(c->rail[0].epoch, 7);
	CHECK_INT(c->rail[0].failures, 1);
	CHECK_INT(page->device[0].failovers, 2);
}

/* Connected and not protected, and what report_failures() reported, in the page and in the file. */
static void check_events(const struct ha_status_page *page)
{
	int order[HA_STATUS_EVENTS];

	CHECK_INT(ha_status_events(page, order), 8);
	CHECK_INT(page->event[order[7]].kind, HA_EVENT_NOT_PROTECTED);
	CHECK_INT(page->event[order[6]].stall, 2500000);
	CHECK_INT(page->totals.next_event, 8);
	CHECK_INT(count_text(read_events(), "\n"), 10); /* and the other host's own two */
	CHECK_INT(count_text(read_events(), "{\"time\":\"1970-01-01T00:00:0"), 10);
	CHECK(strstr(
		read_events(),
		"\"event\":\"failed_over\",\"cause\":\"port_down\",\"connection\":\"dummy0:1 -> "));
	CHECK(strstr(
		read_events(),
		"\"rail\":0,\"peer_device\":\"dummy0:1\",\"epoch\":7,\"requests\":3,\"bytes\":4096,"
		"\"stall_ns\":2500000,\"registration_ns\":500000}\n"));
}

/* From the call to all three places. */
static void three_places(void)
{
	unlink(file);
	open_connection(file, pages);
	check_page(read_page());
	CHECK_INT(ha_journal_count(w.b, HA_EVENT_CONNECTED), 1);
	report_event(HA_EVENT_PROTECTED, HA_CAUSE_NONE);
	CHECK_INT(read_page()->connection[0].protection, HA_PROTECTION_YES);
	report_failures();
	report_event(HA_EVENT_NOT_PROTECTED, HA_CAUSE_RAIL_LOST);
	CHECK(lines_contain("not protected: rail lost"));
	check_failures(read_page());
	check_events(read_page());
	world_close(&w);
	CHECK(rmdir(pages) == 0); /* both pages are gone */
}

/* What the core reports by itself: ports, a dead peer, totals, the end. */
static void reported_by_core(void)
{
	const struct ha_status_page *page;
	struct ha_request *req;

	open_connection("", pages);
	dummy_event(&w.dummy[1], IBV_EVENT_PORT_ERR, NULL);
	world_run(&w, 10);
	page = read_page();
	CHECK_INT(page->device[0].port, HA_PORT_DOWN);
	CHECK_INT(page->device[0].events, 1);
	CHECK_INT(page->device[0].connections, 1);
	CHECK_INT(page->device[0].rails_up, 1);
	CHECK_INT(page->device[1].port, HA_PORT_UP);
	dummy_event(&w.dummy[1], IBV_EVENT_PORT_ACTIVE, NULL);
	world_run(&w, 10);
	CHECK_INT(read_page()->device[0].port, HA_PORT_UP);
	dummy_event(&w.dummy[1], IBV_EVENT_DEVICE_FATAL, NULL);
	world_run(&w, 10);
	dummy_event(&w.dummy[1], IBV_EVENT_PORT_ACTIVE, NULL); /* a failed device stays failed */
	send->head = 1234;
	world_run(&w, 10);
	CHECK_INT(ha_isend(send, NULL, 0, 0, NULL, &req), -EIO);
	world_run(&w, 10);
	page = read_page();
	CHECK_INT(page->device[0].port, HA_PORT_FAILED);
	CHECK_INT(page->device[0].rails_down, 1);
	CHECK_INT(page->connection[0].messages, 1234);
	CHECK_INT(page->connection[0].lost, 1);
	CHECK_INT(page->totals.events[HA_EVENT_SUSPECTED], 1);
	CHECK_INT(page->totals.events[HA_EVENT_LOST], 1);
	send->head = 1300;
	world_run(&w, 10);
	CHECK_INT(read_page()->connection[0].messages, 1234); /* not again within the second */
	world_run(&w, 1100);
	CHECK_INT(read_page()->connection[0].messages, 1300);
	ha_close_send(send);
	world_run(&w, 10);
	page = read_page();
	CHECK(!page->connection[0].used);
	CHECK_INT(page->totals.connections, 0);
	CHECK_INT(found[0].page->totals.events[HA_EVENT_PEER_CLOSED], 1);
	world_close(&w);
}

/* A call that finds its connection in the driver's hands says "not now", and is counted; one that
 * gets in is not. */
static void kept_out(void)
{
	struct ha_request *req;

	open_connection("", pages);
	ha_bundle_claim(&send->b);
	for (int i = 0; i < 3; i++) {
		CHECK_INT(ha_isend(send, NULL, 0, 0, NULL, &req), 0);
		CHECK(!req);
	}
	ha_bundle_give(&send->b);
	CHECK_INT(ha_isend(send, NULL, 0, 0, NULL, &req), 0);
	world_run(&w, 2000);
	CHECK_INT(read_page()->totals.kept_out, 3);
	world_close(&w);
}

static void dead_peer(void)
{
	struct ha_request *req;

	open_connection("", pages);
	oob_mem_cut(&w.net, 0);
	world_run(&w, 2000); /* these queue pairs never account for their work */
	CHECK_INT(ha_isend(send, NULL, 0, 0, NULL, &req), -ECONNRESET);
	CHECK_INT(ha_isend(send, NULL, 0, 0, NULL, &req), -ECONNRESET);
	CHECK_INT(ha_journal_count(w.b, HA_EVENT_LOST), 1);
	CHECK_INT(read_page()->event[2].cause, HA_CAUSE_PEER_GONE);
	world_close(&w);
}

/* More connections than records: counted, not listed; a record that gets free is used again. More
 * events than records. */
static void full_tables(void)
{
	enum { MANY = HA_STATUS_CONNECTIONS + 3 };
	struct ha_bundle *b;
	int order[HA_STATUS_EVENTS];
	struct ha_refused none = { 0 };

	open_connection("", pages);
	b = calloc(MANY, sizeof(*b));
	for (int i = 0; i < MANY; i++) {
		b[i].ctx = w.b;
		b[i].refused = &none;
		snprintf(b[i].name, sizeof(b[i].name), "c%d", i);
		ha_journal_event(w.b, &(struct ha_event) { .kind = HA_EVENT_CONNECTED,
							   .bundle = &b[i] });
	}
	CHECK_INT(read_page()->totals.connections, MANY + 1);
	CHECK_INT(read_page()->totals.unlisted, 4);
	CHECK_INT(ha_status_events(read_page(), order), HA_STATUS_EVENTS);
	CHECK_INT(read_page()->event[order[0]].number, MANY + 2 - HA_STATUS_EVENTS);
	ha_journal_event(w.b, &(struct ha_event) { .kind = HA_EVENT_LOST, .bundle = &b[MANY - 1] });
	ha_journal_forget(&b[MANY - 1]);
	ha_journal_forget(&b[5]);
	CHECK_INT(read_page()->totals.unlisted, 3);
	ha_journal_event(w.b, &(struct ha_event) { .kind = HA_EVENT_CONNECTED, .bundle = &b[5] });
	CHECK_TEXT(read_page()->connection[6].name, "c5");
	for (int i = 0; i < MANY - 1; i++)
		ha_journal_forget(&b[i]);
	CHECK_INT(read_page()->totals.connections, 1);
	CHECK_INT(read_page()->totals.unlisted, 0);
	free(b);
	world_close(&w);
}

/* A disk without room, a folder that is not there, a pipe: one warning, and counting. */
static void unwritable_files(void)
{
	static const char *const bad[] = { "/dev/full", "/nonexistent/x", NULL };
	char pipe[80];

	snprintf(pipe, sizeof(pipe), "%s/pipe", dir);
	CHECK_INT(mkfifo(pipe, 0600), 0);
	for (int i = 0; i < 3; i++) {
		open_connection(bad[i] ? bad[i] : pipe, pages);
		for (int k = 0; k < 5; k++)
			ha_journal_event(w.b, &(struct ha_event) { .kind = HA_EVENT_PROTECTED,
								   .bundle = &send->b });
		CHECK_INT(read_page()->totals.lines_lost, 7);
		CHECK_INT(lines_warnings(), 2); /* one per host */
		CHECK(lines_contain("only counted"));
		world_close(&w);
	}
	unlink(pipe);
}

/* Room for part of a line: the next one starts on a line of its own. */
static void torn_line(void)
{
	struct stat st;
	pid_t child;
	int status;

	unlink(file);
	child = fork();
	if (!child) {
		struct rlimit limit;

		signal(SIGXFSZ, SIG_IGN);
		open_connection(file, "none");
		CHECK_INT(stat(file, &st), 0);
		limit = (struct rlimit) { (rlim_t)st.st_size + 20, RLIM_INFINITY };
		CHECK_INT(setrlimit(RLIMIT_FSIZE, &limit), 0);
		ha_journal_event(w.b, &(struct ha_event) { .kind = HA_EVENT_PROTECTED,
							   .bundle = &send->b });
		limit.rlim_cur = RLIM_INFINITY;
		CHECK_INT(setrlimit(RLIMIT_FSIZE, &limit), 0);
		ha_journal_event(w.b, &(struct ha_event) { .kind = HA_EVENT_FENCED,
							   .bundle = &send->b });
		CHECK_INT(count_text(read_events(), "\n"), 6);
		CHECK_INT(count_text(read_events(), "\n{\"time\":\"1970-01-01T00:00:01.\n{"), 0);
		CHECK_INT(count_text(read_events(), "\n{"), 5);
		CHECK_INT(count_text(read_events(), "fenced"), 1);
		CHECK_INT(count_text(read_events(), "\"protected"), 0);
		world_close(&w);
		_exit(0);
	}
	CHECK_INT(waitpid(child, &status, 0), child);
	CHECK_INT(status, 0);
}

/* Whatever a peer calls itself, a line is JSON and one line. That lines are JSON:
 * tests/tools/test_status.sh. */
static void hostile_names(void)
{
	char line[HA_EVENT_JSON_MAX], text[HA_EVENT_TEXT_MAX + 100];
	struct ha_status_event e = { .kind = 200, .cause = 200, .rail = 7, .wall = UINT64_MAX };
	size_t n;

	memset(text, 1, sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	memset(e.connection, '\n', sizeof(e.connection));
	memset(e.device, '"', sizeof(e.device));
	memset(e.peer_device, 0xff, sizeof(e.peer_device));
	n = ha_event_json(&e, text, "h", UINT32_MAX, line);
	CHECK_INT(n, strlen(line));
	CHECK_INT(count_text(line, "\n"), 1);
	CHECK_INT(count_text(line, "\\u0001"), HA_EVENT_TEXT_MAX);
	CHECK_INT(count_text(line, "\\ufffd"), 24);
	CHECK_INT(count_text(line, "\"unknown\""), 2);
	n = ha_event_json(&e, "\xe2\x87\x84 \xc0\x80 \xed\xa0\x80 \xe2\x87", "h", 1, line);
	CHECK(strstr(line, "\"text\":\"\xe2\x87\x84 \\ufffd\\ufffd \\ufffd\\ufffd\\ufffd "
			   "\\ufffd\\ufffd\"}\n"));
}

static void expanded_paths(void)
{
	char out[128], want[128], host[64] = "";

	gethostname(host, sizeof(host) - 1);
	CHECK(ha_process_expand("/x/%h.%p.%u%%%z%", out, sizeof(out)));
	snprintf(want, sizeof(want), "/x/%s.%d.%d%%%%z%%", host, getpid(), geteuid());
	CHECK_TEXT(out, want);
	CHECK(!ha_process_expand("12345678", out, 8));
	CHECK(ha_process_expand("1234567", out, 8));
}

/* Whether the page's process is known to have ended; if it is in another namespace, that takes a
 * test in the first one. */
static bool is_known_to_have_ended(const struct ha_status_header *h)
{
	const struct ha_process_name name = { (pid_t)h->pid, h->start_ticks, h->pid_space };
	struct ha_process_list list = { 0 };
	pid_t here;
	bool ended = ha_process_find(&list, &name, &here) == HA_PROCESS_ENDED;

	ha_process_list_free(&list);
	return ended;
}

/* Pages of processes that are known to have ended go, those of living ones and of namespaces that
 * cannot be seen stay; what is no page of ours stays too. */
static void stale_pages(void)
{
	bool known;
	struct ha_status_file f;
	char path[128];
	int status, fd;
	pid_t child = fork();

	if (!child) {
		CHECK_INT(ha_status_file_open(&f, pages, 1, 1), 0);
		_exit(0);
	}
	waitpid(child, &status, 0);
	CHECK_INT(status, 0);
	ha_status_scan_free(found, nfound);
	CHECK_INT(ha_status_scan(pages, &found, &nfound), 0);
	CHECK_INT(nfound, 1);
	CHECK(found[0].page && found[0].ended);
	CHECK_INT(found[0].page->header.pid, child);
	/* The same number, but another namespace. */
	snprintf(path, sizeof(path), "%s/%d", pages, child);
	fd = open(path, O_RDWR);
	found[0].page->header.pid_space++;
	known = is_known_to_have_ended(&found[0].page->header);
	CHECK_INT(pwrite(fd, found[0].page, sizeof(struct ha_status_header), 0),
		  sizeof(struct ha_status_header));
	snprintf(path, sizeof(path), "%s/123.x", pages);
	CHECK(close(open(path, O_CREAT | O_WRONLY, 0600)) == 0);
	CHECK_INT(ha_status_file_open(&f, pages, 1, 1), 0);
	ha_status_scan_free(found, nfound);
	CHECK_INT(ha_status_scan(pages, &found, &nfound), 0);
	CHECK_INT(nfound, known ? 1 : 2);
	CHECK(known || found[0].foreign != found[1].foreign);
	/* Back in ours, it goes; so does the empty file once it is old enough. */
	for (size_t i = 0; i < nfound; i++)
		if (found[i].foreign) {
			found[i].page->header.pid_space--;
			CHECK(pwrite(fd, found[i].page, sizeof(struct ha_status_header), 0) > 0);
		}
	close(fd);
	CHECK_INT(utimensat(AT_FDCWD, path, (struct timespec[2]) { { 1, 0 }, { 1, 0 } }, 0), 0);
	ha_status_file_close(&f);
	CHECK_INT(ha_status_file_open(&f, pages, 1, 1), 0);
	ha_status_file_close(&f);
	CHECK(rmdir(pages) == 0);
}

/* A directory that others may write to, or a link, is no place for a page; the context works all
 * the same. */
static void bad_directories(void)
{
	char link[80];

	CHECK_INT(mkdir(pages, 0700) | chmod(pages, 0777), 0);
	open_connection("", pages);
	CHECK(lines_contain("others may write"));
	ha_journal_event(w.b,
			 &(struct ha_event) { .kind = HA_EVENT_PROTECTED, .bundle = &send->b });
	CHECK_INT(ha_journal_count(w.b, HA_EVENT_PROTECTED), 1);
	world_close(&w);
	ha_status_scan_free(found, nfound);
	CHECK_INT(ha_status_scan(pages, &found, &nfound), -EPERM);
	if (!geteuid()) { /* root may read another user's, which the user alone writes */
		CHECK_INT(chmod(pages, 0700) | chown(pages, 65534, 65534), 0);
		CHECK_INT(ha_status_scan(pages, &found, &nfound), 0);
		CHECK_INT(chmod(pages, 0755) | chmod(dir, 0755), 0);
		CHECK_INT(setegid(65533) | seteuid(65533), 0);
		CHECK_INT(ha_status_scan(pages, &found, &nfound), -EPERM);
		CHECK_INT(seteuid(0) | setegid(0), 0);
	}
	CHECK(rmdir(pages) == 0);
	snprintf(link, sizeof(link), "%s/link", dir);
	CHECK_INT(symlink("/tmp", link), 0);
	open_connection("", link);
	CHECK(lines_contain("no page for `ha status`"));
	world_close(&w);
	unlink(link);
	open_connection("", "none");
	CHECK(!lines_contain("no page"));
	world_close(&w);
}

/* Readers beside a writer see each record whole: all numbers of the event are equal. */
static struct ha_status_page shared;
static atomic_bool stop;

static void *run_writer(void *arg)
{
	struct ha_status_connection c = { .used = 1 };

	for (uint64_t i = 1; !atomic_load(&stop); i++) {
		c.messages = c.since_wall = c.replayed_bytes = c.stall_worst = i;
		c.rail[HA_STATUS_RAILS - 1].epoch = (uint32_t)i;
		ha_status_put(&shared.connection[0], &c, sizeof(c));
		if (i % 16 == 0)
			sched_yield();
	}
	return NULL;
}

static void whole_records(void)
{
	const uint32_t *from = (const uint32_t *)&shared.connection[0];
	struct ha_status_connection c;
	uint32_t *to = (uint32_t *)&c;
	uint64_t last = 0;
	pthread_t thread;
	int seen = 0;

	CHECK_INT(pthread_create(&thread, NULL, run_writer, NULL), 0);
	for (int tries = 0; seen < 500 && tries < 10000000; tries++) {
		uint32_t seq = __atomic_load_n(from, __ATOMIC_ACQUIRE);

		for (size_t i = 0; i < sizeof(c) / sizeof(*to); i++)
			to[i] = __atomic_load_n(&from[i], __ATOMIC_ACQUIRE);
		if (!seq || seq & 1 || __atomic_load_n(from, __ATOMIC_RELAXED) != seq)
			continue;
		CHECK(c.messages >= last && c.since_wall == c.messages &&
		      c.replayed_bytes == c.messages);
		CHECK(c.stall_worst == c.messages &&
		      c.rail[HA_STATUS_RAILS - 1].epoch == (uint32_t)c.messages);
		last = c.messages;
		seen++;
	}
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	CHECK(seen > 0);
}

/* Events are held while many come; one of a connection that has retired and is about to be no more
 * is reported before that. */
static void held_of_one_that_leaves(void)
{
	unlink(file);
	open_connection(file, "none");
	ha_journal_hold(w.b);
	pthread_mutex_lock(&w.b->drive);
	ha_bundle_retire(&send->b);
	pthread_mutex_unlock(&w.b->drive);
	report_event(HA_EVENT_SUSPECTED, HA_CAUSE_TIMEOUT);
	CHECK_INT(count_text(read_events(), "\"suspected\""), 0);
	ha_bundle_free(&send->b);
	CHECK_INT(count_text(read_events(), "\"suspected\""), 1);
	CHECK_INT(ha_close_recv(recv), 0);
	CHECK_INT(ha_close_listen(listen), 0);
	world_close(&w);
	unlink(file);
}

/* A round of the driver in which no connection has anything to do, after so long. */
static uint64_t look_after(uint64_t ns, uint64_t urgent_until)
{
	struct ha_schedule *s = send->b.schedule;
	uint64_t next;

	w.clock.now += ns;
	pthread_mutex_lock(&w.b->drive);
	s->due = s->look_due = UINT64_MAX;
	ha_schedule_urgent(&send->b, urgent_until);
	atomic_fetch_and(&send->b.attention, ~(uint32_t)HA_ATTN_DRIVE);
	w.b->round.due = 0;
	next = ha_failover_round(w.b);
	pthread_mutex_unlock(&w.b->drive);
	return next - w.clock.now;
}

/* What is held is reported some milliseconds after the last urgent work here: the peer's end of the
 * same connections may need the processors for longer. */
static void held_until_calm(void)
{
	uint64_t now, next;

	unlink(file);
	open_connection(file, "none");
	now = ha_clock_now(w.b->clock);
	ha_journal_hold(w.b);
	report_event(HA_EVENT_SUSPECTED, HA_CAUSE_TIMEOUT);
	look_after(0, now + 20 * HA_NS_PER_MS);
	CHECK_INT(count_text(read_events(), "\"suspected\""), 0);
	next = look_after(HA_NS_PER_MS, 0);
	CHECK_INT(count_text(read_events(), "\"suspected\""), 0);
	CHECK(next > HA_NS_PER_MS && next < 10 * HA_NS_PER_MS);
	look_after(next, 0);
	CHECK_INT(count_text(read_events(), "\"suspected\""), 1);
	CHECK_INT(ha_close_send(send), 0);
	CHECK_INT(ha_close_recv(recv), 0);
	CHECK_INT(ha_close_listen(listen), 0);
	world_close(&w);
	unlink(file);
}

int main(void)
{
	strcpy(dir, "/tmp/hawser-journal-XXXXXX");
	CHECK(mkdtemp(dir));
	snprintf(pages, sizeof(pages), "%s/pages", dir);
	snprintf(file, sizeof(file), "%s/events", dir);
	three_places();
	reported_by_core();
	held_of_one_that_leaves();
	held_until_calm();
	kept_out();
	dead_peer();
	full_tables();
	unwritable_files();
	CHECK(rmdir(pages) == 0);
	torn_line();
	hostile_names();
	expanded_paths();
	stale_pages();
	bad_directories();
	whole_records();
	ha_status_scan_free(found, nfound);
	unlink(file);
	CHECK(rmdir(dir) == 0);
	return 0;
}
