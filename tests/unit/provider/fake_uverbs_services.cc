// SPDX-License-Identifier: GPL-2.0-or-later
/* The driver of the pretended card: CQs that change, address handles, SRQs, XRC, multicast, flows
 * and windows. */
#include <bit>
#include <cerrno>

#include <infiniband/verbs.h>

#include "fake_uverbs.h"
#include "private_abi.h"

namespace tern::provider::test {

using namespace tern::private_abi;

int FakeUverbs::resize_cq(const ib_uverbs_resize_cq &cmd, size_t room)
{
	Response<ResizeCqResp, tern_resize_cq_resp> resp = {};
	const tern_create_cq_resp old = last_cq;
	const uint32_t entries = std::bit_ceil(cmd.cqe), old_entries = 1u << old.log_size;
	const size_t ring = entries * sizeof(hw::tern_hw_cqe);

	if (room != sizeof(resp))
		return ENOSPC;
	resp.core.cqe = entries;
	resp.tern.buf_len = static_cast<uint32_t>((ring + 64 + 4095) & ~size_t{4095});
	resp.tern.buf_key = allocate(resp.tern.buf_len);
	resp.tern.record_offset = static_cast<uint32_t>(ring);
	resp.tern.log_size = static_cast<uint32_t>(std::countr_zero(entries));

	const auto phase_of = [](uint32_t index, uint32_t size) {
		return static_cast<uint8_t>(index & size ? 0 : TERN_PHASE);
	};
	const auto *from = at<hw::tern_hw_cqe>(old.buf_key);
	auto *to = at<hw::tern_hw_cqe>(resp.tern.buf_key);
	const uint32_t ci = at<hw::tern_hw_cq_record>(old.buf_key + old.record_offset)->ci.get();
	for (uint32_t i = 0; i < entries; i++)
		to[i].phase = phase_of(ci + ((i - ci) & (entries - 1)), entries) ^ TERN_PHASE;
	uint32_t pi = ci;
	for (; pi - ci < old_entries; pi++) {
		const hw::tern_hw_cqe &cqe = from[pi & (old_entries - 1)];
		if (cqe.phase != phase_of(pi, old_entries))
			break;
		if (pi - ci >= entries)
			return EINVAL;
		hw::tern_hw_cqe &moved = to[pi & (entries - 1)];
		moved = cqe;
		moved.phase = phase_of(pi, entries);
	}
	at<hw::tern_hw_cq_record>(resp.tern.buf_key + ring)->ci = ci;

	last_cq.buf_key = resp.tern.buf_key;
	last_cq.buf_len = resp.tern.buf_len;
	last_cq.record_offset = resp.tern.record_offset;
	last_cq.log_size = resp.tern.log_size;
	if (on_resize_cq)
		on_resize_cq(resp.tern);
	else /* what still looks at the old buffer shall notice */
		std::memset(memory(old.buf_key), 0xdd, old.buf_len);
	respond(cmd.response, resp, room);
	return 0;
}

int FakeUverbs::create_ah(const std::byte *body, size_t room)
{
	const auto &cmd = *reinterpret_cast<const ib_uverbs_create_ah *>(body);
	Response<CreateAhResp, tern_create_ah_resp> resp = {};

	if (room != sizeof(resp))
		return ENOSPC;
	if (!cmd.attr.is_global)
		return EINVAL;
	resp.core.ah_handle = 15;
	for (uint8_t i = 0; i < 6; i++)
		resp.tern.dmac[i] = 0x50 + i;
	resp.tern.udp_sport = 0xc123;
	resp.tern.hop_limit = 17;
	respond(cmd.response, resp, room);
	ahs++;
	return 0;
}

tern_srq_buf FakeUverbs::make_srq_buf(uint32_t srqn, uint32_t entries)
{
	constexpr uint8_t kLogStride = 5;
	const size_t slots = size_t{entries} << kLogStride;
	const size_t ring = (entries * sizeof(uint32_t) + 63) & ~size_t{63};
	tern_srq_buf buf = {};

	buf.buf_len = static_cast<uint32_t>((slots + ring + 64 + 4095) & ~size_t{4095});
	buf.buf_key = allocate(buf.buf_len);
	buf.ring_offset = static_cast<uint32_t>(slots);
	buf.record_offset = static_cast<uint32_t>(slots + ring);
	buf.srqn = srqn;
	buf.log_size = static_cast<uint8_t>(std::countr_zero(entries));
	buf.log_stride = kLogStride;
	return buf;
}

/* The operations lie in the page after the rest. */
void FakeUverbs::add_tags(const ib_uverbs_create_xsrq &cmd, tern_srq_buf &buf)
{
	tern_create_srq_cmd driver;

	std::memcpy(&driver, &cmd + 1, sizeof(driver));
	last_max_ops = driver.max_ops;
	buf.log_tags = static_cast<uint8_t>(std::countr_zero(std::bit_ceil(cmd.max_num_tags)));
	buf.log_tag_ops = static_cast<uint8_t>(std::countr_zero(std::bit_ceil(driver.max_ops)));
	buf.tag_ops_offset = buf.buf_len;
	allocate(4096);
	buf.buf_len += 4096;
}

int FakeUverbs::create_srq(const ib_uverbs_create_xsrq &cmd, size_t room)
{
	Response<CreateSrqResp, tern_create_srq_resp> resp = {};

	if (room != sizeof(resp))
		return ENOSPC;
	resp.core.srq_handle = 16;
	resp.core.max_wr = std::bit_ceil(cmd.max_wr);
	resp.core.max_sge = 2;
	resp.core.srqn = next_srqn;
	resp.tern.buf = make_srq_buf(next_srqn++, resp.core.max_wr);
	if (cmd.srq_type == IBV_SRQT_TM)
		add_tags(cmd, resp.tern.buf);
	last_srq = resp.tern.buf;
	if (on_srq)
		on_srq(resp.tern.buf);
	respond(cmd.response, resp, room);
	srqs++;
	return 0;
}

/* Moves the last SRQ as the driver does. */
int FakeUverbs::modify_srq(const std::byte *body)
{
	const auto &cmd = *reinterpret_cast<const ModifySrqCore *>(body);
	tern_modify_srq_cmd driver;

	if (cmd.attr_mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT))
		return EINVAL;
	if (!(cmd.attr_mask & IBV_SRQ_MAX_WR))
		return cmd.srq_limit > 1u << last_srq.log_size ? EINVAL : 0;
	std::memcpy(&driver, body + sizeof(cmd), sizeof(driver));
	const tern_srq_buf old = last_srq;
	const uint32_t entries = 1u << old.log_size;
	tern_srq_buf buf = {};
	if (cmd.max_wr > entries) {
		buf = make_srq_buf(old.srqn, std::bit_ceil(cmd.max_wr));
		std::memcpy(memory(buf.buf_key), memory(old.buf_key),
		            size_t{entries} << old.log_stride);
		const uint32_t pi = *at<uint32_t>(old.buf_key + old.record_offset);
		auto *from = at<uint32_t>(old.buf_key + old.ring_offset);
		auto *to = at<uint32_t>(buf.buf_key + buf.ring_offset);
		for (uint32_t i = pi - entries; i != pi; i++)
			to[i & ((1u << buf.log_size) - 1)] = from[i & (entries - 1)];
		*at<uint32_t>(buf.buf_key + buf.record_offset) = pi;
		/* What still looks at the old buffer shall notice. */
		std::memset(memory(old.buf_key), 0xdd, old.buf_len);
		last_srq = buf;
	}
	if (on_srq)
		on_srq(buf);
	std::memcpy(reinterpret_cast<void *>(driver.buf_addr), &buf, sizeof(buf));
	return 0;
}

int FakeUverbs::command_of_service(uint32_t number, const std::byte *body, size_t room)
{
	switch (number) {
	case IB_USER_VERBS_CMD_RESIZE_CQ:
		return resize_cq(*reinterpret_cast<const ib_uverbs_resize_cq *>(body), room);
	case IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_EX_CMD_MODIFY_CQ:
		last_moderation = reinterpret_cast<const ib_uverbs_ex_modify_cq *>(
		                          body + sizeof(ib_uverbs_ex_cmd_hdr))
		                          ->attr;
		if (on_moderate)
			on_moderate();
		return 0;
	case IB_USER_VERBS_CMD_CREATE_AH:
		return create_ah(body, room);
	case IB_USER_VERBS_CMD_DESTROY_AH:
		ahs--;
		return 0;
	case IB_USER_VERBS_CMD_CREATE_SRQ: {
		const auto &basic = *reinterpret_cast<const ib_uverbs_create_srq *>(body);
		ib_uverbs_create_xsrq cmd = {};
		cmd.response = basic.response;
		cmd.max_wr = basic.max_wr;
		return create_srq(cmd, room);
	}
	case IB_USER_VERBS_CMD_CREATE_XSRQ:
		return create_srq(*reinterpret_cast<const ib_uverbs_create_xsrq *>(body), room);
	case IB_USER_VERBS_CMD_MODIFY_SRQ:
		return modify_srq(body);
	case IB_USER_VERBS_CMD_QUERY_SRQ: {
		const auto &cmd = *reinterpret_cast<const ib_uverbs_query_srq *>(body);
		ib_uverbs_query_srq_resp resp = {};
		resp.max_wr = 1u << last_srq.log_size;
		resp.srq_limit = 3;
		respond(cmd.response, resp, room);
		return 0;
	}
	case IB_USER_VERBS_CMD_DESTROY_SRQ: {
		const auto &cmd = *reinterpret_cast<const ib_uverbs_destroy_srq *>(body);
		respond(cmd.response, ib_uverbs_destroy_srq_resp{}, room);
		srqs--;
		return 0;
	}
	case IB_USER_VERBS_CMD_OPEN_XRCD: {
		const auto &cmd = *reinterpret_cast<const ib_uverbs_open_xrcd *>(body);
		respond(cmd.response, uint32_t{17}, room);
		xrcds++;
		return 0;
	}
	case IB_USER_VERBS_CMD_CLOSE_XRCD:
		xrcds--;
		return 0;
	case IB_USER_VERBS_CMD_OPEN_QP: {
		const auto &cmd = *reinterpret_cast<const ib_uverbs_open_qp *>(body);
		ib_uverbs_create_qp_resp resp = {};
		resp.qpn = cmd.qpn;
		respond(cmd.response, resp, room);
		qps++;
		return 0;
	}
	case IB_USER_VERBS_CMD_ATTACH_MCAST:
		groups++;
		return 0;
	case IB_USER_VERBS_CMD_DETACH_MCAST:
		groups--;
		return 0;
	case IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_EX_CMD_CREATE_FLOW: {
		ib_uverbs_ex_cmd_hdr ex;
		std::memcpy(&ex, body, sizeof(ex));
		/* What counts comes first. */
		ib_uverbs_flow_spec_action_count count;
		std::memcpy(&count, body + sizeof(ex) + sizeof(ib_uverbs_create_flow),
		            sizeof(count));
		if (count.type == IBV_FLOW_SPEC_ACTION_COUNT)
			last_flow_counters = count.handle;
		ib_uverbs_create_flow_resp resp = {};
		resp.flow_handle = 18;
		respond(ex.response, resp, sizeof(resp));
		flows++;
		return 0;
	}
	case IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_EX_CMD_DESTROY_FLOW:
		flows--;
		return 0;
	case IB_USER_VERBS_CMD_ALLOC_MW: {
		const auto &cmd = *reinterpret_cast<const ib_uverbs_alloc_mw *>(body);
		const uint32_t resp[2] = {19, 0x2300}; /* handle, rkey */
		static_assert(offsetof(ib_uverbs_alloc_mw_resp, rkey) == 4);
		respond(cmd.response, resp, room);
		mws++;
		return 0;
	}
	case IB_USER_VERBS_CMD_DEALLOC_MW:
		mws--;
		return 0;
	default:
		return command_of_wq(number, body);
	}
}

} // namespace tern::provider::test
