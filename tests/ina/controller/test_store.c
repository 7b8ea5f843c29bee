/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * service.h over a real database: random requests in random transactions; at any point the memory
 * is thrown away and loaded again, with and without what was not committed; or the disk is full,
 * and what was asked for has not happened. Beside it: databases that are damaged, foreign, of
 * another version, in use.
 */
#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "ina/controller/service.h"
#include "ina/controller/store.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define STEPS 1500
#define MOST 1024

static char top[64], path[96];
static struct ha_settings settings;
static struct ha_store *store;
static struct ha_service service;
static uint64_t now = HA_NS_PER_S, dice_state = 7;
static char why[256];

static uint32_t draw_random(uint32_t n)
{
	dice_state = dice_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)((dice_state >> 33) % n);
}

static void database_remove(void)
{
	char name[128];

	unlink(path);
	snprintf(name, sizeof(name), "%s-wal", path);
	unlink(name);
	snprintf(name, sizeof(name), "%s-shm", path);
	unlink(name);
}

static void start_service(void)
{
	store = ha_store_open(path, why, sizeof(why));
	if (!store)
		fprintf(stderr, "%s\n", why);
	CHECK(store);
	CHECK(!ha_service_open(&service, &settings, store, now, why, sizeof(why)));
}

/* Without a commit: what was not kept is lost. */
static void stop_service(void)
{
	ha_service_close(&service);
	ha_store_close(store);
}

/* What a client may rely on: everything of every group that was committed. */
static struct ha_group_record kept[MOST];
static uint32_t kept_epoch[4][256];
static unsigned nkept;

static int by_serial(const void *a, const void *b)
{
	const struct ha_group_record *x = a, *y = b;

	return x->serial < y->serial ? -1 : x->serial > y->serial;
}

static unsigned take_snapshot(struct ha_group_record *to, uint32_t epoch[4][256])
{
	const struct ha_group *g;
	unsigned n = 0;

	LIST_FOREACH(g, &service.groups.all, link)
		to[n++] = g->r;
	qsort(to, n, sizeof(*to), by_serial);
	for (unsigned i = 0; i < service.groups.nsw; i++)
		memcpy(epoch[i], service.groups.sw[i]->epoch, sizeof(epoch[i]));
	return n;
}

static void keep_snapshot(void)
{
	nkept = take_snapshot(kept, kept_epoch);
}

static void compare_snapshot(void)
{
	static struct ha_group_record is[MOST];
	static uint32_t epoch[4][256];

	CHECK_INT(take_snapshot(is, epoch), nkept);
	CHECK(!memcmp(is, kept, nkept * sizeof(is[0])));
	CHECK(!memcmp(epoch, kept_epoch, sizeof(epoch)));
	CHECK(!ha_groups_check(&service.groups));
}

static void create_group(void)
{
	uint32_t member[3] = { 0x0a000001 + draw_random(200), 0x0a000101 + draw_random(100),
			       0x0a000201 };
	uint8_t nonce[8];
	struct ha_group_spec w = { .tenant = draw_random(2) ? "alice" : "b\xc3\xb6",
				   .name = "job",
				   .member = member,
				   .members = 2 + draw_random(2),
				   .length = 16u << draw_random(7),
				   .lease_ms = draw_random(3) ? 1000 + draw_random(60000) : 0,
				   .nonce = nonce,
				   .nonce_len = draw_random(9),
				   .created = 1700000000,
				   .workers = draw_random(2) ? 1u << draw_random(7) : 0,
				   .extended = draw_random(2) };
	struct ha_refusal refusal;

	for (size_t i = 0; i < sizeof(nonce); i++)
		nonce[i] = (uint8_t)draw_random(256);
	ha_service_create(&service, &w, now, &refusal);
}

static void change_something(void)
{
	struct ha_switch_info info = settings.sw[1];
	struct ha_group *group = LIST_FIRST(&service.groups.all);

	switch (draw_random(9)) {
	case 8:
		if (group && group->r.state == HA_GROUP_LIVE)
			ha_service_join(&service, group, draw_random(group->r.members),
					1 + draw_random(3), now);
		break;
	case 0:
		now += draw_random(20000) * HA_NS_PER_MS;
		ha_service_tick(&service, now);
		break;
	case 1:
		for (unsigned n = group ? draw_random(service.groups.live + service.groups.closed)
					: 0;
		     n; n--)
			group = LIST_NEXT(group, link);
		if (group && group->r.state == HA_GROUP_LIVE)
			ha_service_end(&service, group, "test", now);
		break;
	case 2:
		CHECK(ha_service_switch(&service, &info, draw_random(10) ? 5 : 1 + draw_random(3),
					now));
		break;
	case 3:
		strcpy(info.name, "came");
		info.address = 0x0a0000fd;
		info.configured = false;
		info.slots = draw_random(8) ? 1024 : 256 + 256 * draw_random(4);
		CHECK(ha_service_switch(&service, &info, 9, now));
		break;
	default:
		create_group();
	}
}

static void random_restarts(void)
{
	bool fatal;

	database_remove();
	start_service();
	keep_snapshot();
	for (int i = 0; i < STEPS; i++) {
		for (uint32_t n = draw_random(4); n; n--)
			change_something();
		if (draw_random(4)) {
			CHECK(ha_service_commit(&service, now, why, sizeof(why), &fatal));
			keep_snapshot();
			continue;
		}
		stop_service();
		now = HA_NS_PER_S * (1 + draw_random(100));
		start_service();
		compare_snapshot();
	}
	stop_service();
}

/* Nothing more can be written (a limit on the size of files stands for a full disk). */
static void disk_full(void)
{
	struct rlimit limit, before;
	struct stat st;
	char wal[128];
	unsigned failed = 0;
	bool fatal;

	database_remove();
	start_service();
	for (int i = 0; i < 20; i++)
		create_group();
	CHECK(ha_service_commit(&service, now, why, sizeof(why), &fatal));
	keep_snapshot();
	signal(SIGXFSZ, SIG_IGN);
	snprintf(wal, sizeof(wal), "%s-wal", path);
	CHECK(!stat(wal, &st));
	CHECK(!getrlimit(RLIMIT_FSIZE, &before));
	limit = before;
	limit.rlim_cur = (rlim_t)st.st_size + 5000;
	CHECK(!setrlimit(RLIMIT_FSIZE, &limit));
	for (int i = 0; i < 10; i++) {
		struct ha_group *group;

		LIST_FOREACH(group, &service.groups.all, link)
			if (group->r.state == HA_GROUP_LIVE)
				break;
		if (group)
			ha_service_end(&service, group, "test", now);
		create_group();
		if (ha_service_commit(&service, now, why, sizeof(why), &fatal)) {
			keep_snapshot();
			continue;
		}
		failed++;
		CHECK(!fatal && strstr(why, "cannot write its database"));
		compare_snapshot();
	}
	CHECK(failed);
	CHECK(!setrlimit(RLIMIT_FSIZE, &before));
	create_group();
	CHECK(ha_service_commit(&service, now, why, sizeof(why), &fatal));
	keep_snapshot();
	stop_service();
	start_service();
	compare_snapshot();
	stop_service();
}

static void expect_refused(const char *word)
{
	CHECK(!ha_store_open(path, why, sizeof(why)));
	if (!strstr(why, word))
		fprintf(stderr, "'%s' is not in '%s'\n", word, why);
	CHECK(strstr(why, word));
}

static void run_sql(const char *text)
{
	pid_t pid = fork();
	int status;

	CHECK(pid >= 0);
	if (!pid) {
		execlp("sqlite3", "sqlite3", path, text, NULL);
		_exit(127);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK_INT(status, 0);
}

/* A database that a controller without workers wrote: its groups are there, of the old kind. */
static void database_of_version_1(void)
{
	database_remove();
	start_service();
	CHECK(ha_service_commit(&service, now, why, sizeof(why), &(bool) { false }));
	stop_service();
	run_sql("ALTER TABLE groups DROP COLUMN workers; ALTER TABLE groups DROP COLUMN extended; "
		"ALTER TABLE groups DROP COLUMN joined; PRAGMA user_version = 1;"
		"INSERT INTO groups VALUES (1, 's0', 30, 1, 0, 64, 1, 1000, 0, 5, 0, "
		"x'0100000a0200000a', '', 't', '')");
	for (int i = 0; i < 2; i++) {
		const struct ha_group *group;

		start_service();
		group = LIST_FIRST(&service.groups.all);
		CHECK(service.groups.live == 1 && group->r.id == 30 && !group->r.workers &&
		      !group->r.extended);
		stop_service();
	}
}

static void wrong_databases(void)
{
	int fd;

	database_remove();
	start_service();
	expect_refused("another controller has it open");
	create_group();
	stop_service();
	/* what contradicts itself is not served */
	database_remove();
	start_service();
	CHECK(ha_service_commit(&service, now, why, sizeof(why), &(bool) { false }));
	stop_service();
	run_sql("INSERT INTO groups VALUES (1, 's0', 300, 1, 0, 64, 1, 1000, 0, 5, 0, "
		"x'0100000a0200000a', '', 't', '', 0, 0, '')");
	store = ha_store_open(path, why, sizeof(why));
	CHECK(store);
	CHECK(ha_service_open(&service, &settings, store, now, why, sizeof(why)));
	CHECK(strstr(why, "a group in it contradicts the rest"));
	ha_store_close(store);
	run_sql("DELETE FROM groups");
	run_sql("PRAGMA user_version = 99");
	expect_refused("another version");
	run_sql("PRAGMA user_version = 2; PRAGMA application_id = 3");
	expect_refused("no database of a controller");
	database_remove();
	fd = open(path, O_WRONLY | O_CREAT, 0600);
	CHECK(fd >= 0 && write(fd, "this is no database, whatever its name may be", 45) == 45);
	close(fd);
	expect_refused("not a database");
	database_remove();
	snprintf(path, sizeof(path), "%s/none/db", top);
	expect_refused("unable to open");
	snprintf(path, sizeof(path), "%s/db", top);
}

/* A switch that leaves the settings, moves or shrinks while the controller is away. */
static void settings_change(void)
{
	unsigned live;

	database_remove();
	start_service();
	for (int i = 0; i < 30; i++)
		create_group();
	CHECK(ha_service_commit(&service, now, why, sizeof(why), &(bool) { false }));
	live = service.groups.live;
	CHECK(live);
	stop_service();
	settings.sw[0].address++;
	start_service();
	CHECK_INT(service.groups.live, 0);
	CHECK_INT(service.groups.closed, live);
	stop_service();
	settings.sw[0].address--;
	start_service();
	CHECK_INT(service.groups.closed, live); /* ended is ended */
	now += 60 * HA_NS_PER_S;
	ha_service_tick(&service, now);
	CHECK_INT(service.groups.closed, 0);
	create_group();
	CHECK(ha_service_commit(&service, now, why, sizeof(why), &(bool) { false }));
	stop_service();
	settings.nsw = 0;
	start_service();
	CHECK_INT(service.groups.live, 0);
	CHECK_INT(service.groups.closed, 1);
	stop_service();
	settings.nsw = 2;
}

static struct ha_group *create_at(uint32_t address)
{
	uint32_t member[2] = { address, address + 1 };
	struct ha_group_spec w = {
		.tenant = "t", .name = "", .member = member, .members = 2, .length = 16
	};
	struct ha_refusal refusal;

	return ha_service_create(&service, &w, now, &refusal);
}

static struct ha_switch_info make_switch_info(unsigned i)
{
	struct ha_switch_info info = { .address = 0xac100001 + i,
				       .slots = 1024,
				       .nserves = 1,
				       .registers = true,
				       .serves = { { 0xc0000000 + (i << 8), 24 } } };

	snprintf(info.name, sizeof(info.name), "r%02u", i);
	return info;
}

/* The settings name a switch that had registered itself under another name: what that holds ends,
 * and then rests. */
static void settings_take_an_address(void)
{
	struct ha_switch_info info = make_switch_info(0);
	struct ha_group *group;

	database_remove();
	start_service();
	CHECK(ha_service_switch(&service, &info, 5, now));
	group = create_at(0xc0000001);
	CHECK(group);
	CHECK_TEXT(group->r.switch_name, "r00");
	CHECK(ha_service_commit(&service, now, why, sizeof(why), &(bool) { false }));
	stop_service();
	settings.sw[2] = info;
	settings.sw[2].configured = true;
	settings.sw[2].registers = false;
	strcpy(settings.sw[2].name, "named");
	settings.nsw = 3;
	for (int i = 0; i < 2; i++) { /* it stays so */
		start_service();
		CHECK_INT(service.groups.live, 0);
		CHECK_INT(service.groups.closed, 1);
		group = create_at(0xc0000001);
		CHECK(group);
		CHECK_TEXT(group->r.switch_name, "s0"); /* which is further away */
		stop_service();
	}
	start_service();
	now += 60 * HA_NS_PER_S;
	ha_service_tick(&service, now);
	group = create_at(0xc0000001);
	CHECK(group);
	CHECK_TEXT(group->r.switch_name, "named");
	CHECK(!ha_groups_check(&service.groups));
	stop_service();
	settings.nsw = 2;
}

/* As many switches as there may be are stored, and the settings name one more: one that holds
 * nothing gives way. */
static void settings_have_one_more(void)
{
	struct ha_switch_info info;
	struct ha_group *group;

	database_remove();
	start_service();
	for (unsigned i = 2; i < HA_GROUPS_SWITCHES; i++) {
		info = make_switch_info(i);
		CHECK(ha_service_switch(&service, &info, 5, now));
		group = create_at(info.serves[0].addr + 1);
		CHECK(group);
		CHECK_TEXT(group->r.switch_name, info.name);
		if (i % 2) {
			ha_service_end(&service, group, "test", now);
			now += 10 * HA_NS_PER_S; /* late_ns: it is forgotten, its epoch is not */
			ha_service_tick(&service, now);
		}
	}
	CHECK_INT(service.groups.nsw, HA_GROUPS_SWITCHES);
	CHECK_INT(service.groups.live, HA_GROUPS_SWITCHES / 2 - 1);
	CHECK(ha_service_commit(&service, now, why, sizeof(why), &(bool) { false }));
	stop_service();
	settings.sw[2] = make_switch_info(100);
	settings.sw[2].configured = true;
	settings.nsw = 3;
	for (int i = 0; i < 2; i++) {
		start_service();
		CHECK_INT(service.groups.nsw, HA_GROUPS_SWITCHES);
		CHECK_INT(service.groups.live, HA_GROUPS_SWITCHES / 2 - 1);
		CHECK(ha_groups_switch_find(&service.groups, "r02"));
		CHECK(ha_groups_switch_find(&service.groups, "r100"));
		CHECK(!ha_groups_check(&service.groups));
		stop_service();
	}
	settings.nsw = 2;
}

static void no_line(int level, unsigned long flags, const char *file, int line, const char *fmt,
		    ...)
{
}

int main(void)
{
	ha_log_set_sink(no_line);
	strcpy(top, "/tmp/hawser-store-XXXXXX");
	CHECK(mkdtemp(top));
	snprintf(path, sizeof(path), "%s/db", top);
	ha_settings_default(&settings);
	settings.quotas.others = (struct ha_quota) { .groups = 1000, .slots = 1000000 };
	settings.nsw = 2;
	settings.sw[0] = (struct ha_switch_info) {
		.name = "s0", .address = 0x0a0000fe, .slots = 4096, .nserves = 1, .configured = true
	};
	settings.sw[1] =
		(struct ha_switch_info) { .name = "s1",
					  .address = 0x0a0001fe,
					  .slots = 2048,
					  .nserves = 2,
					  .serves = { { 0x0a000000, 8 }, { 0x0b000000, 8 } },
					  .configured = true,
					  .registers = true };
	random_restarts();
	disk_full();
	database_of_version_1();
	wrong_databases();
	settings_change();
	settings_take_an_address();
	settings_have_one_more();
	database_remove();
	CHECK(!rmdir(top));
	return 0;
}
