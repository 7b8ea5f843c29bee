/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pci.h - what stands for a device's PCI function
 *
 * Programs that group NICs by card and distance (NCCL) follow /sys/class/infiniband/<device>/device
 * to a folder whose name is a PCI address and whose link `subsystem` leads to one called "pci". A
 * software NIC has no such folder in sysfs; it has one beside the control pages, with an address in
 * a domain that no hardware has:
 *
 *   pci/ffff:<bus>:00.<function>/subsystem                     -> ..
 *   pci/ffff:<bus>:00.<function>/infiniband/<device>/device    -> ../..
 *
 * Each device is a card, or with SOFTROCE_CARD_PORTS so many in a row are the functions of one. The
 * folders stay: they are the same for every process.
 */
#ifndef SOFTROCE_PCI_H
#define SOFTROCE_PCI_H

#include "softroce/devices.h"

#include <stddef.h>

/* Make the folders of a device and write the path of its own, .../infiniband/<device>. 0 or
 * -errno: it has none. */
int sr_pci_folder(const struct sr_device_spec *spec, char *path, size_t len);

#endif
