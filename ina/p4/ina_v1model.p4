/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ina_v1model.p4 - the slot core (ina/switch/switch.c, ina/switch/slot.c) for v1model, as BMv2's simple_switch runs it
 *
 * Not the fastest way to write it but the one that follows the C line by line: check the sender, the incarnation, the slot; then take, add,
 * answer. vectors/ has what goes in and what must come out, written from the C.
 *
 * A slot of an earlier incarnation looks as if it were open: the register `incarnation` says whose it is, so that nobody has to clear 64 registers when
 * a group begins.
 */
#include <core.p4>
#include <v1model.p4>
#include "headers.p4"

#define SLOTS 65536
#define GROUPS 256
#define SWITCH_ADDRESS 0x0a0000fe
#define SWITCH_MAC 0x0200000000fe

/* The bits of the register `state`. */
struct state_t {
    bit<1> done;
    bit<1> filled;   /* the words are somebody's */
    bit<1> marked;   /* a contribution met congestion */
    bit<8> coll;
    bit<8> root;
    bit<8> flags;    /* overflow, non-finite */
    bit<8> exponent;
}
#define STATE_BITS 35

struct metadata_t {
    /* of the group */
    bit<8>  ranks;
    bit<8>  workers;
    bit<16> base;
    bit<32> each;      /* slots of one worker */
    bit<32> mask;      /* each - 1 */
    bit<32> all;       /* the ranks' bits */
    bit<32> epoch;
    bit<32> first_psn;
    bit<32> member;    /* the rank's address */
    /* of the answer */
    bit<1>  to_all;
    bit<1>  has_words;
    bit<8>  answer_flags;
    bit<8>  answer_exponent;
    bit<2>  answer_ecn;
}

parser InaParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            TYPE_IPV4: ipv4;
            default: accept;
        }
    }
    state ipv4 {
        packet.extract(hdr.ipv4);
        /* Anything but a plain header of 20 bytes stays without ina, which is what ingress looks for. */
        transition select(hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.protocol, hdr.ipv4.length) {
            (4, 5, PROTOCOL_OLD, 30): old;
            (4, 5, PROTOCOL_OLD, 286): old;
            (4, 5, PROTOCOL_EXTENDED, 38): extension;
            (4, 5, PROTOCOL_EXTENDED, 294): extension;
            default: accept;
        }
    }
    state extension {
        packet.extract(hdr.extension);
        packet.extract(hdr.ina);
        transition select(hdr.ipv4.length) {
            294: words;
            default: accept;
        }
    }
    state old {
        packet.extract(hdr.ina);
        transition select(hdr.ipv4.length) {
            286: words;
            default: accept;
        }
    }
    state words {
        packet.extract(hdr.words);
        transition accept;
    }
}

control InaVerify(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.worker, hdr.ipv4.ecn, hdr.ipv4.length, hdr.ipv4.id, hdr.ipv4.flags,
              hdr.ipv4.offset, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

/* m * 2^-s, halves upwards; 0 from 32 on. */
#define SHIFT(m, s) ((s) == 0 ? (m) : ((s) > 31 ? 32s0 : ((m) >> (s)) + (((m) >> ((s) - 1)) & 32s1)))

control InaIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    register<bit<32>>(SLOTS) psn_of;
    register<bit<32>>(SLOTS) seen_by;
    register<bit<STATE_BITS>>(SLOTS) state_of;
    register<bit<41>>(SLOTS) incarnation;  /* 1, number and epoch of the group that used the slot last: epochs count for each number */
    register<bit<33>>(GROUPS) over; /* 1 and the epoch of the group's incarnation that an abort ended */
#define WORD_REGISTER(n) register<bit<32>>(SLOTS) word##n;
    FOR_WORDS(WORD_REGISTER)

    @name(".set_group")
    action set_group(bit<8> ranks, bit<8> workers, bit<16> base, bit<32> each, bit<32> mask, bit<32> all, bit<32> epoch, bit<32> first_psn) {
        meta.ranks = ranks;
        meta.workers = workers;
        meta.base = base;
        meta.each = each;
        meta.mask = mask;
        meta.all = all;
        meta.epoch = epoch;
        meta.first_psn = first_psn;
    }
    @name(".group")
    table group {
        key = { hdr.ina.group: exact @name("group"); hdr.lookup.extended: exact @name("extended"); }
        actions = { set_group; NoAction; }
        default_action = NoAction;
        size = GROUPS;
    }

    @name(".set_member")
    action set_member(bit<32> addr) {
        meta.member = addr;
    }
    @name(".member")
    table member {
        key = { hdr.ina.group: exact @name("group"); hdr.ina.rank: exact @name("rank"); }
        actions = { set_member; NoAction; }
        default_action = NoAction;
        size = 8192;
    }

    /* The controller puts a group in here when its lease has ended. */
    @name(".end_group")
    action end_group() {}
    @name(".lapsed")
    table lapsed {
        key = { hdr.ina.group: exact @name("group"); }
        actions = { end_group; NoAction; }
        default_action = NoAction;
        size = GROUPS;
    }

    /* What is not ours is switched by its address. */
    action forward_to(bit<9> port) {
        std.egress_spec = port;
    }
    action drop() {
        mark_to_drop(std);
    }
    @name(".forward")
    table forward {
        key = { hdr.ethernet.dst: exact; }
        actions = { forward_to; drop; }
        default_action = drop;
        size = 1024;
    }

    action answer_one(bit<8> flag) {
        std.egress_spec = std.ingress_port;
        hdr.lookup.to = hdr.ina.rank;
        meta.answer_flags = F_ANSWER | flag;
    }
    action answer_all(bit<8> flag) {
        std.mcast_grp = (bit<16>)hdr.ina.group;
        meta.to_all = 1;
        meta.answer_flags = F_ANSWER | flag;
    }

    apply {
        bit<8> flags = 0;
        bit<8> exponent = 0;
        bool sound = true;

        mark_to_drop(std); /* unless something is said below */
        if (!hdr.ipv4.isValid() || (hdr.ipv4.protocol != PROTOCOL_OLD && hdr.ipv4.protocol != PROTOCOL_EXTENDED)) {
            forward.apply();
            exit;
        }

        /* ina/frame/frame.c: is it a frame? */
        if (!hdr.ina.isValid() || std.parser_error != error.NoError || std.checksum_error == 1) {
            exit;
        }
        if (hdr.ipv4.flags != 2 || hdr.ipv4.offset != 0 || hdr.ipv4.ttl == 0) {
            exit;
        }
        if (std.packet_length > 64 && std.packet_length > (bit<32>)hdr.ipv4.length + 18) {
            exit;
        }
        if (hdr.extension.isValid()) {
            bit<8> bare = hdr.extension.flags & (F_ABORT | F_PROBE | F_HELD | F_NEED);
            flags = hdr.extension.flags;
            exponent = hdr.extension.exponent;
            if (hdr.extension.version != VERSION || hdr.extension.reserved != 0 || (flags & 0x80) != 0 || (bare & (bare - 1)) != 0) {
                sound = false;
            }
            /* Held, need and every answer go to ranks, and are dropped below; here only what is no frame at all. */
            if (bare != 0 && hdr.words.isValid()) {
                sound = false;
            }
            if (!hdr.words.isValid() && (exponent != 0 || (flags & (F_OVERFLOW | F_NONFINITE)) != 0)) {
                sound = false;
            }
            if ((flags & (F_HELD | F_NEED | F_ANSWER)) != 0) {
                sound = false;
            }
        }
        if (!sound || hdr.ina.coll < ALL_REDUCE || hdr.ina.coll > ALL_GATHER || hdr.ina.group == 0) {
            exit;
        }

        /* ina_step_sender() */
        if (hdr.ipv4.dst != SWITCH_ADDRESS) {
            exit;
        }
        hdr.lookup.setValid();
        hdr.lookup.extended = hdr.extension.isValid() ? 8w1 : 8w0;
        if (!group.apply().hit) {
            exit;
        }
        if (hdr.ina.rank >= meta.ranks || hdr.ina.root >= meta.ranks || (bit<8>)hdr.ipv4.worker >= meta.workers) {
            exit;
        }
        if (!member.apply().hit) {
            exit;
        }
        if (hdr.ipv4.src != meta.member) {
            exit;
        }

        /* The answer, whatever it will say: the frame turned round. Egress does the rest, for each rank its own. */
        bit<2> ecn = hdr.ipv4.ecn;
        meta.answer_ecn = (ecn == CE) ? CE : ECT1;

        /* check_incarnation() */
        @atomic {
            bit<33> ended;
            over.read(ended, (bit<32>)hdr.ina.group);
            bool is_over = (ended == (1w1 ++ meta.epoch));
            if (lapsed.apply().hit) {
                is_over = true;
            }
            if (hdr.extension.isValid() && hdr.extension.epoch != meta.epoch) {
                /* Of a past incarnation: the answer is that this one is over. Of one to come: it must wait. */
                if ((int<32>)(hdr.extension.epoch - meta.epoch) < 32s0) {
                    answer_one(F_ABORT);
                }
                exit;
            }
            if (is_over) {
                if (hdr.extension.isValid()) {
                    answer_one(F_ABORT);
                }
                exit;
            }
            if ((flags & F_ABORT) != 0) {
                over.write((bit<32>)hdr.ina.group, (1w1 ++ meta.epoch));
                answer_all(F_ABORT);
                exit;
            }

            /* ina_step_slot() */
            bit<32> at = (bit<32>)meta.base + (bit<32>)hdr.ipv4.worker * meta.each + (hdr.ina.psn & meta.mask);
            if (at != (bit<32>)hdr.ina.slot) {
                exit;
            }
            bit<32> psn;
            bit<32> seen;
            bit<STATE_BITS> packed;
            bit<41> whose;
            state_t s;
            psn_of.read(psn, at);
            seen_by.read(seen, at);
            state_of.read(packed, at);
            incarnation.read(whose, at);
            if (whose != (1w1 ++ hdr.ina.group ++ meta.epoch)) {
                /* Open since this incarnation began: the first psn from first_psn on that belongs here. */
                psn = meta.first_psn + ((hdr.ina.psn - meta.first_psn) & meta.mask);
                seen = 0;
                packed = 0;
            }
            s.done = packed[34:34];
            s.filled = packed[33:33];
            s.marked = packed[32:32];
            s.coll = packed[31:24];
            s.root = packed[23:16];
            s.flags = packed[15:8];
            s.exponent = packed[7:0];

            /* ina_slot_age() */
            bit<32> ahead = hdr.ina.psn - psn;
            bool next = ahead == meta.each && s.done == 1;
            if (ahead != 0 && !next) {
                exit;
            }

            /* ina_step_contribute() */
            bool probe = (flags & F_PROBE) != 0;
            bool fresh = next || seen == 0;
            bool brings = (hdr.ina.coll != BROADCAST && hdr.ina.coll != ALL_GATHER) || hdr.ina.rank == hdr.ina.root;
            bit<32> mine = 32w1 << hdr.ina.rank;
            if (!probe && hdr.words.isValid() != brings) {
                exit;
            }
            if (!fresh && (hdr.ina.coll != s.coll || hdr.ina.root != s.root)) {
                exit;
            }
            bool again = !fresh && s.done == 1;
            if (!again) {
                if (!fresh && (seen & mine) != 0) {
                    if (hdr.extension.isValid()) {
                        answer_one(F_HELD);
                    }
                    exit;
                }
                if (probe) {
                    answer_one(F_NEED);
                    exit;
                }

                /* ina_step_take() */
                if (fresh) {
                    seen = 0;
                    s.done = 0;
                    s.filled = 0;
                    s.marked = 0;
                    s.coll = hdr.ina.coll;
                    s.root = hdr.ina.root;
                    s.flags = 0;
                    s.exponent = 0;
                }

                /* ina_step_add(): of two exponents the smaller one's words are brought to the larger one. */
                if (hdr.words.isValid()) {
                    bit<1> past = 0;
                    bit<8> here = s.filled == 1 && exponent > s.exponent ? exponent - s.exponent : 0;
                    bit<8> there = s.filled == 1 && s.exponent > exponent ? s.exponent - exponent : 0;
                    bit<32> old;
                    int<32> a;
                    int<32> b;
                    int<32> sum;
#define ADD_WORD(n)                                                                  \
                    word##n.read(old, at);                                           \
                    a = s.filled == 1 ? SHIFT((int<32>)old, here) : 32s0;            \
                    b = SHIFT((int<32>)hdr.words.w##n, there);                       \
                    sum = a + b;                                                     \
                    if ((a < 32s0) == (b < 32s0) && (sum < 32s0) != (a < 32s0)) { past = 1; }    \
                    hdr.words.w##n = (bit<32>)(a |+| b);                             \
                    word##n.write(at, hdr.words.w##n);
                    FOR_WORDS(ADD_WORD)
                    if (s.filled == 0 || here != 0) {
                        s.exponent = exponent;
                    }
                    s.filled = 1;
                    s.flags = s.flags | (flags & (F_OVERFLOW | F_NONFINITE));
                    if (past == 1) {
                        s.flags = s.flags | F_OVERFLOW;
                    }
                }
                if (ecn == CE) {
                    s.marked = 1;
                }
                seen = seen | mine;
                if (seen == meta.all) {
                    s.done = 1;
                }
                psn_of.write(at, hdr.ina.psn);
                seen_by.write(at, seen);
                state_of.write(at, s.done ++ s.filled ++ s.marked ++ s.coll ++ s.root ++ s.flags ++ s.exponent);
                incarnation.write(at, (1w1 ++ hdr.ina.group ++ meta.epoch));
                if (s.done == 0) {
                    exit;
                }
            }

            /* The sum is whole. The last to come, or the one that asks again, may have brought no words or other ones. */
            hdr.words.setValid();
#define READ_WORD(n) word##n.read(hdr.words.w##n, at);
            FOR_WORDS(READ_WORD)
            meta.has_words = 1;
            meta.answer_exponent = s.exponent;
            if (s.marked == 1) {
                meta.answer_ecn = CE;
            }
            if (again) {
                answer_one(s.flags);
            } else {
                answer_all(s.flags);
            }
        }
    }
}

control InaEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    @name(".set_receiver")
    action set_receiver(bit<32> addr, bit<48> mac) {
        hdr.ipv4.dst = addr;
        hdr.ethernet.dst = mac;
    }
    @name(".receiver")
    table receiver {
        key = { hdr.ina.group: exact @name("group"); hdr.lookup.to: exact @name("to"); }
        actions = { set_receiver; NoAction; }
        default_action = NoAction;
        size = 8192;
    }

    apply {
        if (meta.answer_flags == 0) {
            exit; /* forwarded, not answered */
        }
        if (meta.to_all == 1) {
            hdr.lookup.to = (bit<8>)std.egress_rid;
        }
        receiver.apply();
        hdr.ethernet.src = SWITCH_MAC;
        hdr.ipv4.src = SWITCH_ADDRESS;
        hdr.ipv4.id = 0;
        hdr.ipv4.ttl = 64;
        hdr.ipv4.ecn = meta.answer_ecn;
        hdr.ina.rank = hdr.lookup.to;

        /* ina_coll_gets() */
        bool gets = true;
        if (hdr.ina.coll == REDUCE || hdr.ina.coll == REDUCE_SCATTER) {
            gets = hdr.lookup.to == hdr.ina.root;
        } else if (hdr.ina.coll != ALL_REDUCE) {
            gets = hdr.lookup.to != hdr.ina.root;
        }
        bit<8> flags = meta.answer_flags;
        bit<16> length = 30;
        if (meta.has_words == 0 || !gets) {
            hdr.words.setInvalid();
            meta.answer_exponent = 0;
            flags = flags & ~(F_OVERFLOW | F_NONFINITE);
        } else {
            length = length + WORD_BYTES;
        }
        if (hdr.extension.isValid()) {
            length = length + 8;
            hdr.extension.flags = flags;
            hdr.extension.exponent = meta.answer_exponent;
        }
        hdr.ipv4.length = length;
        truncate((bit<32>)length + 14); /* Ethernet's padding of what came in */
    }
}

control InaCompute(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ina.isValid(),
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.worker, hdr.ipv4.ecn, hdr.ipv4.length, hdr.ipv4.id, hdr.ipv4.flags,
              hdr.ipv4.offset, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control InaDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.extension);
        packet.emit(hdr.ina);
        packet.emit(hdr.words); /* not lookup */
    }
}

V1Switch(InaParser(), InaVerify(), InaIngress(), InaEgress(), InaCompute(), InaDeparser()) main;
