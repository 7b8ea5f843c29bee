/* SPDX-License-Identifier: BSD-3-Clause */
/* Slots and who holds them: shared by connections of a flow, 256 of them, freed by the last, by the
 * end of a process; and what a former agent left. */
#include "agent/slots.h"

#include "base/check.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static struct mpib_hint_shm shm;
static struct ha_slots s;

static uint32_t get_advice(void *user, unsigned slot)
{
	return *(uint32_t *)user;
}

static void open_slots(void)
{
	memset(&shm, 0, sizeof(shm));
	shm.header = (struct mpib_hint_header) { MPIB_HINT_MAGIC, MPIB_HINT_MAX_ENTRIES, 1, 0 };
	ha_slots_open(&s, &shm, 0);
}

static struct mpib_register make_register(uint32_t conn_id, uint32_t n)
{
	return (struct mpib_register) { .conn_id = conn_id,
					.sout_src_ip = 0x0a000000 + n,
					.sout_dst_ip = 0x0b000000 + n };
}

static uint32_t register_connection(struct ha_owner *owner, uint32_t conn_id, uint32_t n,
				    uint32_t *slot)
{
	struct mpib_register m = make_register(conn_id, n);
	uint32_t status = ha_slots_register(&s, owner, &m, slot);

	CHECK(ha_slots_consistent(&s));
	return status;
}

static uint32_t deregister_connection(struct ha_owner *owner, uint32_t conn_id)
{
	uint32_t status = ha_slots_deregister(&s, owner, conn_id);

	CHECK(ha_slots_consistent(&s));
	return status;
}

static void connections_of_a_flow_share_a_slot(void)
{
	struct ha_owner *me, *other;
	uint32_t a, b, c;

	open_slots();
	me = ha_owner_get(&s, getpid(), 0);
	other = ha_owner_get(&s, getppid(), 0);
	CHECK(me != other);
	CHECK_INT(register_connection(me, 1, 7, &a), MPIB_STATUS_OK);
	CHECK_INT(register_connection(me, 2, 7, &b), MPIB_STATUS_OK);
	CHECK_INT(register_connection(other, 1, 7, &c), MPIB_STATUS_OK);
	CHECK(a == b && b == c);
	CHECK_INT(s.slot[a].refs, 3);
	CHECK_INT(register_connection(me, 1, 7, &b), MPIB_STATUS_OK); /* again: counts once */
	CHECK(a == b);
	CHECK_INT(s.slot[a].refs, 3);
	CHECK_INT(register_connection(me, 1, 8, &b),
		  MPIB_STATUS_INVALID); /* that number stands for another flow */
	CHECK_INT(b, MPIB_NO_SLOT);
	CHECK_INT(deregister_connection(me, 1), MPIB_STATUS_OK);
	CHECK_INT(deregister_connection(me, 1), MPIB_STATUS_INVALID);
	CHECK_INT(deregister_connection(me, 2), MPIB_STATUS_OK);
	CHECK_INT(s.used, 1);
	CHECK_INT(deregister_connection(other, 1), MPIB_STATUS_OK);
	CHECK_INT(s.used, 0);
	CHECK(!shm.entries[a].src_ip && !shm.entries[a].sup_bw);
	ha_slots_close(&s);
}

static void a_hint_is_there_before_the_answer(void)
{
	struct ha_owner *me;
	uint32_t slot, value = 5000;

	open_slots();
	s.advise = get_advice;
	s.user = &value;
	me = ha_owner_get(&s, getpid(), 0);
	CHECK_INT(register_connection(me, 1, 1, &slot), MPIB_STATUS_OK);
	/* never past it, whatever is advised */
	CHECK_INT(shm.entries[slot].sup_bw, MPIB_HINT_MAX_BW);
	value = 300;
	CHECK_INT(register_connection(me, 2, 2, &slot), MPIB_STATUS_OK);
	CHECK_INT(shm.entries[slot].sup_bw, 300);
	CHECK_INT(shm.entries[slot].src_ip, 0x0a000002);
	ha_slots_write(&s, slot, 900);
	CHECK_INT(shm.entries[slot].sup_bw, 900);
	CHECK_INT(shm.entries[slot].seq & 1, 0);
	ha_slots_close(&s);
}

static void there_are_256(void)
{
	struct ha_owner *me;
	uint32_t slot, seen[MPIB_HINT_MAX_ENTRIES] = { 0 };

	open_slots();
	me = ha_owner_get(&s, getpid(), 0);
	for (uint32_t i = 0; i < MPIB_HINT_MAX_ENTRIES; i++) {
		CHECK_INT(register_connection(me, i, i + 1, &slot), MPIB_STATUS_OK);
		CHECK_INT(seen[slot]++, 0);
	}
	CHECK_INT(register_connection(me, 1000, 1000, &slot), MPIB_STATUS_NO_SLOT);
	CHECK_INT(slot, MPIB_NO_SLOT);
	CHECK_INT(register_connection(me, 1001, 17, &slot),
		  MPIB_STATUS_OK); /* a flow that has one */
	CHECK_INT(deregister_connection(me, 100), MPIB_STATUS_OK);
	CHECK_INT(register_connection(me, 1000, 1000, &slot), MPIB_STATUS_OK);
	ha_slots_close(&s);
}

static void registrations_are_bounded(void)
{
	struct ha_owner *me;
	struct mpib_register m;
	uint32_t slot, id = 0;

	open_slots();
	me = ha_owner_get(&s, getpid(), 0);
	for (; id < HA_SLOTS_REGISTRATIONS; id++) {
		m = make_register(id, id % 3 + 1);
		CHECK_INT(ha_slots_register(&s, me, &m, &slot), MPIB_STATUS_OK);
	}
	CHECK_INT(register_connection(me, id, 1, &slot), MPIB_STATUS_NO_SLOT);
	CHECK_INT(register_connection(me, id, 9, &slot),
		  MPIB_STATUS_NO_SLOT); /* leaves no slot behind */
	CHECK_INT(s.used, 3);
	ha_slots_close(&s);
}

static void addresses_of_nothing_are_invalid(void)
{
	struct ha_owner *me;
	struct mpib_register m = make_register(1, 1);
	uint32_t slot;

	open_slots();
	me = ha_owner_get(&s, getpid(), 0);
	m.sout_src_ip = 0;
	CHECK_INT(ha_slots_register(&s, me, &m, &slot), MPIB_STATUS_INVALID);
	m = make_register(1, 1);
	m.sout_dst_ip = 0;
	CHECK_INT(ha_slots_register(&s, me, &m, &slot), MPIB_STATUS_INVALID);
	CHECK_INT(s.used, 0);
	ha_slots_close(&s);
}

static void a_dead_process_holds_nothing(void)
{
	struct ha_owner *dead;
	uint32_t slot;
	pid_t child;

	open_slots();
	child = fork();
	if (!child) {
		pause();
		_exit(0);
	}
	dead = ha_owner_get(&s, child, 0);
	CHECK_INT(dead->pid, child);
	CHECK_INT(register_connection(dead, 1, 1, &slot), MPIB_STATUS_OK);
	CHECK_INT(register_connection(dead, 2, 2, &slot), MPIB_STATUS_OK);
	ha_owner_hang_up(&s, dead); /* its socket is closed, it still runs: it keeps them */
	ha_owner_sweep(&s, 100);
	CHECK_INT(s.used, 2);
	CHECK_INT(s.nowners, 1);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	ha_owner_sweep(&s, 100);
	CHECK_INT(s.used, 0);
	CHECK_INT(s.nowners, 0);
	CHECK_INT(s.reclaimed, 2);
	CHECK(ha_slots_consistent(&s));
	ha_slots_close(&s);
}

static void a_process_out_of_sight_is_its_socket(void)
{
	struct ha_owner *a, *b;
	uint32_t slot;

	open_slots();
	a = ha_owner_get(&s, 0, 0);
	b = ha_owner_get(&s, 0, 0);
	CHECK(a != b);
	CHECK_INT(register_connection(a, 1, 1, &slot), MPIB_STATUS_OK);
	CHECK_INT(register_connection(b, 1, 2, &slot), MPIB_STATUS_OK);
	ha_owner_sweep(&s, 100);
	CHECK_INT(s.used, 2);
	ha_owner_hang_up(&s, a);
	CHECK_INT(s.used, 1);
	ha_owner_hang_up(&s, b);
	CHECK_INT(s.used, 0);
	CHECK_INT(s.nowners, 0);
	ha_slots_close(&s);
}

/* As a former agent may have left it: whole entries, one that it died over, a value past 1024, the
 * same flow twice. */
static void what_was_left_is_taken_over(void)
{
	struct ha_owner *me;
	uint32_t slot, value = 64;

	memset(&shm, 0, sizeof(shm));
	shm.header = (struct mpib_hint_header) { MPIB_HINT_MAGIC, MPIB_HINT_MAX_ENTRIES, 1, 0 };
	mpib_hint_put(&shm.entries[5], 500, 0x0a000001, 0x0b000001);
	mpib_hint_put(&shm.entries[6], 600, 0x0a000002, 0x0b000002);
	shm.entries[6].seq++; /* odd */
	mpib_hint_put(&shm.entries[7], 7000, 0x0a000003, 0x0b000003);
	mpib_hint_put(&shm.entries[8], 800, 0x0a000001, 0x0b000001);
	ha_slots_open(&s, &shm, 1000);
	CHECK(ha_slots_consistent(&s));
	CHECK_INT(s.used, 3);
	CHECK_INT(shm.entries[5].sup_bw, 500);
	CHECK_INT(shm.entries[5].seq, 2); /* untouched: nobody noticed */
	CHECK_INT(shm.entries[6].sup_bw, 600);
	CHECK_INT(shm.entries[7].sup_bw, 0);
	CHECK_INT(shm.entries[8].src_ip, 0);
	s.advise = get_advice;
	s.user = &value;
	me = ha_owner_get(&s, getpid(), 0);
	CHECK_INT(register_connection(me, 1, 1, &slot), MPIB_STATUS_OK);
	CHECK_INT(slot, 5);
	CHECK_INT(shm.entries[5].sup_bw, 64);
	ha_slots_expire(&s, 1000 + HA_SLOTS_GRACE_NS - 1);
	CHECK_INT(s.used, 3);
	ha_slots_expire(&s, 1000 + HA_SLOTS_GRACE_NS);
	CHECK_INT(s.used, 1); /* nobody came back for the others */
	CHECK(ha_slots_consistent(&s));
	ha_slots_close(&s);
}

static uint32_t register_standby(struct ha_owner *owner, uint32_t conn_id, uint32_t sup)
{
	struct mpib_register m = make_register(conn_id, 7);
	uint32_t at;

	m.sup_src_ip = sup;
	m.sup_dst_ip = sup ? sup + 1 : 0;
	CHECK_INT(ha_slots_register(&s, owner, &m, &at), MPIB_STATUS_OK);
	return at;
}

/* The addresses of a flow's standby are those that it was registered with first, whatever other
 * processes say of it. */
static void the_standby_is_the_first_ones(void)
{
	struct mpib_register refused = make_register(9, 7);
	struct ha_owner *me, *other;
	uint32_t at, none;
	unsigned n;

	open_slots();
	me = ha_owner_get(&s, getpid(), 0);
	other = ha_owner_get(&s, getppid(), 0);
	at = register_standby(me, 1, 0);
	CHECK_INT(s.slot[at].sup_src, 0);
	register_standby(me, 2, 100); /* it was not known yet */
	CHECK_INT(s.slot[at].sup_src, 100);
	CHECK_INT(s.slot[at].sup_dst, 101);
	register_standby(other, 1, 0);
	CHECK_INT(s.slot[at].sup_src, 100);
	register_standby(other, 2, 200);
	CHECK_INT(s.slot[at].sup_src, 100);
	CHECK_INT(s.slot[at].sup_dst, 101);
	CHECK_INT(ha_slots_deregister(&s, me, 2), MPIB_STATUS_OK);
	CHECK_INT(ha_slots_deregister(&s, other, 1), MPIB_STATUS_OK);
	CHECK_INT(ha_slots_deregister(&s, other, 2), MPIB_STATUS_OK);
	CHECK_INT(ha_slots_deregister(&s, me, 1), MPIB_STATUS_OK);
	CHECK_INT(register_standby(me, 1, 300), at); /* everybody had left it */
	CHECK_INT(s.slot[at].sup_src, 300);
	/* a registration that fails changes nothing */
	ha_slots_close(&s);
	open_slots();
	me = ha_owner_get(&s, getpid(), 0);
	at = register_standby(me, 1, 0);
	n = s.nregistrations;
	s.nregistrations = HA_SLOTS_REGISTRATIONS;
	refused.sup_src_ip = 400;
	CHECK_INT(ha_slots_register(&s, me, &refused, &none), MPIB_STATUS_NO_SLOT);
	s.nregistrations = n;
	CHECK_INT(s.slot[at].sup_src, 0);
	ha_slots_close(&s);
}

int main(void)
{
	connections_of_a_flow_share_a_slot();
	a_hint_is_there_before_the_answer();
	there_are_256();
	registrations_are_bounded();
	addresses_of_nothing_are_invalid();
	a_dead_process_holds_nothing();
	a_process_out_of_sight_is_its_socket();
	what_was_left_is_taken_over();
	the_standby_is_the_first_ones();
	return 0;
}
