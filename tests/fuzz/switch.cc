// SPDX-License-Identifier: GPL-2.0-or-later
/* Feeds tern-switch, without its sockets, a stream of framed bytes in pieces of any size and
 * command lines. The switch forwards the frames between ports that are sometimes congested. */
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>

#include "qemu/wire/control.h"
#include "qemu/wire/framing.h"
#include "qemu/wire/switch.h"
#include "tests/sim/rng.h"

namespace tern::wire {
namespace {

using sim::Rng;

constexpr unsigned kMaxActs = 200;

class AnyOutlet final : public Outlet {
public:
	bool deliver(Frame frame) override
	{
		for (const std::byte b : frame)
			sum_ = sum_ + std::to_integer<unsigned>(b);
		return !congested;
	}
	bool takes_copy() override { return !congested; }

	bool congested = false;

private:
	volatile unsigned sum_ = 0;
};

class World final : private PortReport {
public:
	explicit World(Rng &rng) : rng_(rng), control_(switch_, capture_, log_, *this)
	{
		for (size_t i = 0; i < ids_.size(); i++)
			ids_[i] = switch_.attach(outlets_[i]);
	}

	void act()
	{
		const size_t port = rng_.below(ids_.size());
		switch (rng_.below(6)) {
		case 0:
			command();
			break;
		case 1:
			outlets_[port].congested = rng_.chance(1, 2);
			break;
		case 2:
			switch_.detach(ids_[port]);
			ids_[port] = switch_.attach(outlets_[port]);
			switch_.place(ids_[port], rng_.below(3),
			              static_cast<uint32_t>(rng_.below(shm::kMaxLanes + 1)));
			break;
		case 3:
			now_ += std::chrono::milliseconds(rng_.below(20));
			switch_.release_held(now_);
			break;
		default:
			stream(port);
			break;
		}
	}

private:
	std::string describe_ports() const override { return "4"; }
	uint64_t frames_dropped() const override { return 0; }
	shm::DirectCounts direct() const override { return {}; }

	/** A command word and an argument, or any line. A capture would write files. */
	void command()
	{
		static constexpr const char *kWords[] = {"loss ",
		                                         "dup ",
		                                         "reorder ",
		                                         "corrupt ",
		                                         "seed ",
		                                         "stats",
		                                         "ports",
		                                         "capture-stop",
		                                         "capture ",
		                                         "clear",
		                                         "faults",
		                                         "rules drop opcode=ethernet ",
		                                         "rules delay by=9ms psn=+",
		                                         "rules reorder by=2 every=",
		                                         "rules ",
		                                         ""};
		std::string line = kWords[rng_.below(std::size(kWords))];
		for (auto n = rng_.below(8); n > 0; n--)
			line += static_cast<char>(rng_.chance(1, 2) ? '0' + rng_.below(10)
			                                            : rng_.below(256));
		if (line.starts_with("capture ") && line.find_first_not_of(' ', 8) != line.npos)
			return;
		const std::string reply = control_.execute(line);
		if (!reply.starts_with("ok") && !reply.starts_with("error "))
			std::abort();
	}
	/** A piece of a host's stream: mostly frames that are framed right. */
	void stream(size_t port)
	{
		std::array<std::byte, 256> piece;
		const size_t size = rng_.below(piece.size() - kLengthSize);
		for (std::byte &b : piece)
			b = static_cast<std::byte>(rng_.below(4));
		if (rng_.chance(7, 8))
			put_length(std::span(piece).first<kLengthSize>(), size);
		const size_t length = rng_.chance(7, 8) ? size + kLengthSize : rng_.below(size + 1);
		const auto room = readers_[port].room();
		if (readers_[port].broken()) {
			readers_[port] = {};
			return;
		}
		if (room.empty())
			std::abort();
		const size_t n = std::min(length, room.size());
		std::copy_n(piece.begin(), n, room.begin());
		readers_[port].filled(n);
		while (const auto frame = readers_[port].next())
			switch_.forward(ids_[port], *frame, now_);
	}

	Rng &rng_;
	Switch switch_;
	SteadyTime now_;
	Capture capture_;
	FaultLog log_;
	Control control_;
	std::array<AnyOutlet, 4> outlets_;
	std::array<Switch::PortId, 4> ids_{};
	std::array<FrameReader, 4> readers_;
};

} // namespace
} // namespace tern::wire

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	using namespace tern::wire;
	Rng rng(std::as_bytes(std::span(data, size)));
	World world(rng);
	for (unsigned i = 0; i < kMaxActs && !rng.exhausted(); i++)
		world.act();
	return 0;
}
