# SPDX-License-Identifier: BSD-3-Clause
# The environment of a job that shall run over hawser: `. /etc/hawser/env.sh`. What is set already stays.
: "${NCCL_NET_PLUGIN=ha}"
# NCCL fails where it would silently take another network.
: "${NCCL_NET=HA}"
export NCCL_NET_PLUGIN NCCL_NET
# NICs to use, and the interface of the out-of-band connections, where NCCL's own choice is not right:
# export NCCL_IB_HCA=mlx5_0,mlx5_1 NCCL_SOCKET_IFNAME=eth0
# A line of JSON per failover: %h is the host, %p the process.
# export HA_NCCL_EVENTS=/var/log/hawser/%h.%p.jsonl
