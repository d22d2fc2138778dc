// SPDX-License-Identifier: GPL-2.0-or-later
/* The driver of the pretended card: receive WQs and their tables. */
#include <bit>
#include <cerrno>

#include "fake_uverbs.h"
#include "private_abi.h"

namespace tern::provider::test {

using namespace tern::private_abi;

int FakeUverbs::create_wq(const ib_uverbs_ex_cmd_hdr &ex, const ib_uverbs_ex_create_wq &cmd)
{
	constexpr uint8_t kLogStride = 5;
	const uint32_t entries = std::bit_ceil(cmd.max_wr);
	const uint32_t ring = entries << kLogStride;
	Response<ib_uverbs_ex_create_wq_resp, tern_create_wq_resp> resp = {};

	if (ex.provider_out_words * 8u != sizeof(resp.tern))
		return ENOSPC;
	resp.core.response_length = sizeof(resp.core);
	resp.core.wq_handle = 20;
	resp.core.max_wr = entries;
	resp.core.max_sge = 2;
	resp.core.wqn = next_wqn;
	resp.tern.buf_len = (ring + 64 + 4095) & ~4095u;
	resp.tern.buf_key = allocate(resp.tern.buf_len);
	resp.tern.record_offset = ring;
	resp.tern.wqn = next_wqn++;
	resp.tern.log_size = static_cast<uint8_t>(std::countr_zero(entries));
	resp.tern.log_stride = kLogStride;
	last_wq = resp.tern;
	if (on_wq)
		on_wq(resp.tern);
	respond(ex.response, resp, sizeof(resp));
	wqs++;
	return 0;
}

int FakeUverbs::command_of_wq(uint32_t number, const std::byte *body)
{
	ib_uverbs_ex_cmd_hdr ex;

	if (!(number & IB_USER_VERBS_CMD_FLAG_EXTENDED))
		return EOPNOTSUPP;
	std::memcpy(&ex, body, sizeof(ex));
	body += sizeof(ex);
	switch (number & ~IB_USER_VERBS_CMD_FLAG_EXTENDED) {
	case IB_USER_VERBS_EX_CMD_CREATE_WQ:
		return create_wq(ex, *reinterpret_cast<const ib_uverbs_ex_create_wq *>(body));
	case IB_USER_VERBS_EX_CMD_MODIFY_WQ:
		if (on_modify)
			on_modify();
		return 0;
	case IB_USER_VERBS_EX_CMD_DESTROY_WQ: {
		ib_uverbs_ex_destroy_wq_resp resp = {};
		resp.response_length = sizeof(resp);
		respond(ex.response, resp, sizeof(resp));
		wqs--;
		return 0;
	}
	case IB_USER_VERBS_EX_CMD_CREATE_RWQ_IND_TBL: {
		const auto &cmd =
		        *reinterpret_cast<const ib_uverbs_ex_create_rwq_ind_table *>(body);
		ib_uverbs_ex_create_rwq_ind_table_resp resp = {};
		last_table.assign(cmd.wq_handles, cmd.wq_handles + (1u << cmd.log_ind_tbl_size));
		resp.response_length = sizeof(resp);
		resp.ind_tbl_handle = 21;
		respond(ex.response, resp, sizeof(resp));
		tables++;
		return 0;
	}
	case IB_USER_VERBS_EX_CMD_DESTROY_RWQ_IND_TBL:
		tables--;
		return 0;
	default:
		return EOPNOTSUPP;
	}
}

} // namespace tern::provider::test
