// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Prints the rate that the card gives a flow, for tests/model/timely_test.py. Standard input has
 * the link's Mb/s, and then events: "rtt NS", "loss" and "timeout". The program prints the rate in
 * kb/s after each event. The parameters are those of sigcomm2015().
 */
#include <iostream>
#include <string>

#include "qemu/rnic/congestion/timely.h"

int main()
{
	uint32_t link_mbps = 0;
	std::cin >> link_mbps;
	const tern::CongestionParameters parameters = tern::sigcomm2015();
	tern::Timely flow(parameters, link_mbps);

	std::string event;
	while (std::cin >> event) {
		if (event == "rtt") {
			uint64_t rtt = 0;
			std::cin >> rtt;
			flow.on_rtt(rtt);
		} else if (event == "loss") {
			flow.on_loss();
		} else if (event == "timeout") {
			flow.on_timeout();
		}
		std::cout << flow.rate(0) << '\n';
	}
}
