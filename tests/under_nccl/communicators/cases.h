/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HA_TESTS_COMMUNICATORS_CASES_H
#define HA_TESTS_COMMUNICATORS_CASES_H

/* cases - the tests of this folder; each says on top of its function what it shows */
void test_many_times(int times);
void test_plugin_comes_back(void);
void test_libnccl_comes_back(void);

void test_split(void);
void test_shrink(void);
void test_shrink_without_the_dead(void);
void test_shrink_without_the_idle(void);
void test_several_at_once(void);
void test_finalize(void);

void test_abort(void);
void test_killed_rank(void);
void test_no_path(void);

#endif
