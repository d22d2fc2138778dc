// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/wire/capture.h"

#include "qemu/wire/pcap_file.h"
#include "qemu/wire/pcapng_file.h"

namespace tern::wire {

std::string Capture::start(const std::string &path, Options options)
{
	if (running())
		return "a capture is running";
	const bool pcapng = path.ends_with(".pcapng");
	if (pcapng && options.mirror)
		return "the mirror layout is for pcap, not for pcapng";
	std::unique_ptr<CaptureFile> file;
	if (pcapng)
		file = std::make_unique<PcapngFile>();
	else
		file = std::make_unique<PcapFile>(options.mirror);
	std::string error = file->open(path);
	if (!error.empty())
		return error;
	file_ = std::move(file);
	options_ = std::move(options);
	frames_ = 0;
	return {};
}

std::string Capture::stop()
{
	if (!running())
		return "no capture is running";
	const bool complete = file_->finish();
	file_.reset();
	return complete ? "" : "the file could not be written completely";
}

} // namespace tern::wire
