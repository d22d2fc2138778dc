// SPDX-License-Identifier: GPL-2.0-or-later
/* Reads or writes a disk or a file past the page cache, several blocks at once:
 *	tern_io PATH randread|read|write BLOCK DEPTH SECONDS
 * It prints the operations per second. Debian's fio would bring 100 MB into the guests' image. */
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <system_error>
#include <unistd.h>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

long check(long result, const char *what)
{
	if (result < 0)
		throw std::system_error(errno, std::generic_category(), what);
	return result;
}

class Load {
public:
	Load(const char *path, std::string_view pattern, size_t block, size_t depth)
	        : random_(pattern == "randread"),
	          opcode_(pattern == "write" ? IOCB_CMD_PWRITE : IOCB_CMD_PREAD), block_(block),
	          file_(static_cast<int>(check(open(path, O_RDWR | O_DIRECT), path))),
	          blocks_(static_cast<size_t>(check(lseek(file_, 0, SEEK_END), "lseek")) / block),
	          requests_(depth)
	{
		if (!blocks_)
			throw std::runtime_error("it is smaller than a block");
		check(syscall(SYS_io_setup, depth, &context_), "io_setup");
		memory_ = static_cast<char *>(mmap(nullptr, block * depth, PROT_READ | PROT_WRITE,
		                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1,
		                                   0));
		check(memory_ == MAP_FAILED ? -1 : 0, "mmap");
		std::memset(memory_, 'x', block * depth);
	}

	/** Returns the operations per second. */
	double run(std::chrono::seconds duration)
	{
		const auto begin = Clock::now();
		for (size_t i = 0; i < requests_.size(); i++)
			submit(i);
		size_t done = 0;
		while (Clock::now() < begin + duration)
			done += renew();
		return static_cast<double>(done) /
		       std::chrono::duration<double>(Clock::now() - begin).count();
	}

private:
	void submit(size_t index)
	{
		const size_t at = random_ ? generator_() % blocks_ : next_++ % blocks_;
		iocb &request = requests_[index];
		request = {};
		request.aio_data = index;
		request.aio_lio_opcode = opcode_;
		request.aio_fildes = static_cast<uint32_t>(file_);
		request.aio_buf = reinterpret_cast<uint64_t>(memory_ + index * block_);
		request.aio_nbytes = block_;
		request.aio_offset = static_cast<int64_t>(at * block_);
		iocb *list = &request;
		check(syscall(SYS_io_submit, context_, 1, &list), "io_submit");
	}

	/* Waits for requests, and submits as many new ones. */
	size_t renew()
	{
		std::vector<io_event> events(requests_.size());
		const long count = check(syscall(SYS_io_getevents, context_, 1, events.size(),
		                                 events.data(), nullptr),
		                         "io_getevents");
		events.resize(static_cast<size_t>(count));
		for (const io_event &event : events) {
			if (event.res != static_cast<int64_t>(block_))
				throw std::runtime_error("a request returned " +
				                         std::to_string(event.res));
			submit(event.data);
		}
		return events.size();
	}

	const bool random_;
	const uint16_t opcode_;
	const size_t block_;
	const int file_;
	const size_t blocks_;
	std::vector<iocb> requests_;
	std::minstd_rand generator_;
	size_t next_ = 0;
	char *memory_ = nullptr;
	aio_context_t context_ = 0;
};

} // namespace

int main(int argc, char **argv)
{
	if (argc != 6) {
		std::fprintf(stderr, "usage: %s PATH randread|read|write BLOCK DEPTH SECONDS\n",
		             argv[0]);
		return 2;
	}
	try {
		Load load(argv[1], argv[2], std::stoul(argv[3]), std::stoul(argv[4]));
		std::printf("%.1f\n", load.run(std::chrono::seconds(std::stoul(argv[5]))));
	} catch (const std::exception &e) {
		std::fprintf(stderr, "%s: %s\n", argv[0], e.what());
		return 1;
	}
	return 0;
}
