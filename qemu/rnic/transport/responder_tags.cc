// SPDX-License-Identifier: GPL-2.0-or-later
/* SENDs to an SRQ with tag matching: rdma-core's Documentation/tag_matching.md. */
#include <algorithm>

#include "qemu/rnic/formats/headers.h"
#include "qemu/rnic/transport/rc_qp.h"
#include "qemu/rnic/transport/responder.h"
#include "qemu/rnic/transport/segmentation.h"

namespace tern {

using namespace hw;

namespace {

/* A rendezvous has both headers in one packet, without immediate data or invalidation, which need a
 * receive WQE. */
bool is_rendezvous(const Packet &packet)
{
	const size_t size = packet.payload.size();
	return packet.info->last && !packet.info->imm && !packet.info->ieth &&
	       size >= sizeof(headers::TagMatching) + sizeof(headers::Rendezvous) &&
	       size <= TERN_MAX_RNDV_HDR;
}

/* Copies the header once: lent payload may change between two reads. */
template <typename Header>
bool take_header(const Payload &from, Header &header)
{
	if (from.size() < sizeof(header))
		return false;
	from.copy_to(std::as_writable_bytes(std::span(&header, 1)));
	return true;
}

} // namespace

Responder::Outcome Responder::claim_for_send(const Packet &packet)
{
	TagList *tags = qp_.recv_.tags();
	/* A packet repeated after a page fault has been matched before. */
	return tags && !qp_.recv_.claimed() ? claim_by_tag(packet, *tags) : claim_recv();
}

Responder::Outcome Responder::claim_slot(uint8_t opcode)
{
	const Outcome outcome = claim_recv();
	if (outcome == Outcome::Done)
		qp_.recv_.report({.opcode = opcode});
	return outcome;
}

Responder::Outcome Responder::claim_by_tag(const Packet &packet, TagList &tags)
{
	headers::TagMatching header;
	if (!take_header(packet.payload, header))
		return claim_slot(TERN_CQE_NO_TAG);
	const bool eager = header.opcode == headers::kTagEager;
	if (!eager && header.opcode != headers::kTagRendezvous)
		return claim_slot(TERN_CQE_NO_TAG);

	const auto entry =
	        eager || is_rendezvous(packet) ? tags.match(header.tag.get()) : std::nullopt;
	if (!entry) {
		const Outcome outcome = claim_slot(TERN_CQE_TAG_UNEXPECTED);
		/* A message rejected for want of a WQE is repeated and may match then. */
		if (outcome == Outcome::Done)
			tags.count_unexpected();
		return outcome;
	}
	if (eager)
		take_eager(packet, header, *entry);
	else
		take_rendezvous(packet, header, *entry, tags.buffer(*entry));
	return Outcome::Done;
}

/* Other messages may match before the last packet arrives; this CQE tells the host the order. */
void Responder::take_eager(const Packet &packet, const headers::TagMatching &header, uint32_t entry)
{
	TagReport report{.opcode = TERN_CQE_TAG_RECV,
	                 .flags = TERN_CQE_TAG_MATCH,
	                 .tag = header.tag.get(),
	                 .app_ctx = header.app_ctx.get()};
	if (packet.info->last) {
		report.flags |= TERN_CQE_TAG_DATA;
	} else {
		qp_.complete_tag(entry, report, 0, packet.bth.solicited);
		report = {.opcode = TERN_CQE_TAG_RECV, .flags = TERN_CQE_TAG_DATA};
	}
	qp_.recv_.claim_entry(entry, report, sizeof(header));
}

void Responder::take_rendezvous(const Packet &packet, const headers::TagMatching &header,
                                uint32_t entry, const Sge &buffer)
{
	Rendezvous rendezvous{.entry = entry, .buffer = buffer, .tag = header};
	take_header(packet.payload.skip(sizeof(header)), rendezvous.from);
	TagReport report{.opcode = TERN_CQE_TAG_RECV,
	                 .flags = TERN_CQE_TAG_MATCH,
	                 .tag = header.tag.get(),
	                 .app_ctx = header.app_ctx.get()};
	const uint32_t length = rendezvous.from.length.get();
	if (length > buffer.length || !message_fits(length, qp_.mtu_)) {
		/* The host must fetch the data; the buffer gets the headers. */
		report.flags |= TERN_CQE_TAG_DATA;
		report.status = TERN_WC_TM_RNDV_INCOMPLETE;
		qp_.recv_.claim_entry(entry, report, 0);
		return;
	}
	qp_.complete_tag(entry, report, 0, packet.bth.solicited);
	qp_.requester_.fetch(rendezvous);
}

} // namespace tern
