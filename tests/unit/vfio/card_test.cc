// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/vfio/card.h"

#include <gtest/gtest.h>
#include <thread>
#include <unistd.h>

#include "qemu/wire/server.h"

namespace tern::vfio::test {
namespace {

/* A client may keep the memory that it was given. It must not see the memory of the next client. */
TEST(Card, DeviceMemoryIsNewForEachClient)
{
	const std::string path = testing::TempDir() + "tern-card-" + std::to_string(getpid());
	wire::Server server;
	ASSERT_EQ(server.listen_for_shared(path), "");
	const std::jthread serving([&server](const std::stop_token &stop) {
		while (!stop.stop_requested())
			server.step(1);
	});
	Card card({.wire = path, .engines = 2, .device_memory = 1 << 16});
	ASSERT_EQ(card.start(), "");
	const auto before = card.function();
	const Fd kept(dup(before.device_memory));
	before.device_memory_bytes[5] = std::byte{1};

	ASSERT_EQ(card.renew_device_memory(), "");
	const auto after = card.function();
	EXPECT_EQ(after.device_memory_bytes.data(), before.device_memory_bytes.data());
	EXPECT_EQ(after.device_memory_bytes.size(), before.device_memory_bytes.size());
	EXPECT_EQ(after.device_memory_bytes[5], std::byte{0});

	after.device_memory_bytes[6] = std::byte{2};
	uint8_t bytes[2] = {};
	ASSERT_EQ(pread(kept.get(), bytes, sizeof(bytes), 5), 2);
	EXPECT_EQ(bytes[0], 1);
	EXPECT_EQ(bytes[1], 0);
	ASSERT_EQ(pread(after.device_memory, bytes, sizeof(bytes), 5), 2);
	EXPECT_EQ(bytes[1], 2);
}

} // namespace
} // namespace tern::vfio::test
