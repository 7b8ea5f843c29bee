/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/controller/tls.h"

#include <errno.h>
#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_MAX (1 << 20) /* bytes of a PEM file */

struct pem {
	char *ca, *cert, *key;
};

static bool is_given(const char *path)
{
	return path && *path;
}

bool ha_tls_wanted(const struct ha_tls *tls)
{
	return is_given(tls->ca) || is_given(tls->cert) || is_given(tls->key);
}

static char *read_pem_file(const char *path, char *why, size_t size)
{
	char *text = malloc(FILE_MAX + 1);
	FILE *file = fopen(path, "re");
	size_t n = 0;

	if (file && text)
		n = fread(text, 1, FILE_MAX, file);
	if (!file || !text || ferror(file) || !n || memchr(text, 0, n)) {
		snprintf(why, size, "%s: %s", path,
			 file && text && !ferror(file) ? "no PEM file" : strerror(errno));
		free(text);
		text = NULL;
	} else {
		text[n] = 0;
	}
	if (file)
		fclose(file);
	return text;
}

static void pem_free(struct pem *pem)
{
	free(pem->ca);
	free(pem->cert);
	if (pem->key)
		explicit_bzero(pem->key, strlen(pem->key));
	free(pem->key);
}

static bool pem_read(const struct ha_tls *tls, struct pem *pem, char *why, size_t size)
{
	memset(pem, 0, sizeof(*pem));
	if (is_given(tls->cert) != is_given(tls->key)) {
		snprintf(why, size, "a certificate and its key come together");
		return false;
	}
	if ((is_given(tls->ca) && !(pem->ca = read_pem_file(tls->ca, why, size))) ||
	    (is_given(tls->cert) && !(pem->cert = read_pem_file(tls->cert, why, size))) ||
	    (is_given(tls->key) && !(pem->key = read_pem_file(tls->key, why, size)))) {
		pem_free(pem);
		return false;
	}
	return true;
}

grpc_server_credentials *ha_tls_server(const struct ha_tls *tls, char *why, size_t size)
{
	grpc_ssl_client_certificate_request_type ask = GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE;
	grpc_ssl_pem_key_cert_pair pair;
	grpc_server_credentials *made;
	struct pem pem;

	if (!ha_tls_wanted(tls))
		return grpc_insecure_server_credentials_create();
	if (!is_given(tls->cert)) {
		snprintf(why, size, "a server with a CA needs a certificate of its own");
		return NULL;
	}
	if (!pem_read(tls, &pem, why, size))
		return NULL;
	if (pem.ca)
		ask = GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY;
	pair.private_key = pem.key;
	pair.cert_chain = pem.cert;
	made = grpc_ssl_server_credentials_create_ex(pem.ca, &pair, 1, ask, NULL);
	if (!made)
		snprintf(why, size, "gRPC does not take these certificates");
	pem_free(&pem);
	return made;
}

grpc_channel_credentials *ha_tls_client(const struct ha_tls *tls, char *why, size_t size)
{
	grpc_ssl_pem_key_cert_pair pair;
	grpc_channel_credentials *made;
	struct pem pem;

	if (!ha_tls_wanted(tls))
		return grpc_insecure_credentials_create();
	if (!pem_read(tls, &pem, why, size))
		return NULL;
	pair.private_key = pem.key;
	pair.cert_chain = pem.cert;
	made = grpc_ssl_credentials_create(pem.ca, pem.cert ? &pair : NULL, NULL, NULL);
	if (!made)
		snprintf(why, size, "gRPC does not take these certificates");
	pem_free(&pem);
	return made;
}
