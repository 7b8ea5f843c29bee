/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ina_tna.p4 - the slot core for Tofino (TNA), as far as its stateful ALUs carry it: groups that use the old frame
 *
 * Written after ina/switch/step.h, and held against vectors/ *_old.stf by a reader of P4 (tests/ina/p4), which knows the language but not the chip: whether it fits is for
 * the chip's compiler to say. What it cannot do is in README.md.
 *
 * A stateful ALU reads, compares and writes one register once for each packet, and gives back one 32-bit word. So the slot is cut into registers in the order in
 * which things can be known, each in a stage after the one before:
 *
 *   psn_of     is it the slot's psn, the next one (psn + each), or neither?     ina_step_age(); the second pass says that psn is done
 *   kind_of    is it the collective and root that the slot has?                 OTHER
 *   seen_of    which ranks were in before this one?                             AGAIN, HELD, TAKEN, COMPLETE
 *   marked_of  did any meet congestion?
 *   words_*    32 registers of two words: set, add, or left alone               ina_step_take_words()
 *
 * A register of two words gives back one of them. An answer therefore goes round once more (recirculation) to fetch the second words; contributions that are
 * not the last do not. Nobody may send psn + each before it has the answer to psn + each / 2, so the slot stands still meanwhile.
 *
 * The 64 words take half of what a pipe can carry beside a packet, so egress never has them: its parser leaves them in the packet, or skips them for a rank that
 * gets none. Which of the two it is, the number of the copy says (rid): 0x100 and the rank, or the rank alone.
 */
#include <core.p4>
#include <tna.p4>
#include "headers.p4"

#define SLOTS 16384
#define GROUPS 256
#define SWITCH_ADDRESS 0x0a0000fe
#define SWITCH_MAC 0x0200000000fe

/* Before every frame, inside of the switch only: what ingress has found out. */
header bridge_t {
    bit<8> kind;    /* BRIDGE_* */
    bit<8> to;      /* the rank that an answer to one is for */
    bit<8> marked;
    bit<8> reserved;
    bit<16> port;   /* of an answer to one */
    bit<16> group;  /* multicast group of an answer to all */
    bit<32> after;  /* psn + each */
}
const bit<8> BRIDGE_NONE = 0;  /* forwarded as it is */
const bit<8> BRIDGE_ALL = 1;
const bit<8> BRIDGE_WORDS = 2; /* to one, with words */
const bit<8> BRIDGE_BARE = 3;  /* to one, without */

/* What Ethernet adds to a frame without words. */
header padding_t {
    bit<128> zero;
}

struct ingress_headers_t {
    bridge_t    bridge;
    ethernet_t  ethernet;
    ipv4_t      ipv4;
    ina_t       ina;
    words_t     words;
}

struct egress_headers_t {
    bridge_t    bridge;
    ethernet_t  ethernet;
    ipv4_t      ipv4;
    ina_t       ina;
    padding_t   padding;
}

struct ingress_t {
    bit<32> all;
    bit<8>  beyond;    /* 0: the group has this root */
    bit<32> mine;      /* 1 << rank */
    bit<32> after;     /* psn + each: what the slot takes when this psn is done */
    bit<16> slot;
    bit<16> base;      /* the worker's first slot */
    bit<16> kind;      /* collective and root */
    bit<16> had;
    bit<8>  age;       /* AGE_* */
    bit<32> seen;
    bit<32> together;
    bit<8>  ce;
    bit<8>  copies;    /* who gets words: the low byte of the multicast group */
    bit<8>  alone;     /* BRIDGE_WORDS or BRIDGE_BARE, if only the sender gets an answer */
    PortId_t around;   /* this pipe's recirculation port */
    bit<1>  bare;      /* the frame came without words */
    bit<1>  bad_checksum;
    bit<1>  second;    /* pass */
}
const bit<8> AGE_NONE = 0;
const bit<8> AGE_CURRENT = 1;
const bit<8> AGE_NEXT = 2;

struct pair_t {
    int<32> first;
    int<32> second;
}

struct turn_t {
    bit<32> psn;
    bit<32> next; /* psn + each when psn is done, else psn */
}

parser IngressParser(packet_in packet, out ingress_headers_t hdr, out ingress_t meta, out ingress_intrinsic_metadata_t intr) {
    Checksum() ip_checksum;

    state start {
        packet.extract(intr);
        packet.advance(PORT_METADATA_SIZE);
        /* All of it, as what no table sets must be 0. */
        meta.all = 0;
        meta.beyond = 0;
        meta.mine = 0;
        meta.after = 0;
        meta.slot = 0;
        meta.base = 0;
        meta.kind = 0;
        meta.had = 0;
        meta.age = AGE_NONE;
        meta.seen = 0;
        meta.together = 0;
        meta.ce = 0;
        meta.copies = 0;
        meta.alone = 0;
        meta.around = 0;
        meta.second = 0;
        meta.bare = 0;
        meta.bad_checksum = 0;
        /* The recirculation port of each of four pipes; nothing from outside comes in there. */
        transition select(intr.ingress_port) {
            68: again;
            196: again;
            324: again;
            452: again;
            0x000 &&& 0x180: pipe0;
            0x080 &&& 0x180: pipe1;
            0x100 &&& 0x180: pipe2;
            default: pipe3;
        }
    }
    state pipe0 {
        meta.around = 68;
        transition ethernet;
    }
    state pipe1 {
        meta.around = 196;
        transition ethernet;
    }
    state pipe2 {
        meta.around = 324;
        transition ethernet;
    }
    state pipe3 {
        meta.around = 452;
        transition ethernet;
    }
    state again {
        packet.extract(hdr.bridge);
        meta.second = 1;
        transition ethernet;
    }
    state ethernet {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            TYPE_IPV4: ipv4;
            default: accept;
        }
    }
    state ipv4 {
        packet.extract(hdr.ipv4);
        ip_checksum.add(hdr.ipv4);
        meta.bad_checksum = (bit<1>)ip_checksum.verify();
        transition select(hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.protocol, hdr.ipv4.length) {
            (4, 5, PROTOCOL_OLD, 30): bare;
            (4, 5, PROTOCOL_OLD, 286): words;
            default: accept;
        }
    }
    state bare {
        packet.extract(hdr.ina);
        packet.advance(128); /* Ethernet's padding: words may come here, and it must not come behind them */
        meta.bare = 1;
        transition accept;
    }
    state words {
        packet.extract(hdr.ina);
        packet.extract(hdr.words);
        transition accept;
    }
}

/* X(register, its first word, its second word) */
#define FOUR_PAIRS(X, a, b) X(a##0, w##a##0, w##b##0) X(a##1, w##a##1, w##b##1) X(a##2, w##a##2, w##b##2) X(a##3, w##a##3, w##b##3) \
                            X(a##4, w##a##4, w##b##4) X(a##5, w##a##5, w##b##5) X(a##6, w##a##6, w##b##6) X(a##7, w##a##7, w##b##7)
#define FOR_PAIRS(X) FOUR_PAIRS(X, 0, 4) FOUR_PAIRS(X, 1, 5) FOUR_PAIRS(X, 2, 6) FOUR_PAIRS(X, 3, 7)

control Ingress(inout ingress_headers_t hdr, inout ingress_t meta, in ingress_intrinsic_metadata_t intr,
                in ingress_intrinsic_metadata_from_parser_t from_parser, inout ingress_intrinsic_metadata_for_deparser_t deparser,
                inout ingress_intrinsic_metadata_for_tm_t tm) {
    /* ---- tables, as those of ina_v1model.p4, with what the controller can know beforehand made ready for one operation a stage ---- */
    /* last: the highest rank. An unsigned difference stays at 0, so it is 0 for every root that the group has. */
    @name(".set_group")
    action set_group(bit<8> last, bit<32> all, bit<32> each) {
        meta.beyond = hdr.ina.root |-| last;
        meta.all = all;
        meta.after = hdr.ina.psn + each;
    }
    action no_group() {
        deparser.drop_ctl = 1;
    }
    @name(".group")
    table group {
        key = { hdr.ina.group: exact @name("group"); }
        actions = { set_group; no_group; }
        default_action = no_group;
        size = GROUPS;
    }

    /*
     * The rank, by its address: whoever has the number has the address, too. base: the first slot of the worker, mask: its slots - 1. An ALU takes one
     * operation a stage: `and` here, `or` next; ranges are powers of two at multiples of their length, so `or` is `+`.
     */
    @name(".set_member")
    action set_member(bit<32> rank_bit, bit<16> base, bit<16> mask) {
        meta.mine = rank_bit;
        meta.base = base;
        meta.slot = (bit<16>)hdr.ina.psn & mask;
    }
    action no_member() {
        deparser.drop_ctl = 1;
    }
    @name(".member")
    table member {
        key = { hdr.ina.group: exact @name("group"); hdr.ina.rank: exact @name("rank"); hdr.ipv4.worker: exact @name("worker");
                hdr.ipv4.src: exact @name("addr"); }
        actions = { set_member; no_member; }
        default_action = no_member;
        size = 16384;
    }

    /*
     * ina_coll_brings(): an entry for each collective, rank and root; `bare` says what the frame must be. copies: 0 all ranks get words, 1 + root only the root
     * does, 33 + root all but the root do (ina_coll_gets()); alone: what the sender gets.
     */
    @name(".sound")
    action sound(bit<8> copies, bit<8> alone) {
        meta.copies = copies;
        meta.alone = alone;
    }
    @name(".unsound")
    action unsound() {
        deparser.drop_ctl = 1;
    }
    @name(".brings")
    table brings {
        key = { hdr.ina.coll: exact @name("coll"); hdr.ina.rank: ternary @name("rank"); hdr.ina.root: ternary @name("root"); meta.bare: exact @name("bare"); }
        actions = { sound; unsound; }
        default_action = unsound;
        size = 4096;
    }

    action forward_to(PortId_t port) {
        tm.ucast_egress_port = port;
    }
    action drop() {
        deparser.drop_ctl = 1;
    }
    @name(".forward")
    table forward {
        key = { hdr.ethernet.dst: exact; }
        actions = { forward_to; drop; }
        default_action = drop;
        size = 1024;
    }

    /* ---- the slot's registers; ---- */

    /*
     * When a group begins, the controller fills psn_of with the psn that each slot waits for as `next` and another one as `psn`, and kind_of with 0xffff, which
     * no frame has: so nobody is answered from the incarnation before.
     */
    Register<turn_t, bit<16>>(SLOTS) psn_of;
    RegisterAction<turn_t, bit<16>, bit<8>>(psn_of) take_or_keep = {
        void apply(inout turn_t t, out bit<8> age) {
            if (t.psn == hdr.ina.psn) {
                age = AGE_CURRENT;
            } else if (t.next == hdr.ina.psn) {
                age = AGE_NEXT;
                t.psn = hdr.ina.psn;
            } else {
                age = AGE_NONE;
            }
        }
    };
    RegisterAction<turn_t, bit<16>, bit<8>>(psn_of) done = {
        void apply(inout turn_t t, out bit<8> age) {
            age = AGE_CURRENT;
            if (t.psn == hdr.ina.psn) {
                t.next = hdr.bridge.after;
            }
        }
    };

    Register<bit<16>, bit<16>>(SLOTS) kind_of;
    RegisterAction<bit<16>, bit<16>, bit<16>>(kind_of) kind_set = {
        void apply(inout bit<16> kind, out bit<16> had) {
            kind = meta.kind;
            had = kind;
        }
    };
    RegisterAction<bit<16>, bit<16>, bit<16>>(kind_of) kind_get = {
        void apply(inout bit<16> kind, out bit<16> had) {
            had = kind;
        }
    };

    Register<bit<32>, bit<16>>(SLOTS) seen_of;
    RegisterAction<bit<32>, bit<16>, bit<32>>(seen_of) seen_first = {
        void apply(inout bit<32> seen, out bit<32> before) {
            seen = meta.mine;
            before = 0;
        }
    };
    RegisterAction<bit<32>, bit<16>, bit<32>>(seen_of) seen_more = {
        void apply(inout bit<32> seen, out bit<32> before) {
            before = seen;
            seen = seen | meta.mine;
        }
    };

    Register<bit<8>, bit<16>>(SLOTS) marked_of;
    RegisterAction<bit<8>, bit<16>, bit<8>>(marked_of) marked_first = {
        void apply(inout bit<8> marked, out bit<8> is) {
            marked = meta.ce;
            is = marked;
        }
    };
    RegisterAction<bit<8>, bit<16>, bit<8>>(marked_of) marked_more = {
        void apply(inout bit<8> marked, out bit<8> is) {
            marked = marked | meta.ce;
            is = marked;
        }
    };

/* |+| stays at the ends of int32, as ina_word_add() does; that it did, the ALU does not report. */
#define WORD_REGISTER(n, one, two)                                                                        \
    Register<pair_t, bit<16>>(SLOTS) words_##n;                                                           \
    RegisterAction<pair_t, bit<16>, bit<32>>(words_##n) set_##n = {                                       \
        void apply(inout pair_t p, out bit<32> first) {                                                   \
            p.first = (int<32>)hdr.words.one;                                                             \
            p.second = (int<32>)hdr.words.two;                                                            \
            first = (bit<32>)p.first;                                                                     \
        }                                                                                                 \
    };                                                                                                    \
    RegisterAction<pair_t, bit<16>, bit<32>>(words_##n) add_##n = {                                       \
        void apply(inout pair_t p, out bit<32> first) {                                                   \
            p.first = p.first |+| (int<32>)hdr.words.one;                                                 \
            p.second = p.second |+| (int<32>)hdr.words.two;                                               \
            first = (bit<32>)p.first;                                                                     \
        }                                                                                                 \
    };                                                                                                    \
    RegisterAction<pair_t, bit<16>, bit<32>>(words_##n) first_##n = {                                     \
        void apply(inout pair_t p, out bit<32> first) { first = (bit<32>)p.first; }                       \
    };                                                                                                    \
    RegisterAction<pair_t, bit<16>, bit<32>>(words_##n) second_##n = {                                    \
        void apply(inout pair_t p, out bit<32> second) { second = (bit<32>)p.second; }                    \
    };
    FOR_PAIRS(WORD_REGISTER)

#define SET_WORD(n, one, two) hdr.words.one = set_##n.execute(meta.slot);
#define ADD_WORD(n, one, two) hdr.words.one = add_##n.execute(meta.slot);
#define FIRST_WORD(n, one, two) hdr.words.one = first_##n.execute(meta.slot);
#define SECOND_WORD(n, one, two) hdr.words.two = second_##n.execute(meta.slot);
#define ZERO_WORD(n, one, two) hdr.words.one = 0; hdr.words.two = 0;

    /* Where an answer will go is known now, but it goes round first, with words in any case: the second pass puts its own there. */
    action answer(bit<8> kind) {
        hdr.bridge.kind = kind;
        hdr.bridge.to = hdr.ina.rank;
        hdr.bridge.marked = meta.ce;
        hdr.bridge.port = (bit<16>)intr.ingress_port;
        hdr.bridge.group = hdr.ina.group ++ meta.copies;
        hdr.bridge.after = meta.after;
        hdr.ipv4.length = 286;
        tm.ucast_egress_port = meta.around;
        deparser.drop_ctl = 0;
    }

    apply {
        if (meta.second == 1) {
            meta.slot = hdr.ina.slot;
            done.execute(meta.slot);
            FOR_PAIRS(SECOND_WORD)
            if (hdr.bridge.kind == BRIDGE_ALL) {
                tm.mcast_grp_a = hdr.bridge.group; /* a node for each rank */
            } else {
                tm.ucast_egress_port = (PortId_t)hdr.bridge.port;
            }
            exit;
        }
        hdr.bridge.setValid();
        hdr.bridge.kind = BRIDGE_NONE;
        hdr.bridge.to = 0;
        hdr.bridge.marked = 0;
        hdr.bridge.reserved = 0;
        hdr.bridge.port = 0;
        hdr.bridge.group = 0;
        hdr.bridge.after = 0;
        if (!hdr.ipv4.isValid() || hdr.ipv4.protocol != PROTOCOL_OLD) {
            forward.apply(); /* extended frames too: a group that uses them must not be given to this switch */
            exit;
        }

        /* ina/switch/step.h, ina_step_sender(): whoever fails receives nothing. */
        if (!hdr.ina.isValid() || from_parser.parser_err != PARSER_ERROR_OK || meta.bad_checksum == 1 || hdr.ipv4.flags != 2 ||
            hdr.ipv4.offset != 0 || hdr.ipv4.ttl == 0 || hdr.ipv4.dst != SWITCH_ADDRESS) {
            drop();
            exit;
        }
        if (!group.apply().hit || !member.apply().hit || !brings.apply().hit) {
            exit;
        }
        meta.slot = meta.slot | meta.base;
        if (meta.slot != hdr.ina.slot || meta.beyond != 0) {
            drop();
            exit;
        }
        if (meta.bare == 1) { /* brings nothing: adds nothing */
            hdr.words.setValid();
            FOR_PAIRS(ZERO_WORD)
        }
        meta.ce = hdr.ipv4.ecn == CE ? 8w1 : 8w0;
        meta.kind = hdr.ina.coll ++ hdr.ina.root;

        meta.age = take_or_keep.execute(meta.slot);
        deparser.drop_ctl = 1; /* unless there is an answer */
        if (meta.age == AGE_NONE) {
            exit;
        }
        if (meta.age == AGE_NEXT) {
            kind_set.execute(meta.slot);
            seen_first.execute(meta.slot);
            marked_first.execute(meta.slot);
            FOR_PAIRS(SET_WORD)
            exit; /* a group has two ranks at least: the first is not the last */
        }
        meta.had = kind_get.execute(meta.slot);
        if (meta.had != meta.kind) {
            exit;
        }
        meta.seen = seen_more.execute(meta.slot);
        meta.together = meta.seen | meta.mine;
        if (meta.together == meta.seen) { /* it was in */
            if (meta.seen == meta.all) { /* again */
                hdr.words.setValid();
                meta.ce = 0;
                meta.ce = marked_more.execute(meta.slot);
                FOR_PAIRS(FIRST_WORD)
                answer(meta.alone);
            }
            exit; /* held: the old frame has no word for it */
        }
        meta.ce = marked_more.execute(meta.slot);
        FOR_PAIRS(ADD_WORD)
        if (meta.together == meta.all) {
            answer(BRIDGE_ALL);
        }
    }
}

control IngressDeparser(packet_out packet, inout ingress_headers_t hdr, in ingress_t meta, in ingress_intrinsic_metadata_for_deparser_t deparser) {
    apply {
        packet.emit(hdr); /* the bridge first: egress, and the second pass, begin with it */
    }
}

struct egress_t {
    bit<8> to;
    bit<8> step; /* STEP_* */
    bit<1> gets; /* words */
}
const bit<8> STEP_FORWARD = 0; /* take the bridge off */
const bit<8> STEP_ROUND = 1;   /* the second pass needs what the first has put there: as it is */
const bit<8> STEP_ANSWER = 2;

#define SKIP_32_BYTES(this, next) state skip##this { packet.advance(256); transition next; }

parser EgressParser(packet_in packet, out egress_headers_t hdr, out egress_t meta, out egress_intrinsic_metadata_t intr) {
    state start {
        packet.extract(intr);
        packet.extract(hdr.bridge);
        meta.to = hdr.bridge.to;
        meta.step = STEP_FORWARD;
        meta.gets = 1;
        transition select(intr.egress_port, hdr.bridge.kind) {
            (_, BRIDGE_NONE): accept; /* the rest stays as it came */
            (68 &&& 0x7f, _): around;
            (_, BRIDGE_ALL): all;
            (_, BRIDGE_WORDS): answer;
            default: answer_bare;
        }
    }
    state around {
        meta.step = STEP_ROUND;
        transition accept;
    }
    state all {
        meta.to = intr.egress_rid[7:0];
        transition select(intr.egress_rid) {
            0x100 &&& 0x100: answer;
            default: answer_bare;
        }
    }
    state answer {
        meta.step = STEP_ANSWER;
        packet.extract(hdr.ethernet);
        packet.extract(hdr.ipv4);
        packet.extract(hdr.ina);
        transition accept;
    }
    state answer_bare {
        meta.step = STEP_ANSWER;
        meta.gets = 0;
        packet.extract(hdr.ethernet);
        packet.extract(hdr.ipv4);
        packet.extract(hdr.ina);
        transition skip1;
    }
    SKIP_32_BYTES(1, skip2)
    SKIP_32_BYTES(2, skip3)
    SKIP_32_BYTES(3, skip4)
    SKIP_32_BYTES(4, skip5)
    SKIP_32_BYTES(5, skip6)
    SKIP_32_BYTES(6, skip7)
    SKIP_32_BYTES(7, skip8)
    SKIP_32_BYTES(8, accept)
}

control Egress(inout egress_headers_t hdr, inout egress_t meta, in egress_intrinsic_metadata_t intr,
               in egress_intrinsic_metadata_from_parser_t from_parser, inout egress_intrinsic_metadata_for_deparser_t deparser,
               inout egress_intrinsic_metadata_for_output_port_t port) {
    @name(".set_receiver")
    action set_receiver(bit<32> addr, bit<48> mac) {
        hdr.ipv4.dst = addr;
        hdr.ethernet.dst = mac;
    }
    @name(".receiver")
    table receiver {
        key = { hdr.ina.group: exact @name("group"); meta.to: exact @name("to"); }
        actions = { set_receiver; NoAction; }
        default_action = NoAction;
        size = 8192;
    }

    apply {
        if (meta.step == STEP_FORWARD) {
            hdr.bridge.setInvalid();
        } else if (meta.step == STEP_ANSWER) {
            receiver.apply();
            hdr.ethernet.src = SWITCH_MAC;
            hdr.ipv4.src = SWITCH_ADDRESS;
            hdr.ipv4.id = 0;
            hdr.ipv4.ttl = 64;
            hdr.ipv4.ecn = hdr.bridge.marked == 1 ? CE : ECT1;
            hdr.ina.rank = meta.to;
            if (meta.gets == 0) {
                hdr.ipv4.length = 30;
                hdr.padding.setValid();
                hdr.padding.zero = 0;
            }
            hdr.bridge.setInvalid();
        }
    }
}

control EgressDeparser(packet_out packet, inout egress_headers_t hdr, in egress_t meta, in egress_intrinsic_metadata_for_deparser_t deparser) {
    Checksum() ip_checksum;

    apply {
        if (hdr.ipv4.isValid()) {
            hdr.ipv4.checksum = ip_checksum.update({ hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.worker, hdr.ipv4.ecn, hdr.ipv4.length, hdr.ipv4.id,
                hdr.ipv4.flags, hdr.ipv4.offset, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst });
        }
        packet.emit(hdr);
    }
}

Pipeline(IngressParser(), Ingress(), IngressDeparser(), EgressParser(), Egress(), EgressDeparser()) pipe;
Switch(pipe) main;
