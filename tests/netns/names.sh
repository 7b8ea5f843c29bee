# SPDX-License-Identifier: BSD-3-Clause
# Sourced: network namespaces by their names, also in a chroot, where `ip netns exec` and `ip -n` give up.
#
# "$inside" NAME PROGRAM...: in the background, $! is the program. ip_in NAME WORDS...: ip there.
inside=$(dirname "${BASH_SOURCE[0]}")/inside
ip_in() { local n=$1; shift; nsenter --net="/run/netns/$n" ip "$@"; }
