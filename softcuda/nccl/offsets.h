/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * offsets.h - where each field lies, as read in NCCL's sources; rows that all known versions share
 *
 * OFFSET(our structure, our field, NCCL's structure, NCCL's field, bytes) and SIZE(our structure,
 * NCCL's structure, bytes). layout_check.c asserts them when a version is compiled;
 * scripts/compare-nccl-layout asserts the same rows with NCCL's own headers. The rows of one
 * version stand in offsets_<version>.h.
 */
#ifndef OFFSET
#error "define OFFSET and SIZE, then include offsets.h"
#endif

SIZE(struct fifo_slot, ncclConnFifo, 24)
OFFSET(struct fifo_slot, mode, ncclConnFifo, mode, 0)
OFFSET(struct fifo_slot, offset, ncclConnFifo, offset, 4)
OFFSET(struct fifo_slot, size, ncclConnFifo, size, 8)
OFFSET(struct fifo_slot, pointer, ncclConnFifo, ptr, 16)

SIZE(struct net_device_handle, ncclNetDeviceHandle_t, 32)
OFFSET(struct net_device_handle, type, ncclNetDeviceHandle_t, netDeviceType, 0)
OFFSET(struct net_device_handle, handle, ncclNetDeviceHandle_t, handle, 8)

SIZE(struct connection_info, ncclConnInfo, 152)
OFFSET(struct connection_info, buffers, ncclConnInfo, buffs, 0)
OFFSET(struct connection_info, memory_handles, ncclConnInfo, mhandles, 24)
OFFSET(struct connection_info, tail, ncclConnInfo, tail, 48)
OFFSET(struct connection_info, head, ncclConnInfo, head, 56)
OFFSET(struct connection_info, flags, ncclConnInfo, flags, 64)
OFFSET(struct connection_info, shared, ncclConnInfo, shared, 68)
OFFSET(struct connection_info, step_bytes, ncclConnInfo, stepSize, 72)
OFFSET(struct connection_info, pointer_exchange, ncclConnInfo, ptrExchange, 80)
OFFSET(struct connection_info, argument_exchange, ncclConnInfo, redOpArgExchange, 88)
OFFSET(struct connection_info, fifo, ncclConnInfo, connFifo, 96)
OFFSET(struct connection_info, step, ncclConnInfo, step, 104)
OFFSET(struct connection_info, last_cleaning, ncclConnInfo, llLastCleaning, 112)
OFFSET(struct connection_info, net_device, ncclConnInfo, netDeviceHandle, 120)

SIZE(struct channel_peer, ncclDevChannelPeer, 608)
OFFSET(struct channel_peer, send, ncclDevChannelPeer, send, 0)
OFFSET(struct channel_peer, recv, ncclDevChannelPeer, recv, 304)

SIZE(struct tree, ncclTree, 20)
OFFSET(struct tree, depth, ncclTree, depth, 0)
OFFSET(struct tree, up, ncclTree, up, 4)
OFFSET(struct tree, down, ncclTree, down, 8)

SIZE(struct direct, ncclDirect, 108)
OFFSET(struct direct, depth, ncclDirect, depth, 0)
OFFSET(struct direct, out, ncclDirect, out, 4)
OFFSET(struct direct, head_count, ncclDirect, nHeads, 8)
OFFSET(struct direct, head_rank, ncclDirect, headRank, 12)
OFFSET(struct direct, shift, ncclDirect, shift, 16)
OFFSET(struct direct, heads, ncclDirect, heads, 20)
OFFSET(struct direct, up, ncclDirect, up, 52)
OFFSET(struct direct, down, ncclDirect, down, 80)

OFFSET(struct ring, previous, ncclRing, prev, 0)
OFFSET(struct ring, next, ncclRing, next, 4)
OFFSET(struct ring, user_ranks, ncclRing, userRanks, 8)

SIZE(struct work_batch, ncclDevWorkBatch, 16)
OFFSET(struct work_batch, offset_base, ncclDevWorkBatch, offsetBase, 4)
OFFSET(struct work_batch, offset_bits, ncclDevWorkBatch, offsetBitset, 8)

SIZE(struct kernel_arguments, ncclDevKernelArgs, 32)
OFFSET(struct kernel_arguments, comm, ncclDevKernelArgs, comm, 0)
OFFSET(struct kernel_arguments, channel_mask, ncclDevKernelArgs, channelMask, 8)
OFFSET(struct kernel_arguments, storage, ncclDevKernelArgs, workStorageType, 16)
OFFSET(struct kernel_arguments, work_mask, ncclDevKernelArgs, workMask, 20)
OFFSET(struct kernel_arguments, work_buffer, ncclDevKernelArgs, workBuf, 24)

SIZE(struct channel, ncclDevChannel, 368)
OFFSET(struct channel, peers, ncclDevChannel, peers, 0)
OFFSET(struct channel, ring, ncclDevChannel, ring, 8)
OFFSET(struct channel, work_fifo_done, ncclDevChannel, workFifoDone, 352)

SIZE(struct work_p2p, ncclDevWorkP2p, 48)
OFFSET(struct work_p2p, send_address, ncclDevWorkP2p, sendAddr, 0)
OFFSET(struct work_p2p, recv_address, ncclDevWorkP2p, recvAddr, 8)
OFFSET(struct work_p2p, send_bytes, ncclDevWorkP2p, sendBytes, 16)
OFFSET(struct work_p2p, recv_bytes, ncclDevWorkP2p, recvBytes, 24)
OFFSET(struct work_p2p, send_rank, ncclDevWorkP2p, sendRank, 32)
OFFSET(struct work_p2p, recv_rank, ncclDevWorkP2p, recvRank, 36)
OFFSET(struct work_p2p, channels, ncclDevWorkP2p, nP2pChannels, 40)
OFFSET(struct work_p2p, channel_base, ncclDevWorkP2p, channelBase, 41)
OFFSET(struct work_p2p, send_channels, ncclDevWorkP2p, nSendChannels, 42)
OFFSET(struct work_p2p, recv_channels, ncclDevWorkP2p, nRecvChannels, 43)
OFFSET(struct work_p2p, send_chunk, ncclDevWorkP2p, sendChunkSize_u32fp8, 44)
OFFSET(struct work_p2p, recv_chunk, ncclDevWorkP2p, recvChunkSize_u32fp8, 45)

OFFSET(struct work_collective, root, ncclDevWorkColl, root, 4)
