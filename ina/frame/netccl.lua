-- SPDX-License-Identifier: BSD-3-Clause
-- netccl.lua - tshark and Wireshark show the frames of reduction in the network (docs/ina.md has their bytes)
--
-- Usage: tshark -X lua_script:ina/frame/netccl.lua -r FILE, or put it into Wireshark's folder of personal Lua plugins.
-- Written from the table in docs/ina.md, not from hawser's decoder, so that each can be held against the other.

local netccl = Proto("netccl", "NetCCL aggregation")

local collectives = { [1] = "all-reduce", [2] = "reduce", [3] = "broadcast", [4] = "reduce-scatter", [5] = "all-gather" }

local f = netccl.fields
f.version = ProtoField.uint8("netccl.version", "Version")
f.flags = ProtoField.uint8("netccl.flags", "Flags", base.HEX)
f.answer = ProtoField.bool("netccl.flags.answer", "Answer", 8, nil, 0x01)
f.overflow = ProtoField.bool("netccl.flags.overflow", "Overflow", 8, nil, 0x02)
f.nonfinite = ProtoField.bool("netccl.flags.nonfinite", "Non-finite", 8, nil, 0x04)
f.abort = ProtoField.bool("netccl.flags.abort", "Abort", 8, nil, 0x08)
f.probe = ProtoField.bool("netccl.flags.probe", "Probe", 8, nil, 0x10)
f.held = ProtoField.bool("netccl.flags.held", "Held", 8, nil, 0x20)
f.need = ProtoField.bool("netccl.flags.need", "Need", 8, nil, 0x40)
f.exponent = ProtoField.uint8("netccl.exponent", "Exponent (less 149)")
f.reserved = ProtoField.uint8("netccl.reserved", "Reserved", base.HEX)
f.epoch = ProtoField.uint32("netccl.epoch", "Epoch")
f.coll = ProtoField.uint8("netccl.coll", "Collective", base.DEC, collectives)
f.group = ProtoField.uint8("netccl.group", "Group")
f.rank = ProtoField.uint8("netccl.rank", "Rank")
f.root = ProtoField.uint8("netccl.root", "Root")
f.slot = ProtoField.uint16("netccl.slot", "Slot")
f.psn = ProtoField.uint32("netccl.psn", "PSN")
f.nwords = ProtoField.uint32("netccl.nwords", "Words")
f.word = ProtoField.int32("netccl.word", "Word")

local bad = ProtoExpert.new("netccl.bad", "Not a frame of this protocol", expert.group.MALFORMED, expert.severity.ERROR)
netccl.experts = { bad }

local ip_proto, ip_df, ip_ttl, ip_hdr, ip_len =
	Field.new("ip.proto"), Field.new("ip.flags.df"), Field.new("ip.ttl"), Field.new("ip.hdr_len"), Field.new("ip.len")
local names = { { 0x08, "abort" }, { 0x10, "probe" }, { 0x20, "held" }, { 0x40, "need" }, { 0x02, "overflow" }, { 0x04, "non-finite" } }

local function complain(tree, pinfo, why)
	tree:add_proto_expert_info(bad, why)
	pinfo.cols.info:append(" [" .. why .. "]")
end

-- One bit at most of those that go without words.
local function several(flags)
	local n = 0
	for _, b in ipairs({ 0x08, 0x10, 0x20, 0x40 }) do
		if bit32.band(flags, b) ~= 0 then
			n = n + 1
		end
	end
	return n > 1, n == 1
end

local function extension(tvb, tree, pinfo, words)
	local flags = tvb(1, 1):uint()
	tree:add(f.version, tvb(0, 1))
	local t = tree:add(f.flags, tvb(1, 1))
	for _, field in ipairs({ f.answer, f.overflow, f.nonfinite, f.abort, f.probe, f.held, f.need }) do
		t:add(field, tvb(1, 1))
	end
	tree:add(f.exponent, tvb(2, 1))
	tree:add(f.reserved, tvb(3, 1))
	tree:add(f.epoch, tvb(4, 4))
	local many, bare = several(flags)
	local answer = bit32.band(flags, 0x01) ~= 0
	if tvb(0, 1):uint() ~= 1 then
		complain(tree, pinfo, "version is not 1")
	elseif bit32.band(flags, 0x80) ~= 0 or many or tvb(3, 1):uint() ~= 0 then
		complain(tree, pinfo, "flags that exclude each other, or reserved bits")
	elseif (bit32.band(flags, 0x10) ~= 0 and answer) or (bit32.band(flags, 0x60) ~= 0 and not answer) then
		complain(tree, pinfo, "a flag of the other direction")
	elseif bare and words > 0 then
		complain(tree, pinfo, "words where there can be none")
	elseif words == 0 and (tvb(2, 1):uint() ~= 0 or bit32.band(flags, 0x06) ~= 0) then
		complain(tree, pinfo, "an exponent or flags of words that are not there")
	end
	return flags
end

local function summary(pinfo, tvb, extended, flags, words)
	local text = string.format("%s group %u rank %u root %u slot %u psn %u", collectives[tvb(0, 1):uint()] or "?", tvb(1, 1):uint(),
		tvb(2, 1):uint(), tvb(3, 1):uint(), tvb(4, 2):uint(), tvb(6, 4):uint())
	if extended and bit32.band(flags, 0x01) ~= 0 then
		text = "answer: " .. text
	end
	for _, n in ipairs(names) do
		if bit32.band(flags, n[1]) ~= 0 then
			text = text .. ", " .. n[2]
		end
	end
	pinfo.cols.info = text .. (words > 0 and "" or ", no words")
end

function netccl.dissector(tvb, pinfo, root)
	local extended = ip_proto().value == 253
	local header = extended and 18 or 10
	local n = tvb:reported_length_remaining()
	local flags = 0
	pinfo.cols.protocol = extended and "NetCCL-X" or "NetCCL"
	local tree = root:add(netccl, tvb())
	if tvb:len() < n or ip_len().value ~= ip_hdr().value + n or (n ~= header and n ~= header + 256) then
		complain(tree, pinfo, "a length that no frame has")
		return
	end
	local words = (n - header) / 4
	local at = tvb
	if extended then
		flags = extension(tvb, tree, pinfo, words)
		at = tvb(8):tvb()
	end
	tree:add(f.coll, at(0, 1))
	tree:add(f.group, at(1, 1))
	tree:add(f.rank, at(2, 1))
	tree:add(f.root, at(3, 1))
	tree:add(f.slot, at(4, 2))
	tree:add(f.psn, at(6, 4))
	tree:add(f.nwords, words):set_generated()
	if words > 0 then
		local w = tree:add(at(10, 256), "64 words")
		for i = 0, 63 do
			w:add(f.word, at(10 + 4 * i, 4))
		end
	end
	summary(pinfo, at, extended, flags, words)
	if not ip_df().value or ip_ttl().value == 0 or ip_hdr().value ~= 20 then
		complain(tree, pinfo, "IPv4 without DF, with options, or at the end of its time to live")
	end
	if not collectives[at(0, 1):uint()] then
		complain(tree, pinfo, "no such collective")
	elseif at(1, 1):uint() == 0 or at(2, 1):uint() > 31 or at(3, 1):uint() > 31 then
		complain(tree, pinfo, "group 0, or a rank or root above 31")
	end
end

local ip = DissectorTable.get("ip.proto")
ip:add(253, netccl)
ip:add(254, netccl)
