/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * config_table.h - every variable that hawser reads, once
 *
 * Included several times with different meanings of X; no include guard. From it come struct
 * ha_config, the parser, `ha config` and docs/configuration.md. Columns:
 *
 *   X(type, field, "VARIABLE", default, min, max, choices, status, group, help)
 *
 * type     BOOL INT ENUM STR SIZE (see config.h for the C types; SIZE takes K, M, G)
 * default  a number; ENUM: the index into choices; STR: ignored, the default is the text in choices
 * choices  ENUM: "first|second|..."; STR: the default text; else ""
 * status   NOW: it has an effect. LATER: it is read and checked, and has no effect in this version;
 *          setting it says so
 * group    enum ha_config_group
 */

/* What happens when a path fails. */
X(BOOL, enable_backup, "HA_NCCL_ENABLE_BACKUP", 1, 0, 1, "", NOW, AVAILABILITY,
  "Keep a standby path per connection and move to it when the primary fails, or rebuild the path "
  "on the same port when "
  "there is no second one; 0 = a broken path ends the connection.")
X(INT, standbys, "HA_NCCL_STANDBYS", 0, 0, 7, "", NOW, AVAILABILITY,
  "Standby paths that each connection keeps for the data it sends, each on another pair of "
  "NICs, at most as many as there are pairs; each costs about 50 KiB at either end. 0 = one, and "
  "where a leaf switch would take it and the data path along, because the path leads from one "
  "switch "
  "to another, one more on each of the two. Rail and plane in NCCL_IB_HCA show where the NICs "
  "hang, "
  "or their names do: NICs of one name on one switch.")
X(INT, heartbeat_ms, "HA_NCCL_HEARTBEAT_MS", 200, 10, 60000, "", NOW, AVAILABILITY,
  "Milliseconds between two heartbeats on every path: a write of 8 bytes, which the peer's NIC "
  "answers.")
X(INT, silence_ms, "HA_NCCL_SILENCE_MS", 5, 0, 60000, "", NOW, AVAILABILITY,
  "Milliseconds, at the least, in which work on a path stands still before it and its standby are "
  "asked for a sign; when the standby alone gives one in that time again, the path is suspect, "
  "without "
  "waiting for the NIC's time-out. False alarms and slow paths lengthen it. 0 = off: the NIC's "
  "time-out and HA_NCCL_RTO_MS decide.")
X(INT, slow_factor, "HA_NCCL_SLOW_FACTOR", 10, 0, 1000, "", NOW, AVAILABILITY,
  "A path on which messages take so many times as long as they used to, and as they do on the "
  "standby, becomes the standby while it stays so. 0 = off: a slow path carries on.")
X(INT, slow_moves, "HA_NCCL_SLOW_MOVES", 4, 1, 1000, "", NOW, AVAILABILITY,
  "Moves a minute, at most, that a connection makes because a path is slow or is not any more.")
X(INT, rto_ms, "HA_NCCL_RTO_MS", 1000, 10, 60000, "", NOW, AVAILABILITY,
  "Milliseconds without progress after which a path is suspect. Must exceed twice the hardware's "
  "own window, "
  "4.096 us x 2^timeout x retry count; a smaller value is raised to it, with a line that says so.")
X(INT, max_retries, "HA_NCCL_MAX_RETRIES", 10, 1, 1000, "", NOW, AVAILABILITY,
  "While no path is up: requests end with an error after the time that so many attempts take with "
  "the usual pauses "
  "(100 ms, doubled each time, 30 s at most: 10 = 81 s). Attempts are more frequent then.")
X(BOOL, enable_failback, "HA_NCCL_ENABLE_FAILBACK", 0, 0, 1, "", NOW, AVAILABILITY,
  "1 = a recovered primary takes its traffic back; 0 = it becomes the standby, until the other "
  "path fails.")
X(BOOL, ib_port_failover, "NCCL_IB_RESILIENCY_PORT_FAILOVER", 1, 0, 1, "", NOW, AVAILABILITY,
  "Set to 0 it means HA_NCCL_ENABLE_BACKUP=0, unless that is set. Not set, hawser fails over; "
  "NCCL's own default is 0.")
X(BOOL, ib_port_recovery, "NCCL_IB_RESILIENCY_PORT_RECOVERY", 0, 0, 1, "", NOW, AVAILABILITY,
  "1 = a port that recovers is used again, as HA_NCCL_ENABLE_FAILBACK=1, unless that is set. A "
  "path that failed is made "
  "anew in any case.")
X(INT, ib_recovery_start_delay, "NCCL_IB_RESILIENCY_PORT_RECOVERY_START_DELAY", 0, 0, 3600000, "",
  NOW, AVAILABILITY,
  "Milliseconds after a failure before its path is made anew, as long as another path carries; 0 = "
  "hawser's own pauses, "
  "which begin with 100 ms. NCCL's own default is 200.")
X(INT, ib_recovery_ack_timeout, "NCCL_IB_RESILIENCY_PORT_RECOVERY_ACK_TIMEOUT", 5000, 100, 3600000,
  "", NOW, AVAILABILITY,
  "Milliseconds after which a path that is being made anew, and that the peer has not answered on, "
  "is given up; then it "
  "is tried again.")
X(BOOL, ib_return_async_events, "NCCL_IB_RETURN_ASYNC_EVENTS", 1, 0, 1, "", NOW, AVAILABILITY,
  "1 = act at once on what a device reports: a port that went down, a queue in error, a device "
  "that failed; 0 = only log it: "
  "work that fails or falls silent decides.")
X(INT, connect_timeout_ms, "HA_NCCL_CONNECT_TIMEOUT_MS", 60000, 100, 86400000, "", NOW,
  AVAILABILITY,
  "Milliseconds after which connecting to a peer that does not answer ends with an error.")
X(ENUM, ack, "HA_NCCL_ACK", 0, 0, 1, "nic|memory", NOW, AVAILABILITY,
  "What completes a send: the NIC's acknowledgement, or the receiver's count of messages that are "
  "in its memory.")
X(ENUM, mr_mode, "HA_NCCL_MR_MODE", 0, 0, 1, "lazy|eager", NOW, AVAILABILITY,
  "Register buffers on the standby when it is needed (lazy) or at once (eager: faster failover, "
  "more pinned memory).")
X(STR, events, "HA_NCCL_EVENTS", 0, 0, 0, "", NOW, AVAILABILITY,
  "File to append one JSON line per change of a path's state to; %h in it is the host, %p the "
  "process, %u the user.")
X(INT, profiler, "HA_NCCL_PROFILER", -1, -1, 1, "", NOW, AVAILABILITY,
  "Report queue pairs and failovers to NCCL's profiler: 1 yes, 0 no, -1 = when "
  "NCCL_PROFILER_PLUGIN names one. Read when the plugin is opened.")
X(STR, status_dir, "HA_NCCL_STATUS_DIR", 0, 0, 0, "/dev/shm/hawser-%u", NOW, AVAILABILITY,
  "Directory in memory of the pages that `ha status` reads, one per process; none = no page.")

X(STR, switches, "HA_NCCL_SWITCHES", 0, 0, 0, "/run/hawser/switches", NOW, AVAILABILITY,
  "File of `ha switches --write`: the leaf switch that each NIC hangs on, where NCCL_IB_HCA names "
  "no rail. Read when NCCL initializes the plugin; it must be root's or the user's own. none = "
  "not read.")

/* Polling and threads. */
X(BOOL, use_progress_thread, "HA_NCCL_USE_PROGRESS_THREAD", 1, 0, 1, "", NOW, PROGRESS,
  "1 = one service thread per process does what is slow or must not wait for NCCL; 0 = everything "
  "runs inside test().")
X(INT, poll_batch, "HA_NCCL_POLL_BATCH", 32, 1, 256, "", NOW, PROGRESS,
  "Completions taken from the NIC by one poll call.")
X(INT, test_max_poll, "HA_NCCL_TEST_MAX_POLL", 32, 1, 1024, "", NOW, PROGRESS,
  "Most completions that one test() handles; 16 to 64 is sensible.")
X(INT, idle_spin_threshold, "HA_NCCL_IDLE_SPIN_THRESHOLD", 1000, 0, 1000000000, "", NOW, PROGRESS,
  "Rounds without work, or 2 us for each, after which the service thread sleeps; 0 = at once.")
X(INT, poll_standby_interval, "HA_NCCL_POLL_STANDBY_INTERVAL", 100, 1, 1000000, "", NOW, PROGRESS,
  "Fruitless polls of the paths that carry data per poll of the others.")
X(INT, copy_max, "HA_NCCL_COPY_MAX", 64, 0, 64, "", NOW, PROGRESS,
  "Bytes, at most, of a send from host memory that is copied and complete at once, as over a "
  "socket, where one NIC carries it: its buffer is free before the peer has acknowledged it, and "
  "it is sent again after a failure all the same. Closing, and exit() without closing, wait for "
  "what "
  "is outstanding: HA_NCCL_RTO_MS and a second at most. If no path is left, such a send is lost "
  "without an error of its own; the next call has one. 0, or HA_NCCL_ACK=memory: none is.")
X(INT, poll_always, "HA_NCCL_POLL_ALWAYS", -1, -1, 1, "", NOW, PROGRESS,
  "1 = poll the NIC also where memory shows that something has come: for data of the protocols LL "
  "and LL128, whose receives "
  "NCCL lets be complete at once, and for the peer's next receive; 0 = not there; -1 = on software "
  "NICs only, because they "
  "move their packets inside the polls of the program.")

/* Queue pairs. */
X(INT, force_ib_timeout, "HA_NCCL_FORCE_IB_TIMEOUT", 14, 1, 31, "", NOW, QUEUE_PAIR,
  "Local ACK timeout of every queue pair, 4.096 us x 2^value. When set, nothing overrides it.")
X(INT, qp_timeout, "HA_NCCL_QP_TIMEOUT", 14, 1, 31, "", NOW, QUEUE_PAIR,
  "The same while HA_NCCL_FORCE_IB_TIMEOUT is not set. NCCL_IB_TIMEOUT is not read: NCCL's default "
  "of 20 hides a dead "
  "path for half a minute.")
X(INT, qp_retry_cnt, "HA_NCCL_QP_RETRY_CNT", 7, 0, 7, "", NOW, QUEUE_PAIR,
  "Retransmissions by the NIC before it gives a queue pair up. NCCL_IB_RETRY_CNT is not read.")
X(INT, ib_tc, "NCCL_IB_TC", -1, -1, 255, "", NOW, QUEUE_PAIR,
  "Traffic class (DSCP << 2 on RoCE). Wins over the communicator's trafficClass; -1 = that one, "
  "else 0.")
X(INT, ib_fifo_tc, "NCCL_IB_FIFO_TC", -1, -1, 255, "", NOW, QUEUE_PAIR,
  "On RoCE: traffic class of what a receiver sends, which are its clear-to-send entries; -1 = that "
  "of the data.")
X(INT, ib_sl, "NCCL_IB_SL", -1, -1, 15, "", NOW, QUEUE_PAIR, "InfiniBand service level; -1 = 0.")
X(INT, ib_pkey, "NCCL_IB_PKEY", 0, 0, 32767, "", NOW, QUEUE_PAIR,
  "Index into the port's partition key table.")
X(SIZE, ib_ar_threshold, "NCCL_IB_AR_THRESHOLD", 8192, 0, INT64_C(1) << 40, "", NOW, QUEUE_PAIR,
  "On fabrics with adaptive routing: payloads above this many bytes are written apart from their "
  "notification.")
X(INT, ib_adaptive_routing, "NCCL_IB_ADAPTIVE_ROUTING", -1, -2, 1, "", NOW, QUEUE_PAIR,
  "The fabric may reorder packets of a queue pair: 1 yes, 0 no, -1 = yes on InfiniBand, no on RoCE "
  "(-2 is the same).")
X(INT, ib_qps_per_connection, "NCCL_IB_QPS_PER_CONNECTION", 1, 1, 128, "", NOW, QUEUE_PAIR,
  "Queue pairs per connection and device, which take turns message by message; 8 at most, all "
  "devices of a connection together, "
  "and the standby counts. Must be the same at both ends.")
X(BOOL, ib_split_data_on_qps, "NCCL_IB_SPLIT_DATA_ON_QPS", 0, 0, 1, "", NOW, QUEUE_PAIR,
  "1 = each message is cut over all queue pairs of its devices; 0 = those of one device take "
  "turns, message by message, as "
  "they always do with MPIB.")
X(BOOL, ib_ece_enable, "NCCL_IB_ECE_ENABLE", 1, 0, 1, "", NOW, QUEUE_PAIR,
  "Offer the driver's options of enhanced connection establishment to the peer, and take the "
  "peer's; 0 = none are used.")
X(BOOL, ib_ooo_rq, "NCCL_IB_OOO_RQ", 0, 0, 1, "", NOW, QUEUE_PAIR,
  "1 = where the NICs of both ends have such queue pairs (ConnectX with rdma-core 55 or later), "
  "messages of a connection may arrive in any order, which adaptive routing can use; "
  "NCCL_IB_AR_THRESHOLD means nothing then. Tried on simulated NICs and with a stand-in for "
  "libmlx5 alone.")
X(BOOL, ib_use_inline, "NCCL_IB_USE_INLINE", 1, 0, 1, "", NOW, QUEUE_PAIR,
  "Clear-to-send entries and lengths travel within the work request where the queue pair takes "
  "them; 0 = never. NCCL's own "
  "default is 0.")

/* What maxComms is computed from. */
X(INT, expected_channels, "HA_NCCL_EXPECTED_CHANNELS", 16, 1, 1024, "", NOW, BUDGET,
  "Channels that NCCL is expected to open per communicator.")
X(INT, wr_per_conn, "HA_NCCL_WR_PER_CONN", 64, 1, 8192, "", NOW, BUDGET,
  "Work requests in flight per connection that the budget allows for.")
X(INT, max_recvs, "HA_NCCL_MAX_RECVS", 8, 1, 8, "", NOW, BUDGET,
  "Most receives that NCCL may group into one.")

/* Memory registration. */
X(INT, mr_cache_entries, "HA_NCCL_MR_CACHE_ENTRIES", 0, 0, 1048576, "", NOW, MEMORY,
  "Registrations of host memory that nobody uses any more and that are kept per protection domain "
  "in case the buffer "
  "comes back. Only safe if the program never unmaps memory that was registered, hence 0.")
X(INT, ib_pci_relaxed_ordering, "NCCL_IB_PCI_RELAXED_ORDERING", 2, 0, 2, "", NOW, MEMORY,
  "Register memory for relaxed PCI ordering: 0 no, 1 yes, 2 where the library knows it.")
X(INT, ib_data_direct, "NCCL_IB_DATA_DIRECT", 0, 0, 2, "", NOW, MEMORY,
  "1 = on ConnectX NICs with data direct (rdma-core 54 or later) the data of GPU memory that is "
  "registered by dma-buf goes through their second PCIe function, and NCCL is given that one; 0 "
  "= through the first, as all else. 2 is the same as 1: no port is listed twice. NCCL's own "
  "default is 1. Tried with a stand-in for libmlx5 alone.")
X(BOOL, gdr_flush_disable, "NCCL_GDR_FLUSH_DISABLE", 0, 0, 1, "", NOW, MEMORY,
  "1 = do not read back behind data that was received into GPU memory.")

/* Several rails with weights. */
X(ENUM, policy, "HA_NCCL_POLICY", 0, 0, 5, "auto|primary|static|topology|agent|adaptive", NOW,
  RAILS,
  "How a connection on a fused device shares its data out: all on the first rail (primary), as "
  "HA_NCCL_WEIGHTS says (static), "
  "by the speeds of the ports (topology), as ha-agent's hints say, on devices of two members "
  "(agent; by the speeds where there is no hint to follow), "
  "or by what each rail is measured to do (adaptive). "
  "auto = static when HA_NCCL_WEIGHTS is set, else topology; with MPIB, what MPIB_MODE says.")
X(STR, weights, "HA_NCCL_WEIGHTS", 0, 0, 0, "", NOW, RAILS,
  "Weights of the rails of a fused device, in the order of its members: a list of numbers from 0 "
  "to 1024, e.g. 512,512. "
  "A rail with 0 carries data only while no other can.")
X(INT, mpib_mode, "MPIB_MODE", 0, 0, 1, "", NOW, RAILS,
  "MPIB: 0 = within an island all data goes over SUP, between islands over SOUT; 1 = over SOUT, "
  "until an agent's hint says otherwise.")
X(STR, mpib_hca_sout, "MPIB_HCA_SOUT", 0, 0, 0, "", NOW, RAILS,
  "The scale-out NIC, device or device:port; set together with MPIB_HCA_SUP it selects MPIB: one "
  "device of two unequal NICs.")
X(STR, mpib_hca_sup, "MPIB_HCA_SUP", 0, 0, 0, "", NOW, RAILS,
  "The scale-up NIC, device or device:port.")
X(INT, mpib_sout_qp, "MPIB_SOUT_QP", 2, 1, 64, "", NOW, RAILS,
  "MPIB: queue pairs on the scale-out NIC, which take turns; 8 at most together with MPIB_SUP_QP. "
  "The same at both ends.")
X(INT, mpib_sup_qp, "MPIB_SUP_QP", 4, 1, 64, "", NOW, RAILS,
  "MPIB: queue pairs on the scale-up NIC, which take turns. The same at both ends.")
X(INT, mpib_cts_signal_interval, "MPIB_CTS_SIGNAL_INTERVAL", 128, 1, 256, "", NOW, RAILS,
  "Every how many clear-to-send writes one asks for a completion.")
X(INT, mpib_island_prefix_len, "MPIB_ISLAND_PREFIX_LEN", 24, 0, 128, "", NOW, RAILS,
  "Two hosts whose control addresses share this many bits are in one island.")
X(STR, mpib_oob_if, "MPIB_OOB_IF", 0, 0, 0, "", NOW, RAILS,
  "The control interface in fused mode. Wins over NCCL_SOCKET_IFNAME.")

X(STR, agent_socket, "HA_NCCL_AGENT_SOCKET", 0, 0, 0, "/run/mpib/agent.sock", NOW, RAILS,
  "Where ha-agent listens for registrations; its control socket for `ha agent` lies beside it. Not "
  "set, and no directory /run/mpib of "
  "root's or this user's: /tmp/mpib/agent.sock, MPIB's own place.")
X(STR, agent_hints, "HA_NCCL_AGENT_HINTS", 0, 0, 0, "/run/mpib/hints", NOW, RAILS,
  "The file of 4112 bytes in which ha-agent gives its hints; root's or this user's, else it is not "
  "read. Not set, and no directory "
  "/run/mpib of root's or this user's: /tmp/mpib/hints.")
X(BOOL, agent_gate, "HA_NCCL_AGENT_GATE", 0, 0, 1, "", NOW, RAILS,
  "Which messages hints count for: 0 = for messages of every size, 1 = messages below the gate, "
  "the bandwidth-delay product that is "
  "measured, go over SOUT whatever the hint is; with MPIB between islands alone.")
X(INT, agent_stale_ms, "HA_NCCL_AGENT_STALE_MS", 2000, 200, 60000, "", NOW, RAILS,
  "Milliseconds for which the agent's heartbeat (every 100 ms) may be missing before its hints are "
  "no longer followed.")

/* Devices and addresses. */
X(STR, verbs, "HA_NCCL_VERBS", 0, 0, 0, "system", NOW, DEVICES,
  "Where RDMA devices come from: system (libibverbs.so, else libibverbs.so.1, as for NCCL's own "
  "transport), soft (the software NIC beside the plugin), or the path of "
  "a library with libibverbs' interface. Wins over NCCL_IBVERBS_LIB, which is not read.")
X(STR, ib_hca, "NCCL_IB_HCA", 0, 0, 0, "", NOW, DEVICES,
  "Devices to use: a list of name[:port[:rail[:plane]]], names being prefixes; a leading = wants "
  "exact names, a leading ^ excludes the "
  "list. NCCL 2.30 and later are given rail and plane, and keep to them.")
X(BOOL, ib_disable, "NCCL_IB_DISABLE", 0, 0, 1, "", NOW, DEVICES,
  "1 = use no RDMA device; the plugin then finds none and NCCL looks for another transport.")
X(BOOL, ib_merge_vfs, "NCCL_IB_MERGE_VFS", 1, 0, 1, "", NOW, DEVICES,
  "Report the virtual functions of a card with the PCI path of the card.")
X(BOOL, ib_merge_nics, "NCCL_IB_MERGE_NICS", 1, 0, 1, "", NOW, DEVICES,
  "0 = refuse to fuse devices when NCCL asks for it; each stays a device of its own.")
X(BOOL, ib_device_pci_order, "NCCL_IB_DEVICE_PCI_ORDER", 1, 0, 1, "", NOW, DEVICES,
  "1 = list devices in PCI order; 0 = in the library's order.")
X(INT, ib_gid_index, "NCCL_IB_GID_INDEX", -1, -1, 65535, "", NOW, DEVICES,
  "Index into the port's GID table on RoCE; -1 = choose by family, range and version. Wins over "
  "the next three.")
X(ENUM, ib_addr_family, "NCCL_IB_ADDR_FAMILY", 0, 0, 1, "AF_INET|AF_INET6", NOW, DEVICES,
  "Address family of the GID on RoCE.")
X(STR, ib_addr_range, "NCCL_IB_ADDR_RANGE", 0, 0, 0, "", NOW, DEVICES,
  "Prefix that the GID's address must have, e.g. 10.1.0.0/16 or fd00::/8.")
X(INT, ib_roce_version, "NCCL_IB_ROCE_VERSION_NUM", 2, 1, 2, "", NOW, DEVICES,
  "RoCE version of the GID.")
X(INT, ib_flid_gid_index, "NCCL_IB_ROUTABLE_FLID_GID_INDEX", 1, 0, 65535, "", NOW, DEVICES,
  "On InfiniBand: index of the GID that carries a routable FLID, used when it does.")
X(BOOL, ib_subnet_aware_routing, "NCCL_IB_SUBNET_AWARE_ROUTING", 0, 0, 1, "", NOW, DEVICES,
  "On RoCE: 1 = a connection begins on a device that shares a subnet with the peer's, where the "
  "device that NCCL names "
  "does not and another does. The same at both ends.")
X(INT, ib_subnet_prefix_len, "NCCL_IB_SUBNET_PREFIX_LEN", 24, 1, 32, "", NOW, DEVICES,
  "Bits of an IPv4 address that name its subnet, for NCCL_IB_SUBNET_AWARE_ROUTING; of IPv6 it is "
  "always 64.")
X(STR, socket_ifname, "NCCL_SOCKET_IFNAME", 0, 0, 0, "", NOW, DEVICES,
  "Interface of the out-of-band connections: a list of prefixes; a leading = wants exact names, a "
  "leading ^ excludes.")
X(ENUM, socket_family, "NCCL_SOCKET_FAMILY", 0, 0, 2, "any|AF_INET|AF_INET6", NOW, DEVICES,
  "Address family of the out-of-band connections.")

/* One-sided operations. */
X(ENUM, gin, "HA_NCCL_GIN", 0, 0, 2, "auto|0|1", NOW, ONE_SIDED,
  "Offer NCCL's device-initiated operations (GIN) over the rails, by NCCL's proxy thread: auto = "
  "where NCCL_GIN_TYPE asks for the proxy; 0 = never; 1 = always. From NCCL 2.30.7 on the host's "
  "own operations (ncclPutSignal) come, too; up to 2.29 a process that takes this has none.")
X(INT, gin_type, "NCCL_GIN_TYPE", -1, -1, 1000, "", NOW, ONE_SIDED,
  "NCCL's own choice of who posts for the GPU: 2 = its proxy thread, 3 = the GPU, -1 = what there "
  "is; HA_NCCL_GIN=auto looks at it.")

/* Reduction in the network. */
X(ENUM, collnet, "HA_NCCL_COLLNET", 0, 0, 2, "auto|0|1", NOW, AGGREGATION,
  "Offer NCCL sums that a switch makes (CollNet): auto = where NCCL_COLLNET_ENABLE is 1, this host "
  "has a backend, and the controller a group; "
  "0 = never; 1 = always, over the plugin's own rails as long as there is no switch. The same on "
  "all hosts: NCCL refuses communicators of "
  "hosts that differ.")
X(INT, collnet_timeout_ms, "HA_NCCL_COLLNET_TIMEOUT_MS", 65000, 100, 3600000, "", NOW, AGGREGATION,
  "Milliseconds without a result after which an operation that the switch has is finished over the "
  "rails. Above the limits of ha-backend, "
  "which knows better what is missing.")
X(INT, collnet_enable, "NCCL_COLLNET_ENABLE", 0, 0, 1000, "", NOW, AGGREGATION,
  "NCCL's own switch for CollNet, 1 = on; HA_NCCL_COLLNET=auto looks at it.")
X(STR, controller_addr, "NETCCL_CONTROLLER_ADDR", 0, 0, 0, "127.0.0.1:50051", NOW, AGGREGATION,
  "Where ha-controller listens: host:port, or unix:/path.")
X(STR, controller_ca, "NETCCL_CONTROLLER_CA", 0, 0, 0, "", NOW, AGGREGATION,
  "PEM file: who signs the controller's certificate. Setting it means TLS.")
X(STR, controller_cert, "NETCCL_CONTROLLER_CERT", 0, 0, 0, "", NOW, AGGREGATION,
  "PEM file: our certificate for the controller; together with NETCCL_CONTROLLER_KEY.")
X(STR, controller_key, "NETCCL_CONTROLLER_KEY", 0, 0, 0, "", NOW, AGGREGATION,
  "PEM file: the key of that certificate.")

/* Logging. */
X(INT, debug, "HA_NCCL_DEBUG", 0, 0, 3, "", NOW, LOGGING,
  "0 = as NCCL_DEBUG says, 1 = warnings, 2 = information too, 3 = traces too. What it adds goes to "
  "stderr.")
X(STR, nccl_debug, "NCCL_DEBUG", 0, 0, 0, "", NOW, LOGGING,
  "NCCL's log level: VERSION, WARN, INFO, ABORT or TRACE.")
X(STR, nccl_debug_subsys, "NCCL_DEBUG_SUBSYS", 0, 0, 0, "", NOW, LOGGING,
  "NCCL's list of subsystems to log; ours are INIT, NET, ENV and REG.")

/* For tests. */
X(STR, sysfs_root, "HA_NCCL_SYSFS_ROOT", 0, 0, 0, "", NOW, TESTING,
  "Directory that stands for / when sysfs is read.")
