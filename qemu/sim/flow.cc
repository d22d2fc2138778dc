// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/sim/flow.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace tern::sim {

using namespace hw;

namespace {

constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint32_t kQkey = 0x11111111;
constexpr uint32_t kGrh = 40;
constexpr uint8_t kHopLimit = 64;
constexpr unsigned kDscpShift = 2;

uint8_t type_of(Service service)
{
	constexpr uint8_t types[] = {TERN_QPT_RC, TERN_QPT_UC, TERN_QPT_UD};
	return types[static_cast<size_t>(service)];
}

} // namespace

void Rotation::start()
{
	if (std::exchange(started_, true))
		return;
	for (uint64_t i = 0; i < flows_.front()->spec.depth; i++)
		post();
}

void Rotation::post()
{
	for (size_t i = 0; i < flows_.size(); i++) {
		Flow &flow = *flows_[next_];
		next_ = (next_ + 1) % flows_.size();
		if (flow.post_one())
			return;
	}
}

Flow::Flow(EventLoop &loop, Host &f, Host &t, const Scenario::Flow &s, uint64_t mtu,
           uint16_t udp_sport, Rotation *rotation)
        : spec(s), from(f), to(t), loop_(loop), rotation_(rotation)
{
	if (rotation)
		rotation->add(*this);
	test::QpOptions options;
	options.type = type_of(spec.service);
	/* A datagram takes two blocks; the far end gets receive WQEs for twice the depth. */
	options.sq_log_size = options.rq_log_size =
	        static_cast<uint8_t>(std::bit_width(2 * spec.depth));
	options.rq_log_stride = 4;
	near_ = from.create_qp(options);
	far_ = to.create_qp(options);
	from.add_flow(near_->number, *this);
	to.add_flow(far_->number, *this);
	connect(mtu, udp_sport);
	prepare_request(udp_sport);
	if (spec.operation == Operation::Send)
		for (uint64_t i = 0; i < 2 * spec.depth; i++)
			post_recv();
}

void Flow::connect(uint64_t mtu, uint16_t udp_sport)
{
	if (spec.service == Service::Ud) {
		near_->start(kQkey);
		far_->start(kQkey);
		return;
	}
	test::Connection path;
	path.mtu = static_cast<uint8_t>(std::bit_width(mtu / kMinPathMtu)); /* enum ib_mtu */
	path.timeout = spec.timeout;
	path.traffic_class = static_cast<uint8_t>(spec.dscp << kDscpShift);
	path.udp_sport = udp_sport;
	const auto towards = [&](const Host &host, const test::HostQp &qp) {
		path.dest_qpn = qp.number;
		path.dgid = host.gid;
		path.dmac = host.mac;
		return path;
	};
	near_->connect(towards(to, *far_));
	far_->connect(towards(from, *near_));
}

void Flow::prepare_request(uint16_t udp_sport)
{
	constexpr uint8_t opcodes[] = {TERN_OP_WRITE, TERN_OP_SEND, TERN_OP_READ};
	request_.opcode = opcodes[static_cast<size_t>(spec.operation)];
	request_.sges = {from.payload(static_cast<uint32_t>(spec.size))};
	request_.rkey = to.region();
	if (spec.service != Service::Ud)
		return;
	tern_hw_ud_seg address{};
	std::ranges::copy(to.gid.bytes, address.dgid);
	std::ranges::copy(to.mac, address.dmac);
	address.hop_limit = kHopLimit;
	address.dest_qpn = far_->number;
	address.qkey = kQkey;
	address.udp_sport = udp_sport;
	address.traffic_class = static_cast<uint8_t>(spec.dscp << kDscpShift);
	request_.to = address;
}

uint64_t Flow::wire_bytes() const
{
	return (reads() ? from.arrivals(near_->number) : to.arrivals(far_->number)).bytes;
}

uint64_t Flow::cnps() const
{
	return (reads() ? to.arrivals(far_->number) : from.arrivals(near_->number)).cnps;
}

void Flow::end_warmup()
{
	messages = 0;
	latencies.clear();
	warmup_cnps_ = cnps();
}

void Flow::start()
{
	if (spec.rate)
		tick();
	else if (rotation_)
		rotation_->start();
	else
		post_all();
}

/* A message is due, and later another. */
void Flow::tick()
{
	if (loop_.now() >= spec.end || (spec.messages && due_ == spec.messages))
		return;
	if (!due_)
		began_ = loop_.now();
	due_++;
	waiting_.push_back(loop_.now());
	/* Compute each time from the start: intervals cut to whole ns would raise the rate. */
	const auto passed =
	        static_cast<uint64_t>(static_cast<double>(due_) * static_cast<double>(spec.size) *
	                              8 * kSecond / static_cast<double>(spec.rate));
	loop_.at(std::max(began_ + passed, loop_.now() + 1), [this] { tick(); });
	post_all();
}

bool Flow::may_post() const
{
	if (error || under_way_.size() == spec.depth)
		return false;
	if (spec.rate)
		return !waiting_.empty();
	return loop_.now() < spec.end && (!spec.messages || posted_ < spec.messages);
}

bool Flow::add()
{
	if (!may_post())
		return false;
	under_way_.push_back(spec.rate ? waiting_.front() : loop_.now());
	if (spec.rate)
		waiting_.pop_front();
	near_->post_send(request_, false);
	posted_++;
	return true;
}

void Flow::publish()
{
	near_->publish();
	from.wake();
}

bool Flow::post_one()
{
	const bool added = add();
	if (added)
		publish();
	return added;
}

void Flow::post_all()
{
	bool any = false;
	while (add())
		any = true;
	if (any)
		publish();
}

/* Posts what may follow a message that has completed. */
void Flow::post_next()
{
	if (rotation_)
		rotation_->post();
	else
		post_all();
}

void Flow::post_recv()
{
	const uint32_t grh = spec.service == Service::Ud ? kGrh : 0;
	far_->post_recv(to.payload(static_cast<uint32_t>(spec.size) + grh));
}

void Flow::completed(const tern_hw_cqe &cqe)
{
	if (cqe.status != TERN_WC_SUCCESS) {
		error = error ? error : cqe.status;
		if (rotation_)
			rotation_->post();
		return;
	}
	if (cqe.opcode & TERN_CQE_RECV) {
		post_recv();
		return;
	}
	messages++;
	latencies.push_back(loop_.now() - under_way_.front());
	under_way_.pop_front();
	post_next();
}

} // namespace tern::sim
