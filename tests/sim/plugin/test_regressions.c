/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_regressions.c - what the simulator has found, each as a scenario of its own
 *
 * Written out, not as seeds, whose meaning changes with the generator. Several keys each, because
 * the dice of the two threads decide whether a race is met.
 */
#include "base/check.h"
#include "sim/plugin/faults.h"
#include "sim/plugin/hunt.h"
#include "sim/plugin/promise.h"
#include "tests/sim/plugin/plain.h"

#define KEYS 24

static void must_hold(const struct sim_scenario *sc, const char *what)
{
	struct sim_result r;

	sim_run_apart(sc, SIM_SOUND, &r);
	if (r.finding == SIM_NOTHING)
		return;
	fprintf(stderr, "%s, key %llu: %s: %s\n", what, (unsigned long long)sc->seed,
		sim_finding_name(r.finding), r.text);
	sim_scenario_print(sc, stderr);
	exit(1);
}

/* The sender is done and says BYE while the receiver still waits for the flush of the last
 * message. */
static void flush_outlives_bye(uint64_t key)
{
	struct sim_scenario sc;

	sim_plain(&sc, key);
	sc.conn[0].gpu = true;
	sc.oob.latency_ns = 1 * US;
	sc.thread.gap_max_ns = 100 * US;
	must_hold(&sc, "a flush at the peer's BYE");
}

/* A sender that waits for its first clear-to-send has no request to test; its receiver's machine
 * dies, the socket says nothing. */
static void probe_without_requests(uint64_t key)
{
	struct sim_scenario sc;

	sim_plain(&sc, key);
	sc.conn[0].start_ns[0] = 0;
	sim_plain_fault(&sc, "power", 1, 150 * US + key * 10 * US, 0);
	must_hold(&sc, "a probe without requests");
}

/* A port that is back before the queue pair gives up ends nothing where there is no failover. */
static void flap_without_failover(uint64_t key)
{
	struct sim_scenario sc;

	sim_plain(&sc, key);
	sc.host[key % 2].backup = false;
	sim_plain_fault(&sc, "flap", key / 2 % 2, 100 * US + key * 20 * US, 5 * MS);
	must_hold(&sc, "a short flap without failover");
}

/* A buffer is registered when its device has just died: the other path has it. */
static void buffer_on_a_dead_device(uint64_t key)
{
	struct sim_scenario sc;

	sim_plain(&sc, key);
	sc.ndevices[0] = sc.ndevices[1] = 2;
	sc.conn[0].reg_each = true;
	sc.conn[0].think_ns = 50 * US;
	sim_plain_fault(&sc, "kill", key % 2, 500 * US + key * 50 * US, 0);
	must_hold(&sc, "a buffer on a dead device");
}

/* A process is stopped for longer than the soft time-out: what it had posted before says nothing
 * about the path. */
static void stopped_process(uint64_t key)
{
	struct sim_scenario sc;

	sim_plain(&sc, key);
	sc.host[0].backup = false; /* a false alarm is the end */
	sc.conn[0].think_ns = 100 * US;
	sim_plain_fault(&sc, "stall", key % 2, 200 * US + key * 20 * US, 1400 * MS);
	must_hold(&sc, "a process that was stopped");
}

/* GPU memory is registered on a device that has just died; its flushes are needed on the other
 * one. */
static void flushes_registered_on_a_dead_device(uint64_t key)
{
	struct sim_scenario sc;

	sim_plain(&sc, key);
	sc.ndevices[0] = sc.ndevices[1] = 2;
	sc.conn[0].gpu = true;
	sim_plain_fault(&sc, "kill", 1, 100 * US + key * 8 * US, 0);
	must_hold(&sc, "GPU memory on a dead device");
}

/* Completions show late, when the senders have gone; the driver, which other connections keep busy,
 * sees them before NCCL asks and ends the connection, and then comes the flush. */
static void flush_after_bye(uint64_t key)
{
	struct sim_scenario sc;

	sim_plain(&sc, key);
	sc.oob.latency_ns = 1 * US;
	sc.thread.gap_min_ns = 200 * US;
	sc.thread.gap_max_ns = 800 * US;
	sc.conn[0].gpu = true;
	sc.conn[0].messages = sc.conn[0].window = 8;
	sc.nconns = 8;
	for (unsigned i = 1; i < sc.nconns; i++) {
		sc.conn[i] = sc.conn[0];
		sc.conn[i].key += i;
	}
	sim_plain_fault(&sc, "completion-delay", 1, 150 * US, 10 * MS);
	must_hold(&sc, "a flush after BYE");
}

/* A NIC dies with data that it has acknowledged and not placed: with HA_NCCL_ACK=memory no send has
 * completed on its word. */
static void memory_knows(uint64_t key)
{
	struct sim_scenario sc;

	sim_plain(&sc, key);
	sc.ndevices[0] = sc.ndevices[1] = 2;
	sc.host[key % 2].ack_memory = true;
	sim_plain_fault(&sc, "kill-acked", 1, 300 * US + key * 10 * US, 100 * US);
	must_hold(&sc, "acknowledged, not placed");
}

/* A standby that has failed often comes back all the same: only one of the two ends may make the
 * other wait. */
static void back_offs_agree(uint64_t key)
{
	struct sim_scenario sc;

	sim_plain(&sc, key);
	sc.settings.timeout = 14;
	sc.ndevices[0] = sc.ndevices[1] = 2;
	sc.conn[0].stays = true;
	sim_plain_fault(&sc, "black-hole", 1, 300 * US, 1173 * MS);
	sim_plain_fault(&sc, "flapping", 1, 4 * MS, 850 * MS);
	sc.fault[1].dev = 1;
	sc.fault[1].amount = 100 * MS;
	must_hold(&sc, "back-offs of the two ends");
}

/* The standby's path is sound again but not tried yet, for it has failed often, when the other one
 * goes. */
static void no_path_hurries(uint64_t key)
{
	struct sim_scenario sc;

	sim_plain(&sc, key);
	sc.ndevices[0] = sc.ndevices[1] = 2;
	sc.host[0].max_retries = sc.host[1].max_retries = 4;
	sc.conn[0].stays = true;
	sim_plain_fault(&sc, "black-hole", 0, 5 * MS, 7000 * MS);
	sc.fault[0].dev = 1;
	sim_plain_fault(&sc, "kill", key % 2, 7050 * MS + key * 50 * MS, 0);
	must_hold(&sc, "no path but one that waits");
}

/* The receiver's rail is up again with the first ping; then the sockets go, and the sender, whose
 * rail is not up yet, gives up. The receiver's heartbeat must find out. */
static void up_at_one_end(uint64_t key)
{
	struct sim_scenario sc;

	sim_plain(&sc, key);
	sc.wire.latency_ns = 15 * US;
	sc.conn[0].think_ns = 1 * MS;
	sim_plain_fault(&sc, "qp-error", 0, 2 * MS, 0);
	sim_plain_fault(&sc, "oob-reset", 1, 2 * MS + key * 40 * US, 0);
	sc.fault[1].rx = true;
	must_hold(&sc, "up at one end only");
}

/* A path is rebuilt while nothing else asks for the drivers: each must know by itself when to look
 * again. */
static void nobody_else_wakes(uint64_t key)
{
	struct sim_scenario sc;

	sim_plain(&sc, key);
	sc.thread.gap_max_ns = 500 * US;
	sc.host[0].max_retries = sc.host[1].max_retries = 4;
	sc.conn[0].think_ns = 1 * MS;
	sim_plain_fault(&sc, "qp-error", key % 2, 1 * MS + key * 100 * US, 0);
	sim_plain_fault(&sc, "cut", key / 2 % 2, 3 * MS, 10 * MS);
	must_hold(&sc, "drivers that nobody wakes");
}

/* Both paths come up at about the same time, and each end finds another one first: the receiver has
 * registered nothing on the sender's. */
static void roles_differ(uint64_t key)
{
	struct sim_scenario sc;

	sim_plain(&sc, key);
	sc.ndevices[0] = sc.ndevices[1] = 2;
	sc.oob.latency_ns = 100 * US;
	sc.conn[0].think_ns = 1 * MS;
	sim_plain_fault(&sc, "cut", 0, 1500 * US, 13 * MS);
	sim_plain_fault(&sc, "flap", 0, 2000 * US, 16 * MS);
	sc.fault[1].dev = 1;
	sim_plain_fault(&sc, "mute", 0, 5700 * US, 12 * MS + key * 200 * US);
	sc.fault[2].rx = true;
	must_hold(&sc, "the two ends differ about roles");
}

/* A receiver's NIC dies with completions that it holds back, of data that it has acknowledged (seed
 * 1004617). With HA_NCCL_ACK=nic that is lost for good, and an error is excused from the death on;
 * with memory nothing is. */
static void dies_with_completions(uint64_t key)
{
	struct sim_scenario sc;

	sim_plain(&sc, key);
	sc.ndevices[0] = sc.ndevices[1] = 2;
	sc.conn[0].think_ns = 50 * US;
	sim_plain_fault(&sc, "completion-delay", 1, 300 * US + key * 10 * US, 50 * MS);
	sim_plain_fault(&sc, key % 3 ? "kill" : "doorbell", 1, 800 * US + key * 10 * US, 0);
	sc.fault[1].amount = 1 + key % 6;
	must_hold(&sc, "dies with completions");
	sc.host[key % 2].ack_memory = true;
	must_hold(&sc, "dies with completions, ACK=memory");
}

/* The excuse is that fault's, in that mode, from that moment on, and no other's. */
static void excuse_is_narrow(uint64_t key)
{
	struct sim_scenario sc;
	struct sim_promise p;

	sim_plain(&sc, key);
	sc.ndevices[0] = sc.ndevices[1] = 2;
	sim_plain_fault(&sc, "completion-delay", 1, 1 * MS, 10 * MS);
	sim_plain_fault(&sc, key % 2 ? "kill" : "doorbell", 1, 5 * MS, 0);
	sim_promise_make(&sc, 0, &p);
	CHECK(p.not_placed == 5 * MS);
	sc.host[key / 2 % 2].ack_memory = true;
	sim_promise_make(&sc, 0, &p);
	CHECK(p.not_placed == SIM_NEVER && sim_promise_survives(&p));
	sc.host[key / 2 % 2].ack_memory = false;
	sc.fault[1].at = 11 * MS; /* all was shown by then */
	sim_promise_make(&sc, 0, &p);
	CHECK(p.not_placed == SIM_NEVER && sim_promise_survives(&p));
	sc.fault[1].at = 5 * MS;
	sc.fault[0].dev = 1; /* another device held its completions */
	sim_promise_make(&sc, 0, &p);
	CHECK(p.not_placed == SIM_NEVER && sim_promise_survives(&p));
	sc.fault[0].dev = 0;
	sc.fault[0].host = sc.fault[1].host = 0; /* the sender's */
	sim_promise_make(&sc, 0, &p);
	CHECK(p.not_placed == SIM_NEVER && sim_promise_survives(&p));
}

/* Connections share a receive queue that the device limits to fewer entries than each of them would
 * hold back. */
static void short_shared_queue(uint64_t key)
{
	struct sim_scenario sc;

	sim_plain(&sc, key);
	sc.limits.max_srq_wr = (int)(4 + key * 4);
	sc.nconns = 8;
	sc.conn[0].messages = 40;
	for (unsigned i = 1; i < sc.nconns; i++) {
		sc.conn[i] = sc.conn[0];
		sc.conn[i].key += i;
	}
	must_hold(&sc, "a short shared receive queue");
}

/* The receiver's port comes back while the sender, which sees nothing of it, waits half a minute
 * for its next try. */
static void port_back_at_the_receiver(uint64_t key)
{
	const uint64_t back = UINT64_C(36500) * MS + key / 3 * 750 * MS;
	struct sim_scenario sc;
	struct sim_result r;

	if (key % 3)
		return; /* a long story each */
	sim_plain(&sc, key);
	sc.ndevices[0] = sc.ndevices[1] = 2;
	sc.conn[0].stays = true;
	sc.wire.shared_nics = true; /* a better standby may take a second */
	sim_plain_fault(&sc, "cut", 1, 5 * MS, back - 5 * MS);
	sc.fault[0].dev = key % 2; /* a path that carried data, a standby */
	sim_run_apart(&sc, SIM_SOUND, &r);
	must_hold(&sc, "a port that is back at the receiver");
	if (r.ns > back + 3000 * MS) {
		fprintf(stderr,
			"a port that is back at the receiver, key %llu: whole %.1f s later\n",
			(unsigned long long)key, (double)(r.ns - back) / 1e9);
		exit(1);
	}
}

/* The same while the sender's offer of a new incarnation waits to be said again, twice as long each
 * time: what is back is given to the offer, too. */
static void port_back_under_an_offer(uint64_t key)
{
	const uint64_t back = 305 * MS + key * 137 * MS;
	struct sim_scenario sc;
	struct sim_result r;

	sim_plain(&sc, key);
	sc.ndevices[0] = sc.ndevices[1] = 2;
	sc.conn[0].stays = true;
	sc.wire.shared_nics = true; /* a better standby may take a second */
	sim_plain_fault(&sc, "cut", 1, 5 * MS, back - 5 * MS);
	sc.fault[0].dev = key % 2;
	sim_run_apart(&sc, SIM_SOUND, &r);
	must_hold(&sc, "a port that is back under an offer");
	if (r.ns > back + 100 * MS) {
		fprintf(stderr,
			"a port that is back under an offer, key %llu: whole %.3f s later\n",
			(unsigned long long)key, (double)(r.ns - back) / 1e9);
		exit(1);
	}
}

/* A process dies with control messages unread: its kernel resets the socket, and the rails are gone
 * with it. The log says whose fault it was. */
static void dies_with_messages_unread(uint64_t key)
{
	struct sim_scenario sc;
	struct sim_result r;
	char *text = NULL;
	size_t size;
	FILE *log;

	sim_plain(&sc, key);
	sc.ndevices[0] = sc.ndevices[1] = 1 + key / 2 % 2;
	sc.conn[0].messages = 2000;
	sim_plain_fault(&sc, "stall", key % 2, 2 * MS, 20 * MS);
	sim_plain_fault(&sc, "cut", !(key % 2), 3 * MS, 1000 * MS);
	sim_plain_fault(&sc, "exit", key % 2, 8 * MS + key * 100 * US, 0);
	must_hold(&sc, "a process that dies with messages unread");
	sim_world_run(&sc, SIM_SOUND, false, &r);
	log = open_memstream(&text, &size);
	sim_world_print_log(log);
	fclose(log);
	CHECK(strstr(text, "socket is lost: Connection reset") &&
	      strstr(text, "process or machine is gone"));
	free(text);
}

/* The receiver has everything and closes; its BYE is lost with the sockets, and its NIC's last
 * acknowledgement on the way (seed 40024497). The sender cannot know that all arrived, and may say
 * so; but only then. */
static void bye_lost(uint64_t key)
{
	struct sim_scenario sc;

	sim_plain(&sc, key);
	sc.host[0].backup = key % 2;
	sim_plain_fault(&sc, "ack-loss", 1, 0, 20 * MS);
	sc.fault[0].amount = 300000;
	sim_plain_fault(&sc, "oob-reset", 0, 600 * US, 0);
	must_hold(&sc, "a BYE that is lost");
	CHECK(sim_promise_bye_lost(&sc, 0, 0, 1 * MS, 2 * MS));
	/* the sockets were still there; without failover nobody reads BYE from them (seed 7005281)
	 */
	CHECK(sim_promise_bye_lost(&sc, 0, 0, 1 * MS, 500 * US) == !sc.host[0].backup);
	CHECK(sim_promise_bye_lost(&sc, 0, 1, 1 * MS, 2 * MS));
	/* what was lost was repeated long ago */
	CHECK(!sim_promise_bye_lost(&sc, 0, 1, 60 * MS, 61 * MS));
	sc.fault[0].dev = 1;
	CHECK(!sim_promise_bye_lost(&sc, 0, 1, 1 * MS, 2 * MS)); /* another device's packets */
}

/* No packet is lost, but what the receiver still owes goes with its queue pair: its last word with
 * HA_NCCL_ACK=memory (seed 80062311), its NIC's last acknowledgement without (seeds 400009538 and
 * 400011619). */
static void last_count_lost(uint64_t key)
{
	struct sim_scenario sc;

	sim_plain(&sc, key);
	sc.host[key % 2].ack_memory = true;
	sc.conn[0].messages = 3;
	sim_plain_fault(&sc, "oob-silence", 1, 150 * US + key * 10 * US, 0);
	must_hold(&sc, "a last count that is lost");
	CHECK(sim_promise_bye_lost(&sc, 0, 0, 1 * MS, 2 * MS));
	CHECK(!sim_promise_bye_lost(&sc, 0, 1, 1 * MS, 2 * MS)); /* a receiver waits for no word */
	sc.host[key % 2].ack_memory = false;
	must_hold(&sc, "a last acknowledgement that is lost");
	CHECK(sim_promise_bye_lost(&sc, 0, 0, 1 * MS, 2 * MS));
	sc.nfaults = 0;
	CHECK(!sim_promise_bye_lost(&sc, 0, 0, 1 * MS, 2 * MS)); /* the BYE arrives */
}

/* Without failover a buffer cannot be registered on a device that has just died: NCCL receives an
 * error from that call, while the other rail still brings data for what was posted before. That is
 * the connection's until it is closed (seed 60088082). */
static void registration_refused(uint64_t key)
{
	struct sim_scenario sc;

	sim_plain(&sc, key);
	sc.host[1].backup = false;
	sc.ndevices[0] = sc.ndevices[1] = 2;
	sc.conn[0].nrails[0] = sc.conn[0].nrails[1] = 2;
	sc.conn[0].rail[0][1] = sc.conn[0].rail[1][1] = 1;
	sc.conn[0].messages = 200;
	sc.conn[0].window = 8;
	sc.conn[0].max_size = 600; /* on the first rail alone */
	sc.conn[0].group_max = 4;
	sc.conn[0].reg_each = true;
	sim_plain_fault(&sc, "kill", 1, 600 * US + key * 30 * US, 0);
	sc.fault[0].dev = 1;
	must_hold(&sc, "a registration that is refused");
}

/* A receiver's path is slow while its standby's NIC fails and the standby moves; when
 * clear-to-sends with the old NIC's keys have arrived, and before the new one's are there, the data
 * path is lost. */
static void key_of_a_failed_nic(uint64_t key)
{
	struct sim_scenario sc;
	struct sim_conn_spec *c = &sc.conn[0];

	sim_plain(&sc, key);
	sc.ndevices[0] = sc.ndevices[1] = 3;
	sc.host[0].eager = sc.host[1].eager = true;
	sc.settings.timeout = 14;
	c->messages = 400;
	c->think_ns = 1 * MS;
	sim_plain_fault(&sc, "delay", 1, 10 * MS, 390 * MS);
	sc.fault[0].amount = 400 * MS;
	sim_plain_fault(&sc, "kill", 1, 11 * MS, 0);
	sc.fault[1].dev = 1;
	sim_plain_fault(&sc, "cut", 0, 410200 * US + key % 12 * 80 * US, 300 * MS);
	must_hold(&sc, "the key of a failed NIC");
}

/* Three queue pairs on one device and a standby: the standby takes over, the others come back
 * without a share, and the standby goes: all three must carry again, not the first alone (seed
 * 910000609). */
static void standby_lost_again(uint64_t key)
{
	struct sim_scenario sc;
	struct sim_conn_spec *c = &sc.conn[0];

	sim_plain(&sc, key);
	sc.ndevices[0] = sc.ndevices[1] = 2;
	c->nrails[0] = c->nrails[1] = 3;
	c->messages = 400;
	c->think_ns = 1 * MS;
	c->stays = true;
	sim_plain_fault(&sc, "cut", key % 2, 2 * MS + key * 10 * US, 20 * MS);
	sim_plain_fault(&sc, "cut", key / 2 % 2, 260 * MS + key * 10 * US, 20 * MS);
	sc.fault[1].dev = 1;
	must_hold(&sc, "a standby that is lost again");
}

/* One NIC of the sender is away, and every spare comes up on the other, further standbys with them;
 * when it is back, a standby must be on it (seed 3507 of switches that fail). */
static void further_make_room(uint64_t key)
{
	struct sim_scenario sc;
	struct sim_conn_spec *c = &sc.conn[0];

	sim_plain(&sc, key);
	sc.ndevices[0] = 2;
	sc.ndevices[1] = 5;
	c->nrails[0] = c->nrails[1] = 5;
	for (unsigned i = 0; i < 5; i++)
		c->rail[1][i] = 1;
	c->messages = 400;
	c->think_ns = 1 * MS;
	c->stays = true;
	sim_plain_fault(&sc, "cut", 0, 10 * US, 700 * MS + key * MS);
	sc.fault[0].dev = 1;
	must_hold(&sc, "further standbys make room for a better one");
}

/*
 * A path is back, but one host stands still, so that nobody may use it before the other end's time
 * limit has passed: its standby had never been up, or is lost meanwhile (seed 1251, all but the
 * faults that matter left out).
 */
static void back_while_a_host_stalls(uint64_t key)
{
	struct sim_scenario sc;

	sim_plain(&sc, key);
	sc.ndevices[0] = sc.ndevices[1] = 2;
	sc.settings.timeout = 8;
	sc.oob.latency_ns = 1 * MS;
	sc.host[1].max_retries = 4; /* 1.5 s */
	sc.conn[0].messages = 40;
	sc.conn[0].think_ns = 1 * MS;
	sim_plain_fault(&sc, "black-hole", 0, 2500 * US, 27 * MS);
	sim_plain_fault(&sc, "stall", 0, 7 * MS + key * 100 * US, 1500 * MS);
	if (key % 2) {
		sim_plain_fault(&sc, "black-hole", 1, 120 * MS, SIM_NEVER / 2);
		sc.fault[2].dev = 1;
	}
	must_hold(&sc, "a path back while a host stalls");
}

/* Of the stall it is, and it must be about as long as the time limit. */
static void stall_excuse_is_narrow(uint64_t key)
{
	struct sim_scenario sc;
	struct sim_promise p;

	sim_plain(&sc, key);
	sc.ndevices[0] = sc.ndevices[1] = 2;
	sc.settings.timeout = 8;
	sc.host[key % 2].max_retries = 4; /* 1.5 s */
	sim_plain_fault(&sc, "black-hole", 0, 3 * MS, 27 * MS);
	sim_plain_fault(&sc, "stall", key / 2 % 2, 7 * MS, 1453 * MS);
	sim_promise_make(&sc, 0, &p);
	CHECK(p.no_path == 1503 * MS);
	sc.fault[1].len = 400 * MS; /* time enough afterwards */
	sim_promise_make(&sc, 0, &p);
	CHECK(sim_promise_survives(&p));
	sc.fault[1].len = 1453 * MS;
	sc.fault[1].at = 1300 * MS; /* both paths are up by then */
	sim_promise_make(&sc, 0, &p);
	CHECK(sim_promise_survives(&p));
	sc.fault[1].at = 7 * MS;
	sc.fault[0].off = true; /* the only one that is needed never goes */
	sim_promise_make(&sc, 0, &p);
	CHECK(sim_promise_survives(&p));
}

int main(void)
{
	static void (*const found[])(uint64_t key) = {
		flush_outlives_bye,
		probe_without_requests,
		flap_without_failover,
		buffer_on_a_dead_device,
		stopped_process,
		flushes_registered_on_a_dead_device,
		flush_after_bye,
		memory_knows,
		back_offs_agree,
		no_path_hurries,
		up_at_one_end,
		nobody_else_wakes,
		roles_differ,
		dies_with_completions,
		excuse_is_narrow,
		short_shared_queue,
		port_back_at_the_receiver,
		port_back_under_an_offer,
		dies_with_messages_unread,
		bye_lost,
		registration_refused,
		last_count_lost,
		further_make_room,
		key_of_a_failed_nic,
		standby_lost_again,
		back_while_a_host_stalls,
		stall_excuse_is_narrow,
	};

	for (size_t i = 0; i < sizeof(found) / sizeof(found[0]); i++)
		for (uint64_t key = 1; key <= KEYS; key++)
			found[i](key);
	return 0;
}
