/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mutation.h - the protocol, broken on purpose in one place, to see that the simulator notices
 *
 * The products have none of them: defects.txt puts them into the simulator's copy of the sources
 * (sim/kit/defects.cmake).
 */
#ifndef HA_PLUGIN_MUTATION_H
#define HA_PLUGIN_MUTATION_H

/* X(identifier, "name for --mutate", "what is wrong") */
#define HA_MUTATION_LIST(X)                                                                        \
	X(SKIP_FENCE, "skip-fence",                                                                \
	  "the old queue pair goes on taking and sending while the two ends compare")              \
	X(SKIP_DRAIN, "skip-drain",                                                                \
	  "the queue pair is destroyed with completions that nobody has taken")                    \
	X(STATE_EARLY, "state-early", "what has arrived is sent before the fence, not behind it")  \
	X(REPLAY_SEEN, "replay-seen",                                                              \
	  "every stripe without a successful completion is sent again, seen or not")               \
	X(REPLAY_OTHERS, "replay-others",                                                          \
	  "stripes that other rails carry are compared, and sent again, too")                      \
	X(REPLAY_NONE, "replay-none", "what the receiver has not seen is not sent again")          \
	X(WHOLE_MESSAGE, "whole-message",                                                          \
	  "one stripe that was seen settles all stripes of its message")                           \
	X(DROP_EPOCH, "drop-epoch",                                                                \
	  "a message about a past incarnation counts for the present one")                         \
	X(FORGET_CTS, "forget-cts",                                                                \
	  "clear-to-sends that the sender does not hold are not written again")                    \
	X(FORGET_SIZES, "forget-sizes",                                                            \
	  "a stripe that is sent again leaves the record of lengths as it is")                     \
	X(FORGET_KEYS, "forget-keys", "keys of a standby's device are not sent")                   \
	X(FORGET_COUNT, "forget-count",                                                            \
	  "HA_NCCL_ACK=memory: a delivery count that a lost rail carried is not sent again")       \
	X(ACK_NIC, "ack-nic",                                                                      \
	  "HA_NCCL_ACK=memory: sends complete when the NIC acknowledges all the same")             \
	X(IGNORE_DOUBT, "ignore-doubt",                                                            \
	  "the buffer of an optional receive is posted again while old data may come")             \
	X(IGNORE_SUPERSEDED, "ignore-superseded",                                                  \
	  "an optional receive whose buffer is in use again still takes data")                     \
	X(EARLY_ERROR, "early-error", "requests end with an error before every rail is fenced")    \
	X(FORGET_HOOKUP, "forget-hookup",                                                          \
	  "a queue pair that is given up while it is being connected is nobody's")                 \
	X(STAY_PUT, "stay-put",                                                                    \
	  "a standby whose device is down waits for it, whatever else is idle")                    \
	X(AVOID_DATA, "avoid-data",                                                                \
	  "a standby is on none of the data path's devices, even where nothing else is left")      \
	X(RECUT, "recut",                                                                          \
	  "a stripe that is sent again is cut by the weights of now, not of its message")          \
	X(FORGET_OUT, "forget-out",                                                                \
	  "adaptive: what is posted already does not count when a message is cut")                 \
	X(FORGET_PROBES, "forget-probes", "adaptive: a rail that rests gets no probes")            \
	X(TAKE_EARLY, "take-early", "one-sided: a record is taken when its first stripe has come") \
	X(FORGET_WINDOWS, "forget-windows",                                                        \
	  "one-sided: windows are sent for the first rail alone")                                  \
	X(KEEP_WINDOWS, "keep-windows",                                                            \
	  "one-sided: keys of a device that the peer's rail has left are used on the next")        \
	X(FORGET_RETURN, "forget-return", "nobody looks whether a device that failed is back")     \
	X(KEEP_OPENING, "keep-opening",                                                            \
	  "a device that is back is used with the keys of before it failed")                       \
	X(FORGET_COPY, "forget-copy",                                                              \
	  "HA_NCCL_COPY_MAX: a copied send is sent again from the program's buffer")               \
	X(TRUST_COPY, "trust-copy",                                                                \
	  "HA_NCCL_COPY_MAX: a copied send, complete when posted, is not sent again")              \
	X(HOLD_COPY, "hold-copy",                                                                  \
	  "HA_NCCL_COPY_MAX: a copied send whose request was taken back is given up")              \
	X(KEEP_COPY, "keep-copy",                                                                  \
	  "HA_NCCL_COPY_MAX: a slot's next message counts as copied until it is posted")           \
	X(EARLY_RECORD, "early-record",                                                            \
	  "NCCL_IB_OOO_RQ: a stripe's record does not wait for its data")                          \
	X(OLDER_COUNT, "older-count",                                                              \
	  "NCCL_IB_OOO_RQ: a delivery count does not wait for the one before")

enum ha_mutation {
	HA_MUTATE_OUTSIDE = -1, /* no simulation: `ha doctor --fabric` */
	HA_MUTATE_NOTHING,
#define X(id, name, help) HA_MUTATE_##id,
	HA_MUTATION_LIST(X)
#undef X
		HA_MUTATE_COUNT
};
extern enum ha_mutation ha_mutation; /* one for the process */
#define HA_MUTATION(id) __builtin_expect(ha_mutation == HA_MUTATE_##id, 0)

#endif
