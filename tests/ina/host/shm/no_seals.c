/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/ina/host/shm/no_seals.h"

#include <fcntl.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

atomic_bool no_seals;
atomic_int no_seals_file = -1;

/* The C library's, but for that. */
int fcntl(int fd, int cmd, ...)
{
	va_list args;
	unsigned long arg;

	va_start(args, cmd);
	arg = va_arg(args, unsigned long);
	va_end(args);
	if (atomic_load(&no_seals) && cmd == F_ADD_SEALS) {
		close(atomic_exchange(&no_seals_file, dup(fd)));
		return 0;
	}
	if (atomic_load(&no_seals) && cmd == F_GET_SEALS)
		return F_SEAL_SHRINK | F_SEAL_GROW;
	return (int)syscall(SYS_fcntl, fd, cmd, arg);
}
