/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One card with its host, and a peer that is nothing but packets in the test's hand. */
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "qemu/rnic/formats/packet.h"
#include "qemu/rnic/rnic.h"
#include "tests/support/fake_host.h"
#include "tests/support/host.h"

namespace tern::test {

inline constexpr Mac kCardMac{2, 0, 0, 0, 0, 1};
inline constexpr Mac kPeerMac{2, 0, 0, 0, 0, 2};
inline constexpr Gid kCardGid{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1}};
inline constexpr Gid kPeerGid{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 2}};
inline constexpr uint32_t kPeerQpn = 0x1234;

/** A packet as the test writes and reads it. */
struct TestPacket {
	Opcode opcode = Opcode::RcAcknowledge;
	Service service = Service::Rc;
	uint32_t psn = 0;
	bool ack_request = false;
	bool solicited = false;
	uint16_t pkey = kDefaultPkey;
	uint32_t qpn = 0;
	ExtHeaders ext{};
	std::vector<std::byte> payload{};
};

class OneCard : public ::testing::Test {
protected:
	explicit OneCard(const Rnic::Config &config = {.mac = kCardMac})
	        : card_(config, host_.ports()), driver_(card_, host_.memory, [this] { run(); })
	{
		card_.set_link(true);
	}

	/** A card that is ready for QPs: an EQ, a CQ, a PD, a GID. */
	void set_up_card(unsigned cq_log_size = 8)
	{
		driver_.enable();
		eq_.emplace(driver_.create_eq(0));
		driver_.arm(*eq_);
		driver_.set_gid(0, hw::TERN_GID_ROCE_V2, kCardGid);
		pd_ = driver_.alloc_pd();
		cq_ = driver_.create_cq(*eq_, cq_log_size);
		mr_.emplace(driver_.create_mr(pd_, kVa, kSize, kAllAccess, {2, 12}));
		for (uint64_t i = 0; i < kSize; i++)
			content_.push_back(static_cast<std::byte>(i * 31 + i / 256));
		mr_->write(0, content_);
	}

	/** A card with a connected QP whose CQ uses the EQ of vector 1. Vector 0 has none. */
	void set_up_without_events()
	{
		driver_.enable();
		completions_.emplace(driver_.create_eq(1));
		driver_.set_gid(0, hw::TERN_GID_ROCE_V2, kCardGid);
		pd_ = driver_.alloc_pd();
		cq_ = driver_.create_cq(*completions_, 8);
		qp_ = make_qp();
		qp_->connect(connection());
	}

	std::unique_ptr<HostQp> make_qp(uint8_t sq_log_size = 8, uint8_t rq_log_size = 5)
	{
		QpOptions options;
		options.pd = pd_;
		options.send_cqn = options.recv_cqn = cq_->number;
		options.sq_log_size = sq_log_size;
		options.rq_log_size = rq_log_size;
		return driver_.create_qp(options);
	}

	Connection connection() const
	{
		Connection c;
		c.dest_qpn = kPeerQpn;
		c.dgid = kPeerGid;
		c.dmac = kPeerMac;
		c.mtu = 1; /* 256 */
		c.rq_psn = kRqPsn;
		c.sq_psn = kSqPsn;
		return c;
	}

	void run()
	{
		for (int i = 0; i < 100000 && card_.run(64); i++) {
		}
	}
	/** The wire takes frames again, and the card sends those that wait for it. */
	void open_wire()
	{
		host_.wire.accept_all();
		card_.wire_ready();
		run();
	}
	/** Lets @ns pass; timers go off when they are due. */
	void pass(uint64_t ns)
	{
		const uint64_t end = host_.clock.now() + ns;
		for (auto next = card_.next_deadline(); next && *next <= end;
		     next = card_.next_deadline()) {
			host_.clock.advance_to(*next);
			run();
		}
		host_.clock.advance_to(end);
		run();
	}

	static AddressVector path()
	{
		AddressVector av;
		av.smac = kPeerMac;
		av.dmac = kCardMac;
		av.sgid = kPeerGid;
		av.dgid = kCardGid;
		return av;
	}

	/** The card receives @p, and works on it unless told otherwise. */
	void give(const TestPacket &p, const AddressVector &av, bool and_run = true)
	{
		Bth bth;
		bth.opcode = opcode_of(p.service, p.opcode);
		bth.psn = Psn(p.psn);
		bth.ack_request = p.ack_request;
		bth.solicited = p.solicited;
		bth.pkey = p.pkey;
		bth.dest_qpn = p.qpn ? p.qpn : qp_->number;
		std::vector<std::byte> out(kMaxRoceFrame + 9000);
		FrameBuilder builder(out, PathHeader(av), bth, p.ext, p.payload.size());
		std::ranges::copy(p.payload, builder.payload().begin());
		const auto frame = builder.finish();
		card_.receive(frame);
		if (and_run)
			run();
	}
	void give(const TestPacket &p) { give(p, path()); }

	/** The oldest frame that the card sent, taken apart. */
	std::optional<TestPacket> sent()
	{
		const auto frame = host_.wire.take();
		if (frame.empty())
			return std::nullopt;
		const auto parsed = parse(frame);
		if (!std::holds_alternative<Packet>(parsed)) {
			ADD_FAILURE() << "the card sent a frame that is not right";
			return std::nullopt;
		}
		const Packet &packet = std::get<Packet>(parsed);
		EXPECT_EQ(packet.bth.dest_qpn, kPeerQpn);
		EXPECT_EQ(packet.path.dmac, kPeerMac);
		return TestPacket{rc_opcode(packet.bth.opcode), service_of(packet.bth.opcode),
		                  packet.bth.psn.value(),       packet.bth.ack_request,
		                  packet.bth.solicited,         packet.bth.pkey,
		                  packet.bth.dest_qpn,          packet.ext,
		                  bytes_of(packet.payload)};
	}
	static std::vector<std::byte> bytes_of(const Payload &payload)
	{
		std::vector<std::byte> bytes(payload.size());
		payload.copy_to(bytes);
		return bytes;
	}
	std::vector<TestPacket> all_sent()
	{
		std::vector<TestPacket> all;
		while (auto p = sent())
			all.push_back(std::move(*p));
		return all;
	}

	/** Event types for @id that arrived since the last call; all of one type are one. */
	std::vector<hw::tern_hw_eqe> events()
	{
		std::vector<hw::tern_hw_eqe> all;
		while (const auto e = eq_->ring.poll())
			all.push_back(*e);
		driver_.arm(*eq_);
		return all;
	}
	bool event(hw::tern_hw_event type, uint32_t id)
	{
		for (const auto &e : events())
			if (e.type == type && e.id.get() == id)
				return true;
		return false;
	}
	uint64_t stat(hw::tern_hw_stat which) { return driver_.stat(which); }
	std::vector<std::byte> content(uint64_t offset, size_t n) const
	{
		return {content_.begin() + static_cast<ptrdiff_t>(offset),
		        content_.begin() + static_cast<ptrdiff_t>(offset + n)};
	}
	uint8_t qp_state() { return qp_->query().state; }

	static constexpr uint64_t kVa = 0x7f0000001008;
	static constexpr uint64_t kSize = 0x20000;
	static constexpr uint32_t kRqPsn = 0xfffffe; /* every test goes over the wrap */
	static constexpr uint32_t kSqPsn = 0xfffffd;

	FakeHost host_;
	Rnic card_;
	Driver driver_;
	std::optional<HostEq> eq_;
	std::optional<HostEq> completions_; /* of set_up_without_events() */
	uint32_t pd_ = 0;
	std::unique_ptr<HostCq> cq_;
	std::optional<HostMr> mr_;
	std::unique_ptr<HostQp> qp_;
	std::vector<std::byte> content_;
};

/** PSN @n after @base. */
inline uint32_t psn_after(uint32_t base, uint32_t n)
{
	return (base + n) & 0xffffff;
}

} // namespace tern::test
