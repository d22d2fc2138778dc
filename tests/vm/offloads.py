# SPDX-License-Identifier: GPL-2.0-or-later
"""What the card does for the Ethernet function: checksums, TCP segments, several queues."""

import re

import roce_capture
from scenario import NETDEV, Options, Scenario, main, pair, wait_until
from ternlab import inject

ETHERNET_HEADER = 14
PORT = 5201
OFFLOADS = "tx", "rx", "tso", "sg"
# The key of the published test vectors of RSS: 40 ports in a row reach each of four queues.
SPREADING_KEY = ":".join("6d5a56da255b0ec24167253d43a38fb0d0ca2bcbae7b30b4"
                         "77cb2da38030f20c6a42b73bbeac01fa"[i:i + 2] for i in range(0, 80, 2))


class Offloads(Scenario):
    HOSTS = (Options(), Options(smp=4))

    def setUp(self):
        super().setUp()
        self.addCleanup(self.each, self.restore)

    def each(self, action):
        for host in self.hosts:
            action(host)

    def restore(self, host):
        self.set_offloads(host, "on")
        for command in ("-X {} default", "-L {} combined 2",
                        "-C {} rx-usecs 0 rx-frames 0 tx-usecs 0 tx-frames 0"):
            # What is so already is an error to some versions of ethtool.
            host.run("ethtool " + command.format(NETDEV), check=False)
        host.configure()

    def set_offloads(self, host, state):
        host.run(f"ethtool -K {NETDEV} " + " ".join(f"{name} {state}" for name in OFFLOADS))

    def set_mtu(self, mtu):
        self.each(lambda host: host.run(f"ip link set {NETDEV} mtu {mtu}"))

    def statistics(self, host):
        pairs = re.findall(r"^\s+(\S+): (\d+)$", host.run(f"ethtool -S {NETDEV}").out, re.M)
        return {name: int(value) for name, value in pairs}

    def restarts(self, host):
        """Of the queues, after errors."""
        found = {name: value for name, value in self.statistics(host).items()
                 if re.fullmatch(r"ch\d+_recover", name)}
        self.assertTrue(found)
        return found

    def growth(self, host, action):
        """What of the statistics grew while action() ran, and by how much."""
        before = self.statistics(host)
        action()
        return {name: value - before[name] for name, value in self.statistics(host).items()}

    def iperf(self, arguments="-t 3", address=None, during=None):
        """Runs iperf3 from the first host to the second; returns Mb/s that arrived."""
        one, two = self.hosts
        server = two.spawn(f"iperf3 -s -1 -p {PORT}")
        pair.await_listener(two, PORT, server)
        client = one.spawn(f"iperf3 -f m -p {PORT} -c {address or two.ipv4} {arguments}")
        if during:
            during()
        out = client.wait(timeout=120).out
        server.wait(timeout=30)
        rates = re.findall(r"([\d.]+) Mbits/sec.*receiver", out)
        self.assertTrue(rates, out)
        return float(rates[-1])

    def addresses(self, host):
        return host.ipv4, f"[{host.ipv6}]"

    # --- what goes over the wire

    def test_data(self):
        """TCP arrives as it was sent, whoever does the work on either side."""
        one, two = self.hosts
        for mtu in (1500, 9000):
            self.set_mtu(mtu)
            for sends, receives in (("on", "on"), ("on", "off"), ("off", "on")):
                with self.subTest(mtu=mtu, sends=sends, receives=receives):
                    self.set_offloads(one, sends)
                    self.set_offloads(two, receives)
                    for address in self.addresses(two):
                        self.transfer(one, two, mebibytes=2, address=address)

    def send_datagram(self, kind, address, size):
        """From the first host to the second. Returns the checksums at both ends."""
        one, two = self.hosts
        bind = "UDP6-RECVFROM:9998,ipv6only=1" if kind == "UDP6" else "UDP4-RECVFROM:9998"
        receiver = two.spawn(f"timeout 30 socat -b 65536 -u {bind} - | sha256sum")
        self.assertTrue(wait_until(
            lambda: two.run("ss -lun | grep -q :9998", check=False).code == 0, 20))
        sent = one.run(f"head -c {size} /dev/urandom >/tmp/datagram;"
                       f" socat -b 65536 -u /tmp/datagram {kind}-SENDTO:{address}:9998;"
                       " sha256sum /tmp/datagram").out.split()[0]
        return sent, receiver.wait(timeout=40).out.split()[0]

    def test_udp(self):
        """Datagrams, whole and in fragments; the receiver's kernel finds no wrong checksum."""
        one, two = self.hosts
        self.set_offloads(two, "off")
        for size in (1, 500, 1400, 20000):
            for kind, address in (("UDP4", two.ipv4), ("UDP6", f"[{two.ipv6}]")):
                (sent, received), whole = self.without_drops(
                    lambda: self.send_datagram(kind, address, size))  # pylint: disable=W0640
                self.assertTrue(whole, "the wire has lost frames each time")
                self.assertEqual(received, sent)
        errors = two.run("nstat -az | grep -i csumerr").out
        self.assertEqual({float(line.split()[1]) for line in errors.splitlines()}, {0.0}, errors)

    def test_capture(self):
        """Each segment is within the MTU and right in the eyes of tshark."""
        one, two = self.hosts
        for mtu in (1500, 9000):
            self.set_mtu(mtu)
            path = self.lab.logs / f"offloads-{mtu}.pcap"
            self.lab.wire.capture(path)
            try:
                grown = self.growth(one, lambda: [
                    self.transfer(one, two, mebibytes=1, address=address)
                    for address in self.addresses(two)])
            finally:
                self.lab.wire.stop_capture()
            self.assertGreater(grown["eth_tx_tso"], 10)
            self.assertGreaterEqual(grown["eth_tx_csum"], 2 * 2**20 // mtu)
            self.check_frames(path, mtu)

    def check_frames(self, path, mtu):
        sizes = [int(line) for line in roce_capture.tshark(
            path, "tcp", "-T", "fields", "-e", "frame.len").split()]
        self.assertGreater(len(sizes), 2 * 2**20 // mtu)
        self.assertEqual(max(sizes), mtu + ETHERNET_HEADER)
        self.assertEqual(roce_capture.tshark(
            path, "_ws.malformed || ip.checksum.status == Bad || tcp.checksum.status == Bad"
            " || udp.checksum.status == Bad", "-o", "ip.check_checksum:TRUE",
            "-o", "tcp.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE"), "")
        good = roce_capture.tshark(
            path, "tcp.checksum.status == Good", "-o", "tcp.check_checksum:TRUE",
            "-T", "fields", "-e", "frame.number").split()
        self.assertEqual(len(good), len(sizes))

    def test_vlan(self):
        """Segments carry the tag."""
        one, two = self.hosts
        for index, host in enumerate(self.hosts, 1):
            host.run(f"ip link add link {NETDEV} name vlan5 type vlan id 5 &&"
                     f" ip addr add 10.5.0.{index}/24 dev vlan5 && ip link set vlan5 up")
            self.addCleanup(host.run, "ip link del vlan5")
        grown = self.growth(one, lambda: self.transfer(one, two, 2, address="10.5.0.2"))
        self.assertGreater(grown["eth_tx_tso"], 10)

    # --- queues

    def test_flows_reach_queues(self):
        two = self.hosts[1]
        two.run(f"ethtool -L {NETDEV} combined 4")
        # The ports of the flows differ in few bits, which not every random key takes to all queues.
        two.run(f"ethtool -X {NETDEV} hkey {SPREADING_KEY}")
        grown = self.growth(two, lambda: self.iperf("-t 4 -P 40"))
        for queue in range(4):
            self.assertGreater(grown[f"rx{queue}_packets"], 100, grown)
        two.run(f"ethtool -X {NETDEV} weight 0 0 1 0")
        grown = self.growth(two, lambda: self.iperf("-t 2 -P 6"))
        self.assertGreater(grown["rx2_packets"], 100)
        for queue in (0, 1, 3):
            self.assertLess(grown[f"rx{queue}_packets"], 20, grown)

    def test_hash_key(self):
        """The key is kept. Another function is refused, and changes nothing."""
        one, _ = self.hosts
        key = ":".join(f"{0x6d + 37 * i & 0xff:02x}" for i in range(40))
        self.assertNotIn(key, one.run(f"ethtool -x {NETDEV}").out)
        one.run(f"ethtool -X {NETDEV} hkey {key}")
        self.assertIn(key, one.run(f"ethtool -x {NETDEV}").out)
        before = one.run(f"ethtool -x {NETDEV}").out
        refused = one.run(f"ethtool -X {NETDEV} hfunc xor", check=False)
        self.assertNotEqual(refused.code, 0)
        self.assertEqual(one.run(f"ethtool -x {NETDEV}").out, before)

    def test_changes_under_traffic(self):
        """Channels and rings come and go; the connections stay."""
        one, two = self.hosts

        def change():
            for mine, theirs in ((1, 1), (2, 4), (1, 3), (2, 1), (1, 4)):
                one.run(f"ethtool -L {NETDEV} combined {mine}")
                two.run(f"ethtool -L {NETDEV} combined {theirs}")
            for size in (64, 4096, 512):
                self.each(lambda host, n=size: host.run(f"ethtool -G {NETDEV} rx {n} tx {n}"))
            one.run(f"ethtool -G {NETDEV} tx 1024")
            two.run(f"ethtool -G {NETDEV} tx 1024")

        self.assertGreater(self.iperf("-t 12 -P 4", during=change), 0)
        self.ping(one, two.ipv4)
        self.ping(two, one.ipv6)

    def test_refused_settings(self):
        one, _ = self.hosts

        def settings():
            return [one.run(f"ethtool {show} {NETDEV}").out for show in ("-l", "-g", "-c")]

        before = settings()
        for command in ("-L {} combined 0", "-L {} combined 5", "-G {} rx 8192",
                        "-C {} rx-usecs 70000", "-C {} rx-usecs 0 rx-frames 5"):
            refused = one.run("ethtool " + command.format(NETDEV), check=False)
            self.assertNotEqual(refused.code, 0, command)
            self.assertEqual(settings(), before, command)

    def test_settings_that_the_card_refuses(self):
        """They leave the old ones."""
        one, _ = self.hosts
        shows = (f"ethtool -c {NETDEV}", f"ethtool -x {NETDEV}")
        before = [one.run(show).out for show in shows]
        for command in ("-C {} rx-usecs 50", "-X {} weight 3 1"):
            inject.refuse_command(one, 0, 1)
            self.addCleanup(inject.refuse_command, one, 0, 0)
            refused = one.run("ethtool " + command.format(NETDEV), check=False)
            self.assertNotEqual(refused.code, 0, command)
            self.assertEqual([one.run(show).out for show in shows], before, command)

    def test_chosen_processors(self):
        """The processors that a person gives a transmit queue stay, whatever opens it again."""
        _, two = self.hosts
        path = f"/sys/class/net/{NETDEV}/queues/tx-0/xps_cpus"
        usual = two.run(f"cat {path}").out.strip()
        chosen = "a"  # two of four, as no vector has them
        self.assertNotEqual(usual, chosen)
        self.addCleanup(two.run, f"echo {usual} >{path}")
        two.run(f"echo {chosen} >{path}")
        for command in (f"ip link set {NETDEV} mtu 4000", f"ethtool -L {NETDEV} combined 1",
                        f"ethtool -L {NETDEV} combined 2", f"ip link set {NETDEV} down",
                        f"ip link set {NETDEV} up"):
            two.run(command)
            self.assertEqual(two.run(f"cat {path}").out.strip(), chosen, command)

    def test_sender_through_a_closed_queue(self):
        """pktgen does not look whether the queue that it sends through is in use. It also fills
        each block that a completion frees at once."""
        one, two = self.hosts
        files, mac = "/proc/net/pktgen", one.macs()[0]
        settings = ("count 0", "clone_skb 1000000", "pkt_size 60", "delay 50000",
                    "queue_map_min 1", "queue_map_max 1", f"dst {one.ipv4}", f"dst_mac {mac}")

        def read(name):
            return int(two.run(f"cat /sys/class/net/{NETDEV}/statistics/{name}").out)

        before = self.restarts(two)
        two.run(f"modprobe pktgen; echo add_device {NETDEV} >{files}/kpktgend_0")
        try:
            for setting in settings:
                two.run(f"echo {setting} >{files}/{NETDEV}")
            sender = two.spawn(f"echo start >{files}/pgctrl")
            for queues, counter in ((2, "tx_packets"), (1, "tx_dropped"), (4, "tx_packets"),
                                    (1, "tx_dropped")):
                two.run(f"ethtool -L {NETDEV} combined {queues}", check=False)
                least = read(counter) + 1000
                self.assertTrue(wait_until(lambda: read(counter) > least, 20),
                                f"{counter} does not reach {least} with {queues} queues")
            two.run(f"echo stop >{files}/pgctrl")
            sender.wait(timeout=20)
            restarts = {name: value - before[name] for name, value in self.restarts(two).items()}
            self.assertFalse(any(restarts.values()), restarts)
        finally:
            two.run(f"echo stop >{files}/pgctrl; rmmod pktgen")

    def interrupts(self, host):
        """Of all vectors that bring completions."""
        lines = host.run("grep -E 'tern[1-9][0-9]*@' /proc/interrupts").out.splitlines()
        return sum(int(word) for line in lines for word in line.split()[1:5])

    def test_moderation(self):
        """With moderation, fewer interrupts for each frame that arrives."""
        _, two = self.hosts

        def rate():
            before = self.interrupts(two)
            grown = self.growth(two, lambda: self.iperf("-t 4 -u -b 4M -l 200"))
            frames = sum(grown[f"rx{queue}_packets"] for queue in range(4))
            self.assertGreater(frames, 1000)
            return (self.interrupts(two) - before) / frames

        usual = re.findall(r"^(rx-usecs|rx-frames|tx-usecs):\s*(\d+)",
                           two.run(f"ethtool -c {NETDEV}").out, re.MULTILINE)
        usual = " ".join(f"{name} {value}" for name, value in usual)
        # Where processes run in turns, frames come in bursts, of which each is an interrupt.
        for _ in range(4):
            two.run(f"ethtool -C {NETDEV} {usual}", check=False)  # it fails if nothing changes
            at_once = rate()
            two.run(f"ethtool -C {NETDEV} rx-usecs 20000 rx-frames 256 tx-usecs 20000")
            moderated = rate()
            if moderated < at_once / 2:
                return
        self.fail(f"{moderated} interrupts a frame, {at_once} without moderation")


if __name__ == "__main__":
    main()
