/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * glibc_floor.c - one plugin for C libraries from 2.28 on, whichever it was linked with
 *
 * glibc 2.32 to 2.34 moved functions of libpthread and libdl into libc, and stat() became a symbol
 * of its own; what is linked there asks for these versions and is not loaded by an older one,
 * though the functions have not changed. Here each of them leads to the version that every release
 * since has. They are the plugin's own, hidden, and in front of the C library's.
 *
 * Where the address of a C library's function outlives the plugin, the wrapper will not do
 * (glibc_floor.h).
 *
 * dlopen() and dlsym() look at the address that they return to, which is this library's either way.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "plugin/nccl/glibc_floor.h"

#define FIRST HA_GLIBC_FIRST
#if defined(__x86_64__)
#define SETCLOCK "GLIBC_2.3.3"
#define SETNAME "GLIBC_2.12"
#else
#define SETCLOCK FIRST
#define SETNAME FIRST
#endif

/* first_NAME is NAME of that version. */
#define VERSION(name, version) __asm__(".symver first_" #name "," #name "@" version)
#define OWN __attribute__((visibility("hidden")))

/* ---- libdl ---- */

extern __typeof__(dladdr) first_dladdr;
extern __typeof__(dlclose) first_dlclose;
extern __typeof__(dlerror) first_dlerror;
extern __typeof__(dlopen) first_dlopen;
extern __typeof__(dlsym) first_dlsym;
extern __typeof__(dlvsym) first_dlvsym;
VERSION(dladdr, FIRST);
VERSION(dlclose, FIRST);
VERSION(dlerror, FIRST);
VERSION(dlopen, FIRST);
VERSION(dlsym, FIRST);
VERSION(dlvsym, FIRST);

OWN int dladdr(const void *address, Dl_info *info)
{
	return first_dladdr(address, info);
}

OWN int dlclose(void *handle)
{
	return first_dlclose(handle);
}

OWN char *dlerror(void)
{
	return first_dlerror();
}

OWN void *dlopen(const char *file, int mode)
{
	return first_dlopen(file, mode);
}

OWN void *dlsym(void *restrict handle, const char *restrict name)
{
	return first_dlsym(handle, name);
}

OWN void *dlvsym(void *restrict handle, const char *restrict name, const char *restrict version)
{
	return first_dlvsym(handle, name, version);
}

/* ---- libpthread ---- */

extern __typeof__(pthread_condattr_setclock) first_pthread_condattr_setclock;
extern __typeof__(pthread_create) first_pthread_create;
extern __typeof__(pthread_join) first_pthread_join;
extern __typeof__(pthread_mutex_trylock) first_pthread_mutex_trylock;
extern __typeof__(pthread_once) first_pthread_once;
extern __typeof__(pthread_setname_np) first_pthread_setname_np;
extern __typeof__(pthread_sigmask) first_pthread_sigmask;
extern __typeof__(sem_getvalue) first_sem_getvalue;
extern __typeof__(sem_init) first_sem_init;
VERSION(pthread_condattr_setclock, SETCLOCK);
VERSION(pthread_create, FIRST);
VERSION(pthread_join, FIRST);
VERSION(pthread_mutex_trylock, FIRST);
VERSION(pthread_once, FIRST);
VERSION(pthread_setname_np, SETNAME);
VERSION(pthread_sigmask, FIRST);
VERSION(sem_getvalue, FIRST);
VERSION(sem_init, FIRST);

OWN int pthread_condattr_setclock(pthread_condattr_t *attr, clockid_t clock)
{
	return first_pthread_condattr_setclock(attr, clock);
}

OWN int pthread_create(pthread_t *restrict thread, const pthread_attr_t *restrict attr,
		       void *(*start)(void *), void *restrict argument)
{
	return first_pthread_create(thread, attr, start, argument);
}

OWN int pthread_join(pthread_t thread, void **result)
{
	return first_pthread_join(thread, result);
}

OWN int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
	return first_pthread_mutex_trylock(mutex);
}

OWN int pthread_once(pthread_once_t *once, void (*run)(void))
{
	return first_pthread_once(once, run);
}

OWN int pthread_setname_np(pthread_t thread, const char *name)
{
	return first_pthread_setname_np(thread, name);
}

OWN int pthread_sigmask(int how, const sigset_t *restrict set, sigset_t *restrict old)
{
	return first_pthread_sigmask(how, set, old);
}

OWN int sem_getvalue(sem_t *restrict sem, int *restrict value)
{
	return first_sem_getvalue(sem, value);
}

OWN int sem_init(sem_t *sem, int shared, unsigned value)
{
	return first_sem_init(sem, shared, value);
}

/* ---- stat: the system call, whose structure is the C library's on these machines ---- */

OWN int stat(const char *restrict path, struct stat *restrict status)
{
	return (int)syscall(SYS_newfstatat, AT_FDCWD, path, status, 0);
}

OWN int lstat(const char *restrict path, struct stat *restrict status)
{
	return (int)syscall(SYS_newfstatat, AT_FDCWD, path, status, AT_SYMLINK_NOFOLLOW);
}

OWN int fstat(int fd, struct stat *status)
{
	return (int)syscall(SYS_newfstatat, fd, "", status, AT_EMPTY_PATH);
}
