/* SPDX-License-Identifier: BSD-3-Clause */
/* v1model.p4 - what ina_v1model.p4 uses of the architecture of that name, declared for p4run: names, widths and order as BMv2 has them */
#ifndef MODEL_V1MODEL_P4
#define MODEL_V1MODEL_P4
#include <core.p4>

struct standard_metadata_t {
    bit<9>  ingress_port;
    bit<9>  egress_spec;
    bit<9>  egress_port;
    bit<32> packet_length;
    bit<16> mcast_grp;
    bit<16> egress_rid;
    bit<1>  checksum_error;
    error   parser_error;
}

enum HashAlgorithm { csum16 }

extern register<T> {
    register(bit<32> size);
    void read(out T result, in bit<32> index);
    void write(in bit<32> index, in T value);
}

extern void mark_to_drop(inout standard_metadata_t standard_metadata);
extern void truncate(in bit<32> length);
extern void verify_checksum<T, O>(in bool condition, in T data, in O checksum, HashAlgorithm algorithm);
extern void update_checksum<T, O>(in bool condition, in T data, inout O checksum, HashAlgorithm algorithm);

parser Parser<H, M>(packet_in packet, out H hdr, inout M meta, inout standard_metadata_t std);
control VerifyChecksum<H, M>(inout H hdr, inout M meta);
control Ingress<H, M>(inout H hdr, inout M meta, inout standard_metadata_t std);
control Egress<H, M>(inout H hdr, inout M meta, inout standard_metadata_t std);
control ComputeChecksum<H, M>(inout H hdr, inout M meta);
control Deparser<H>(packet_out packet, in H hdr);
package V1Switch<H, M>(Parser<H, M> p, VerifyChecksum<H, M> vr, Ingress<H, M> ig, Egress<H, M> eg, ComputeChecksum<H, M> ck, Deparser<H> dep);

#endif
