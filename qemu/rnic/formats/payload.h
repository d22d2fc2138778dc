/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <span>

namespace tern {

/**
 * The payload of a packet: a list of pieces of memory owned by others. Lent pieces may change while
 * they are read, so no decision may rest on reading them twice. Wire::recall() may redirect pieces
 * to copies, so a piece must be fetched anew after it.
 */
class Payload {
public:
	using Piece = std::span<const std::byte>;

	Payload() = default;
	template <typename Bytes>
	requires std::convertible_to<Bytes, Piece> Payload(Bytes &&whole)
	        : whole_(whole), size_(whole_.size())
	{
	}
	explicit Payload(std::span<const Piece> pieces) : pieces_(pieces)
	{
		for (const Piece &piece : pieces)
			size_ += piece.size();
	}

	size_t size() const { return size_; }
	bool empty() const { return size_ == 0; }
	size_t pieces() const { return std::max<size_t>(1, pieces_.size()); }
	Piece piece(size_t i) const
	{
		Piece piece = pieces_.empty() ? whole_ : pieces_[i];
		if (i + 1 == pieces())
			piece = piece.first(piece.size() - cut_);
		return i ? piece : piece.subspan(skip_);
	}

	/** The payload without its first @bytes. */
	Payload skip(size_t bytes) const
	{
		Payload left = *this;
		bytes = std::min(bytes, size_);
		left.size_ -= bytes;
		left.skip_ += bytes;
		while (left.pieces_.size() > 1 && left.skip_ >= left.pieces_.front().size()) {
			left.skip_ -= left.pieces_.front().size();
			left.pieces_ = left.pieces_.subspan(1);
		}
		return left;
	}

	/** At most its first @bytes. */
	Payload first(size_t bytes) const
	{
		if (bytes >= size_)
			return *this;
		Payload some = *this;
		some.size_ = bytes;
		size_t end = whole_.size();
		size_t count = 0;
		while (count < pieces_.size() && (!count || end < skip_ + bytes))
			end += pieces_[count++].size();
		some.pieces_ = pieces_.first(count);
		some.cut_ = end - skip_ - bytes;
		return some;
	}

	/** Copies as many bytes as fit to the beginning of @to. */
	void copy_to(std::span<std::byte> to) const
	{
		for (size_t i = 0; i < pieces(); i++) {
			const Piece whole = piece(i);
			const Piece from = whole.first(std::min(whole.size(), to.size()));
			if (!from.empty())
				std::memcpy(to.data(), from.data(), from.size());
			to = to.subspan(from.size());
		}
	}

private:
	/* Either whole_ or pieces_ is used. */
	Piece whole_;
	std::span<const Piece> pieces_;
	size_t size_ = 0;
	/* bytes of the first and of the last piece that are not part of the payload */
	size_t skip_ = 0;
	size_t cut_ = 0;
};

} // namespace tern
