/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shim.c - what Debian's NCCL objects need in their own shared object
 *
 * 1. Five functions of CUDA's runtime stand in NCCL's archive as weak hidden stubs that fail (NCCL
 * replaces them where a
 *    newer static runtime is linked). A strong definition in the same link takes their place; it
 *    calls softcuda.
 * 2. Objects that were compiled against glibc 2.38 or later call the C23 forms of the number
 * parsers. An older glibc
 *    does not have them. For NCCL's input (no binary literals) the old ones do the same.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

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
