// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/port/eth_qp.h"

#include <algorithm>

#include "qemu/rnic/formats/tcp.h"
#include "qemu/rnic/port/frame_checksums.h"
#include "qemu/rnic/port/port.h"
#include "qemu/rnic/transport/qp_attr.h"

namespace tern {

using namespace hw;

namespace {
constexpr size_t kEthHeader = 14;
constexpr size_t kVlanTag = 4;

constexpr FrameCounters kEthernetCounters{
        .tx_frames = TERN_STAT_ETH_TX_FRAMES,
        .tx_errors = TERN_STAT_ETH_TX_ERRORS,
        .rx_frames = TERN_STAT_ETH_RX_FRAMES,
        .rx_no_buffer = TERN_STAT_ETH_RX_NO_BUFFER,
        .rx_errors = TERN_STAT_ETH_RX_ERRORS,
        .tx_bytes = TERN_STAT_ETH_TX_BYTES,
        .rx_bytes = TERN_STAT_ETH_RX_BYTES,
};
constexpr FrameCounters kRawCounters{
        .tx_frames = TERN_STAT_RAW_TX_FRAMES,
        .tx_errors = TERN_STAT_RAW_TX_ERRORS,
        .rx_frames = TERN_STAT_RAW_RX_FRAMES,
        .rx_no_buffer = TERN_STAT_RAW_RX_NO_BUFFER,
        .rx_errors = TERN_STAT_RAW_RX_ERRORS,
        .tx_bytes = {},
        .rx_bytes = {},
};

} // namespace

EthQp::EthQp(DataPath &data, Port &port, const QpConfig &config, SendQueue sq, RecvQueue rq)
        : Qp(data, config, std::move(sq), std::move(rq)), port_(port),
          counters_(config.type == TERN_QPT_RAW ? kRawCounters : kEthernetCounters)
{
}

EthQp::~EthQp()
{
	if (config_.type == TERN_QPT_ETH)
		port_.ethernet.remove(*this);
}

CommandStatus EthQp::check(const tern_hw_modify_qp &cmd) const
{
	return check_attributes(config_.type, state_, cmd.attr_mask.get(), cmd.attr);
}

void EthQp::modify(const tern_hw_modify_qp &cmd)
{
	const uint32_t mask = cmd.attr_mask.get();
	const auto to = next_state(state_, mask, cmd.attr);
	if (to == TERN_QPS_RESET)
		reset();
	else if (to == TERN_QPS_ERR)
		enter_error();
	else
		set_state(to);
	if (mask & TERN_QP_RATE_LIMIT)
		set_rate_limit(cmd.attr.rate_limit);
	if (state_ == TERN_QPS_RTS)
		data_.scheduler.activate(*this);
}

void EthQp::query(tern_hw_qp_attr &attr) const
{
	attr.state = static_cast<uint8_t>(state_);
	attr.cur_state = attr.state;
	attr.rate_limit = rate_limit();
}

void EthQp::enter_error()
{
	set_state(TERN_QPS_ERR);
	under_way_.reset();
	page_waits_.forget();
	start_flush();
}

void EthQp::reset()
{
	reset_queues();
	under_way_.reset();
	set_state(TERN_QPS_RESET);
}

bool EthQp::deliver(const Packet &)
{
	return false;
}

bool EthQp::take_turn(unsigned &budget)
{
	if (state_ != TERN_QPS_RTS)
		return false;

	while (!waits_for_pages(Side::Requester)) {
		if (!send_posted() || paced())
			return false;
		if (!budget)
			return true;
		send_some(budget);
		if (parked() || state_ != TERN_QPS_RTS)
			return false;
	}
	return false;
}

void EthQp::send_some(unsigned &budget)
{
	SendWqe &wqe = data_.scratch_send;
	const Fetch fetch = sq_.fetch(data_.memory, sq_.head(), wqe);
	if (fetch == Fetch::Fault)
		return fatal();
	if (fetch == Fetch::Ok && wqe.offload.mss)
		return send_segments(wqe, budget);
	spend(budget, 1 + kMessage);
	if (fetch == Fetch::Ok)
		send_whole(wqe);
	else
		fail_send(wqe, TERN_WC_LOC_QP_OP_ERR);
}

void EthQp::send_whole(const SendWqe &wqe)
{
	const Check status = build(wqe);
	if (!status)
		return wait_for_pages(Side::Requester);
	if (*status != TERN_WC_SUCCESS)
		return fail_send(wqe, *status);
	if (!send_frame(wqe.length))
		return;
	if (wqe.offload.csum_start)
		data_.stats.add(TERN_STAT_ETH_TX_CSUM);
	finish_send(wqe);
}

/* The WQE may have been read again since the last segment, so nothing is assumed to be
 * unchanged. */
void EthQp::send_segments(const SendWqe &wqe, unsigned &budget)
{
	Check status = under_way_ ? TERN_WC_SUCCESS : begin_segments(wqe);
	while (status == TERN_WC_SUCCESS && budget) {
		budget--;
		const size_t done = under_way_->headers.payload + under_way_->sent;
		if (wqe.length < done) {
			status = TERN_WC_LOC_LEN_ERR;
			break;
		}
		const size_t left = wqe.length - done;
		const size_t size = std::min<size_t>(left, wqe.offload.mss);
		status = build_segment(wqe, size);
		if (status != TERN_WC_SUCCESS)
			break;
		if (!send_frame(under_way_->headers.payload + size))
			return;
		data_.stats.add(TERN_STAT_ETH_TX_CSUM);
		under_way_->sent += size;
		under_way_->count++;
		if (size == left)
			return finish_send(wqe);
	}
	if (!status)
		wait_for_pages(Side::Requester);
	else if (*status != TERN_WC_SUCCESS)
		fail_send(wqe, *status);
}

bool EthQp::send_frame(size_t size)
{
	/* Flows do not apply to frames of the host's own network stack. */
	const size_t sent = config_.type == TERN_QPT_RAW
	                            ? port_.send_raw(*this, size)
	                            : data_.out.send(*this, data_.out.pad(size));
	if (!sent)
		return false;
	pace(sent);
	data_.stats.add(counters_.tx_frames);
	if (counters_.tx_bytes)
		data_.stats.add(*counters_.tx_bytes, size);
	return true;
}

void EthQp::finish_send(const SendWqe &wqe)
{
	const uint32_t index = sq_.head();
	under_way_.reset();
	sq_.advance(wqe.blocks);
	if (config_.signal_all || (wqe.flags & TERN_WQE_SIGNALED))
		complete_send(index, wqe.opcode, TERN_WC_SUCCESS,
		              static_cast<uint32_t>(wqe.length));
}

void EthQp::fail_send(const SendWqe &wqe, tern_hw_cqe_status status)
{
	const uint32_t index = sq_.head();
	data_.stats.add(counters_.tx_errors);
	sq_.consume(wqe);
	complete_send(index, wqe.opcode, status, 0);
	enter_error();
}

void EthQp::resume_requester(bool ok)
{
	SendWqe &wqe = data_.scratch_send;
	if (!ok && send_posted()) {
		if (sq_.fetch(data_.memory, sq_.head(), wqe) == Fetch::Fault)
			fatal();
		else
			fail_send(wqe, TERN_WC_LOC_PROT_ERR);
	}
	data_.scheduler.activate(*this);
}

size_t EthQp::max_frame() const
{
	return kEthHeader + kVlanTag + data_.out.mtu;
}

EthQp::Check EthQp::gather(const SendWqe &wqe, size_t offset, std::span<std::byte> to)
{
	const Access access = gather_send(wqe, offset, to);
	if (access == Access::NeedPages)
		return std::nullopt;
	return access == Access::Ok ? TERN_WC_SUCCESS : TERN_WC_LOC_PROT_ERR;
}

EthQp::Check EthQp::build(const SendWqe &wqe)
{
	if (wqe.length < kEthHeader || wqe.length > max_frame())
		return TERN_WC_LOC_LEN_ERR;
	const auto frame = data_.out.buffer().first(wqe.length);
	const Check status = gather(wqe, 0, frame);
	const EthOffload &offload = wqe.offload;
	if (status != TERN_WC_SUCCESS || !offload.csum_start)
		return status;
	return put_checksum(frame, offload.csum_start, offload.csum_offset) ? TERN_WC_SUCCESS
	                                                                    : TERN_WC_LOC_QP_OP_ERR;
}

EthQp::Check EthQp::begin_segments(const SendWqe &wqe)
{
	const size_t head_size = wqe.offload.csum_start + sizeof(headers::Tcp);
	if (wqe.length < head_size || head_size > max_frame() || wqe.length > TERN_MAX_TSO)
		return TERN_WC_LOC_LEN_ERR;
	const auto head = data_.out.buffer().first(head_size);
	const Check status = gather(wqe, 0, head);
	if (status != TERN_WC_SUCCESS)
		return status;
	const auto found = find_tcp_headers(head, wqe.offload.csum_start);
	if (!found)
		return TERN_WC_LOC_QP_OP_ERR;
	under_way_ = Segments{.headers = *found};
	data_.stats.add(TERN_STAT_ETH_TX_TSO);
	return TERN_WC_SUCCESS;
}

EthQp::Check EthQp::build_segment(const SendWqe &wqe, size_t size)
{
	const TcpHeaders &headers = under_way_->headers;
	if (headers.payload + size > max_frame())
		return TERN_WC_LOC_LEN_ERR;
	const auto frame = data_.out.buffer().first(headers.payload + size);
	Check status = gather(wqe, 0, frame.first(headers.payload));
	if (status == TERN_WC_SUCCESS)
		status = gather(wqe, headers.payload + under_way_->sent,
		                frame.subspan(headers.payload));
	if (status != TERN_WC_SUCCESS)
		return status;
	finish_segment(frame, headers,
	               {.offset = under_way_->sent,
	                .size = size,
	                .index = under_way_->count,
	                .whole = wqe.length - headers.payload});
	return TERN_WC_SUCCESS;
}

FrameSink *EthQp::frame_sink()
{
	return config_.type == TERN_QPT_RAW ? this : nullptr;
}

bool EthQp::receives() const
{
	return state_ == TERN_QPS_RTR || state_ == TERN_QPS_RTS;
}

void EthQp::receive(std::span<const std::byte> frame, const RxInfo &info)
{
	const Stats::Scope scope(data_.stats, stats_set());
	if (!receives()) {
		data_.drop(counters_.rx_no_buffer, number);
		return;
	}
	if (frame.size() > max_frame()) {
		data_.drop(counters_.rx_errors, number);
		return;
	}
	const RecvResult claimed = recv_.claim();
	if (claimed == RecvResult::QueueFailed)
		fatal();
	if (claimed != RecvResult::Done)
		return data_.drop(counters_.rx_no_buffer, number);

	const RecvResult placed = recv_.place(0, frame);
	switch (placed) {
	case RecvResult::Done:
		return end_recv(frame.size(), TERN_WC_SUCCESS, info);
	case RecvResult::QueueFailed:
		return fatal();
	case RecvResult::NeedPages:
		if (!may_wait_for_pages())
			return end_recv(frame.size(), TERN_WC_LOC_PROT_ERR);
		/* The WQE stays claimed for the next frame. */
		data_.drop(counters_.rx_no_buffer, number);
		return wait_for_pages(Side::Responder);
	default:
		return end_recv(frame.size(), status_of(placed));
	}
}

void EthQp::end_recv(size_t size, tern_hw_cqe_status status, const RxInfo &info)
{
	tern_hw_cqe cqe{};
	cqe.opcode = TERN_CQE_RECV;
	cqe.byte_len = static_cast<uint32_t>(size);
	cqe.status = static_cast<uint8_t>(status);
	cqe.flags = info.flags;
	cqe.hash = info.hash;
	const bool ok = status == TERN_WC_SUCCESS;
	data_.stats.add(ok ? counters_.rx_frames : counters_.rx_errors);
	if (ok && counters_.rx_bytes)
		data_.stats.add(*counters_.rx_bytes, size);
	complete_recv(cqe, false);
}

void EthQp::resume_responder(bool ok)
{
	if (!ok && recv_.needs_pages())
		end_recv(0, TERN_WC_LOC_PROT_ERR);
}

} // namespace tern
