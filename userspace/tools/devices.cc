// SPDX-License-Identifier: GPL-2.0-or-later
#include "devices.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "options.h"

namespace tern::tools {

namespace {

namespace fs = std::filesystem;

const std::string kSys = "/sys";
const std::string kDebugfs = "/kernel/debug/tern";
const std::string kClass = "/class/infiniband";

std::optional<uint64_t> read_number(const fs::path &path)
{
	std::ifstream file(path);
	uint64_t value;

	return file >> value ? std::optional(value) : std::nullopt;
}

/* A device may vanish while it is read. */
bool is_tern(const fs::path &folder)
{
	std::error_code error;
	return fs::read_symlink(folder / "device/driver", error).filename() == "tern";
}

/* A read has the driver ask the card, and fails when the driver's time limit has passed. */
bool answers(const fs::path &folder)
{
	std::ifstream file(folder / "ports/1/hw_counters" / kCounters[0]);
	uint64_t value;

	return !file.is_open() || file >> value; /* ignore a device that has vanished */
}

} // namespace

void check_devices()
{
	std::error_code error;

	for (const auto &entry : fs::directory_iterator(kSys + kClass, error))
		if (is_tern(entry.path()) && !answers(entry.path()))
			throw Error("the card of " + entry.path().filename().string() +
			            " does not answer its driver; `devlink health` may tell why");
}

std::optional<Device> read_device(const std::string &folder, const std::string &sys)
{
	const fs::path path = folder;
	std::error_code error;
	Device device{.name = path.filename(),
	              .pci = fs::canonical(path / "device", error).filename(),
	              .counters = {},
	              .cqs = {}};

	if (error)
		return std::nullopt;
	for (size_t i = 0; i < kCounters.size(); i++)
		device.counters[i] = read_number(path / "ports/1/hw_counters" / kCounters[i]);
	std::ifstream cqs(sys + kDebugfs + "/" + device.pci + "/CQs");
	device.cqs = parse_cqs(cqs);
	return device;
}

std::vector<Device> read_devices(const std::string &sys)
{
	std::vector<Device> devices;
	std::error_code error;

	for (const auto &entry : fs::directory_iterator(sys + kClass, error))
		if (is_tern(entry.path()))
			if (auto device = read_device(entry.path(), sys))
				devices.push_back(std::move(*device));
	return devices;
}

std::map<std::string, std::string> device_names()
{
	std::map<std::string, std::string> names;
	std::error_code error;

	for (const auto &entry : fs::directory_iterator(kSys + kClass, error))
		if (is_tern(entry.path()))
			names[fs::read_symlink(entry.path() / "device", error).filename()] =
			        entry.path().filename();
	return names;
}

std::map<uint32_t, CqDepth> parse_cqs(std::istream &file)
{
	std::map<uint32_t, CqDepth> cqs;
	std::string line;

	std::getline(file, line); /* the names of the columns */
	while (std::getline(file, line)) {
		std::istringstream words(line);
		uint32_t number, size, ci, pi;

		if (words >> std::hex >> number >> std::dec >> size >> std::hex >> ci >> pi)
			cqs[number] = {pi - ci, size};
	}
	return cqs;
}

bool has_qp(uint32_t qpn)
{
	std::error_code error;

	for (const auto &entry : fs::directory_iterator(kSys + kDebugfs, error)) {
		std::ifstream file(entry.path() / "QPs");
		std::string line;

		std::getline(file, line);
		while (std::getline(file, line)) {
			std::istringstream words(line);
			uint32_t number;

			if (words >> std::hex >> number && number == qpn)
				return true;
		}
	}
	if (error)
		throw Error("cannot read " + kSys + kDebugfs + ": " + error.message());
	return false;
}

} // namespace tern::tools
