/* SPDX-License-Identifier: BSD-3-Clause */
/* core.p4 - what hawser's programs use of P4_16's core library, declared for p4run */
#ifndef MODEL_CORE_P4
#define MODEL_CORE_P4

error { NoError, PacketTooShort, NoMatch }
match_kind { exact, ternary }

extern packet_in {
    void extract<T>(out T header_);
    void advance(in bit<32> bits);
}

extern packet_out {
    void emit<T>(in T header_);
}

action NoAction() {}

#endif
