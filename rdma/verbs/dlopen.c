/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dlopen.c - libibverbs at run time
 *
 * Nothing links against libibverbs: a host without it must still be able to load the plugin and be
 * told what to install. Each symbol is asked for with the version that introduced its present form,
 * since 1.0 of some has another layout.
 */
#include "rdma/verbs/dlopen.h"

#include <dlfcn.h>
#include <endian.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "rdma/verbs/mlx5.h"

#define PORT_SPEED_UNIT_MBPS 100 /* ibv_query_port_speed(3) */

/* The functions as libibverbs declares them. */
struct symbols {
	struct ibv_device **(*get_device_list)(int *n);
	void (*free_device_list)(struct ibv_device **list);
	uint64_t (*get_device_guid)(struct ibv_device *device);
	struct ibv_context *(*open_device)(struct ibv_device *device);
	int (*close_device)(struct ibv_context *context);
	int (*fork_init)(void);
	enum ibv_fork_status (*is_fork_initialized)(void);
	int (*query_device)(struct ibv_context *context, struct ibv_device_attr *attr);
	int (*query_port)(struct ibv_context *context, uint8_t port,
			  struct _compat_ibv_port_attr *attr);
	int (*query_port_speed)(struct ibv_context *context, uint32_t port, uint64_t *speed);
	int (*query_gid)(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid);
	int (*query_gid_ex)(struct ibv_context *context, uint32_t port, uint32_t index,
			    struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size);
	ssize_t (*query_gid_table)(struct ibv_context *context, struct ibv_gid_entry *entries,
				   size_t max, uint32_t flags, size_t entry_size);
	int (*get_async_event)(struct ibv_context *context, struct ibv_async_event *event);
	void (*ack_async_event)(struct ibv_async_event *event);
	struct ibv_pd *(*alloc_pd)(struct ibv_context *context);
	int (*dealloc_pd)(struct ibv_pd *pd);
	struct ibv_mr *(*reg_mr)(struct ibv_pd *pd, void *addr, size_t length, int access);
	struct ibv_mr *(*reg_mr_iova2)(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				       unsigned access);
	struct ibv_mr *(*reg_dmabuf_mr)(struct ibv_pd *pd, uint64_t offset, size_t length,
					uint64_t iova, int fd, int access);
	int (*dereg_mr)(struct ibv_mr *mr);
	struct ibv_comp_channel *(*create_comp_channel)(struct ibv_context *context);
	int (*destroy_comp_channel)(struct ibv_comp_channel *channel);
	struct ibv_cq *(*create_cq)(struct ibv_context *context, int cqe, void *cq_context,
				    struct ibv_comp_channel *channel, int comp_vector);
	int (*destroy_cq)(struct ibv_cq *cq);
	int (*get_cq_event)(struct ibv_comp_channel *channel, struct ibv_cq **cq,
			    void **cq_context);
	void (*ack_cq_events)(struct ibv_cq *cq, unsigned n);
	struct ibv_srq *(*create_srq)(struct ibv_pd *pd, struct ibv_srq_init_attr *attr);
	int (*modify_srq)(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask);
	int (*query_srq)(struct ibv_srq *srq, struct ibv_srq_attr *attr);
	int (*destroy_srq)(struct ibv_srq *srq);
	struct ibv_qp *(*create_qp)(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
	int (*modify_qp)(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
	int (*query_qp)(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
			struct ibv_qp_init_attr *init);
	int (*destroy_qp)(struct ibv_qp *qp);
	int (*query_ece)(struct ibv_qp *qp, struct ibv_ece *ece);
	int (*set_ece)(struct ibv_qp *qp, struct ibv_ece *ece);
};

struct symbol {
	const char *name, *version;
	size_t offset;
	bool optional;
};

#define NEED(field, ver)                                                              \
	{                                                                             \
		"ibv_" #field, "IBVERBS_" ver, offsetof(struct symbols, field), false \
	}
#define WANT(field, ver)                                                             \
	{                                                                            \
		"ibv_" #field, "IBVERBS_" ver, offsetof(struct symbols, field), true \
	}

static const struct symbol symbol_table[] = {
	NEED(get_device_list, "1.1"),
	NEED(free_device_list, "1.1"),
	NEED(get_device_guid, "1.1"),
	NEED(open_device, "1.1"),
	NEED(close_device, "1.1"),
	WANT(fork_init, "1.1"),
	WANT(is_fork_initialized, "1.13"),
	NEED(query_device, "1.1"),
	NEED(query_port, "1.1"),
	WANT(query_port_speed, "1.16"),
	NEED(query_gid, "1.1"),
	{ "_ibv_query_gid_ex", "IBVERBS_1.11", offsetof(struct symbols, query_gid_ex), true },
	{ "_ibv_query_gid_table", "IBVERBS_1.11", offsetof(struct symbols, query_gid_table), true },
	NEED(get_async_event, "1.1"),
	NEED(ack_async_event, "1.1"),
	NEED(alloc_pd, "1.1"),
	NEED(dealloc_pd, "1.1"),
	NEED(reg_mr, "1.1"),
	WANT(reg_mr_iova2, "1.8"),
	WANT(reg_dmabuf_mr, "1.12"),
	NEED(dereg_mr, "1.1"),
	NEED(create_comp_channel, "1.0"),
	NEED(destroy_comp_channel, "1.0"),
	NEED(create_cq, "1.1"),
	NEED(destroy_cq, "1.1"),
	NEED(get_cq_event, "1.1"),
	NEED(ack_cq_events, "1.1"),
	NEED(create_srq, "1.1"),
	NEED(modify_srq, "1.1"),
	NEED(query_srq, "1.1"),
	NEED(destroy_srq, "1.1"),
	NEED(create_qp, "1.1"),
	NEED(modify_qp, "1.1"),
	NEED(query_qp, "1.1"),
	NEED(destroy_qp, "1.1"),
	WANT(query_ece, "1.10"),
	WANT(set_ece, "1.10"),
};

/* One opened library; `ops` first, so that the table's address is ours. */
struct library {
	struct ha_verbs_ops ops;
	struct symbols sym;
	struct ha_mlx5 mlx5;
	void *handle;
	char name[PATH_MAX];
};

static const struct symbols *symbols_of(const struct ha_verbs_ops *v)
{
	return &((const struct library *)v)->sym;
}

/* libibverbs returns a positive errno, or -1 and errno; some drivers a negative errno. */
static int error_of_status(int rc)
{
	if (rc == 0)
		return 0;
	if (rc > 0)
		return -rc;
	if (rc < -1)
		return rc;
	return errno ? -errno : -EIO;
}

/* For functions that return a pointer: errno was 0 before the call. */
static int error_of_object(const void *object)
{
	if (object)
		return 0;
	return errno ? -errno : -ENOMEM;
}

static int lib_device_list(const struct ha_verbs_ops *v, struct ibv_device ***list, int *n)
{
	errno = 0;
	*n = 0;
	*list = symbols_of(v)->get_device_list(n);
	return error_of_object(*list);
}

static void lib_device_list_free(const struct ha_verbs_ops *v, struct ibv_device **list)
{
	symbols_of(v)->free_device_list(list);
}

static uint64_t lib_device_guid(const struct ha_verbs_ops *v, struct ibv_device *device)
{
	return be64toh(symbols_of(v)->get_device_guid(device));
}

static int lib_open(const struct ha_verbs_ops *v, struct ibv_device *device,
		    struct ibv_context **context)
{
	errno = 0;
	*context = symbols_of(v)->open_device(device);
	return error_of_object(*context);
}

static int lib_close(const struct ha_verbs_ops *v, struct ibv_context *context)
{
	return error_of_status(symbols_of(v)->close_device(context));
}

static int lib_hot(const struct ha_verbs_ops *v, struct ibv_context *context,
		   struct ha_verbs_hot *hot)
{
	hot->post_send = context->ops.post_send;
	hot->post_recv = context->ops.post_recv;
	hot->post_srq_recv = context->ops.post_srq_recv;
	hot->poll_cq = context->ops.poll_cq;
	hot->req_notify_cq = context->ops.req_notify_cq;
	return 0;
}

static int lib_fork_init(const struct ha_verbs_ops *v)
{
	/* ibv_fork_init() itself does not ask, and takes the pages from children that the kernel
	 * would have given copies of. */
	if (symbols_of(v)->is_fork_initialized &&
	    symbols_of(v)->is_fork_initialized() == IBV_FORK_UNNEEDED)
		return 0;
	return symbols_of(v)->fork_init ? error_of_status(symbols_of(v)->fork_init()) : -EOPNOTSUPP;
}

static int lib_query_device(const struct ha_verbs_ops *v, struct ibv_context *context,
			    struct ibv_device_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	return error_of_status(symbols_of(v)->query_device(context, attr));
}

/*
 * The exported symbol fills the first fields only; the rest, active_speed_ex among them, comes
 * through the context's own function, which clears what it does not know of the size that it is
 * given.
 */
static int lib_query_port(const struct ha_verbs_ops *v, struct ibv_context *context, uint8_t port,
			  struct ha_port_attr *attr)
{
	enum { SPEED_EX_OFFSET = 52 }; /* appended to the 52 bytes that the struct had before */
	union {
		struct ibv_port_attr attr;
		unsigned char bytes[SPEED_EX_OFFSET + sizeof(uint32_t)];
	} buf;
	struct verbs_context *extended = verbs_get_ctx_op(context, query_port);
	int rc;

	memset(&buf, 0, sizeof(buf));
	if (extended)
		rc = extended->query_port(context, port, &buf.attr, sizeof(buf));
	else
		rc = symbols_of(v)->query_port(context, port,
					       (struct _compat_ibv_port_attr *)&buf.attr);
	attr->attr = buf.attr;
	memcpy(&attr->active_speed_ex, buf.bytes + SPEED_EX_OFFSET, sizeof(attr->active_speed_ex));
	return error_of_status(rc);
}

static int lib_query_port_speed(const struct ha_verbs_ops *v, struct ibv_context *context,
				uint8_t port, uint64_t *mbps)
{
	int rc;

	*mbps = 0;
	if (!symbols_of(v)->query_port_speed)
		return -EOPNOTSUPP;
	rc = symbols_of(v)->query_port_speed(context, port, mbps);
	*mbps *= PORT_SPEED_UNIT_MBPS;
	return error_of_status(rc);
}

static int lib_query_gid(const struct ha_verbs_ops *v, struct ibv_context *context, uint8_t port,
			 int index, union ibv_gid *gid)
{
	errno = 0;
	return error_of_status(symbols_of(v)->query_gid(context, port, index, gid));
}

static int lib_query_gid_ex(const struct ha_verbs_ops *v, struct ibv_context *context, uint8_t port,
			    int index, struct ibv_gid_entry *entry)
{
	if (!symbols_of(v)->query_gid_ex)
		return -EOPNOTSUPP;
	errno = 0;
	return error_of_status(symbols_of(v)->query_gid_ex(context, port, (uint32_t)index, entry, 0,
							   sizeof(*entry)));
}

static int lib_query_gid_table(const struct ha_verbs_ops *v, struct ibv_context *context,
			       struct ibv_gid_entry *entries, int max, int *n)
{
	ssize_t found;

	if (!symbols_of(v)->query_gid_table)
		return -EOPNOTSUPP;
	errno = 0;
	found = symbols_of(v)->query_gid_table(context, entries, (size_t)max, 0, sizeof(*entries));
	if (found < 0)
		return error_of_status((int)found);
	*n = (int)found;
	return 0;
}

static int lib_get_async_event(const struct ha_verbs_ops *v, struct ibv_context *context,
			       struct ibv_async_event *event)
{
	errno = 0;
	return error_of_status(symbols_of(v)->get_async_event(context, event));
}

static void lib_ack_async_event(const struct ha_verbs_ops *v, struct ibv_async_event *event)
{
	symbols_of(v)->ack_async_event(event);
}

static int lib_alloc_pd(const struct ha_verbs_ops *v, struct ibv_context *context,
			struct ibv_pd **pd)
{
	errno = 0;
	*pd = symbols_of(v)->alloc_pd(context);
	return error_of_object(*pd);
}

static int lib_dealloc_pd(const struct ha_verbs_ops *v, struct ibv_pd *pd)
{
	return error_of_status(symbols_of(v)->dealloc_pd(pd));
}

static int lib_reg_mr(const struct ha_verbs_ops *v, struct ibv_pd *pd, void *addr, size_t length,
		      uint64_t iova, unsigned access, struct ibv_mr **mr)
{
	*mr = NULL;
	errno = 0;
	if (symbols_of(v)->reg_mr_iova2)
		*mr = symbols_of(v)->reg_mr_iova2(pd, addr, length, iova, access);
	else if (iova == (uintptr_t)addr)
		*mr = symbols_of(v)->reg_mr(pd, addr, length,
					    (int)(access & ~(unsigned)IBV_ACCESS_OPTIONAL_RANGE));
	else
		return -EOPNOTSUPP;
	return error_of_object(*mr);
}

static int lib_reg_dmabuf_mr(const struct ha_verbs_ops *v, struct ibv_pd *pd, uint64_t offset,
			     size_t length, uint64_t iova, int fd, int access, struct ibv_mr **mr)
{
	*mr = NULL;
	if (!symbols_of(v)->reg_dmabuf_mr)
		return -EOPNOTSUPP;
	errno = 0;
	*mr = symbols_of(v)->reg_dmabuf_mr(pd, offset, length, iova, fd, access);
	return error_of_object(*mr);
}

static int lib_data_direct_path(const struct ha_verbs_ops *v, struct ibv_context *context,
				char *path, size_t len)
{
	struct library *lib = (struct library *)v;

	return ha_mlx5_data_direct_path(&lib->mlx5, context, path, len);
}

static int lib_reg_data_direct_mr(const struct ha_verbs_ops *v, struct ibv_pd *pd, uint64_t offset,
				  size_t length, uint64_t iova, int fd, int access,
				  struct ibv_mr **mr)
{
	return ha_mlx5_reg_data_direct_mr(&((const struct library *)v)->mlx5, pd, offset, length,
					  iova, fd, access, mr);
}

static int lib_dereg_mr(const struct ha_verbs_ops *v, struct ibv_mr *mr)
{
	return error_of_status(symbols_of(v)->dereg_mr(mr));
}

static int lib_create_comp_channel(const struct ha_verbs_ops *v, struct ibv_context *context,
				   struct ibv_comp_channel **channel)
{
	errno = 0;
	*channel = symbols_of(v)->create_comp_channel(context);
	return error_of_object(*channel);
}

static int lib_destroy_comp_channel(const struct ha_verbs_ops *v, struct ibv_comp_channel *channel)
{
	return error_of_status(symbols_of(v)->destroy_comp_channel(channel));
}

static int lib_create_cq(const struct ha_verbs_ops *v, struct ibv_context *context, int cqe,
			 void *cq_context, struct ibv_comp_channel *channel, int comp_vector,
			 struct ibv_cq **cq)
{
	errno = 0;
	*cq = symbols_of(v)->create_cq(context, cqe, cq_context, channel, comp_vector);
	return error_of_object(*cq);
}

static int lib_destroy_cq(const struct ha_verbs_ops *v, struct ibv_cq *cq)
{
	return error_of_status(symbols_of(v)->destroy_cq(cq));
}

static int lib_get_cq_event(const struct ha_verbs_ops *v, struct ibv_comp_channel *channel,
			    struct ibv_cq **cq, void **cq_context)
{
	errno = 0;
	return error_of_status(symbols_of(v)->get_cq_event(channel, cq, cq_context));
}

static void lib_ack_cq_events(const struct ha_verbs_ops *v, struct ibv_cq *cq, unsigned n)
{
	symbols_of(v)->ack_cq_events(cq, n);
}

static int lib_create_srq(const struct ha_verbs_ops *v, struct ibv_pd *pd,
			  struct ibv_srq_init_attr *attr, struct ibv_srq **srq)
{
	errno = 0;
	*srq = symbols_of(v)->create_srq(pd, attr);
	return error_of_object(*srq);
}

static int lib_modify_srq(const struct ha_verbs_ops *v, struct ibv_srq *srq,
			  struct ibv_srq_attr *attr, int mask)
{
	return error_of_status(symbols_of(v)->modify_srq(srq, attr, mask));
}

static int lib_query_srq(const struct ha_verbs_ops *v, struct ibv_srq *srq,
			 struct ibv_srq_attr *attr)
{
	return error_of_status(symbols_of(v)->query_srq(srq, attr));
}

static int lib_destroy_srq(const struct ha_verbs_ops *v, struct ibv_srq *srq)
{
	return error_of_status(symbols_of(v)->destroy_srq(srq));
}

static int lib_create_qp(const struct ha_verbs_ops *v, struct ibv_pd *pd,
			 struct ibv_qp_init_attr *attr, struct ibv_qp **qp)
{
	errno = 0;
	*qp = symbols_of(v)->create_qp(pd, attr);
	return error_of_object(*qp);
}

static int lib_query_unordered(const struct ha_verbs_ops *v, struct ibv_context *context)
{
	return ha_mlx5_query_unordered(&((struct library *)v)->mlx5, context);
}

static int lib_create_unordered_qp(const struct ha_verbs_ops *v, struct ibv_pd *pd,
				   struct ibv_qp_init_attr *attr, struct ibv_qp **qp)
{
	return ha_mlx5_create_unordered_qp(&((const struct library *)v)->mlx5, pd, attr, qp);
}

static int lib_modify_qp(const struct ha_verbs_ops *v, struct ibv_qp *qp, struct ibv_qp_attr *attr,
			 int mask)
{
	return error_of_status(symbols_of(v)->modify_qp(qp, attr, mask));
}

static int lib_query_qp(const struct ha_verbs_ops *v, struct ibv_qp *qp, struct ibv_qp_attr *attr,
			int mask, struct ibv_qp_init_attr *init)
{
	return error_of_status(symbols_of(v)->query_qp(qp, attr, mask, init));
}

static int lib_destroy_qp(const struct ha_verbs_ops *v, struct ibv_qp *qp)
{
	return error_of_status(symbols_of(v)->destroy_qp(qp));
}

static int lib_query_ece(const struct ha_verbs_ops *v, struct ibv_qp *qp, struct ibv_ece *ece)
{
	return symbols_of(v)->query_ece ? error_of_status(symbols_of(v)->query_ece(qp, ece))
					: -EOPNOTSUPP;
}

static int lib_set_ece(const struct ha_verbs_ops *v, struct ibv_qp *qp, struct ibv_ece *ece)
{
	return symbols_of(v)->set_ece ? error_of_status(symbols_of(v)->set_ece(qp, ece))
				      : -EOPNOTSUPP;
}

static const struct ha_verbs_ops library_ops = {
	.device_list = lib_device_list,
	.device_list_free = lib_device_list_free,
	.device_guid = lib_device_guid,
	.open = lib_open,
	.close = lib_close,
	.hot = lib_hot,
	.fork_init = lib_fork_init,
	.query_device = lib_query_device,
	.query_port = lib_query_port,
	.query_port_speed = lib_query_port_speed,
	.query_gid = lib_query_gid,
	.query_gid_ex = lib_query_gid_ex,
	.query_gid_table = lib_query_gid_table,
	.get_async_event = lib_get_async_event,
	.ack_async_event = lib_ack_async_event,
	.alloc_pd = lib_alloc_pd,
	.dealloc_pd = lib_dealloc_pd,
	.reg_mr = lib_reg_mr,
	.reg_dmabuf_mr = lib_reg_dmabuf_mr,
	.data_direct_path = lib_data_direct_path,
	.reg_data_direct_mr = lib_reg_data_direct_mr,
	.dereg_mr = lib_dereg_mr,
	.create_comp_channel = lib_create_comp_channel,
	.destroy_comp_channel = lib_destroy_comp_channel,
	.create_cq = lib_create_cq,
	.destroy_cq = lib_destroy_cq,
	.get_cq_event = lib_get_cq_event,
	.ack_cq_events = lib_ack_cq_events,
	.create_srq = lib_create_srq,
	.modify_srq = lib_modify_srq,
	.query_srq = lib_query_srq,
	.destroy_srq = lib_destroy_srq,
	.create_qp = lib_create_qp,
	.modify_qp = lib_modify_qp,
	.query_qp = lib_query_qp,
	.destroy_qp = lib_destroy_qp,
	.query_unordered = lib_query_unordered,
	.create_unordered_qp = lib_create_unordered_qp,
	.query_ece = lib_query_ece,
	.set_ece = lib_set_ece,
};

static int symbols_load(struct library *lib)
{
	for (size_t i = 0; i < sizeof(symbol_table) / sizeof(symbol_table[0]); i++) {
		const struct symbol *s = &symbol_table[i];
		void *address = dlvsym(lib->handle, s->name, s->version);

		if (!address && !s->optional) {
			HA_WARN(NULL,
				"%s has no %s in version %s: it is not a libibverbs that hawser "
				"can use",
				lib->name, s->name, s->version);
			return -ENOSYS;
		}
		memcpy((char *)&lib->sym + s->offset, &address, sizeof(address));
	}
	return 0;
}

/* The folder of the file that this code was loaded from, without '/' at its end; "" when that is
 * unknown. */
static void own_folder(char *folder, size_t len)
{
	char path[PATH_MAX];
	Dl_info info;
	char *slash;

	folder[0] = 0;
	/* For the program itself dladdr knows argv[0] only, which may be relative to a folder that
	 * was left since. */
	if (!dladdr((void *)own_folder, &info) || !info.dli_fname ||
	    !strstr(info.dli_fname, ".so") || !realpath(info.dli_fname, path))
		if (!realpath("/proc/self/exe", path))
			return;
	slash = strrchr(path, '/');
	if (slash)
		snprintf(folder, len, "%.*s", (int)(slash - path), path);
}

static void *library_try(struct library *lib, const char *path)
{
	snprintf(lib->name, sizeof(lib->name), "%s", path);
	lib->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	return lib->handle;
}

/*
 * libsoftroce.so holds the same code as the software NIC's libibverbs.so.1, but under its own
 * SONAME. The loader takes a loaded library for every name that equals its SONAME: with the other
 * one loaded, "libibverbs.so.1" would mean the software NIC to everybody else in the process,
 * NCCL's own transport included.
 */
static int softroce_open(struct library *lib)
{
	static const char *const places[] = { "%s/softroce/libsoftroce.so",
					      "%s/hawser/softroce/libsoftroce.so",
					      "%s/../softroce/libsoftroce.so",
					      "%s/../lib/hawser/softroce/libsoftroce.so" };
	char folder[PATH_MAX - 64], path[PATH_MAX];

	own_folder(folder, sizeof(folder));
	for (size_t i = 0; *folder && i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(path, sizeof(path), places[i], folder);
		if (library_try(lib, path))
			return 0;
	}
	if (library_try(lib, "libsoftroce.so"))
		return 0;
	HA_WARN(NULL,
		"HA_NCCL_VERBS=soft: no software NIC found; expected %s/softroce/libsoftroce.so. "
		"Install it there, or "
		"set HA_NCCL_VERBS to its path",
		folder);
	return -ENOENT;
}

/*
 * NCCL's own transport tries these names in this order. The first may be a link of the development
 * package to the second, or, under softroce-run, the software NIC; a file of that name without
 * libibverbs' present functions is passed over.
 */
static int system_open(struct library *lib)
{
	static const char *const names[] = { "libibverbs.so", "libibverbs.so.1" };

	if (library_try(lib, names[0]) &&
	    dlvsym(lib->handle, symbol_table[0].name, symbol_table[0].version))
		return 0;
	if (library_try(lib, names[1]))
		return 0;
	HA_WARN(NULL,
		"%s. Install libibverbs1 and ibverbs-providers (rdma-core), or set "
		"HA_NCCL_VERBS=soft for the software NIC",
		dlerror());
	return -ENOENT;
}

static int library_find(struct library *lib, const char *choice)
{
	if (!strcmp(choice, "soft"))
		return softroce_open(lib);
	if (!*choice || !strcmp(choice, "system"))
		return system_open(lib);
	if (library_try(lib, choice))
		return 0;
	HA_WARN(NULL, "HA_NCCL_VERBS=%s: %s. Use system, soft, or the path of a libibverbs", choice,
		dlerror());
	return -ENOENT;
}

int ha_verbs_open_library(const char *choice, struct ha_verbs_ops **ops)
{
	struct library *lib = calloc(1, sizeof(*lib));
	int rc;

	*ops = NULL;
	if (!lib)
		return -ENOMEM;
	lib->ops = library_ops;
	ha_verbs_ops_fill(&lib->ops);
	rc = library_find(lib, choice ? choice : "");
	if (!rc)
		rc = symbols_load(lib);
	if (rc) {
		ha_verbs_close_library(&lib->ops);
		return rc;
	}
	lib->ops.name = lib->name;
	lib->ops.optional_access = lib->sym.reg_mr_iova2 != NULL;
	HA_TRACE(NULL, "verbs from %s", lib->name);
	*ops = &lib->ops;
	return 0;
}

void ha_verbs_close_library(struct ha_verbs_ops *ops)
{
	struct library *lib = (struct library *)ops;

	if (!lib)
		return;
	if (lib->handle)
		dlclose(lib->handle); /* drops the count only: RTLD_NODELETE */
	free(lib);
}
