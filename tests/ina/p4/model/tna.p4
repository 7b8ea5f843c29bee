/* SPDX-License-Identifier: BSD-3-Clause */
/* tna.p4 - what ina_tna.p4 uses of the Tofino Native Architecture, declared for p4run: names and widths as p4c's tofino1_base.p4 has them */
#ifndef MODEL_TNA_P4
#define MODEL_TNA_P4
#include <core.p4>

typedef bit<9> PortId_t;
const bit<32> PORT_METADATA_SIZE = 64;
const bit<16> PARSER_ERROR_OK = 0;

header ingress_intrinsic_metadata_t {
    bit<1>   resubmit_flag;
    bit<1>   pad1;
    bit<2>   packet_version;
    bit<3>   pad2;
    PortId_t ingress_port;
    bit<48>  ingress_mac_tstamp;
}

struct ingress_intrinsic_metadata_for_tm_t {
    PortId_t ucast_egress_port;
    bit<16>  mcast_grp_a;
}

struct ingress_intrinsic_metadata_from_parser_t {
    bit<16> parser_err;
}

struct ingress_intrinsic_metadata_for_deparser_t {
    bit<3> drop_ctl;
}

header egress_intrinsic_metadata_t {
    bit<7>   pad0;
    PortId_t egress_port;
    bit<16>  egress_rid;
}

struct egress_intrinsic_metadata_from_parser_t {
    bit<16> parser_err;
}

struct egress_intrinsic_metadata_for_deparser_t {
    bit<3> drop_ctl;
}

struct egress_intrinsic_metadata_for_output_port_t {
    bit<1> update_delay_on_tx;
}

extern Checksum {
    Checksum();
    void add<T>(in T data);
    bool verify();
    bit<16> update<T>(in T data);
}

extern Register<T, I> {
    Register(bit<32> size);
}

extern RegisterAction<T, I, U> {
    RegisterAction(Register<T, I> reg);
    U execute(in I index);
    abstract void apply(inout T value, out U rv);
}

package Pipeline<IH, IM, EH, EM>(IH ip, IM i, IH id, EH ep, EM e, EH ed);
package Switch<P>(P pipe0);

#endif
