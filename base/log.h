/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * log.h - lines for the operator
 *
 * A line names the device or connection it is about and says what the operator can do. When NCCL
 * hosts us the lines go through NCCL's logger (levels, subsystem flags and the logger's signature
 * are NCCL's published ABI, nccl_net.h), else to stderr. This is the only global state of the
 * project: a process has one standard error.
 */
#ifndef HA_BASE_LOG_H
#define HA_BASE_LOG_H

#include <stdatomic.h>

/* Values of ncclDebugLogLevel. */
enum ha_log_level {
	HA_LOG_NONE = 0,
	HA_LOG_VERSION = 1,
	HA_LOG_WARN = 2,
	HA_LOG_INFO = 3,
	HA_LOG_ABORT = 4,
	HA_LOG_TRACE = 5,
};

/* Values of ncclDebugLogSubSys that we use. Plain NCCL_DEBUG=INFO shows INIT, BOOTSTRAP and ENV
 * only. */
#define HA_LOG_INIT 0x1UL
#define HA_LOG_NET 0x10UL
#define HA_LOG_ENV 0x80UL
#define HA_LOG_REG 0x2000UL
#define HA_LOG_ALL (~0UL)

/* Signature of ncclDebugLogger_t (its enum is passed as an int in the C ABI). The sink ends the
 * line itself. */
typedef void (*ha_log_sink_fn)(int level, unsigned long flags, const char *file, int line,
			       const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* Send lines to `sink`, e.g. NCCL's logger; NULL: back to stderr. Any thread, at any time. */
void ha_log_set_sink(ha_log_sink_fn sink);

/*
 * Choose what is printed.
 * nccl_debug, nccl_subsys: texts of NCCL_DEBUG and NCCL_DEBUG_SUBSYS, may be NULL or "". Warnings
 * are always produced. ha_debug: HA_NCCL_DEBUG; 0 = as NCCL_DEBUG says, 1 = warnings, 2 = +
 * information, 3 = + traces. Lines that it adds to what NCCL's logger prints go to stderr.
 */
void ha_log_configure(const char *nccl_debug, const char *nccl_subsys, int ha_debug);

/* The highest level that anybody wants to see. Read by the macros only: a disabled line costs this
 * load. */
extern atomic_int ha_log_threshold;

static inline int ha_log_enabled(int level)
{
	return level <= atomic_load_explicit(&ha_log_threshold, memory_order_relaxed);
}

/* Write one line, without newline at its end; `name` (device, connection) may be NULL. Use the
 * macros. */
void ha_log_line(int level, unsigned long flags, const char *file, int line, const char *name,
		 const char *fmt, ...) __attribute__((format(printf, 6, 7), cold));

#define HA_LOG(level, flags, name, ...)                                                   \
	do {                                                                              \
		if (__builtin_expect(ha_log_enabled(level), 0))                           \
			ha_log_line(level, flags, __FILE__, __LINE__, name, __VA_ARGS__); \
	} while (0)

/* name: what the line is about, e.g. "mlx5_0", or NULL. */
#define HA_WARN(name, ...) HA_LOG(HA_LOG_WARN, HA_LOG_ALL, name, __VA_ARGS__)
#define HA_INFO(name, ...) HA_LOG(HA_LOG_INFO, HA_LOG_INIT | HA_LOG_NET, name, __VA_ARGS__)
#define HA_TRACE(name, ...) HA_LOG(HA_LOG_TRACE, HA_LOG_NET, name, __VA_ARGS__)

#endif
