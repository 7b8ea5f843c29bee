/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shim.c - what Debian's NCCL objects need in their own shared object
 *
 * 1. Five functions of CUDA's runtime stand in NCCL's archive as weak hidden stubs that fail (NCCL
 *    replaces them where a newer static runtime is linked). A strong definition in the same link
 *    takes their place; it calls softcuda.
 * 2. Objects that were compiled against glibc 2.38 or later call the C23 forms of the number
 *    parsers. An older glibc does not have them. For NCCL's input (no binary literals) the old ones
 *    do the same.
 * 3. NCCL's set-up asks a socket that has nothing yet again and again, and a set-up job every
 *    microsecond whether it is done. Where threads outnumber processors it keeps those from running
 *    that would send; here it yields after each attempt at a socket, sleeps on it when many in turn
 *    found nothing, and sleeps for longer between two questions (ld --wrap). Yielding alone halves
 *    the processor time of a short job of five ranks on two processors. With
 *    SOFTCUDA_YIELD_NAP_US=300 threads that yield while nothing moves sleep now and then: a fifth
 *    less again.
 */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

/* ---- 1. strong definitions; types are CUDA's public ones, handles as pointers ---- */

int softcuda_GetDriverEntryPoint(const char *symbol, void **function, unsigned long long flags,
				 int *status);
int softcuda_StreamGetCaptureInfo_v2(void *stream, int *status, unsigned long long *id,
				     void **graph, const void **dependencies, size_t *count);
int softcuda_StreamUpdateCaptureDependencies(void *stream, void **dependencies, size_t count,
					     unsigned flags);
int softcuda_UserObjectCreate(void **object, void *pointer, void (*destroy)(void *),
			      unsigned references, unsigned flags);
int softcuda_GraphRetainUserObject(void *graph, void *object, unsigned references, unsigned flags);
unsigned softcuda_yield_nap_us(void);

int cudaGetDriverEntryPoint(const char *symbol, void **function, unsigned long long flags,
			    int *status);
int cudaStreamGetCaptureInfo_v2(void *stream, int *status, unsigned long long *id, void **graph,
				const void **dependencies, size_t *count);
int cudaStreamUpdateCaptureDependencies(void *stream, void **dependencies, size_t count,
					unsigned flags);
int cudaUserObjectCreate(void **object, void *pointer, void (*destroy)(void *), unsigned references,
			 unsigned flags);
int cudaGraphRetainUserObject(void *graph, void *object, unsigned references, unsigned flags);

int cudaGetDriverEntryPoint(const char *symbol, void **function, unsigned long long flags,
			    int *status)
{
	return softcuda_GetDriverEntryPoint(symbol, function, flags, status);
}

int cudaStreamGetCaptureInfo_v2(void *stream, int *status, unsigned long long *id, void **graph,
				const void **dependencies, size_t *count)
{
	return softcuda_StreamGetCaptureInfo_v2(stream, status, id, graph, dependencies, count);
}

int cudaStreamUpdateCaptureDependencies(void *stream, void **dependencies, size_t count,
					unsigned flags)
{
	return softcuda_StreamUpdateCaptureDependencies(stream, dependencies, count, flags);
}

int cudaUserObjectCreate(void **object, void *pointer, void (*destroy)(void *), unsigned references,
			 unsigned flags)
{
	return softcuda_UserObjectCreate(object, pointer, destroy, references, flags);
}

int cudaGraphRetainUserObject(void *graph, void *object, unsigned references, unsigned flags)
{
	return softcuda_GraphRetainUserObject(graph, object, references, flags);
}

/* ---- 2. C23 number parsers ---- */

int __isoc23_sscanf(const char *text, const char *format, ...);
int __isoc23_fscanf(FILE *file, const char *format, ...);
long __isoc23_strtol(const char *text, char **end, int base);
long long __isoc23_strtoll(const char *text, char **end, int base);
unsigned long __isoc23_strtoul(const char *text, char **end, int base);
unsigned long long __isoc23_strtoull(const char *text, char **end, int base);

int __isoc23_sscanf(const char *text, const char *format, ...)
{
	va_list arguments;
	int n;

	va_start(arguments, format);
	n = vsscanf(text, format, arguments);
	va_end(arguments);
	return n;
}

int __isoc23_fscanf(FILE *file, const char *format, ...)
{
	va_list arguments;
	int n;

	va_start(arguments, format);
	n = vfscanf(file, format, arguments);
	va_end(arguments);
	return n;
}

long __isoc23_strtol(const char *text, char **end, int base)
{
	return strtol(text, end, base);
}

long long __isoc23_strtoll(const char *text, char **end, int base)
{
	return strtoll(text, end, base);
}

unsigned long __isoc23_strtoul(const char *text, char **end, int base)
{
	return strtoul(text, end, base);
}

unsigned long long __isoc23_strtoull(const char *text, char **end, int base)
{
	return strtoull(text, end, base);
}

/* ---- 3. waiting ---- */

#define YIELDS 100
#define SLEEP_US 200
#define YIELDS_A_NAP 16

int __real_accept(int fd, struct sockaddr *address, socklen_t *size);
int __wrap_accept(int fd, struct sockaddr *address, socklen_t *size);
ssize_t __real_recv(int fd, void *data, size_t size, int flags);
ssize_t __wrap_recv(int fd, void *data, size_t size, int flags);
int __real_usleep(useconds_t us);
int __wrap_usleep(useconds_t us);
int __real_sched_yield(void);
int __wrap_sched_yield(void);

static _Thread_local unsigned empty_in_turn; /* attempts of this thread, at any socket */

static void sleep_until_ready(int fd)
{
	struct pollfd one = { .fd = fd, .events = POLLIN };
	struct timespec most = { .tv_nsec = SLEEP_US * 1000L };

	ppoll(&one, 1, &most, NULL);
}

/* After a call that gave `result`. Keeps errno. */
static void wait_if_empty(int fd, ssize_t result)
{
	if (result >= 0 || errno != EAGAIN) {
		empty_in_turn = 0;
		return;
	}
	if (++empty_in_turn <= YIELDS)
		sched_yield();
	else
		sleep_until_ready(fd);
	errno = EAGAIN;
}

int __wrap_accept(int fd, struct sockaddr *address, socklen_t *size)
{
	int accepted = __real_accept(fd, address, size);

	wait_if_empty(fd, accepted);
	return accepted;
}

ssize_t __wrap_recv(int fd, void *data, size_t size, int flags)
{
	ssize_t got = __real_recv(fd, data, size, flags);

	wait_if_empty(fd, got);
	return got;
}

/* NCCL's proxies and set-up yield while nothing moves: one of so many is a sleep, where the user
 * wants that. */
int __wrap_sched_yield(void)
{
	static _Thread_local unsigned yields;
	unsigned nap_us = softcuda_yield_nap_us();

	if (!nap_us || ++yields % YIELDS_A_NAP)
		return __real_sched_yield();
	return __real_usleep(nap_us);
}

int __wrap_usleep(useconds_t us)
{
	return __real_usleep(us < SLEEP_US ? SLEEP_US : us);
}
