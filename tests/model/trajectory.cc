// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Prints the rate that the card gives a flow, for tests/model/dcqcn_test.py. Standard input has the
 * link's Mb/s, and then events with their time T in ns: "T cnp", "T sent BYTES" and "T rate", which
 * changes nothing. The program prints the rate in kb/s after each. It uses the paper's parameters.
 */
#include <iostream>
#include <string>

#include "qemu/rnic/congestion/dcqcn.h"

int main()
{
	uint32_t link_mbps = 0;
	std::cin >> link_mbps;
	const tern::CongestionParameters parameters = tern::sigcomm2015();
	tern::Dcqcn flow(parameters, link_mbps);

	uint64_t now = 0;
	std::string event;
	while (std::cin >> now >> event) {
		if (event == "cnp") {
			flow.on_cnp(now);
		} else if (event == "sent") {
			uint64_t bytes = 0;
			std::cin >> bytes;
			flow.on_sent(now, bytes);
		}
		std::cout << flow.rate(now) << '\n';
	}
}
