// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/port/eth_qp.h"

#include <algorithm>

#include "qemu/rnic/card.h"

namespace tern {

using namespace hw;

namespace {
constexpr size_t kEthHeader = 14;
constexpr size_t kVlanTag = 4;
/* In ERR nothing tells of posts to the receive queue. */
constexpr uint64_t kFlushInterval = 10'000'000;

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

EthQp::EthQp(Card &card, const QpConfig &config, SendQueue sq, RecvQueue rq)
        : Qp(card, config, std::move(sq), std::move(rq)),
          counters_(config.type == TERN_QPT_RAW ? kRawCounters : kEthernetCounters)
{
}

EthQp::~EthQp()
{
	if (card_.port.ethernet == this)
		card_.port.ethernet = nullptr;
}

tern_hw_aq_status EthQp::modify(uint32_t mask, const tern_hw_qp_attr &attr)
{
	const auto to = static_cast<tern_hw_qp_state>(attr.state);
	const bool may_name_port = config_.type == TERN_QPT_RAW && to == TERN_QPS_INIT;
	if ((mask & ~(may_name_port ? TERN_QP_PORT : 0)) != TERN_QP_STATE ||
	    ((mask & TERN_QP_PORT) && attr.port != 1))
		return TERN_AQ_BAD_FIELD;

	switch (to) {
	case TERN_QPS_RESET:
		reset_queues();
		break;
	case TERN_QPS_ERR:
		enter_error();
		break;
	case TERN_QPS_INIT:
	case TERN_QPS_RTS:
		if (state_ == to)
			break; /* one may say so again (11.2.5.2) */
		[[fallthrough]];
	case TERN_QPS_RTR:
		if (state_ + 1 != to)
			return TERN_AQ_BAD_STATE;
		break;
	default:
		return TERN_AQ_BAD_FIELD;
	}
	state_ = to;
	if (state_ == TERN_QPS_RTS)
		card_.port.activate(*this);
	return TERN_AQ_OK;
}

void EthQp::query(tern_hw_qp_attr &attr) const
{
	attr.state = static_cast<uint8_t>(state_);
	attr.cur_state = attr.state;
}

void EthQp::enter_error()
{
	state_ = TERN_QPS_ERR;
	forget_faults();
	flush_send();
	flush_recv();
	schedule_flush();
}

void EthQp::schedule_flush()
{
	card_.set_timer(*this, card_.ports.clock.now() + kFlushInterval);
}

bool EthQp::deliver(const Packet &)
{
	return false;
}

void EthQp::on_timer(uint64_t)
{
	if (state_ != TERN_QPS_ERR)
		return;
	flush_recv();
	schedule_flush();
}

bool EthQp::transmit(unsigned &budget)
{
	if (state_ == TERN_QPS_ERR)
		flush_send();
	if (state_ != TERN_QPS_RTS)
		return false;

	while (!waits_for_pages(Side::Requester)) {
		if (!send_posted())
			return false;
		if (!budget || !card_.port.ready())
			return true;
		budget--;
		send_one();
		if (state_ != TERN_QPS_RTS)
			return false;
	}
	return false;
}

void EthQp::send_one()
{
	SendWqe &wqe = card_.scratch_send;
	const uint32_t index = sq_.head();
	const Fetch fetch = sq_.fetch(card_.memory, index, wqe);
	if (fetch == Fetch::Fault) {
		fatal();
		return;
	}

	const auto frame = card_.port.buffer();
	const auto status = fetch == Fetch::Ok ? build(wqe, frame) : TERN_WC_LOC_QP_OP_ERR;
	if (!status) {
		wait_for_pages(Side::Requester);
		return;
	}
	if (*status != TERN_WC_SUCCESS) {
		fail_send(wqe, *status);
		return;
	}

	sq_.advance(wqe.blocks);
	const size_t size = wqe.length;
	card_.stats.add(counters_.tx_frames);
	if (counters_.tx_bytes)
		card_.stats.add(*counters_.tx_bytes, size);
	const bool signaled = config_.signal_all || (wqe.flags & TERN_WQE_SIGNALED);
	const uint8_t opcode = wqe.opcode;
	/* Flows take nothing from the host's own IP. */
	if (config_.type == TERN_QPT_RAW)
		card_.port.send_raw(*this, size);
	else
		card_.port.send(size);
	if (signaled)
		complete_send(index, opcode, TERN_WC_SUCCESS, static_cast<uint32_t>(wqe.length));
}

void EthQp::fail_send(const SendWqe &wqe, tern_hw_cqe_status status)
{
	const uint32_t index = sq_.head();
	card_.stats.add(counters_.tx_errors);
	sq_.advance(std::max<uint32_t>(wqe.blocks, 1));
	complete_send(index, wqe.opcode, status, 0);
	enter_error();
}

void EthQp::resume_requester(bool ok)
{
	SendWqe &wqe = card_.scratch_send;
	if (!ok && send_posted()) {
		if (sq_.fetch(card_.memory, sq_.head(), wqe) == Fetch::Fault)
			fatal();
		else
			fail_send(wqe, TERN_WC_LOC_PROT_ERR);
	}
	card_.port.activate(*this);
}

std::optional<tern_hw_cqe_status> EthQp::build(const SendWqe &wqe, std::span<std::byte> frame)
{
	if (wqe.length < kEthHeader || wqe.length > kEthHeader + kVlanTag + card_.port.mtu)
		return TERN_WC_LOC_LEN_ERR;
	const Access access = gather_send(wqe, 0, frame.first(wqe.length));
	if (access == Access::NeedPages)
		return std::nullopt;
	return access == Access::Ok ? TERN_WC_SUCCESS : TERN_WC_LOC_PROT_ERR;
}

FrameSink *EthQp::frame_sink()
{
	return config_.type == TERN_QPT_RAW ? this : nullptr;
}

bool EthQp::receives() const
{
	return state_ == TERN_QPS_RTR || state_ == TERN_QPS_RTS;
}

void EthQp::receive(std::span<const std::byte> frame)
{
	if (!receives())
		return;
	if (frame.size() > kEthHeader + kVlanTag + card_.port.mtu) {
		card_.stats.add(counters_.rx_errors);
		return;
	}
	if (claim_recv() != Claim::Done) {
		card_.stats.add(counters_.rx_no_buffer);
		return;
	}

	RecvWqe &wqe = card_.scratch_recv;
	if (load_recv(wqe) != Fetch::Ok) {
		fatal();
		return;
	}
	if (frame.size() > wqe.length)
		return end_recv(frame.size(), TERN_WC_LOC_LEN_ERR);
	switch (scatter_recv(wqe, 0, frame)) {
	case Access::Ok:
		return end_recv(frame.size(), TERN_WC_SUCCESS);
	case Access::NeedPages:
		if (!may_wait_for_pages())
			return end_recv(frame.size(), TERN_WC_LOC_PROT_ERR);
		/* The WQE stays claimed, for the next frame. */
		card_.stats.add(counters_.rx_no_buffer);
		return wait_for_pages(Side::Responder);
	default:
		return end_recv(frame.size(), TERN_WC_LOC_PROT_ERR);
	}
}

void EthQp::end_recv(size_t size, tern_hw_cqe_status status)
{
	tern_hw_cqe cqe{};
	cqe.opcode = TERN_CQE_RECV;
	cqe.byte_len = static_cast<uint32_t>(size);
	cqe.status = static_cast<uint8_t>(status);
	const bool ok = status == TERN_WC_SUCCESS;
	card_.stats.add(ok ? counters_.rx_frames : counters_.rx_errors);
	if (ok && counters_.rx_bytes)
		card_.stats.add(*counters_.rx_bytes, size);
	complete_recv(cqe, false);
}

void EthQp::resume_responder(bool ok)
{
	if (!ok && claim_needs_pages())
		end_recv(0, TERN_WC_LOC_PROT_ERR);
}

} // namespace tern
