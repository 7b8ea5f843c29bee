/* SPDX-License-Identifier: BSD-3-Clause */
#include "gpu/emu/fiber.h"

#include "base/rng.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#define STACK_BYTES (256 << 10)
#define SWITCH_NS 50

struct fiber {
	ucontext_t start;
	jmp_buf at;
	void (*run)(void *arg);
	void *arg;
	struct ha_gpu_self *self;
	bool begun, helper;
	char *stack;
	void *fake;
};

static struct fiber fibers[HA_GPU_FIBERS_MAX];
static unsigned alive[HA_GPU_FIBERS_MAX]; /* numbers of those that have not returned */
static unsigned nfibers, nalive, nwaited, current;
static bool inside;
static struct sr_rng dice;
static uint64_t now_ns, end_ns;
static unsigned eagerness;
static jmp_buf home;
static struct fiber outside;

uint64_t ha_gpu_fibers_random(void)
{
	return sr_rng_next(&dice);
}

void ha_gpu_fibers_begin(uint64_t seed, unsigned eager)
{
	nfibers = nalive = nwaited = 0;
	dice.state = seed;
	now_ns = 1;
	eagerness = eager;
}

bool ha_gpu_fiber_add(void (*run)(void *arg), void *arg, struct ha_gpu_self *self, bool helper)
{
	struct fiber *f = &fibers[nfibers];
	char *stack = f->stack;

	if (nfibers == HA_GPU_FIBERS_MAX)
		return false;
	if (!stack)
		stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			     -1, 0);
	if (stack == MAP_FAILED)
		return false;
	memset(f, 0, sizeof(*f));
	*f = (struct fiber) {
		.run = run, .arg = arg, .self = self, .helper = helper, .stack = stack
	};
#ifdef __SANITIZE_ADDRESS__
	__asan_unpoison_memory_region(stack, STACK_BYTES);
#endif
	alive[nalive++] = nfibers++;
	nwaited += !helper;
	return true;
}

#ifdef __SANITIZE_ADDRESS__
/* the stack that the fibers were begun from; NULL: to be learnt by the first of them */
static const void *home_bottom;
static size_t home_size;
#endif

static void finish_switch(void)
{
#ifdef __SANITIZE_ADDRESS__
	bool first = !home_bottom;

	__sanitizer_finish_switch_fiber(fibers[current].fake, first ? &home_bottom : NULL,
					first ? &home_size : NULL);
#endif
	ha_gpu_emu_become(fibers[current].self);
}

static void leave_to(struct fiber *from, struct fiber *to, bool for_good)
{
#ifdef __SANITIZE_ADDRESS__
	__sanitizer_start_switch_fiber(for_good ? NULL : &from->fake,
				       to == &outside ? home_bottom : to->stack,
				       to == &outside ? home_size : STACK_BYTES);
#else
	(void)from;
	(void)to;
	(void)for_good;
#endif
}

static void go_to(unsigned next);

static void run_fiber(void)
{
	struct fiber *f = &fibers[current];
	unsigned i = 0;

	finish_switch();
	f->run(f->arg);
	while (alive[i] != current)
		i++;
	alive[i] = alive[--nalive];
	nwaited -= !f->helper;
	if (!nwaited) {
		leave_to(f, &outside, true);
		_longjmp(home, 1);
	}
	i = alive[ha_gpu_fibers_random() % nalive];
	leave_to(f, &fibers[i], true);
	go_to(i);
}

static void go_to(unsigned next)
{
	struct fiber *f = &fibers[next];

	current = next;
	if (f->begun)
		_longjmp(f->at, 1);
	f->begun = true;
	getcontext(&f->start);
	f->start.uc_stack.ss_sp = f->stack;
	f->start.uc_stack.ss_size = STACK_BYTES;
	f->start.uc_link = NULL;
	makecontext(&f->start, run_fiber, 0);
	setcontext(&f->start);
	abort();
}

static void switch_now(void)
{
	struct fiber *me = &fibers[current];
	unsigned next;

	now_ns += SWITCH_NS;
	if (now_ns >= end_ns) {
		leave_to(me, &outside, false);
		if (!_setjmp(me->at))
			_longjmp(home, 2);
		finish_switch();
		return;
	}
	next = alive[ha_gpu_fibers_random() % nalive];
	if (next == current)
		return;
	leave_to(me, &fibers[next], false);
	if (!_setjmp(me->at))
		go_to(next);
	finish_switch();
}

bool ha_gpu_fibers_run(uint64_t until_ns)
{
	int how;

	end_ns = until_ns;
	if (!nwaited)
		return true;
	inside = true;
	how = _setjmp(home);
	if (!how) {
		leave_to(&outside, &fibers[alive[0]], false);
		go_to(alive[0]);
	}
#ifdef __SANITIZE_ADDRESS__
	__sanitizer_finish_switch_fiber(outside.fake, NULL, NULL);
#endif
	inside = false;
	ha_gpu_emu_become(NULL);
	return how == 1;
}

void ha_gpu_fibers_stand_still(uint64_t ns)
{
	now_ns += ns;
}

void ha_gpu_pause(void)
{
	if (inside)
		switch_now();
	else
		now_ns += SWITCH_NS;
}

void ha_gpu_emu_step(void)
{
	if (inside && (ha_gpu_fibers_random() & 255) < eagerness)
		switch_now();
}

uint64_t ha_gpu_now(void)
{
	return now_ns;
}
