/* SPDX-License-Identifier: BSD-3-Clause */
/* Virtual memory management: memory, addresses and mappings apart; memory that another process
 * imports. */
#include "tests/softcuda/runtime/support.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

typedef CUmemGenericAllocationHandle handle_t;
static CUresult (*create)(handle_t *, size_t, const CUmemAllocationProp *, unsigned long long);
static CUresult (*release)(handle_t);
static CUresult (*reserve)(CUdeviceptr *, size_t, size_t, CUdeviceptr, unsigned long long);
static CUresult (*free_addresses)(CUdeviceptr, size_t);
static CUresult (*map)(CUdeviceptr, size_t, size_t, handle_t, unsigned long long);
static CUresult (*unmap)(CUdeviceptr, size_t);
static CUresult (*set_access)(CUdeviceptr, size_t, const CUmemAccessDesc *, size_t);
static CUresult (*export_handle)(void *, handle_t, int, unsigned long long);
static CUresult (*import_handle)(handle_t *, void *, int);
static CUresult (*retain)(handle_t *, void *);
static CUresult (*get_range)(CUdeviceptr *, size_t *, CUdeviceptr);
static CUresult (*get_attribute)(void *, int, CUdeviceptr);
static CUresult (*get_granularity)(size_t *, const CUmemAllocationProp *, int);

static size_t unit; /* the granularity */
static const CUmemAccessDesc access_0 = { { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
					  CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
static CUmemAllocationProp properties = {
	.type = CU_MEM_ALLOCATION_TYPE_PINNED,
	.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
	.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
};

static void find_functions(void)
{
	*(void **)&create = find_driver("cuMemCreate");
	*(void **)&release = find_driver("cuMemRelease");
	*(void **)&reserve = find_driver("cuMemAddressReserve");
	*(void **)&free_addresses = find_driver("cuMemAddressFree");
	*(void **)&map = find_driver("cuMemMap");
	*(void **)&unmap = find_driver("cuMemUnmap");
	*(void **)&set_access = find_driver("cuMemSetAccess");
	*(void **)&export_handle = find_driver("cuMemExportToShareableHandle");
	*(void **)&import_handle = find_driver("cuMemImportFromShareableHandle");
	*(void **)&retain = find_driver("cuMemRetainAllocationHandle");
	*(void **)&get_range = find_driver("cuMemGetAddressRange");
	*(void **)&get_attribute = find_driver("cuPointerGetAttribute");
	*(void **)&get_granularity = find_driver("cuMemGetAllocationGranularity");
	OK(get_granularity(&unit, &properties, 0));
}

static char *as_bytes(CUdeviceptr address)
{
	return (char *)(uintptr_t)address;
}

/* One memory at two addresses; it exists as long as one of handle and mappings. */
static void mapped_memory(void)
{
	handle_t memory, again;
	CUdeviceptr first, second, base;
	size_t size;
	unsigned types = 0, capable = 7;

	OK(create(&memory, 2 * unit, &properties, 0));
	OK(reserve(&first, 4 * unit, 0, 0, 0));
	OK(reserve(&second, 2 * unit, 8 * unit, 0, 0));
	CHECK(second % (8 * unit) == 0);
	OK(map(first + unit, 2 * unit, 0, memory, 0));
	OK(map(second, unit, unit, memory, 0)); /* its second half */
	OK(set_access(first + unit, 2 * unit, &access_0, 1));
	OK(set_access(second, unit, &access_0, 1));
	as_bytes(first)[2 * unit + 5] = 42;
	CHECK(as_bytes(second)[5] == 42);
	OK(cudaMemset(as_bytes(second), 7, unit));
	OK(cudaDeviceSynchronize());
	CHECK(as_bytes(first)[3 * unit - 1] == 7);
	OK(get_range(&base, &size, first + unit + 100));
	CHECK(base == first + unit && size == 2 * unit);
	CHECK_INT(get_range(&base, &size, first), cudaErrorSymbolNotFound);
	OK(get_attribute(&types, CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, second));
	CHECK_INT(types, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
	OK(get_attribute(&capable, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, second));
	CHECK_INT(capable, 0);
	OK(release(memory));
	CHECK_INT(release(memory), cudaErrorInvalidValue);
	OK(retain(&again, as_bytes(second) + 100));
	CHECK(again == memory);
	CHECK_INT(unmap(first, 4 * unit), cudaErrorInvalidValue); /* not all of it is mapped */
	CHECK_INT(free_addresses(first, 4 * unit), cudaErrorInvalidValue); /* some of it is */
	OK(unmap(first + unit, 2 * unit));
	OK(release(again));
	CHECK(as_bytes(second)[1] == 7);
	OK(unmap(second, unit));
	OK(free_addresses(first, 4 * unit));
	OK(free_addresses(second, 2 * unit));
}

static void wrong_arguments(void)
{
	handle_t memory;
	CUdeviceptr address;
	CUmemAllocationProp fabric = properties;

	CHECK_INT(create(&memory, unit + 1, &properties, 0), cudaErrorInvalidValue);
	fabric.requestedHandleTypes = CU_MEM_HANDLE_TYPE_FABRIC;
	CHECK_INT(create(&memory, unit, &fabric, 0), cudaErrorNotSupported);
	OK(create(&memory, unit, &properties, 0));
	OK(reserve(&address, unit, 0, 0, 0));
	CHECK_INT(map(address, 2 * unit, 0, memory, 0), cudaErrorInvalidValue);
	CHECK_INT(map(address, unit, unit, memory, 0), cudaErrorInvalidValue);
	CHECK_INT(set_access(address, unit, &access_0, 1), cudaErrorInvalidValue); /* not mapped */
	OK(map(address, unit, 0, memory, 0));
	CHECK_INT(map(address, unit, 0, memory, 0), cudaErrorAlreadyMapped);
	CHECK_INT(map(address, unit, 0, 12345, 0), cudaErrorInvalidValue);
	OK(unmap(address, unit));
	CHECK_INT(unmap(address, unit), cudaErrorInvalidValue);
	CHECK_INT(free_addresses(address + unit, unit), cudaErrorInvalidValue);
	OK(free_addresses(address, unit));
	OK(release(memory));
	CHECK_INT(((CUresult(*)(void))find_driver("cuMulticastCreate"))(), cudaErrorNotSupported);
}

/* ---- between processes ---- */

static void send_descriptor(int socket, int descriptor)
{
	char byte = 'd', control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec part = { &byte, 1 };
	struct msghdr message = { .msg_iov = &part,
				  .msg_iovlen = 1,
				  .msg_control = control,
				  .msg_controllen = sizeof(control) };
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(header), &descriptor, sizeof(int));
	CHECK(sendmsg(socket, &message, 0) == 1);
}

static int receive_descriptor(int socket)
{
	char byte, control[CMSG_SPACE(sizeof(int))];
	struct iovec part = { &byte, 1 };
	struct msghdr message = { .msg_iov = &part,
				  .msg_iovlen = 1,
				  .msg_control = control,
				  .msg_controllen = sizeof(control) };
	int descriptor = -1;
	CHECK(recvmsg(socket, &message, MSG_CMSG_CLOEXEC) == 1 && CMSG_FIRSTHDR(&message) != NULL);
	memcpy(&descriptor, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
	return descriptor;
}

static void run_importer(int socket)
{
	handle_t memory;
	CUdeviceptr address;
	char byte;

	find_functions();
	int descriptor = receive_descriptor(socket);
	OK(import_handle(&memory, (void *)(intptr_t)descriptor,
			 CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
	close(descriptor);
	OK(reserve(&address, unit, 0, 0, 0));
	OK(map(address, unit, 0, memory, 0));
	OK(release(memory));
	OK(set_access(address, unit, &access_0, 1));
	CHECK(as_bytes(address)[unit - 1] == 77);
	as_bytes(address)[0] = 78;
	CHECK(write(socket, "w", 1) == 1);
	/* the exporter has given everything up: the memory is still here */
	CHECK(read(socket, &byte, 1) == 1);
	CHECK(as_bytes(address)[unit - 1] == 77);
	OK(unmap(address, unit));
	OK(free_addresses(address, unit));
	exit(0);
}

static void run_exporter(int socket)
{
	handle_t memory;
	CUdeviceptr address;
	int descriptor;
	char byte;

	OK(create(&memory, unit, &properties, 0));
	OK(reserve(&address, unit, 0, 0, 0));
	OK(map(address, unit, 0, memory, 0));
	OK(set_access(address, unit, &access_0, 1));
	as_bytes(address)[unit - 1] = 77;
	OK(export_handle(&descriptor, memory, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	send_descriptor(socket, descriptor);
	close(descriptor);
	CHECK(read(socket, &byte, 1) == 1);
	CHECK(as_bytes(address)[0] == 78);
	OK(unmap(address, unit));
	OK(release(memory));
	OK(free_addresses(address, unit));
	CHECK(write(socket, "g", 1) == 1);
	CHECK_INT(export_handle(&descriptor, memory, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
		  cudaErrorInvalidValue);
	CHECK_INT(import_handle(&memory, (void *)(intptr_t)socket,
				CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
		  cudaErrorInvalidValue); /* not memory */
}

int main(void)
{
	int sockets[2], status;

	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
	pid_t importer = fork();
	CHECK(importer >= 0);
	/* who waits for a peer that has failed reads the end */
	close(sockets[importer == 0 ? 0 : 1]);
	if (importer == 0)
		run_importer(sockets[1]);
	find_functions();
	mapped_memory();
	wrong_arguments();
	run_exporter(sockets[0]);
	CHECK(waitpid(importer, &status, 0) == importer && status == 0);
	return 0;
}
