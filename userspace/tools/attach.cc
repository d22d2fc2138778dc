// SPDX-License-Identifier: GPL-2.0-or-later
#include "attach.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace tern::tools {

namespace {

/* tracefs may be mounted at either place. */
std::string events_folder()
{
	for (const char *folder :
	     {"/sys/kernel/tracing/events", "/sys/kernel/debug/tracing/events"})
		if (std::filesystem::exists(folder))
			return folder;
	throw Error("tracefs is not mounted: mount -t tracefs tracefs /sys/kernel/tracing");
}

/* Whether @line describes @field, as in "field:u32 qpn; offset:12; size:4; signed:0;". */
bool describes(const std::string &line, const EntryField &field)
{
	std::istringstream words(line);
	std::string declaration, offset, size;

	std::getline(words, declaration, ';');
	words >> offset >> size;
	return declaration.ends_with(std::string(" ") + field.name) &&
	       offset == "offset:" + std::to_string(field.offset) + ";" &&
	       size == "size:" + std::to_string(field.size) + ";";
}

} // namespace

std::string find_mismatch(std::istream &format, std::span<const EntryField> fields)
{
	std::vector<std::string> lines;

	for (std::string line; std::getline(format, line);)
		lines.push_back(line);
	for (const EntryField &field : fields)
		if (std::ranges::none_of(
		            lines, [&](const std::string &line) { return describes(line, field); }))
			return field.name;
	return {};
}

Attachments::Attachments()
{
	libbpf_set_print([](libbpf_print_level, const char *, va_list) { return 0; });
}

void Attachments::keep(bpf_link *link, const std::string &what)
{
	if (!link)
		throw Error("cannot attach to " + what + ": " + std::strerror(errno));
	links_.emplace_back(link);
}

void Attachments::usdt(bpf_program *program, uint32_t pid, const std::string &library,
                       const char *probe)
{
	bpf_link *link = bpf_program__attach_usdt(program, pid ? static_cast<pid_t>(pid) : -1,
	                                          library.c_str(), "tern", probe, nullptr);
	if (!link && (errno == ENOENT || errno == ESRCH))
		throw Error(library + " has no probe tern:" + probe + "; is it Tern's provider?");
	keep(link, std::string("tern:") + probe + " of " + library);
}

void Attachments::tracepoint(bpf_program *program, const char *name,
                             std::span<const EntryField> fields)
{
	std::ifstream format(events_folder() + "/tern/" + name + "/format");

	if (!format)
		throw Error(std::string("the driver tern is not loaded, or has no tracepoint ") +
		            name);
	const std::string mismatch = find_mismatch(format, fields);
	if (!mismatch.empty())
		throw Error(std::string("the driver's tracepoint ") + name + " has another field " +
		            mismatch + " than this program knows: it is of another version");
	keep(bpf_program__attach_tracepoint(program, "tern", name),
	     std::string("tracepoint ") + name);
}

void check_loaded(int error)
{
	if (error == -EPERM || error == -EACCES)
		throw Error("the kernel does not permit BPF programs (lockdown, or not all of "
		            "root's rights)");
	if (error)
		throw Error(std::string("the kernel refuses the BPF program: ") +
		            std::strerror(-error));
}

} // namespace tern::tools
