// SPDX-License-Identifier: GPL-2.0-or-later
/* A hostile peer on the shared-memory wire: any message to the switch, any bytes in the rings that
 * it shares with the switch and with an honest host, bells, and frames from the honest host.
 * Switch and honest host stay from one script to the next. */
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <sys/socket.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "qemu/shm/lent_entry.h"
#include "qemu/shm/shared_wire.h"
#include "qemu/wire/server.h"
#include "tests/sim/rng.h"

namespace tern::shm {
namespace {

using sim::Rng;

constexpr size_t kRamSize = 1 << 16;
constexpr unsigned kMaxActs = 100;
constexpr std::array<uint8_t, 6> kHonestMac{2, 0, 0, 0, 0, 1}, kHostileMac{2, 0, 0, 0, 0, 2};

void must(bool ok)
{
	if (!ok)
		std::abort();
}

/** @size bytes of a frame, at least the addresses. */
std::vector<std::byte> make_frame(const std::array<uint8_t, 6> &to,
                                  const std::array<uint8_t, 6> &from, size_t size)
{
	std::vector<std::byte> bytes(std::max(size, to.size() + from.size()));
	std::ranges::copy(std::as_bytes(std::span(to)), bytes.begin());
	std::ranges::copy(std::as_bytes(std::span(from)),
	                  bytes.begin() + static_cast<ptrdiff_t>(to.size()));
	return bytes;
}

/** The switch, and an honest host that reads all payload that it receives. */
class World final : private SharedWire::Sink {
public:
	World() : path("/tmp/tern-fuzz-" + std::to_string(getpid())), wire_(path, poll_)
	{
		must(server_.listen_for_shared(path).empty());
		unlink_on_exit_ = path;
		const Fd ram = make_segment("honest", kRamSize);
		must(wire_.share(ram.get(), kRamSize));
		std::string error = "pending";
		std::thread connecting([&] { error = wire_.connect(); });
		for (int i = 0; i < 100; i++)
			server_.step(1);
		connecting.join();
		must(error.empty());
		send(make_frame(kHostileMac, kHonestMac, 60)); /* makes its address known */
	}
	~World() { unlink(unlink_on_exit_.c_str()); }

	void step()
	{
		wire_.announce();
		for (int i = 0; i < 3; i++)
			server_.step(0);
		now_ += 1'000'000;
		wire_.receive_messages(now_);
		wire_.maintain(now_);
		wire_.receive(8, *this);
		while (wire_.take_room())
			continue;
	}
	/** Lets @ns pass: hosts that stall are given up. */
	void pass(uint64_t ns) { now_ += ns; }
	void send(const std::vector<std::byte> &bytes) { wire_.send(bytes); }
	void lend(Rng &rng)
	{
		const RamRange range{0, static_cast<uint32_t>(rng.between(256, 4096)),
		                     rng.below(1024)};
		wire_.lend(make_frame(kHostileMac, kHonestMac, 70), std::span(&range, 1), 0,
		           {static_cast<uint32_t>(rng.below(4)), {}});
	}

	const std::string path;

private:
	void frame(std::span<const std::byte> bytes) override { read(bytes); }
	void lent(std::span<const std::byte> head,
	          std::span<const std::span<const std::byte>> payload, uint32_t) override
	{
		read(head);
		for (const auto &piece : payload)
			read(piece);
	}
	void revoked(uint32_t) override {}
	void read(std::span<const std::byte> bytes)
	{
		for (const std::byte b : bytes)
			sum_ = sum_ + std::to_integer<unsigned>(b);
	}

	wire::Server server_;
	const EventPoll poll_;
	SharedWire wire_;
	uint64_t now_ = 1;
	volatile unsigned sum_ = 0;
	std::string unlink_on_exit_;
};

/** A peer that keeps to nothing. */
class Hostile {
public:
	Hostile(World &world, Rng &rng)
	        : world_(world), rng_(rng),
	          socket_(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0))
	{
		sockaddr_un address{};
		address.sun_family = AF_UNIX;
		world.path.copy(address.sun_path, sizeof(address.sun_path) - 1);
		must(connect(socket_.get(), reinterpret_cast<sockaddr *>(&address),
		             sizeof(address)) == 0);
		say_hello();
		world.step();
		listen();
	}

	void act()
	{
		switch (rng_.below(10)) {
		case 0:
			send_any_message();
			break;
		case 1:
			world_.lend(rng_);
			break;
		case 2:
			world_.send(make_frame(kHostileMac, kHonestMac, rng_.between(14, 2000)));
			break;
		case 3 ... 4:
			poke();
			break;
		case 5 ... 7:
			put_entry();
			break;
		case 8:
			if (rng_.chance(1, 8))
				world_.pass(1'000'000'000);
			break;
		default:
			for (const Fd &bell : bells_)
				Bell(Fd(dup(bell.get()))).ring();
			break;
		}
		if (rng_.chance(1, 2))
			world_.step();
		listen();
	}

private:
	static const Fd &ram()
	{
		static const Fd fd = make_segment("hostile", kRamSize);
		return fd;
	}

	void say_hello()
	{
		Message hello;
		hello.blocks = 2;
		hello.block_sizes[0] = hello.block_sizes[1] = kRamSize;
		const int fds[] = {ram().get(), ram().get()};
		if (rng_.chance(1, 16)) {
			send_any_message();
			return;
		}
		send_message(socket_, hello, fds);
	}
	void send_any_message()
	{
		Message message;
		message.kind = static_cast<Message::Kind>(rng_.below(8));
		message.id = static_cast<uint32_t>(rng_.chance(1, 2) ? rng_.below(3) : rng_.next());
		message.blocks = static_cast<uint32_t>(rng_.below(kMaxBlocks + 2));
		message.card = rng_.below(3);
		message.lane = static_cast<uint32_t>(rng_.below(kMaxLanes + 2));
		for (uint64_t &size : message.block_sizes)
			size = rng_.chance(1, 2) ? kRamSize : rng_.next();
		if (rng_.chance(1, 8))
			message.version = static_cast<uint32_t>(rng_.below(16));
		const std::vector<int> fds(rng_.below(kMaxFds), ram().get());
		send_message(socket_, message, fds);
	}
	/** Keeps what the switch sends: rings to write to, and bells. */
	void listen()
	{
		Message message;
		std::vector<Fd> fds;
		for (int i = 0; i < 8; i++) {
			if (receive_message(socket_, message, fds) != Received::Message)
				return;
			for (Fd &fd : fds)
				keep(std::move(fd));
			fds.clear();
		}
	}
	void keep(Fd fd)
	{
		const size_t size = segment_size(fd.get());
		Mapping mapping;
		if (size <= kRingHeaderSize || rings_.size() == 8 ||
		    !mapping.map(fd, size, Mapping::Access::ReadWrite).empty()) {
			if (!size && bells_.size() < 4)
				bells_.push_back(std::move(fd));
			return;
		}
		rings_.push_back(std::move(mapping));
	}

	template <typename T>
	void store(std::span<std::byte> ring, size_t offset, T value)
	{
		std::atomic_ref<T>(*reinterpret_cast<T *>(ring.data() + offset)).store(value);
	}
	/** A word of a ring's header, or any word of the ring. */
	void poke()
	{
		if (rings_.empty())
			return;
		const auto ring = rings_[rng_.below(rings_.size())].bytes();
		constexpr size_t kFields[] = {offsetof(RingHeader, tail),
		                              offsetof(RingHeader, head),
		                              offsetof(RingHeader, consumer_sleeps),
		                              offsetof(RingHeader, producer_waits),
		                              offsetof(RingHeader, direct_sent),
		                              offsetof(RingHeader, direct_lost)};
		if (rng_.chance(1, 2)) {
			const size_t field = kFields[rng_.below(std::size(kFields))];
			const uint64_t value =
			        rng_.chance(1, 2) ? rng_.below(64) * 16 : rng_.next();
			store<uint64_t>(ring, field, value);
		} else if (rng_.chance(1, 16)) {
			store<uint32_t>(ring, offsetof(RingHeader, closed), 1);
		} else {
			store<uint32_t>(ring, kRingHeaderSize + rng_.below(256) * 4,
			                static_cast<uint32_t>(rng_.chance(1, 2) ? rng_.below(8)
			                                                        : rng_.next()));
		}
	}
	/** An entry that is nearly right, after those that the ring has. */
	void put_entry()
	{
		if (rings_.empty())
			return;
		const auto ring = rings_[rng_.below(rings_.size())].bytes();
		const auto circle = ring.subspan(kRingHeaderSize);
		uint64_t tail;
		std::memcpy(&tail, ring.data() + offsetof(RingHeader, tail), sizeof(tail));
		const uint64_t at = tail & (circle.size() - 1) & ~uint64_t{15};
		if (at + 4096 > circle.size())
			return;
		const std::vector<std::byte> content = entry();
		store<uint32_t>(circle, at, static_cast<uint32_t>(rng_.below(8)));
		store<uint32_t>(circle, at + 4,
		                rng_.chance(7, 8) ? static_cast<uint32_t>(content.size())
		                                  : static_cast<uint32_t>(rng_.next()));
		store<uint64_t>(circle, at + 8, rng_.chance(1, 2) ? 0 : rng_.next());
		std::ranges::copy(content, circle.begin() + static_cast<ptrdiff_t>(at + 16));
		store<uint64_t>(ring, offsetof(RingHeader, tail),
		                tail + 16 + ((content.size() + 15) & ~size_t{15}));
	}
	std::vector<std::byte> entry()
	{
		if (rng_.chance(1, 3))
			return make_frame(kHonestMac, kHostileMac, rng_.between(12, 200));
		LentHeader header{};
		header.ranges = static_cast<uint32_t>(rng_.below(rng_.chance(1, 8) ? 40 : 4));
		header.head_size = static_cast<uint32_t>(rng_.below(rng_.chance(1, 8) ? 600 : 80));
		header.segment = static_cast<uint32_t>(rng_.below(3)) * 256;
		std::vector<std::byte> bytes(sizeof(header));
		std::memcpy(bytes.data(), &header, sizeof(header));
		for (uint32_t i = 0; i < header.ranges; i++) {
			RamRange range{static_cast<uint32_t>(rng_.below(3)),
			               static_cast<uint32_t>(rng_.below(4096)),
			               rng_.below(kRamSize)};
			if (rng_.chance(1, 16))
				range.offset = rng_.next();
			const auto raw = std::as_bytes(std::span(&range, 1));
			bytes.insert(bytes.end(), raw.begin(), raw.end());
		}
		const auto head = make_frame(kHonestMac, kHostileMac, header.head_size);
		bytes.insert(bytes.end(), head.begin(), head.end());
		return bytes;
	}

	World &world_;
	Rng &rng_;
	Fd socket_;
	std::vector<Mapping> rings_;
	std::vector<Fd> bells_;
};

} // namespace
} // namespace tern::shm

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	using namespace tern::shm;
	static World world;
	Rng rng(std::as_bytes(std::span(data, size)));
	{
		Hostile peer(world, rng);
		for (unsigned i = 0; i < kMaxActs && !rng.exhausted(); i++)
			peer.act();
	}
	world.step();
	world.step();
	return 0;
}
