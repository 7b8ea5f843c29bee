/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/top/frame.h"

#include <string.h>

#include "base/clock.h"

static void add_ports(struct frame *f, const struct ha_status_page *page)
{
	for (int i = 0; i < HA_STATUS_DEVICES && f->ports < TOP_PORTS; i++) {
		const struct ha_status_device *d = &page->device[i];
		struct ha_port_bytes *port = &f->port[f->ports];

		if (!d->seq || !*d->name)
			continue;
		*port = (struct ha_port_bytes) { .pid = (pid_t)page->header.pid };
		memcpy(port->name, d->name, sizeof(port->name));
		f->ports++;
	}
}

int frame_look(struct frame *f, const char *dir, const char *sysfs)
{
	int err;

	*f = (struct frame) { .at = ha_clock_now(&ha_clock_live) };
	err = ha_status_scan(dir, &f->found, &f->n);
	if (err)
		return err;
	for (size_t i = 0; i < f->n; i++)
		if (ha_status_runs(&f->found[i]))
			add_ports(f, f->found[i].page);
	ha_port_bytes_read(f->port, f->ports, sysfs);
	return 0;
}

void frame_release(struct frame *f)
{
	ha_status_scan_free(f->found, f->n);
	*f = (struct frame) { 0 };
}

static double seconds_between(const struct frame *f, const struct frame *before)
{
	return (double)(f->at - before->at) / (double)HA_NS_PER_S;
}

static double rate_of(uint64_t now, uint64_t then, double seconds)
{
	return now < then || seconds <= 0 ? -1 : (double)(now - then) / seconds;
}

struct top_rates frame_port_rates(const struct frame *f, const struct frame *before,
				  const struct ha_port_bytes *port)
{
	double seconds = seconds_between(f, before);

	for (unsigned i = 0; i < before->ports; i++) {
		const struct ha_port_bytes *then = &before->port[i];

		if (then->pid == port->pid && !strcmp(then->name, port->name))
			return (struct top_rates) {
				.sent = rate_of(port->sent, then->sent, seconds),
				.received = rate_of(port->received, then->received, seconds),
			};
	}
	return (struct top_rates) { -1, -1 };
}

double frame_message_rate(const struct frame *f, const struct frame *before, size_t p, int i)
{
	const struct ha_status_page *page = f->found[p].page;
	const struct ha_status_connection *now = &page->connection[i];

	for (size_t k = 0; k < before->n; k++) {
		const struct ha_status_page *then = before->found[k].page;

		if (!then || strcmp(before->found[k].name, f->found[p].name) ||
		    then->header.start_ticks != page->header.start_ticks)
			continue;
		if (then->connection[i].since_wall != now->since_wall)
			return -1;
		return rate_of(now->messages, then->connection[i].messages,
			       seconds_between(f, before));
	}
	return -1;
}
