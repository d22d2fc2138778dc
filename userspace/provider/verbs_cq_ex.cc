// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The polling calls of an extended CQ. start_poll takes the lock of the CQ and end_poll releases
 * it, as the application reads the current completion between them.
 */
#include <cerrno>

#include "datapath/work_completion.h"
#include "verbs_cq.h"

namespace tern::provider {

namespace {

const Completion &current(ibv_cq_ex *cq)
{
	return Cq::of(cq)->current;
}

int take(Cq &cq)
{
	if (!cq.queue.next(cq.current))
		return cq.queue.closed() ? EIO : ENOENT;
	cq.verbs.cq_ex.wr_id = cq.current.wr_id;
	cq.verbs.cq_ex.status = static_cast<ibv_wc_status>(cq.current.status);
	return 0;
}

void end_poll(ibv_cq_ex *ibv)
{
	Cq &cq = *Cq::of(ibv);

	cq.queue.release();
	cq.queue.lock().release();
}

int start_poll(ibv_cq_ex *ibv, ibv_poll_cq_attr *attr)
{
	Cq &cq = *Cq::of(ibv);

	if (attr->comp_mask)
		return EINVAL;
	cq.queue.lock().hold();
	const int err = take(cq);
	if (err)
		end_poll(ibv); /* the application calls it only after success */
	return err;
}

int next_poll(ibv_cq_ex *cq)
{
	return take(*Cq::of(cq));
}

template <auto Member>
auto read(ibv_cq_ex *cq)
{
	return current(cq).*Member;
}

/* For fields that RoCE does not have. */
template <class T>
T read_zero(ibv_cq_ex *)
{
	return 0;
}

ibv_wc_opcode read_opcode(ibv_cq_ex *cq)
{
	return wc_opcode(current(cq));
}

unsigned read_wc_flags(ibv_cq_ex *cq)
{
	return wc_flags(current(cq));
}

uint32_t read_imm_data(ibv_cq_ex *cq)
{
	return wc_imm_data(current(cq));
}

uint16_t read_cvlan(ibv_cq_ex *cq)
{
	constexpr uint16_t kNoTag = 0xffff;
	const uint16_t vlan = current(cq).vlan;

	return vlan == kNoTag ? 0 : vlan;
}

uint64_t read_wallclock_ns(ibv_cq_ex *ibv)
{
	Cq &cq = *Cq::of(ibv);

	return cq.wall_clock.at(cq.current.timestamp, Context::of(ibv->context)->doorbell_page());
}

void read_tm_info(ibv_cq_ex *cq, ibv_wc_tm_info *info)
{
	info->tag = current(cq).tag;
	info->priv = current(cq).app_ctx;
}

struct Reader {
	uint64_t wc_flag; /* enum ibv_create_cq_wc_flags */
	uint32_t cap;     /* required TERN_CAP_*, or 0 */
	void (*set)(ibv_cq_ex &cq);
};

constexpr Reader kReaders[] = {
        {IBV_WC_EX_WITH_BYTE_LEN, 0,
         [](ibv_cq_ex &cq) { cq.read_byte_len = read<&Completion::byte_len>; }},
        {IBV_WC_EX_WITH_IMM, 0, [](ibv_cq_ex &cq) { cq.read_imm_data = read_imm_data; }},
        {IBV_WC_EX_WITH_QP_NUM, 0, [](ibv_cq_ex &cq) { cq.read_qp_num = read<&Completion::qpn>; }},
        {IBV_WC_EX_WITH_SRC_QP, 0,
         [](ibv_cq_ex &cq) { cq.read_src_qp = read<&Completion::src_qpn>; }},
        {IBV_WC_EX_WITH_SLID, 0, [](ibv_cq_ex &cq) { cq.read_slid = read_zero<uint32_t>; }},
        {IBV_WC_EX_WITH_SL, 0, [](ibv_cq_ex &cq) { cq.read_sl = read<&Completion::sl>; }},
        {IBV_WC_EX_WITH_DLID_PATH_BITS, 0,
         [](ibv_cq_ex &cq) { cq.read_dlid_path_bits = read_zero<uint8_t>; }},
        {IBV_WC_EX_WITH_COMPLETION_TIMESTAMP, 0,
         [](ibv_cq_ex &cq) { cq.read_completion_ts = read<&Completion::timestamp>; }},
        {IBV_WC_EX_WITH_CVLAN, 0, [](ibv_cq_ex &cq) { cq.read_cvlan = read_cvlan; }},
        {IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK, TERN_CAP_CLOCK,
         [](ibv_cq_ex &cq) { cq.read_completion_wallclock_ns = read_wallclock_ns; }},
        {IBV_WC_EX_WITH_TM_INFO, TERN_CAP_TAG_MATCHING,
         [](ibv_cq_ex &cq) { cq.read_tm_info = read_tm_info; }},
};

} // namespace

int set_poll_ops(Cq &cq, uint64_t wc_flags_wanted, const Context &context)
{
	ibv_cq_ex &ex = cq.verbs.cq_ex;

	for (const Reader &r : kReaders) {
		if (!(wc_flags_wanted & r.wc_flag) || !context.has(r.cap))
			continue;
		r.set(ex);
		wc_flags_wanted &= ~r.wc_flag;
	}
	if (wc_flags_wanted)
		return EOPNOTSUPP;

	ex.start_poll = start_poll;
	ex.next_poll = next_poll;
	ex.end_poll = end_poll;
	ex.read_opcode = read_opcode;
	ex.read_vendor_err = read_zero<uint32_t>;
	ex.read_wc_flags = read_wc_flags;
	return 0;
}

} // namespace tern::provider
