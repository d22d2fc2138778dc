// SPDX-License-Identifier: GPL-2.0-or-later
#include "devices.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

using namespace tern::tools;

namespace fs = std::filesystem;

namespace {

TEST(Cqs, DepthsFromIndices)
{
	std::istringstream file("cqn        size       ci       pi   eqn\n"
	                        "00000a      256       1f       22     1\n"
	                        "00000b       16 fffffffe        1     2\n");
	const auto cqs = parse_cqs(file);

	ASSERT_EQ(cqs.size(), 2u);
	EXPECT_EQ(cqs.at(0xa).depth, 3u);
	EXPECT_EQ(cqs.at(0xa).size, 256u);
	EXPECT_EQ(cqs.at(0xb).depth, 3u) << "indices wrap";
}

TEST(Cqs, NoneWithoutFile)
{
	std::istringstream empty;
	EXPECT_TRUE(parse_cqs(empty).empty());
}

/* A sysfs with Tern's device tern0, whose counters are 10, 11, ..., and with one of another driver.
 */
class Devices : public testing::Test {
protected:
	Devices()
	{
		EXPECT_NE(mkdtemp(sys_), nullptr);
		add("tern0", "0000:00:04.0", "tern");
		add("other0", "0000:00:05.0", "other");
		for (size_t i = 0; i < kCounters.size(); i++)
			write(counter(i), std::to_string(10 + i));
		write("kernel/debug/tern/0000:00:04.0/CQs", "cqn\n00000a 256 0 2 1");
	}
	~Devices() override { fs::remove_all(sys_); }

	static std::string counter(size_t i)
	{
		return std::string("class/infiniband/tern0/ports/1/hw_counters/") + kCounters[i];
	}
	fs::path path(const std::string &name) const { return fs::path(sys_) / name; }
	void write(const std::string &name, const std::string &text) const
	{
		fs::create_directories(path(name).parent_path());
		std::ofstream(path(name)) << text << '\n';
	}
	void add(const std::string &name, const std::string &pci, const std::string &driver) const
	{
		fs::create_directories(path("class/infiniband/" + name));
		fs::create_directories(path("devices/" + pci));
		fs::create_symlink("../../drivers/" + driver, path("devices/" + pci + "/driver"));
		fs::create_symlink("../../../devices/" + pci,
		                   path("class/infiniband/" + name + "/device"));
	}

	char sys_[32] = "/tmp/tern-devices-XXXXXX";
};

TEST_F(Devices, ThoseOfTernAreRead)
{
	const std::vector<Device> devices = read_devices(sys_);

	ASSERT_EQ(devices.size(), 1u);
	EXPECT_EQ(devices[0].name, "tern0");
	EXPECT_EQ(devices[0].pci, "0000:00:04.0");
	EXPECT_EQ(devices[0].counters[1], 11u);
	EXPECT_EQ(devices[0].cqs.at(0xa).depth, 2u);
}

TEST_F(Devices, OneMayVanishMeanwhile)
{
	fs::remove_all(path("devices/0000:00:04.0"));
	EXPECT_FALSE(read_device(path("class/infiniband/tern0"), sys_)) << "its link is dangling";
	EXPECT_TRUE(read_devices(sys_).empty());
}

TEST_F(Devices, ACounterThatCannotBeReadIsNotZero)
{
	write(counter(1), "");
	fs::remove(path(counter(2)));
	const std::vector<Device> devices = read_devices(sys_);

	ASSERT_EQ(devices.size(), 1u);
	EXPECT_EQ(devices[0].counters[0], 10u);
	EXPECT_FALSE(devices[0].counters[1]);
	EXPECT_FALSE(devices[0].counters[2]);
	EXPECT_EQ(devices[0].counters[3], 13u);
}

} // namespace
