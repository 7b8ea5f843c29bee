/* SPDX-License-Identifier: BSD-3-Clause */
/* port.h - a network interface taken down and put back as it was, by ip(8) */
#ifndef HAWSER_DRILL_PORT_H
#define HAWSER_DRILL_PORT_H

#include <stdbool.h>

struct fault_saved;

/* A descriptor of memory for what ip(8) writes; -1: none. */
int port_memory(void);

/* It is there, and administratively up. */
bool port_is_up(const char *netdev);
/* A default route, IPv4 or IPv6, leads over it: who logs in from elsewhere would be cut off. */
bool port_has_default_route(const char *netdev);

/* 0, or -EIO with ip's own words on standard error. */
int port_take_down(const char *netdev, struct fault_saved *saved);
/* Up again, with the routes and the IPv6 addresses that it had. */
int port_put_back(const char *netdev, struct fault_saved *saved);

#endif
