/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/controller/store.h"

#include "ina/frame/address.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define APPLICATION 0x4841494e /* "HAIN" */
#define VERSION 2

enum statement {
	BEGIN,
	COMMIT,
	GROUP,
	GROUP_DELETE,
	SWITCH,
	SWITCH_DELETE,
	EPOCHS_DELETE,
	EPOCH,
	SERIAL,
	STATEMENTS
};

static const char *const sql[STATEMENTS] = {
	[BEGIN] = "BEGIN IMMEDIATE",
	[COMMIT] = "COMMIT",
	[GROUP] = ("INSERT OR REPLACE INTO groups VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
		   "?, ?, ?, ?, ?)"),
	[GROUP_DELETE] = "DELETE FROM groups WHERE serial = ?",
	[SWITCH] = "INSERT OR REPLACE INTO switches VALUES (?, ?, ?, ?, ?, ?, ?)",
	[SWITCH_DELETE] = "DELETE FROM switches WHERE name = ?",
	[EPOCHS_DELETE] = "DELETE FROM epochs WHERE switch = ?",
	[EPOCH] = "INSERT OR REPLACE INTO epochs VALUES (?, ?, ?)",
	[SERIAL] = "INSERT OR REPLACE INTO numbers VALUES ('serial', ?)",
};

static const char schema[] =
	"BEGIN IMMEDIATE;"
	"CREATE TABLE switches (name TEXT PRIMARY KEY, address INTEGER NOT NULL, slots INTEGER NOT "
	"NULL,"
	" serves TEXT NOT NULL, configured INTEGER NOT NULL, registers INTEGER NOT NULL, "
	"incarnation INTEGER NOT NULL)"
	" WITHOUT ROWID;"
	"CREATE TABLE epochs (switch TEXT NOT NULL, id INTEGER NOT NULL, epoch INTEGER NOT NULL, "
	"PRIMARY KEY (switch, id))"
	" WITHOUT ROWID;"
	"CREATE TABLE groups (serial INTEGER PRIMARY KEY, switch TEXT NOT NULL, id INTEGER NOT "
	"NULL, epoch INTEGER NOT NULL,"
	" base INTEGER NOT NULL, len INTEGER NOT NULL, state INTEGER NOT NULL, lease_ms INTEGER "
	"NOT NULL,"
	" plain INTEGER NOT NULL, key INTEGER NOT NULL, created INTEGER NOT NULL, members BLOB NOT "
	"NULL,"
	" nonce BLOB NOT NULL, tenant TEXT NOT NULL, name TEXT NOT NULL, workers INTEGER NOT NULL, "
	"extended INTEGER NOT NULL,"
	" joined BLOB NOT NULL);"
	"CREATE TABLE numbers (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;"
	"PRAGMA application_id = 0x4841494e;"
	"PRAGMA user_version = 2;"
	"COMMIT;";

/* What version 1 did not keep. */
static const char from_1[] = "BEGIN IMMEDIATE;"
			     "ALTER TABLE groups ADD COLUMN workers INTEGER NOT NULL DEFAULT 0;"
			     "ALTER TABLE groups ADD COLUMN extended INTEGER NOT NULL DEFAULT 0;"
			     "ALTER TABLE groups ADD COLUMN joined BLOB NOT NULL DEFAULT '';"
			     "PRAGMA user_version = 2;"
			     "COMMIT;";

struct ha_store {
	sqlite3 *db;
	sqlite3_stmt *statement[STATEMENTS];
	bool open, failed; /* a transaction */
	char error[200];
};

static int record_error(struct ha_store *s)
{
	snprintf(s->error, sizeof(s->error), "%s", sqlite3_errmsg(s->db));
	s->failed = true;
	return -EIO;
}

/* ---- opening ---- */

static int64_t query_number(sqlite3 *db, const char *text)
{
	sqlite3_stmt *st = NULL;
	int64_t v = -1;

	if (sqlite3_prepare_v2(db, text, -1, &st, NULL) == SQLITE_OK &&
	    sqlite3_step(st) == SQLITE_ROW)
		v = sqlite3_column_int64(st, 0);
	sqlite3_finalize(st);
	return v;
}

static bool enable_wal(sqlite3 *db)
{
	sqlite3_stmt *st = NULL;
	bool is = false;

	if (sqlite3_prepare_v2(db, "PRAGMA journal_mode = WAL", -1, &st, NULL) == SQLITE_OK &&
	    sqlite3_step(st) == SQLITE_ROW)
		is = !strcmp((const char *)sqlite3_column_text(st, 0), "wal");
	sqlite3_finalize(st);
	return is;
}

/* NULL or what is wrong. */
static const char *prepare_database(struct ha_store *s)
{
	int64_t application, version;

	/* The lock is taken with the first access and kept. */
	if (sqlite3_exec(s->db, "PRAGMA locking_mode = EXCLUSIVE; PRAGMA trusted_schema = OFF",
			 NULL, NULL, NULL) ||
	    !enable_wal(s->db) ||
	    sqlite3_exec(s->db, "PRAGMA synchronous = FULL; BEGIN IMMEDIATE; COMMIT", NULL, NULL,
			 NULL))
		return sqlite3_errcode(s->db) == SQLITE_BUSY ? "another controller has it open"
							     : sqlite3_errmsg(s->db);
	application = query_number(s->db, "PRAGMA application_id");
	version = query_number(s->db, "PRAGMA user_version");
	if (!application && !version &&
	    !query_number(s->db, "SELECT count(*) FROM sqlite_schema")) {
		if (sqlite3_exec(s->db, schema, NULL, NULL, NULL))
			return sqlite3_errmsg(s->db);
	} else if (application != APPLICATION) {
		return "it is no database of a controller";
	} else if (version == 1) {
		if (sqlite3_exec(s->db, from_1, NULL, NULL, NULL))
			return sqlite3_errmsg(s->db);
	} else if (version != VERSION) {
		return "it was written by another version of the controller";
	}
	for (int i = 0; i < STATEMENTS; i++)
		if (sqlite3_prepare_v3(s->db, sql[i], -1, SQLITE_PREPARE_PERSISTENT,
				       &s->statement[i], NULL))
			return sqlite3_errmsg(s->db);
	return NULL;
}

struct ha_store *ha_store_open(const char *path, char *why, size_t size)
{
	struct ha_store *s = calloc(1, sizeof(*s));
	const char *wrong;

	if (!s) {
		snprintf(why, size, "no memory");
		return NULL;
	}
	if (sqlite3_open_v2(path, &s->db,
			    SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL))
		wrong = sqlite3_errmsg(s->db);
	else
		wrong = prepare_database(s);
	if (!wrong)
		return s;
	snprintf(why, size, "%s", wrong);
	ha_store_close(s);
	return NULL;
}

void ha_store_close(struct ha_store *s)
{
	if (!s)
		return;
	for (int i = 0; i < STATEMENTS; i++)
		sqlite3_finalize(s->statement[i]);
	sqlite3_close(s->db);
	free(s);
}

/* ---- writing ---- */

static int run_statement(struct ha_store *s, enum statement which)
{
	sqlite3_stmt *st = s->statement[which];
	int rc = sqlite3_step(st), err = rc == SQLITE_DONE ? 0 : record_error(s);

	sqlite3_reset(st);
	sqlite3_clear_bindings(st);
	return err;
}

/* The statement, inside a transaction; NULL after a failure. */
static sqlite3_stmt *begin_statement(struct ha_store *s, enum statement which)
{
	if (s->failed)
		return NULL;
	if (!s->open && run_statement(s, BEGIN))
		return NULL;
	s->open = true;
	return s->statement[which];
}

static void bind_text(sqlite3_stmt *st, int at, const char *value)
{
	sqlite3_bind_text(st, at, value, -1, SQLITE_STATIC);
}

int ha_store_group(struct ha_store *s, const struct ha_group_record *r)
{
	sqlite3_stmt *st = begin_statement(s, GROUP);
	int at = 1;

	if (!st)
		return -EIO;
	sqlite3_bind_int64(st, at++, (int64_t)r->serial);
	bind_text(st, at++, r->switch_name);
	sqlite3_bind_int64(st, at++, r->id);
	sqlite3_bind_int64(st, at++, r->epoch);
	sqlite3_bind_int64(st, at++, r->base);
	sqlite3_bind_int64(st, at++, r->len);
	sqlite3_bind_int64(st, at++, r->state);
	sqlite3_bind_int64(st, at++, r->lease_ms);
	sqlite3_bind_int64(st, at++, r->plain);
	sqlite3_bind_int64(st, at++, (int64_t)r->key);
	sqlite3_bind_int64(st, at++, (int64_t)r->created);
	sqlite3_bind_blob(st, at++, r->member, (int)(r->members * sizeof(r->member[0])),
			  SQLITE_STATIC);
	sqlite3_bind_blob(st, at++, r->nonce, r->nonce_len, SQLITE_STATIC);
	bind_text(st, at++, r->tenant);
	bind_text(st, at++, r->name);
	sqlite3_bind_int64(st, at++, r->workers);
	sqlite3_bind_int64(st, at++, r->extended);
	sqlite3_bind_blob(st, at++, r->joined, (int)(r->members * sizeof(r->joined[0])),
			  SQLITE_STATIC);
	return run_statement(s, GROUP);
}

int ha_store_group_delete(struct ha_store *s, uint64_t serial)
{
	sqlite3_stmt *st = begin_statement(s, GROUP_DELETE);

	if (!st)
		return -EIO;
	sqlite3_bind_int64(st, 1, (int64_t)serial);
	return run_statement(s, GROUP_DELETE);
}

int ha_store_switch(struct ha_store *s, const struct ha_switch *sw)
{
	char serves[HA_SWITCH_PREFIXES * (HA_PREFIX_TEXT + 1) + 1] = "", one[HA_PREFIX_TEXT];
	sqlite3_stmt *st = begin_statement(s, SWITCH);

	if (!st)
		return -EIO;
	for (unsigned i = 0; i < sw->info.nserves; i++) {
		strcat(serves, i ? "," : "");
		strcat(serves, ha_prefix_text(&sw->info.serves[i], one));
	}
	bind_text(st, 1, sw->info.name);
	sqlite3_bind_int64(st, 2, sw->info.address);
	sqlite3_bind_int64(st, 3, sw->info.slots);
	bind_text(st, 4, serves);
	sqlite3_bind_int64(st, 5, sw->info.configured);
	sqlite3_bind_int64(st, 6, sw->info.registers);
	sqlite3_bind_int64(st, 7, (int64_t)sw->incarnation);
	return run_statement(s, SWITCH);
}

int ha_store_switch_delete(struct ha_store *s, const char *name)
{
	sqlite3_stmt *st = begin_statement(s, SWITCH_DELETE);

	if (!st)
		return -EIO;
	bind_text(st, 1, name);
	if (run_statement(s, SWITCH_DELETE))
		return -EIO;
	bind_text(s->statement[EPOCHS_DELETE], 1, name);
	return run_statement(s, EPOCHS_DELETE);
}

int ha_store_epoch(struct ha_store *s, const char *switch_name, unsigned id, uint32_t epoch)
{
	sqlite3_stmt *st = begin_statement(s, EPOCH);

	if (!st)
		return -EIO;
	bind_text(st, 1, switch_name);
	sqlite3_bind_int64(st, 2, id);
	sqlite3_bind_int64(st, 3, epoch);
	return run_statement(s, EPOCH);
}

int ha_store_serial(struct ha_store *s, uint64_t serial)
{
	sqlite3_stmt *st = begin_statement(s, SERIAL);

	if (!st)
		return -EIO;
	sqlite3_bind_int64(st, 1, (int64_t)serial);
	return run_statement(s, SERIAL);
}

int ha_store_commit(struct ha_store *s)
{
	if (s->failed)
		return -EIO;
	if (!s->open)
		return 0;
	if (run_statement(s, COMMIT))
		return -EIO;
	s->open = false;
	return 0;
}

void ha_store_rollback(struct ha_store *s)
{
	if (!sqlite3_get_autocommit(s->db))
		sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
	s->open = s->failed = false;
}

const char *ha_store_error(const struct ha_store *s)
{
	return s->error;
}

/* ---- loading ---- */

static const char *read_text(sqlite3_stmt *st, int at)
{
	const char *value = (const char *)sqlite3_column_text(st, at);

	return value ? value : "";
}

static bool copy_text(char *to, size_t size, const char *from)
{
	return snprintf(to, size, "%s", from) < (int)size;
}

/* Number of a column, in bounds. */
static bool read_bounded_number(sqlite3_stmt *st, int at, int64_t least, int64_t most, int64_t *to)
{
	*to = sqlite3_column_int64(st, at);
	return *to >= least && *to <= most;
}

static bool address_taken(const struct ha_groups *g, uint32_t address)
{
	for (unsigned i = 0; i < g->nsw; i++)
		if (!g->sw[i]->gone && g->sw[i]->info.address == address)
			return true;
	return false;
}

static bool switch_take(sqlite3_stmt *st, struct ha_groups *g, uint64_t now)
{
	struct ha_switch_info info = { .configured = sqlite3_column_int(st, 4),
				       .registers = sqlite3_column_int(st, 5) };
	struct ha_switch *sw;
	int64_t address, slots;
	char serves[512], *save = NULL;

	if (!copy_text(info.name, sizeof(info.name), read_text(st, 0)) ||
	    !copy_text(serves, sizeof(serves), read_text(st, 3)) ||
	    !read_bounded_number(st, 1, 0, UINT32_MAX, &address) ||
	    !read_bounded_number(st, 2, 0, HA_BUDDY_SLOTS, &slots))
		return false;
	info.address = (uint32_t)address;
	info.slots = (uint32_t)slots;
	for (char *one = strtok_r(serves, ",", &save); one; one = strtok_r(NULL, ",", &save))
		if (info.nserves == HA_SWITCH_PREFIXES ||
		    !ha_prefix_parse(one, &info.serves[info.nserves++]))
			return false;
	sw = ha_groups_switch_find(g, info.name);
	if (!sw) {
		bool gone = info.configured || address_taken(g, info.address);

		/*
		 * Those that hold groups come first: what finds no room has none, and is not
		 * needed.
		 */
		sw = ha_groups_switch_restore(g, &info, now);
		if (!sw)
			return g->nsw == HA_GROUPS_SWITCHES;
		if (gone)
			ha_groups_switch_gone(g, sw, now);
	} else if (sw->info.address != info.address) {
		/* What it holds was for another machine. */
		sw->moved = true;
	}
	sw->incarnation = (uint64_t)sqlite3_column_int64(st, 6);
	return true;
}

static bool epoch_take(sqlite3_stmt *st, struct ha_groups *g, uint64_t now)
{
	struct ha_switch *sw = ha_groups_switch_find(g, read_text(st, 0));
	int64_t id, epoch;

	if (!read_bounded_number(st, 1, 1, HA_GROUP_IDS - 1, &id) ||
	    !read_bounded_number(st, 2, 0, UINT32_MAX, &epoch))
		return false;
	if (!sw)
		return g->nsw == HA_GROUPS_SWITCHES; /* one that found no room */
	sw->epoch[id] = (uint32_t)epoch;
	return true;
}

static bool bytes_take(sqlite3_stmt *st, int at, void *to, size_t size, size_t *len)
{
	*len = (size_t)sqlite3_column_bytes(st, at);
	if (*len > size)
		return false;
	if (*len)
		memcpy(to, sqlite3_column_blob(st, at), *len);
	return true;
}

static bool group_take(sqlite3_stmt *st, struct ha_groups *g, uint64_t now)
{
	struct ha_group_record r = { .serial = (uint64_t)sqlite3_column_int64(st, 0),
				     .plain = sqlite3_column_int(st, 8),
				     .key = (uint64_t)sqlite3_column_int64(st, 9),
				     .created = (uint64_t)sqlite3_column_int64(st, 10) };
	int64_t id, epoch, base, len, state, lease, workers;
	size_t members, nonce, joined;

	if (!copy_text(r.switch_name, sizeof(r.switch_name), read_text(st, 1)) ||
	    !read_bounded_number(st, 2, 1, 255, &id) ||
	    !read_bounded_number(st, 3, 0, UINT32_MAX, &epoch) ||
	    !read_bounded_number(st, 4, 0, HA_BUDDY_SLOTS, &base) ||
	    !read_bounded_number(st, 5, 0, HA_BUDDY_SLOTS, &len) ||
	    !read_bounded_number(st, 6, 0, 255, &state) ||
	    !read_bounded_number(st, 7, 1, UINT32_MAX, &lease) ||
	    !bytes_take(st, 11, r.member, sizeof(r.member), &members) ||
	    !bytes_take(st, 12, r.nonce, sizeof(r.nonce), &nonce) ||
	    members % sizeof(r.member[0]) ||
	    !copy_text(r.tenant, sizeof(r.tenant), read_text(st, 13)) ||
	    !copy_text(r.name, sizeof(r.name), read_text(st, 14)) ||
	    !read_bounded_number(st, 15, 0, HA_GROUP_WORKERS_MAX, &workers) ||
	    !bytes_take(st, 17, r.joined, sizeof(r.joined), &joined))
		return false;
	r.id = (uint8_t)id;
	r.epoch = (uint32_t)epoch;
	r.base = (uint32_t)base;
	r.len = (uint32_t)len;
	r.state = (uint8_t)state;
	r.lease_ms = (uint32_t)lease;
	r.members = (uint8_t)(members / sizeof(r.member[0]));
	r.nonce_len = (uint8_t)nonce;
	r.workers = (uint8_t)workers;
	r.extended = sqlite3_column_int(st, 16);
	return ha_groups_restore(g, &r, now);
}

static bool serial_take(sqlite3_stmt *st, struct ha_groups *g, uint64_t now)
{
	g->serial = (uint64_t)sqlite3_column_int64(st, 0);
	return true;
}

static const struct {
	const char *sql, *what;
	bool (*take)(sqlite3_stmt *st, struct ha_groups *g, uint64_t now);
} loads[] = {
	{ "SELECT * FROM switches ORDER BY name IN (SELECT switch FROM groups) DESC, name",
	  "a switch", switch_take },
	{ "SELECT * FROM epochs", "an epoch", epoch_take },
	{ "SELECT value FROM numbers WHERE name = 'serial'", "the last serial", serial_take },
	{ "SELECT * FROM groups ORDER BY serial", "a group", group_take },
};

int ha_store_load(struct ha_store *s, struct ha_groups *g, uint64_t now, char *why, size_t size)
{
	for (size_t i = 0; i < sizeof(loads) / sizeof(loads[0]); i++) {
		sqlite3_stmt *st = NULL;
		int rc = sqlite3_prepare_v2(s->db, loads[i].sql, -1, &st, NULL);

		if (rc == SQLITE_OK)
			while ((rc = sqlite3_step(st)) == SQLITE_ROW)
				if (!loads[i].take(st, g, now))
					break;
		sqlite3_finalize(st);
		if (rc == SQLITE_ROW) {
			snprintf(why, size, "%s in it contradicts the rest", loads[i].what);
			return -EINVAL;
		}
		if (rc != SQLITE_DONE) {
			snprintf(why, size, "%s", sqlite3_errmsg(s->db));
			return -EIO;
		}
	}
	return 0;
}
