// SPDX-License-Identifier: GPL-2.0-or-later
/* Prints the picture of a ring in docs/hardware.md: what a completion queue of the card has left in
 * the host's memory. check_ring.py compares. */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "qemu/rnic/queues/completion_queue.h"
#include "tests/support/host.h"

namespace {

using namespace tern;
using namespace tern::hw;
using namespace tern::test;

constexpr unsigned kLogSize = 2;
constexpr uint32_t kEntries = 1u << kLogSize;
constexpr uint32_t kWritten = 5;
constexpr uint32_t kRead = 2;

constexpr int kLabel = 16; /* columns */
constexpr int kColumn = 10;

class Ring {
public:
	Ring()
	        : tables_(memory_), ring_(memory_, kLogSize, {1, 12}), record_(memory_.alloc(64)),
	          queue_({*PageList::make(ring_.buffer().pages(), 0,
	                                  sizeof(tern_hw_cqe) << kLogSize),
	                  record_, kLogSize},
	                 1, 0)
	{
	}

	/* The entry's number is its wqe_index. */
	void write(uint32_t index)
	{
		tern_hw_cqe cqe{};
		cqe.wqe_index = index;
		if (queue_.push(memory_, tables_, cqe, false) != CompletionQueue::Outcome::Done)
			std::abort();
	}
	void read()
	{
		if (!ring_.poll())
			std::abort();
		memory_.put(record_, Le<uint32_t>(ring_.ci));
	}
	uint32_t consumer_index() const { return ring_.ci; }
	tern_hw_cqe entry(uint32_t place) const
	{
		return memory_.get<tern_hw_cqe>(ring_.buffer().at(place * sizeof(tern_hw_cqe)));
	}

private:
	FakeMemory memory_;
	TableCache tables_;
	PhaseRing<tern_hw_cqe> ring_;
	Iova record_;
	CompletionQueue queue_;
};

template <class Cell>
void draw_row(const char *label, Cell cell)
{
	std::string line = label;

	for (uint32_t place = 0; place < kEntries; place++) {
		line.resize(kLabel + place * kColumn, ' ');
		line += cell(place);
	}
	std::printf("    %s\n", line.c_str());
}

void draw_index(const char *name, uint32_t index, const char *meaning)
{
	const size_t column = kLabel + index % kEntries * kColumn;

	std::printf("    %s^\n", std::string(column, ' ').c_str());
	std::printf("    %s%s index %u: %s\n", std::string(column, ' ').c_str(), name, index,
	            meaning);
}

} // namespace

int main()
{
	Ring ring;

	for (uint32_t index = 0; index < kRead; index++)
		ring.write(index);
	for (uint32_t count = 0; count < kRead; count++)
		ring.read();
	for (uint32_t index = kRead; index < kWritten; index++)
		ring.write(index);

	const auto index_at = [&](uint32_t place) { return ring.entry(place).wqe_index.get(); };
	draw_row("place", [](uint32_t place) { return std::to_string(place); });
	draw_row("index", [&](uint32_t place) { return std::to_string(index_at(place)); });
	draw_row("phase", [&](uint32_t place) { return std::to_string(ring.entry(place).phase); });
	draw_row("state", [&](uint32_t place) {
		return index_at(place) < ring.consumer_index() ? "read" : "new";
	});
	draw_index("producer", kWritten, "the next entry to write");
	draw_index("consumer", ring.consumer_index(), "the next entry to read");
	return 0;
}
