/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a host and the switch say to one another: messages of one size over a SOCK_SEQPACKET
 * socket, with file descriptors.
 *
 *   Hello    host:   which lane of which card it is; descriptors of its RAM blocks, for reading
 *   Welcome  switch: the address page, the host's bell, the switch's bell, the ring from the
 *                    switch, the ring to it
 *   Refused  switch: why; then it hangs up
 *   Peer     switch: another host: its bell, the ring from it, the ring to it, its RAM blocks
 *   Gone     switch: that host has left, or the link to it is of no use
 *   Renew    host:   the link to that host is cut; both shall be told Peer once more
 *
 * A host here is one connection. Those of a card's engines are its lanes: they have one address.
 */
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "qemu/shm/fd.h"

namespace tern::shm {

constexpr uint64_t kMagic = 0x657269776e726574; /* "ternwire" */
constexpr uint32_t kVersion = 4;
constexpr size_t kMaxBlocks = 8;
/* Ids are below. */
constexpr uint32_t kMaxHosts = 64;
constexpr uint32_t kMaxLanes = 16; /* of a card */

constexpr size_t kWelcomeFds = 5;
constexpr size_t kPeerFds = 3; /* before those of its RAM blocks */
constexpr size_t kMaxFds = kPeerFds + kMaxBlocks;

struct Message {
	enum class Kind : uint32_t { Hello = 1, Welcome, Refused, Peer, Gone, Renew };

	/* these two in any version */
	uint64_t magic = kMagic;
	uint32_t version = kVersion;
	Kind kind = Kind::Hello;
	/* Welcome: whose; Peer, Gone, Renew: the other's */
	uint32_t id = 0;
	uint32_t blocks = 0;
	/* Hello: the same for all lanes of a card and for no other; 0: there is only this one */
	uint64_t card = 0;
	uint32_t lane = 0; /* Hello: below kMaxLanes */
	uint32_t reserved = 0;
	uint64_t block_sizes[kMaxBlocks]{};
	char reason[128]{};
};
static_assert(sizeof(Message) == 232);

Message refusal(const std::string &reason);

/** Does not wait. False: it was not sent. */
bool send_message(const Fd &socket, const Message &message, std::span<const int> fds = {});

enum class Received {
	Message,
	Nothing, /* yet */
	End,     /* hung up, or said what is no message */
};

/** Does not wait. A message of another version has nothing but magic and version. */
Received receive_message(const Fd &socket, Message &message, std::vector<Fd> &fds);

} // namespace tern::shm
