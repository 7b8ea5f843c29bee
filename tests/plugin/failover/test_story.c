/* SPDX-License-Identifier: BSD-3-Clause */
/* What the operator gets to read: before a fault, at one, and after; in the log, as events, in `ha
 * status`. */
#include "base/check.h"
#include "tests/plugin/failover/duel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * Nothing happens: protected, and not one warning. A software NIC whose process gets no processor
 * does not answer; so the time-outs are the longest of which none is a warning itself.
 */
static void nothing_happens(void)
{
	struct duel d;

	duel_open(&d, &(const struct duel_setup) {
			      .no_warning = true,
			      .env = { "HA_NCCL_SILENCE_MS=0", "HA_NCCL_QP_TIMEOUT=19",
				       "HA_NCCL_RTO_MS=60000", "HA_NCCL_HEARTBEAT_MS=60000" } });
	for (int end = 0; end < ENDS; end++) {
		duel_await_events(
			&d, end, EVENT("protected"),
			"\"text\":\"soft0:1 ⇄ standby soft1:1, against the loss of a NIC\"", 1);
		HOLDS(&d, duel_logged(&d, end, "protected: soft0:1 ⇄ standby soft1:1") == 1,
		      "the log of end %d", end);
	}
	duel_flow(&d, 200);
	for (int end = 0; end < ENDS; end++)
		HOLDS(&d, !duel_events(&d, end, EVENT("suspected"), NULL),
		      "end %d suspects somebody", end);
	duel_close(&d);
}

/* The number of an end's first event with these texts. */
static double await_number(struct duel *d, enum duel_end end, const char *a, const char *b)
{
	char line[2048];

	duel_await_events(d, end, a, b, 1);
	HOLDS(d, duel_event(d, end, a, b, line, sizeof(line)), "%s", a);
	return duel_number(line, "number");
}

/* Protected may be before recovered: another rail over that NIC can be up first. */
static void in_order(struct duel *d, enum duel_end end)
{
	const double order[] = {
		await_number(d, end, EVENT("connected"), NULL),
		await_number(d, end, EVENT("suspected"), "\"rail\":0"),
		await_number(d, end, EVENT("fenced"), "\"rail\":0"),
		await_number(d, end, EVENT("failed_over"), "\"rail\":0"),
	};
	const double last[] = {
		await_number(d, end, EVENT("recovered"), "\"rail\":0"),
		await_number(d, end, EVENT("protected"),
			     "soft1:1 ⇄ standby soft0:1, against the loss of a NIC\""),
	};

	for (int i = 1; i < 4; i++)
		HOLDS(d, order[i - 1] < order[i],
		      "end %d: step %d of the story is event %.0f, the next one %.0f", end, i,
		      order[i - 1], order[i]);
	for (int i = 0; i < 2; i++)
		HOLDS(d, order[3] < last[i], "end %d: failed over is event %.0f, what follows %.0f",
		      end, order[3], last[i]);
}

/* After a failover. The page is written a moment after the event. */
static struct ha_status_connection await_protection(struct duel *d, enum duel_end end)
{
	struct duel_wait wait = duel_wait("the page to say that it is protected");
	struct ha_status_connection c = duel_connection(d, end);

	while (!c.failovers || c.protection != HA_PROTECTION_YES) {
		duel_pause(d, &wait);
		c = duel_connection(d, end);
	}
	return c;
}

static void await_status(struct duel *d, enum duel_end end, const char *words)
{
	struct duel_wait wait = duel_wait(words);
	char text[65536];

	for (duel_status(d, end, text, sizeof(text)); !strstr(text, words);
	     duel_status(d, end, text, sizeof(text)))
		duel_pause(d, &wait);
}

static void check_figures(struct duel *d, enum duel_end end)
{
	struct ha_status_connection c = await_protection(d, end);
	char line[2048];

	HOLDS(d, duel_event(d, end, EVENT("failed_over"), "\"rail\":0", line, sizeof(line)),
	      "end %d", end);
	HOLDS(d, duel_number(line, "requests") >= 0 && duel_number(line, "bytes") >= 0, "%s", line);
	HOLDS(d, duel_number(line, "stall_ns") > 0 && duel_number(line, "registration_ns") >= 0,
	      "%s", line);
	HOLDS(d, c.failovers == 1 && c.stall_worst > 0 && !c.lost, "end %d's page", end);
	HOLDS(d, c.replayed_requests == (uint64_t)duel_number(line, "requests"), "end %d's page",
	      end);
	HOLDS(d, c.replayed_bytes == (uint64_t)duel_number(line, "bytes"), "end %d's page", end);
	HOLDS(d, c.protection == HA_PROTECTION_YES, "end %d's page", end);
}

static void cut_and_healed(void)
{
	char text[65536];
	struct duel d;

	duel_open(&d, &(const struct duel_setup) { .env = { DUEL_LATE_TIMEOUTS } });
	for (int end = 0; end < ENDS; end++)
		duel_await_events(&d, end, EVENT("protected"), "soft0:1 ⇄ standby soft1:1", 1);
	duel_cut(&d, RECEIVER, 0);
	duel_await_events(&d, RECEIVER, EVENT("device"), CAUSE("port_down"), 1);
	duel_flow(&d, 50);
	duel_heal(&d, RECEIVER, 0);
	for (int end = 0; end < ENDS; end++) {
		in_order(&d, end);
		check_figures(&d, end);
		await_status(&d, end, "soft1:1 ⇄ standby soft0:1");
		duel_status(&d, end, text, sizeof(text));
		HOLDS(&d, strstr(text, "1 failovers") && strstr(text, "failed_over"), "end %d: %s",
		      end, text);
		HOLDS(&d, !strstr(text, "LOST"), "end %d's ha status: %s", end, text);
	}
	HOLDS(&d, duel_events(&d, RECEIVER, EVENT("device"), CAUSE("port_up")) == 1,
	      "the port is back");
	duel_close(&d);
}

/* One end has one NIC only: the other's two stand by for each other, and both ends say what that
 * protects against. */
static void no_second(void)
{
	struct duel d;

	duel_open(&d, &(const struct duel_setup) { .env = { DUEL_LATE_TIMEOUTS },
						   .env_of[RECEIVER] = { "NCCL_IB_HCA=soft0" } });
	duel_await_events(&d, SENDER, EVENT("protected"),
			  "soft0:1 ⇄ standby soft1:1, against the loss of a NIC here, not there",
			  1);
	duel_await_events(&d, RECEIVER, EVENT("protected"),
			  "soft0:1 ⇄ standby soft0:1, against the loss of a NIC there, not here",
			  1);
	await_status(&d, SENDER, " nic here ");
	await_status(&d, RECEIVER, " nic there ");
	duel_cut(&d, SENDER, 0);
	duel_flow(&d, 50);
	duel_close(&d);
}

/* Events, status and its JSON say so, at both ends. */
static void survives_switch(struct duel *d)
{
	char json[65536];

	for (int end = 0; end < ENDS; end++) {
		duel_await_events(d, end, EVENT("protected"),
				  "against the loss of a NIC or a leaf switch\"", 1);
		await_status(d, end, " switch ");
		duel_status_json(d, end, json, sizeof(json));
		HOLDS(d, strstr(json, "\"protected_against\": \"switch\""), "%s", json);
	}
}

/* Rail and plane of every NIC are known: what stands by is on another leaf switch, too. */
static void switch_apart(void)
{
	const struct duel_setup setup = { .env = { "NCCL_IB_HCA==soft0:1:0,soft1:1:1",
						   DUEL_LATE_TIMEOUTS } };
	struct duel d;

	duel_open(&d, &setup);
	survives_switch(&d);
	duel_close(&d);
}

/* ---- the file of `ha switches` ---- */

/* It says on which switch soft0 and soft1 are; `variable` becomes the path, for the environment. */
static void write_switches(const char *first, const char *second, char *variable, size_t size)
{
	char path[] = "/tmp/hawser-switches-XXXXXX";
	int fd = mkstemp(path);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w");

	CHECK(f);
	fprintf(f,
		"# hawser switches 1\nsoft0:1 mac:%s swp1 lldpd %s\nsoft1:1 mac:%s swp2 lldpd %s\n",
		first, first, second, second);
	fclose(f);
	snprintf(variable, size, "HA_NCCL_SWITCHES=%s", path);
}

static void remove_switches(const char *variable)
{
	CHECK_INT(unlink(strchr(variable, '=') + 1), 0);
}

/* NCCL_IB_HCA names no rail, and the file two switches: what stands by is on the other. */
static void switches_apart(void)
{
	char variable[64];
	struct duel d;

	write_switches("leaf1", "leaf2", variable, sizeof(variable));
	duel_open(&d, &(const struct duel_setup) { .env = { variable, DUEL_LATE_TIMEOUTS } });
	survives_switch(&d);
	duel_close(&d);
	remove_switches(variable);
}

/* All on one: no standby avoids it, and that is said with its name. */
static void switch_shared(void)
{
	char variable[64];
	struct duel d;

	write_switches("leaf1", "leaf1", variable, sizeof(variable));
	duel_open(&d, &(const struct duel_setup) { .env = { variable, DUEL_LATE_TIMEOUTS } });
	for (int end = 0; end < ENDS; end++) {
		duel_await_events(&d, end, EVENT("protected"), "against the loss of a NIC\"", 1);
		await_status(&d, end, " nic ");
	}
	HOLDS(&d,
	      duel_logged(&d, SENDER, "no standby avoids the leaf switch leaf1 (mac:leaf1)") == 1,
	      "the switch is not named");
	duel_close(&d);
	remove_switches(variable);
}

/* Rails at one end, switches at the other: nothing is known of what they share. */
static void switch_and_rail(void)
{
	char variable[64];
	struct duel d;

	write_switches("leaf1", "leaf2", variable, sizeof(variable));
	duel_open(&d, &(const struct duel_setup) {
			      .env = { DUEL_LATE_TIMEOUTS },
			      .env_of = { [SENDER] = { variable },
					  [RECEIVER] = { "NCCL_IB_HCA==soft0:1:0,soft1:1:1" } } });
	for (int end = 0; end < ENDS; end++)
		duel_await_events(&d, end, EVENT("protected"), "against the loss of a NIC\"", 1);
	duel_close(&d);
	remove_switches(variable);
}

/* Another user's file is not read, and the log says whose turn it is. */
static void switches_of_another(void)
{
	char variable[64];
	struct duel d;

	if (geteuid()) {
		printf("skipped: only root can give a file to another user\n");
		exit(77);
	}
	write_switches("leaf1", "leaf2", variable, sizeof(variable));
	CHECK_INT(chown(strchr(variable, '=') + 1, 12345, 0), 0);
	duel_open(&d, &(const struct duel_setup) { .env = { variable, DUEL_LATE_TIMEOUTS } });
	for (int end = 0; end < ENDS; end++) {
		duel_await_events(&d, end, EVENT("protected"), "against the loss of a NIC\"", 1);
		HOLDS(&d, duel_logged(&d, end, "is not read: it is another user's") == 1,
		      "no line, or several");
	}
	duel_close(&d);
	remove_switches(variable);
}

static const struct duel_test tests[] = {
	{ "quiet", nothing_happens },
	{ "cut_and_healed", cut_and_healed },
	{ "no_second", no_second },
	{ "switch_apart", switch_apart },
	{ "switches_apart", switches_apart },
	{ "switch_shared", switch_shared },
	{ "switch_and_rail", switch_and_rail },
	{ "switches_of_another", switches_of_another },
};

int main(int argc, char **argv)
{
	return duel_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
