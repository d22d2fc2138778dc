/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Headers of messages to an SRQ with tag matching: rdma-core's Documentation/tag_matching.md. */
#pragma once

#include <cstdint>

#include "tern/endian.hpp"

namespace tern::headers {

/** Tag matching header of every tagged message. */
struct TagMatching {
	uint8_t opcode; /* enum TagOpcode */
	uint8_t rsvd[3];
	Be<uint32_t> app_ctx;
	Be<uint64_t> tag;
};

enum TagOpcode : uint8_t {
	kTagNone = 0,
	kTagRendezvous = 1, /* a Rendezvous header follows */
	kTagFin = 2,        /* the rendezvous with these headers is complete */
	kTagEager = 3,      /* the data follows */
};

/** Location of the data of a rendezvous in the sender's memory. */
struct Rendezvous {
	Be<uint64_t> va;
	Be<uint32_t> rkey;
	Be<uint32_t> length;
};

static_assert(sizeof(TagMatching) == 16 && alignof(TagMatching) == 1);
static_assert(sizeof(Rendezvous) == 16 && alignof(Rendezvous) == 1);

} // namespace tern::headers
