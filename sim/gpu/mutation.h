/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mutation.h - the protocol, broken on purpose in one place, to see that the hunts notice
 *
 * The products have none of them: defects.txt puts them into the simulator's copy of the sources
 * (sim/kit/defects.cmake).
 */
#ifndef HA_GPU_MUTATION_H
#define HA_GPU_MUTATION_H

/* X(identifier, "name for --mutate", "what is wrong") */
#define HA_GPU_MUTATION_LIST(X)                                                                    \
	X(NO_FENCE, "no-fence",                                                                    \
	  "entries are posted again while the peer's old queue pair still accepts")                \
	X(SHARED_SLOT, "shared-slot", "both paths write the same signal slot")                     \
	X(PLAIN_ADD, "plain-add",                                                                  \
	  "signals are the NIC's own fetch-add, posted again like everything else")                \
	X(REPLAY_ALL, "replay-all", "what the receiver has seen the signal of is posted again")    \
	X(OWN_QPN, "own-qpn",                                                                      \
	  "entries posted again keep the queue pair number of the path they failed on")            \
	X(OWN_KEYS, "own-keys", "entries posted again keep the keys of the path they failed on")   \
	X(ERROR_IS_DONE, "error-is-done",                                                          \
	  "the poll looks at the index of a completion and not at its opcode")                     \
	X(NO_CLOSE, "no-close", "the ring is switched while threads are writing entries")          \
	X(NO_EPOCH, "no-epoch",                                                                    \
	  "what a thread read from a completion queue before a switch may count after it")         \
	X(NO_BOUND, "no-bound", "slots are reserved however much is outstanding")                  \
	X(ACK_IS_PLACED, "ack-is-placed", "an acknowledgement counts as placement")                \
	X(TRUST_IDLE, "trust-idle", "what was acknowledged last is not proved while nobody posts") \
	X(NO_RECHECK, "no-recheck", "who finds the doorbell taken trusts that its entry is rung")  \
	X(NO_FLUSH, "no-flush", "a signal does not wait for data in memory that is apart")         \
	X(ONE_PLACE, "one-place", "a read of the mailbox proves data in memory that is apart")     \
	X(LAZY_BELL, "lazy-bell", "a thread that waits rings nothing: a batch stays in the ring")

enum ha_gpu_mutation {
	HA_GPU_MUTATE_NOTHING,
#define X(id, name, help) HA_GPU_MUTATE_##id,
	HA_GPU_MUTATION_LIST(X)
#undef X
		HA_GPU_MUTATE_COUNT
};
extern enum ha_gpu_mutation ha_gpu_mutation; /* one for the process */
#define HA_GPU_MUTATION(id) __builtin_expect(ha_gpu_mutation == HA_GPU_MUTATE_##id, 0)

#endif
