/* SPDX-License-Identifier: BSD-3-Clause */
/* stream.h - TCP connections with time limits, numeric addresses */
#ifndef HA_GPU_HOST_STREAM_H
#define HA_GPU_HOST_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A socket, or a negative errno (-EINVAL: no such address). Port 0: the kernel's choice. */
int ha_gpu_stream_listen(const char *address);
int ha_gpu_stream_connect(const char *address, unsigned limit_ms); /* tries again until the limit */
/* All of it: 0, -EPIPE (the other end is gone), -ETIMEDOUT: it takes longer than limit_ms. */
int ha_gpu_stream_send(int fd, const void *data, size_t bytes, unsigned limit_ms);
int ha_gpu_stream_receive(int fd, void *data, size_t bytes, unsigned limit_ms);
/*
 * True: the other end has closed it, and nothing that it sent before is left to receive. Does not
 * wait.
 */
bool ha_gpu_stream_ended(int fd);
/* Host part of our end of `fd`, and the port of a listener. */
int ha_gpu_stream_own(int fd, char host[64], uint16_t *port);
/*
 * An address of the loopback interface whose port nobody listens at now. A negative errno: there is
 * none.
 */
int ha_gpu_stream_free_local(char text[80]);
/* "10.0.0.1:80", "[::1]:80". */
void ha_gpu_stream_text(const char *host, uint16_t port, char text[80]);

#ifdef __cplusplus
}
#endif

#endif
