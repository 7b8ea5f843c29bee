/* SPDX-License-Identifier: BSD-3-Clause */
/* headers.p4 - the frames of docs/ina.md, for every target */
#ifndef INA_HEADERS_P4
#define INA_HEADERS_P4

const bit<16> TYPE_IPV4 = 0x0800;
const bit<8> PROTOCOL_OLD = 254;
const bit<8> PROTOCOL_EXTENDED = 253;
const bit<8> VERSION = 1;
const bit<16> WORD_BYTES = 256;

const bit<8> ALL_REDUCE = 1;
const bit<8> REDUCE = 2;
const bit<8> BROADCAST = 3;
const bit<8> REDUCE_SCATTER = 4;
const bit<8> ALL_GATHER = 5;

const bit<8> F_ANSWER = 0x01;
const bit<8> F_OVERFLOW = 0x02;
const bit<8> F_NONFINITE = 0x04;
const bit<8> F_ABORT = 0x08;
const bit<8> F_PROBE = 0x10;
const bit<8> F_HELD = 0x20;
const bit<8> F_NEED = 0x40;

const bit<2> ECT1 = 1;
const bit<2> CE = 3;

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> ether_type;
}

header ipv4_t {
    bit<4>  version;
    bit<4>  ihl;
    bit<6>  worker;
    bit<2>  ecn;
    bit<16> length;
    bit<16> id;
    bit<3>  flags;
    bit<13> offset;
    bit<8>  ttl;
    bit<8>  protocol;
    bit<16> checksum;
    bit<32> src;
    bit<32> dst;
}

header extension_t {
    bit<8>  version;
    bit<8>  flags;
    bit<8>  exponent;
    bit<8>  reserved;
    bit<32> epoch;
}

header ina_t {
    bit<8>  coll;
    bit<8>  group;
    bit<8>  rank;
    bit<8>  root;
    bit<16> slot;
    bit<32> psn;
}

/* X(n) for each of the 64 words; a P4 program has no loop. */
#define EIGHT_WORDS(X, a) X(a##0) X(a##1) X(a##2) X(a##3) X(a##4) X(a##5) X(a##6) X(a##7)
#define FOR_WORDS(X) EIGHT_WORDS(X, 0) EIGHT_WORDS(X, 1) EIGHT_WORDS(X, 2) EIGHT_WORDS(X, 3) \
                     EIGHT_WORDS(X, 4) EIGHT_WORDS(X, 5) EIGHT_WORDS(X, 6) EIGHT_WORDS(X, 7)

#define WORD_FIELD(n) bit<32> w##n;
header words_t {
    FOR_WORDS(WORD_FIELD)
}

/* Never sent: what tables are looked up by, under names that every tool keeps. */
header lookup_t {
    bit<8> extended;
    bit<8> to; /* rank */
}

struct headers_t {
    ethernet_t  ethernet;
    ipv4_t      ipv4;
    extension_t extension;
    ina_t       ina;
    words_t     words;
    lookup_t    lookup;
}

#endif
