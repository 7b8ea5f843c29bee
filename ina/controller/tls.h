/* SPDX-License-Identifier: BSD-3-Clause */
/* tls.h - certificates from files, for either end */
#ifndef HA_INA_TLS_H
#define HA_INA_TLS_H

#include <stdbool.h>
#include <stddef.h>

struct grpc_channel_credentials;
struct grpc_server_credentials;

/* Names of PEM files; NULL or "" each = none. */
struct ha_tls {
	const char *ca;         /* who signs for the other end */
	const char *cert, *key; /* ours, and its key */
};

/* Whether any is given. */
bool ha_tls_wanted(const struct ha_tls *tls);
/*
 * With a CA the clients need certificates, too (mutual TLS). NULL and why. Without any: no
 * encryption.
 */
struct grpc_server_credentials *ha_tls_server(const struct ha_tls *tls, char *why, size_t size);
struct grpc_channel_credentials *ha_tls_client(const struct ha_tls *tls, char *why, size_t size);

#endif
