/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "qemu/rnic/formats/packet.h"
#include "qemu/rnic/object_table.h"
#include "qemu/rnic/port/eth_function.h"
#include "qemu/rnic/port/steering.h"
#include "qemu/rnic/transport/data_path.h"

namespace tern {

inline constexpr uint32_t kMaxFlows = 4096;
inline constexpr uint32_t kMaxFlowCounters = kMaxFlows;

class EthQp;
class Qp;

/** The Ethernet port: runs the QPs that send, and dispatches received frames. */
class Port {
public:
	Port(DataPath &data, const ObjectTable<Qp> &qps);

	/** Receives frames that were looped back and gives QPs their turns. Uses up to about
	 * @budget units of time (Sender::transmit()), and fewer after the turn of a QP that was
	 * idle. */
	void run(unsigned budget);
	/** Whether run() has more to do now. */
	bool has_work() const { return data_.out.has_loopback() || !data_.scheduler.empty(); }

	/** Sends the first @size bytes of the transmit buffer, a frame of the raw QP @sender. If a
	 * flow of this card claims its destination, the frame is looped back, and only a multicast
	 * goes to the wire too. Returns the size of the padded frame, or 0 if there is no room. */
	size_t send_raw(EthQp &sender, size_t size);

	void receive(std::span<const std::byte> frame);
	void receive(std::span<const std::byte> head, const Payload &payload, uint32_t segment);

	/** Receives the frames that match a flow. RoCE packets to a MAC of this card or to one of
	 * its multicast groups go to QPs instead; only sniffers receive them, too. */
	Steering steering;
	/** Receives the frames that match no flow of type NORMAL, are not RoCE and pass the MAC
	 * filter. */
	EthFunction ethernet;
	uint32_t rx_mode = 0; /* TERN_ETH_PROMISC, TERN_ETH_ALLMULTI */

private:
	void deliver_loopback(unsigned &budget);
	void receive_roce(std::span<const std::byte> frame);
	void receive_whole(const Packet &packet, std::span<const std::byte> head,
	                   const Payload &payload);
	/** Returns the statistics of the QP that @packet is for, or null if it has none. */
	StatsSet *stats_set_of(const Packet &packet) const;
	void count_error(ParseError error);
	void admit(const Packet &packet);
	void admit_burst(const Packet &burst);
	void deliver(const Packet &packet);
	bool takes_roce(const Mac &dmac) const
	{
		return dmac == data_.out.mac || data_.gids.listens(dmac) ||
		       data_.groups.listens(dmac);
	}
	/** Whether the Ethernet function takes frames to @dmac, in every receive mode or in the
	 * present one. */
	bool is_own(const Mac &dmac) const;
	bool accepts(const Mac &dmac) const;

	DataPath &data_;
	const ObjectTable<Qp> &qps_;
};

} // namespace tern
