/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/switch/xdp/datapath.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* switch.bpf.c, compiled: object.S. */
extern const unsigned char ina_xdp_object[], ina_xdp_object_end[];

/* A group that is installed. */
struct incarnation {
	struct ina_xdp_group *shared; /* with the program; NULL: none */
	int group, ports;             /* maps */
};

struct ina_xdp {
	struct ina_xdp_settings settings;
	struct bpf_object *object;
	int groups, ports, counters;
	int answer; /* the program; -1 with `testable` */
	uint64_t incarnation;
	/* The slot core's own view: it checks what is installed. Its slots are not used. */
	struct ina_switch shadow;
	struct incarnation of[INA_GROUPS];
	char why[256];
};

/* ---- opening ---- */

/*
 * What libbpf and the verifier say about the last failure: the first line of it that is an error.
 */
static char said[512];

static int listen_to(enum libbpf_print_level level, const char *format, va_list args)
{
	char line[512];

	vsnprintf(line, sizeof(line), format, args);
	line[strcspn(line, "\n")] = 0;
	if (level == LIBBPF_WARN && !*said)
		snprintf(said, sizeof(said), "%s", line);
	return 0;
}

static void explain_error(int err, char *why, size_t size)
{
	if (err == -EPERM)
		snprintf(why, size,
			 "the kernel does not let us load an XDP program: run as root (CAP_BPF, "
			 "CAP_NET_ADMIN)");
	else if (err == -ENOMEM)
		snprintf(why, size,
			 "no memory for the slots: fewer (--slots), or raise the limit of locked "
			 "memory");
	else
		snprintf(why, size,
			 "the kernel refuses the XDP program (%s; %s): it must be Linux 5.14 or "
			 "later",
			 strerror(-err), *said ? said : "no reason given");
}

static struct bpf_map *map_named(struct bpf_object *o, const char *end)
{
	struct bpf_map *m;

	bpf_object__for_each_map(m, o)
	{
		const char *name = bpf_map__name(m);
		size_t n = strlen(name), k = strlen(end);

		if (n >= k && !strcmp(name + n - k, end))
			return m;
	}
	return NULL;
}

/* Before it is loaded. */
static int configure_object(struct ina_xdp *x, bool testable)
{
	struct bpf_map *constants = map_named(x->object, ".rodata"),
		       *slots = map_named(x->object, "slots");
	struct bpf_program *p;
	size_t size;

	if (!constants || !slots || !bpf_map__initial_value(constants, &size) ||
	    size != sizeof(x->settings) ||
	    bpf_map__set_initial_value(constants, &x->settings, size) ||
	    bpf_map__set_max_entries(slots, x->settings.nslots))
		return -EINVAL;
	bpf_object__for_each_program(p, x->object)
	{
		if (bpf_program__expected_attach_type(p) == BPF_XDP_DEVMAP && testable)
			bpf_program__set_expected_attach_type(p, BPF_XDP);
		if (!strncmp(bpf_program__name(p), "bench_", 6))
			bpf_program__set_autoload(p, x->settings.bench_ranks);
	}
	return 0;
}

static int take_files(struct ina_xdp *x, bool testable)
{
	x->groups = bpf_map__fd(map_named(x->object, "groups"));
	x->ports = bpf_map__fd(map_named(x->object, "ports"));
	x->counters = bpf_map__fd(map_named(x->object, "counters"));
	x->answer = testable ? -1 : ina_xdp_program(x, "ina_answer");
	return x->groups < 0 || x->ports < 0 || x->counters < 0 ? -EINVAL : 0;
}

static int load_object(struct ina_xdp *x, bool testable)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .object_name = "ina_switch");
	int err;

	*said = 0;
	libbpf_set_print(listen_to);
	x->object = bpf_object__open_mem(ina_xdp_object,
					 (size_t)(ina_xdp_object_end - ina_xdp_object), &opts);
	if (!x->object)
		return -errno;
	err = configure_object(x, testable);
	if (!err)
		err = bpf_object__load(x->object);
	return err ? err : take_files(x, testable);
}

struct ina_xdp *ina_xdp_open(const struct ina_xdp_settings *settings, bool testable, char *why,
			     size_t size)
{
	struct ina_xdp *x = calloc(1, sizeof(*x));
	struct timespec now;
	int err;

	if (!x) {
		snprintf(why, size, "no memory");
		return NULL;
	}
	x->settings = *settings;
	x->settings.testable = testable;
	ina_switch_init(&x->shadow, settings->addr, settings->mac, NULL, settings->nslots);
	/*
	 * Above the incarnations of a switch of before: only its own maps know them, but a clock
	 * costs nothing.
	 */
	clock_gettime(CLOCK_BOOTTIME, &now);
	x->incarnation = (uint64_t)now.tv_sec << 32;
	err = load_object(x, testable);
	if (!err)
		return x;
	explain_error(err, why, size);
	ina_xdp_close(x);
	return NULL;
}

static void close_maps(struct incarnation *l)
{
	munmap(l->shared, sizeof(*l->shared));
	close(l->group);
	close(l->ports);
	l->shared = NULL;
}

void ina_xdp_close(struct ina_xdp *x)
{
	for (unsigned id = 0; id < INA_GROUPS; id++)
		if (x->of[id].shared)
			close_maps(&x->of[id]);
	bpf_object__close(x->object);
	free(x);
}

const char *ina_xdp_why(const struct ina_xdp *x)
{
	return x->why;
}

int ina_xdp_program(const struct ina_xdp *x, const char *name)
{
	struct bpf_program *p = bpf_object__find_program_by_name(x->object, name);

	return p ? bpf_program__fd(p) : -1;
}

/* ---- groups ---- */

static int set_error(struct ina_xdp *x, const char *what, int err)
{
	snprintf(x->why, sizeof(x->why), "%s: %s", what, strerror(-err));
	return err;
}

/* The group's own map, filled, and shared with us. */
static int make_group(struct ina_xdp *x, const struct ina_group_config *c, const int *ifindex,
		      struct incarnation *l)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);
	struct ina_xdp_group g = { .group = { .config = *c, .installed = true, .lived = true },
				   .incarnation = ++x->incarnation };
	uint32_t zero = 0;

	for (unsigned i = 0; i < c->ranks; i++)
		g.port[i] = (uint32_t)ifindex[i];
	l->group =
		bpf_map_create(BPF_MAP_TYPE_ARRAY, "ina_group", sizeof(zero), sizeof(g), 1, &opts);
	if (l->group < 0)
		return set_error(x, "no map for a group", -errno);
	if (bpf_map_update_elem(l->group, &zero, &g, BPF_ANY)) {
		set_error(x, "a group's map", -errno);
		goto close_group;
	}
	l->shared = mmap(NULL, sizeof(g), PROT_READ | PROT_WRITE, MAP_SHARED, l->group, 0);
	if (l->shared != MAP_FAILED)
		return 0;
	set_error(x, "a group's map into memory", -errno);
	l->shared = NULL;
close_group:
	close(l->group);
	return -EIO;
}

static int set_port(struct ina_xdp *x, const struct incarnation *l, uint32_t rank, int ifindex)
{
	struct bpf_devmap_val v = { .ifindex = (uint32_t)ifindex, .bpf_prog.fd = x->answer };

	if (x->answer < 0 || !bpf_map_update_elem(l->ports, &rank, &v, BPF_ANY))
		return 0;
	return set_error(x, "a rank's port cannot be redirected to", -errno);
}

static int make_ports(struct ina_xdp *x, const struct ina_group_config *c, const int *ifindex,
		      struct incarnation *l)
{
	int err = 0;

	l->ports = bpf_map_create(BPF_MAP_TYPE_DEVMAP, "ina_ports", sizeof(uint32_t),
				  sizeof(struct bpf_devmap_val), INA_RANKS_MAX, NULL);
	if (l->ports < 0)
		return set_error(x, "no map for a group's ports", -errno);
	for (uint32_t i = 0; i < c->ranks && !err; i++)
		err = set_port(x, l, i, ifindex[i]);
	if (err)
		close(l->ports);
	return err;
}

/* The ports first: whoever sees the group finds them. */
static int publish_group(struct ina_xdp *x, uint32_t id, const struct incarnation *l)
{
	if (bpf_map_update_elem(x->ports, &id, &l->ports, BPF_ANY) ||
	    bpf_map_update_elem(x->groups, &id, &l->group, BPF_ANY))
		return set_error(x, "the table of groups", -errno);
	return 0;
}

int ina_xdp_install(struct ina_xdp *x, const struct ina_group_config *c, const int *ifindex)
{
	struct incarnation l = { 0 };
	const char *why;
	int err = ina_switch_check(&x->shadow, c, &why);

	if (err) {
		snprintf(x->why, sizeof(x->why), "%s", why);
		return err;
	}
	err = make_group(x, c, ifindex, &l);
	if (err)
		return err;
	err = make_ports(x, c, ifindex, &l);
	if (err) {
		munmap(l.shared, sizeof(*l.shared));
		close(l.group);
		return err;
	}
	err = publish_group(x, c->id, &l);
	if (err) {
		close_maps(&l);
		return err;
	}
	if (x->of[c->id].shared)
		close_maps(&x->of[c->id]);
	x->of[c->id] = l;
	x->shadow.group[c->id] =
		(struct ina_group) { .config = *c, .installed = true, .lived = true };
	return 0;
}

static int find_group(struct ina_xdp *x, uint8_t id, uint32_t epoch, struct incarnation **l)
{
	*l = &x->of[id];
	if (!(*l)->shared)
		return set_error(x, "there is no such group", -ENOENT);
	return (*l)->shared->group.config.epoch == epoch
		       ? 0
		       : set_error(x, "the group has another epoch", -ESTALE);
}

int ina_xdp_renew(struct ina_xdp *x, uint8_t id, uint32_t epoch, uint64_t lease_until)
{
	struct incarnation *l;
	int err = find_group(x, id, epoch, &l);

	if (err)
		return err;
	if (l->shared->group.over)
		return set_error(x, "the group is over", -ETIME);
	__atomic_store_n(&l->shared->group.config.lease_until, lease_until, __ATOMIC_RELAXED);
	return 0;
}

int ina_xdp_remove(struct ina_xdp *x, uint8_t id, uint32_t epoch)
{
	uint32_t key = id;
	struct incarnation *l;
	int err = find_group(x, id, epoch, &l);

	if (err)
		return err;
	bpf_map_delete_elem(x->groups, &key);
	bpf_map_delete_elem(x->ports, &key);
	close_maps(l);
	x->shadow.group[id].installed = false;
	return 0;
}

int ina_xdp_move(struct ina_xdp *x, uint8_t id, unsigned rank, const uint8_t mac[6], int ifindex)
{
	struct incarnation *l = &x->of[id];

	if (!l->shared || rank >= l->shared->group.config.ranks)
		return set_error(x, "there is no such rank", -ENOENT);
	memcpy(l->shared->group.config.member[rank].mac, mac, 6);
	__atomic_store_n(&l->shared->port[rank], (uint32_t)ifindex, __ATOMIC_RELAXED);
	return set_port(x, l, rank, ifindex);
}

const struct ina_group *ina_xdp_group(const struct ina_xdp *x, uint8_t id)
{
	return x->of[id].shared ? &x->of[id].shared->group : NULL;
}

bool ina_xdp_seen(struct ina_xdp *x, uint8_t id)
{
	struct incarnation *l = &x->of[id];

	return l->shared && __atomic_exchange_n(&l->shared->seen, 0, __ATOMIC_RELAXED);
}

/* ---- counters ---- */

int ina_xdp_count(struct ina_xdp *x, uint64_t *n)
{
	int cpus = libbpf_num_possible_cpus();
	uint64_t *each = cpus > 0 ? calloc((size_t)cpus, sizeof(*each)) : NULL;

	if (!each)
		return set_error(x, "counters", -ENOMEM);
	for (uint32_t i = 0; i < INA_XDP_COUNTERS; i++) {
		n[i] = 0;
		if (bpf_map_lookup_elem(x->counters, &i, each)) {
			free(each);
			return set_error(x, "counters", -errno);
		}
		for (int c = 0; c < cpus; c++)
			n[i] += each[c];
	}
	free(each);
	return 0;
}

const char *ina_xdp_counter_name(unsigned which, const char **help)
{
	static const char *const own[][2] = {
#define X(id, name, help) { name, help },
		INA_XDP_COUNTER_LIST(X)
#undef X
	};

	if (which < INA_XDP_REASONS_AT)
		return ina_fault_name((enum ina_fault)which, help);
	if (which < INA_XDP_OWN_AT)
		return ina_reason_name((enum ina_reason)(which - INA_XDP_REASONS_AT), help);
	if (which >= INA_XDP_COUNTERS)
		return NULL;
	if (help)
		*help = own[which - INA_XDP_OWN_AT][1];
	return own[which - INA_XDP_OWN_AT][0];
}
