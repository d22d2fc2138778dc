/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The protocol between a host and the switch: messages of fixed size over a SOCK_SEQPACKET socket,
 * with file descriptors.
 *
 *   Hello    host:   which lane of which card it is; descriptors of its RAM blocks, for reading,
 *                    the last of them its spill
 *   Welcome  switch: the address page, then as in Peer, without RAM blocks
 *   Refused  switch: the reason; then it disconnects
 *   Peer     switch: another host: the listener of its bell, the bell that it listens to, the
 *                    ring from it, the ring to it, its RAM blocks
 *   Gone     switch: that host has left
 *   Renew    host:   the link to that host is cut; both want a new Peer message
 *
 * A host is one connection. The connections of a card's engines are its lanes and share its
 * addresses.
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
constexpr uint32_t kVersion = 6;
constexpr size_t kMaxBlocks = 8;
/* Bytes of RAM that a host may share. */
constexpr uint64_t kMaxRam = uint64_t{1} << 40;
/* Host ids are below this. */
constexpr uint32_t kMaxHosts = 64;
constexpr uint32_t kMaxLanes = 16; /* of a card */

constexpr size_t kWelcomeFds = 5;
constexpr size_t kPeerFds = 4; /* before the descriptors of the RAM blocks */
constexpr size_t kMaxFds = kPeerFds + kMaxBlocks;

struct Message {
	enum class Kind : uint32_t { Hello = 1, Welcome, Refused, Peer, Gone, Renew };

	/* the same in all versions */
	uint64_t magic = kMagic;
	uint32_t version = kVersion;
	Kind kind = Kind::Hello;
	/* Welcome: id of the receiver; Peer, Gone, Renew: id of the other host */
	uint32_t id = 0;
	uint32_t blocks = 0;
	/* Hello: an id shared by all lanes of a card; 0: the card has one lane */
	uint64_t card = 0;
	uint32_t lane = 0; /* Hello: below kMaxLanes */
	uint32_t reserved = 0;
	uint64_t block_sizes[kMaxBlocks]{};
	char reason[128]{};
};
static_assert(sizeof(Message) == 232);

Message refusal(const std::string &reason);
/** Whether the blocks in @message, a valid number, have no more than kMaxRam. */
bool ram_fits(const Message &message);

/** Does not block. Returns false if the message was not sent. */
bool send_message(const Fd &socket, const Message &message, std::span<const int> fds = {});

enum class Received {
	Message,
	Nothing, /* no message yet */
	End,     /* disconnected, or not a valid message */
};

/** Does not block. Of a message of another version only magic and version are valid. */
Received receive_message(const Fd &socket, Message &message, std::vector<Fd> &fds);

} // namespace tern::shm
