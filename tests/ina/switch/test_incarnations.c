/* SPDX-License-Identifier: BSD-3-Clause */
/* test_incarnations.c - the slot core: epochs, leases, aborts, and what a controller installs */
#include "tests/ina/switch/named.h"
#include "tests/ina/switch/ranks.h"

#include <errno.h>

static struct ranks r;

/* ---- incarnations ---- */

/* A past incarnation's packets are answered that it is over; those of one that the switch does not
 * know yet wait. */
static void other_epochs_are_not_summed(void)
{
	struct ina_frame f;
	int32_t word[INA_WORDS] = { 7 };
	struct ina_group_config c;
	const char *why;

	ranks_open(&r, true, 2, 8, 0);
	ranks_give(&r, 0, 0, 1);
	f = ranks_frame(&r, INA_ALL_REDUCE, 0, 1, 0);
	ranks_words(&f, word);
	f.epoch = 4;
	CHECK_INT(ranks_send(&r, &f), INA_REASON_OLD_EPOCH);
	CHECK_INT(r.answer[1].flags, INA_F_ANSWER | INA_F_ABORT);
	CHECK_INT(r.answer[1].epoch, 4);
	f.epoch = 6;
	CHECK_INT(ranks_send(&r, &f), INA_REASON_NEW_EPOCH);
	CHECK_INT(r.answers, 0);
	CHECK_INT(ranks_give(&r, 1, 0, 2), INA_REASON_COMPLETE);
	CHECK_INT(ranks_word(&r.answer[0], 0), 3);
	/* The next incarnation begins with nothing of the last one. */
	ranks_give(&r, 0, 1, 1000);
	c = r.config;
	CHECK_INT(ina_switch_install(&r.sw, &c, &why), -ESTALE);
	c.epoch = 4;
	CHECK_INT(ina_switch_install(&r.sw, &c, &why), -ESTALE);
	c.epoch = 0x80000004;
	CHECK_INT(ina_switch_install(&r.sw, &c, &why), 0);
	c.epoch = 3; /* epochs wrap as psns do */
	CHECK_INT(ina_switch_install(&r.sw, &c, &why), 0);
	CHECK_INT(ranks_give(&r, 1, 1, 5), INA_REASON_NEW_EPOCH); /* 5 is ahead of 3 */
	r.config = c;
	ranks_whole(&r, 0);
	ranks_whole(&r, 1);
	CHECK_INT(ina_switch_remove(&r.sw, 7, 5), -ESTALE);
	CHECK_INT(ina_switch_remove(&r.sw, 7, 3), 0);
	CHECK_INT(ina_switch_remove(&r.sw, 7, 3), -ENOENT);
	CHECK_INT(ranks_give(&r, 0, 2, 1), INA_REASON_NO_GROUP);
	CHECK_INT(ina_switch_install(&r.sw, &c, &why), -ESTALE); /* also after it was removed */
}

/* A packet of the last incarnation comes late: the answer names that incarnation, so that nobody
 * takes it for the end of this one. */
static void straggler_gets_its_own_epoch(void)
{
	struct ina_group_config c;
	struct ina_frame late;
	int32_t word[INA_WORDS] = { 7 };
	const char *why;

	ranks_open(&r, true, 2, 8, 0);
	late = ranks_frame(&r, INA_ALL_REDUCE, 0, 1, 0);
	ranks_words(&late, word);
	c = r.config;
	c.epoch = 6;
	CHECK_INT(ina_switch_install(&r.sw, &c, &why), 0);
	r.config = c;
	ranks_give(&r, 0, 0, 1);
	CHECK_INT(ranks_send(&r, &late), INA_REASON_OLD_EPOCH);
	CHECK_INT(r.answer[1].flags, INA_F_ANSWER | INA_F_ABORT);
	CHECK_INT(r.answer[1].epoch, 5);
	CHECK_INT(ranks_give(&r, 1, 0, 2), INA_REASON_COMPLETE);
}

/*
 * The frame does not say which process of a rank sent it. One that starts again at the first psn of
 * an epoch in which its rank has sent gets the old sums (docs/ina.md has the rule that forbids it).
 * When it ends that epoch, everybody gets it, and in the next one only new words count.
 */
static void restarted_rank(void)
{
	struct ina_frame f;
	const char *why;

	ranks_open(&r, true, 2, 8, 0);
	ranks_whole(&r, 0);
	CHECK_INT(ranks_give(&r, 1, 0, 50), INA_REASON_AGAIN);
	CHECK_INT(ranks_word(&r.answer[1], 0), 10); /* 0 + 10, not 50 + anything */
	f = ranks_frame(&r, INA_ALL_REDUCE, 0, 1, 0);
	f.flags = INA_F_ABORT;
	CHECK_INT(ranks_send(&r, &f), INA_REASON_ABORT);
	CHECK_INT(r.answers, 2);
	CHECK_INT(ranks_give(&r, 1, 0, 50), INA_REASON_OVER);
	CHECK(!r.answer[1].words);
	r.config.epoch++;
	CHECK_INT(ina_switch_install(&r.sw, &r.config, &why), 0);
	CHECK_INT(ranks_give(&r, 1, 0, 50), INA_REASON_TAKEN);
	CHECK_INT(ranks_give(&r, 0, 0, 1), INA_REASON_COMPLETE);
	CHECK_INT(ranks_word(&r.answer[1], 0), 51);
}

/* A dead rank holds its group until the lease ends; then everybody who asks gets that answer, and
 * nothing is summed any more. */
static void lease_ends_the_group(void)
{
	ranks_open(&r, true, 3, 8, 0);
	ranks_give(&r, 0, 0, 1);
	r.now = 999999;
	CHECK_INT(ranks_give(&r, 1, 0, 1), INA_REASON_TAKEN);
	CHECK_INT(ina_switch_renew(&r.sw, 7, 5, 2000000), 0);
	r.now = 1999999;
	CHECK_INT(ranks_give(&r, 1, 0, 1), INA_REASON_HELD);
	r.now = 2000000;
	CHECK_INT(ranks_give(&r, 1, 0, 1), INA_REASON_OVER);
	CHECK_INT(r.answer[1].flags, INA_F_ANSWER | INA_F_ABORT);
	CHECK_INT(ranks_give(&r, 2, 0, 1), INA_REASON_OVER);
	CHECK_INT(ina_switch_renew(&r.sw, 7, 5, 3000000), -ETIME);
	CHECK_INT(ina_switch_renew(&r.sw, 7, 4, 3000000), -ESTALE);
	CHECK_INT(ina_switch_renew(&r.sw, 9, 5, 3000000), -ENOENT);
	/* The old frame has no word for it: silence. */
	ranks_open(&r, false, 3, 8, 0);
	r.now = 1000000;
	CHECK_INT(ranks_give(&r, 1, 0, 1), INA_REASON_OVER);
	CHECK_INT(r.answers, 0);
}

/* One rank ends the group: all are notified at once, later ones when they ask. */
static void abort_all(void)
{
	struct ina_frame f;
	struct ina_group_config c;
	const char *why;

	ranks_open(&r, true, 4, 8, 0);
	ranks_give(&r, 0, 0, 1);
	f = ranks_frame(&r, INA_ALL_REDUCE, 0, 2, 0);
	f.flags = INA_F_ABORT;
	f.src = RANK_ADDR + 9;
	CHECK_INT(ranks_send(&r, &f), INA_REASON_WRONG_ADDRESS);
	f.src = RANK_ADDR + 2;
	f.epoch = 4;
	CHECK_INT(ranks_send(&r, &f), INA_REASON_OLD_EPOCH);
	f.epoch = 5;
	CHECK_INT(ranks_send(&r, &f), INA_REASON_ABORT);
	CHECK_INT(r.answers, 4);
	for (int i = 0; i < 4; i++)
		CHECK_INT(r.answer[i].flags, INA_F_ANSWER | INA_F_ABORT);
	CHECK_INT(ranks_give(&r, 1, 0, 1), INA_REASON_OVER);
	CHECK_INT(ranks_send(&r, &f), INA_REASON_OVER);
	CHECK_INT(r.answers, 1);
	c = r.config;
	c.epoch = 6;
	CHECK_INT(ina_switch_install(&r.sw, &c, &why), 0);
	r.config = c;
	ranks_whole(&r, 0);
}

/* ---- the controller's words ---- */

static int install_group(struct ina_group_config c)
{
	const char *why = "unset";
	int err = ina_switch_install(&r.sw, &c, &why);

	CHECK(!err || (why && strlen(why) > 20));
	return err;
}

static void wrong_groups_are_refused(void)
{
	struct ina_group_config c;

	ranks_open(&r, true, 2, 16, 0); /* 64 to 79 */
	c = r.config;
	c.id = 0;
	CHECK_INT(install_group(c), -EINVAL);
	c.id = 8;
	CHECK_INT(install_group(c), -EEXIST);
	c.base = 79;
	CHECK_INT(install_group(c), -EEXIST);
	c.base = 49;
	CHECK_INT(install_group(c), -EEXIST);
	c.base = 48;
	CHECK_INT(install_group(c), 0);
	c.id = 9;
	c.base = 80;
	c.ranks = 1;
	CHECK_INT(install_group(c), -EINVAL);
	c.ranks = 33;
	CHECK_INT(install_group(c), -EINVAL);
	c.ranks = 32;
	c.workers = 0;
	CHECK_INT(install_group(c), -EINVAL);
	c.workers = 3;
	CHECK_INT(install_group(c), -EINVAL);
	c.workers = 128;
	CHECK_INT(install_group(c), -EINVAL);
	c.workers = 16;
	CHECK_INT(install_group(c), -EINVAL); /* one slot each */
	c.workers = 8;
	c.base = RANKS_SLOTS - 15;
	CHECK_INT(install_group(c), -ENOSPC);
	c.base = RANKS_SLOTS - 16;
	CHECK_INT(install_group(c), 0);
	c.id = 10;
	c.base = 0;
	c.len = 2048;
	CHECK_INT(install_group(c), -ENOSPC);
	/* A new incarnation may lie where the last one was. */
	c = r.config;
	c.epoch++;
	c.base = 70;
	CHECK_INT(install_group(c), -0);
	for (int i = 0; i < INA_REASONS; i++)
		CHECK(strcmp(ina_reason_name((enum ina_reason)i, NULL), "?"));
}

/* Each worker of a rank has a part of the range, and psns of its own. */
static void workers_have_own_parts(void)
{
	struct ina_group_config c;
	struct ina_frame f;
	const char *why;
	int32_t word[INA_WORDS] = { 0 };

	ranks_open(&r, true, 2, 8, 0);
	c = r.config;
	c.epoch++;
	c.len = 64;
	c.workers = 4;
	CHECK_INT(ina_switch_install(&r.sw, &c, &why), 0);
	r.config = c;
	for (uint32_t psn = 0; psn < 100; psn++)
		for (uint8_t w = 0; w < 4; w++)
			for (uint8_t rank = 0; rank < 2; rank++) {
				f = ranks_frame(&r, INA_ALL_REDUCE, 0, rank, psn);
				f.worker = w;
				word[0] = (int32_t)psn * 10 + w;
				ranks_words(&f, word);
				f.agg_addr = (uint16_t)(64 + ((w + 1) % 4) * 16 + psn % 16);
				CHECK_INT(ranks_send(&r, &f), INA_REASON_WRONG_SLOT);
				f.agg_addr = (uint16_t)(64 + w * 16 + psn % 16);
				CHECK_INT(ranks_send(&r, &f),
					  rank ? INA_REASON_COMPLETE : INA_REASON_TAKEN);
				if (rank) {
					CHECK_INT(ranks_word(&r.answer[0], 0), 2 * word[0]);
					CHECK_INT(r.answer[0].worker, w);
				}
			}
}

int main(int argc, char **argv)
{
	static const struct named_test tests[] = {
		{ "epoch", other_epochs_are_not_summed },
		{ "straggler", straggler_gets_its_own_epoch },
		{ "restarted_rank", restarted_rank },
		{ "lease", lease_ends_the_group },
		{ "abort_all", abort_all },
		{ "installed", wrong_groups_are_refused },
		{ "workers", workers_have_own_parts },
	};

	return NAMED_TESTS_RUN(tests, argc, argv);
}
