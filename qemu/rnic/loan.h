/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace tern {

/** The regions and windows that lent payload lies in: a few exactly, more of them as "any". */
class LoanKeys {
public:
	static constexpr size_t kMax = 4;

	/** @key: its variant is ignored. */
	void add(uint32_t key)
	{
		if (has(key))
			return;
		const auto unused = std::ranges::find(indices_, kNone);
		if (unused != indices_.end())
			*unused = index_of(key);
		else
			indices_[0] = kAny;
	}
	bool has(uint32_t key) const
	{
		const uint32_t index = index_of(key);
		return indices_[0] == kAny ||
		       (index != kNone && std::ranges::find(indices_, index) != indices_.end());
	}

private:
	/* Returns the index of an object in its ObjectTable: 24 bits. No object has index 0. */
	static constexpr uint32_t index_of(uint32_t key) { return key >> 8; }
	static constexpr uint32_t kNone = 0;
	static constexpr uint32_t kAny = ~0u;

	std::array<uint32_t, kMax> indices_{};
};

/** The objects of the card that a lent payload depends on. Loan() depends on none. */
struct Loan {
	uint32_t qpn = 0; /* the sender */
	LoanKeys keys{};
};

/** Says which loans are to be taken back. */
class Recall {
public:
	static constexpr Recall everything() { return {Of::Everything, 0}; }
	/** All that the QP has lent. */
	static constexpr Recall of_qp(uint32_t qpn) { return {Of::Qp, qpn}; }
	/** All that lies in the region, or was lent through the window. The QPs remain, so the
	 * packets that they have sent should not be lost. */
	static constexpr Recall of_key(uint32_t key) { return {Of::Key, key}; }

	bool is_everything() const { return of_ == Of::Everything; }
	bool is_key() const { return of_ == Of::Key; }
	/** Returns the number of the QP or the key that is recalled; 0 for everything. */
	constexpr uint32_t number() const { return number_; }
	bool concerns(const Loan &loan) const
	{
		switch (of_) {
		case Of::Qp:
			return loan.qpn == number_;
		case Of::Key:
			return loan.keys.has(number_);
		default:
			return true;
		}
	}

private:
	enum class Of : uint8_t { Everything, Qp, Key };
	constexpr Recall(Of of, uint32_t number) : of_(of), number_(number) {}

	Of of_;
	uint32_t number_;
};

} // namespace tern
