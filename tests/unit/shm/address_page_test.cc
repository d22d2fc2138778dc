// SPDX-License-Identifier: GPL-2.0-or-later
#include <gtest/gtest.h>
#include <memory>
#include <sys/mman.h>

#include "qemu/shm/address_page.h"
#include "qemu/wire/shared_hosts.h"
#include "qemu/wire/shared_port.h"
#include "tests/unit/wire/frames.h"

namespace tern::wire {
namespace {

class Nowhere final : public FrameSink {
public:
	Port *frame_from(Port &, Frame) override { return nullptr; }
};

class AddressPageTest : public testing::Test {
protected:
	AddressPageTest() : port(make_port())
	{
		shared = port->id;
		stream = ethernet.attach(netdev);
		EXPECT_EQ(memory.map(hosts.address_page(), sizeof(shm::AddressPage),
		                     shm::Mapping::Access::Read),
		          "");
	}

	std::unique_ptr<SharedPort> make_port()
	{
		auto made = std::make_unique<SharedPort>(loop, nowhere, ethernet, hosts,
		                                         Fd(memfd_create("x", MFD_CLOEXEC)));
		made->id = ethernet.attach(*made);
		hosts.add(*made);
		return made;
	}
	const shm::AddressPage &page() const
	{
		return *reinterpret_cast<const shm::AddressPage *>(memory.bytes().data());
	}

	EventLoop loop;
	Nowhere nowhere;
	Switch ethernet;
	SharedHosts hosts;
	Host netdev;
	std::unique_ptr<SharedPort> port;
	Switch::PortId shared, stream;
	shm::Mapping memory;
};

TEST_F(AddressPageTest, NamesHostsThatShareAlone)
{
	ethernet.forward(shared, frame(kBroadcast, 1));
	ethernet.forward(stream, frame(kBroadcast, 2));
	hosts.publish(ethernet, false);
	EXPECT_EQ(page().find(1), shared);
	EXPECT_EQ(page().find(2), std::nullopt);
	EXPECT_EQ(page().find(3), std::nullopt);
	EXPECT_EQ(page().find(0), std::nullopt);
}

TEST_F(AddressPageTest, FollowsAddresses)
{
	ethernet.forward(shared, frame(kBroadcast, 1));
	hosts.publish(ethernet, false);
	ethernet.forward(stream, frame(kBroadcast, 1));
	hosts.publish(ethernet, false);
	EXPECT_EQ(page().find(1), std::nullopt);
	ethernet.forward(shared, frame(kBroadcast, 1));
	hosts.publish(ethernet, false);
	EXPECT_EQ(page().find(1), shared);
	ethernet.detach(shared);
	hosts.publish(ethernet, false);
	EXPECT_EQ(page().find(1), std::nullopt);
}

TEST_F(AddressPageTest, SaysThatAllGoesThroughTheSwitch)
{
	EXPECT_EQ(page().through_switch, 0u);
	hosts.publish(ethernet, true);
	EXPECT_EQ(page().through_switch, 1u);
	hosts.publish(ethernet, false);
	EXPECT_EQ(page().through_switch, 0u);
}

TEST_F(AddressPageTest, HoldsAllThatTheSwitchLearns)
{
	constexpr uint32_t kOfEach = 256, kAll = 4096;
	std::vector<std::unique_ptr<SharedPort>> more;
	std::vector<Switch::PortId> ids{shared};
	while (ids.size() < kAll / kOfEach) {
		more.push_back(make_port());
		ids.push_back(more.back()->id);
	}
	Bytes bytes = frame(kBroadcast, 0);
	const auto set = [&](uint32_t i) {
		bytes[9] = static_cast<std::byte>(i >> 8);
		bytes[10] = static_cast<std::byte>(i);
	};
	for (uint32_t i = 0; i < kAll; i++) {
		set(i);
		ethernet.forward(ids[i / kOfEach], bytes);
	}
	hosts.publish(ethernet, false);
	for (uint32_t i = 0; i < kAll; i++) {
		set(i);
		ASSERT_EQ(page().find(shm::address_at(bytes, 6)), ids[i / kOfEach]);
	}
}

TEST_F(AddressPageTest, NamesTheLanes)
{
	ASSERT_EQ(ethernet.place(shared, 77, 0), "");
	ethernet.forward(shared, frame(kBroadcast, 1));
	hosts.publish(ethernet, false);
	EXPECT_FALSE(page().has_lanes(shared));
	EXPECT_EQ(page().lane_of(shared, 0), shared);
	EXPECT_EQ(page().lane_of(shared, 3), shared);

	auto other = std::make_unique<SharedPort>(loop, nowhere, ethernet, hosts,
	                                          Fd(memfd_create("x", MFD_CLOEXEC)));
	const Switch::PortId id = other->id = ethernet.attach(*other);
	ASSERT_EQ(ethernet.place(id, 77, 3), "");
	hosts.add(*other);
	hosts.publish(ethernet, false);
	EXPECT_EQ(page().find(1), shared);
	EXPECT_TRUE(page().has_lanes(shared));
	EXPECT_FALSE(page().has_lanes(id));
	EXPECT_FALSE(page().has_lanes(stream));
	EXPECT_EQ(page().lane_of(shared, 0), shared);
	EXPECT_EQ(page().lane_of(shared, 3), id);
	EXPECT_EQ(page().lane_of(shared, 15), shared);
	EXPECT_EQ(page().lane_of(id, 0), id);

	other.reset();
	ethernet.detach(id);
	hosts.publish(ethernet, false);
	EXPECT_FALSE(page().has_lanes(shared));
	EXPECT_EQ(page().lane_of(shared, 3), shared);
}

} // namespace
} // namespace tern::wire
