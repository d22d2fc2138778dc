# SPDX-License-Identifier: GPL-2.0-or-later
"""What programs do when something fails under them: a QP, a cable, the GIDs' places.

`lab inject` and `lab cable` make the faults. NVMe over two paths is in nvmeof.py.
"""

import contextlib
import re
import subprocess
import time

from programs import CHANCES, EARLY, PING, RPING_PORT, Programs
from scenario import Options, main, pair, wait_until
from ternlab.paths import SCRIPTS
from ternlab.query import card_of, find_qp

LAB = SCRIPTS / "lab"
FLUSHED = 5  # IBV_WC_WR_FLUSH_ERR
QP_FATAL = 1  # IBV_EVENT_QP_FATAL
RETRIES_EXCEEDED = 12  # IBV_WC_RETRY_EXC_ERR
LENGTH = 1 << 17
UCX_PORT, UCX_MESSAGE = 13337, 1 << 20
UCX_TIMEOUT = "100ms"  # a time-out of the transport, of which there are eight before it gives up


class Failover(Programs):
    HOSTS = (Options(cards=2), Options(cards=2))
    COLUMNS = ("result",)

    def setUp(self):
        self.skip_on_rxe("no faults of a card")
        super().setUp()

    def tell(self, *words):
        return subprocess.run([LAB, "--lab", self.lab.name, *map(str, words)],
                              capture_output=True, text=True, check=False)

    def do(self, *words):
        done = self.tell(*words)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def refused(self, *words):
        done = self.tell(*words)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        return done.stderr

    # --- a QP

    def test_qp_fails(self):
        """It goes to the error state, the program is told, and what was posted comes back."""
        with self.cell("a QP fails", "result"), self.connected() as ((one, _), (qpn, _)):
            one.receive(local=qpn, offset=0, length=64, count=3)
            self.do("inject", "host1", "error", "--qp", qpn)
            self.assertEqual(one.next_event(), QP_FATAL)
            found = one.poll(local=qpn, kind="recv", count=3)
            self.assertEqual([done["status"] for done in found], [FLUSHED] * 3)
            self.assertEqual(one.state(local=qpn), "ERR")
            self.assertIn("has no QP", self.refused("inject", "host1", "error", "--qp", qpn))

    def seconds(self, agent, qpn, peer, opcode, count=8):
        """How long so many messages of LENGTH take."""
        begun = time.monotonic()
        agent.send(local=qpn, opcode=opcode, length=LENGTH, rkey=peer.rkey, address=peer.address,
                   count=count)
        agent.completions(local=qpn, kind="send", count=count)
        return time.monotonic() - begun

    def test_slow_qp(self):
        """A MiB takes a second at 8 Mb/s, written by the QP or read from it."""
        with self.cell("a slow QP", "result"), self.connected() as ((one, two), qpns):
            self.do("inject", "host1", "slow", "--qp", qpns[0], "--rate", 8)
            told = find_qp(card_of(self.hosts[0]), qpns[0])
            self.assertEqual(told["injected_kbps"], 8000)
            self.assertGreater(self.seconds(one, qpns[0], two, "WRITE"), 0.9)
            self.assertGreater(self.seconds(two, qpns[1], one, "READ"), 0.9)
            # The other QP is as fast as ever, and so is this one without a rate. On a busy machine
            # not each try shows it.
            self.assertTrue(wait_until(
                lambda: self.seconds(two, qpns[1], one, "WRITE") < 0.9, 30))
            self.do("inject", "host1", "slow", "--qp", qpns[0], "--rate", 0)
            self.assertTrue(wait_until(
                lambda: self.seconds(one, qpns[0], two, "WRITE") < 0.9, 30))

    def test_refusals(self):
        for words, why in (
                (("host1", "error"), "--qp NUMBER is for"),
                (("host1", "gids", "--qp", 17), "--qp NUMBER is for"),
                (("host1", "hold", "--qp", 17), "--qp NUMBER is for"),
                (("host1", "slow", "--qp", 17), "--rate is for"),
                (("host1", "refuse"), "--nth is for"),
                (("host1", "hold", "--nth", 1), "--nth is for"),
                (("host1", "refuse", "--nth", -1), "nth: a number from 0 to"),
                (("host1", "falsify"), "--every is for"),
                (("host1", "refuse", "--nth", 1, "--seed", 1), "--seed is for"),
                (("host1", "falsify", "--every", -1), "every: a number from 0 to"),
                (("host1", "slow", "--qp", 17, "--rate", -1), "--rate needs"),
                (("host1", "slow", "--qp", 0xfffff, "--rate", 1), "the card has no QP"),
                (("host1", 2, "error", "--qp", 17), "host1 has no Tern card 2")):
            with self.subTest(words=words):
                self.assertRegex(self.refused("inject", *words), rf"^lab: .*{why}.*\n$")

    # --- events

    @contextlib.contextmanager
    def watching(self, host):
        """Waits until a program on the host has been told of an event whose name matches."""
        watcher = self.watch(host)
        try:
            yield lambda name: self.assertTrue(
                wait_until(lambda: re.search(name, watcher.output()), 20), watcher.output())
        finally:
            watcher.kill()
            watcher.wait(check=False)

    def test_port_events(self):
        """Of a cable that is pulled out and plugged in."""
        host = self.hosts[0]
        self.addCleanup(self.do, "cable", "host1", "on")
        with self.watching(host) as told_of:
            self.do("cable", "host1", "off")
            told_of("PORT_ERR|port error")
            self.do("cable", "host1", "on")
            told_of("PORT_ACTIVE|port active")

    def test_gids_move(self):
        """The same GIDs at other indices, an event, and new connections work."""
        host = self.hosts[0]
        device = host.rdma_device()
        before = host.gids(device)
        with self.watching(host) as told_of:
            self.move_gids(host, device, before)
            told_of("GID")
        with self.cell("rping when the GIDs have moved", "result"):
            self.rping(self.hosts)

    def move_gids(self, host, device, before):
        self.do("inject", "host1", "gids")
        self.addCleanup(self.do, "inject", "host1", "gids")

        def moved():
            now = host.gids(device)
            return now != before and sorted(map(str, (entry[1:] for entry in now))) == \
                sorted(map(str, (entry[1:] for entry in before)))

        self.assertTrue(wait_until(moved, 20), (before, host.gids(device)))

    # --- RDMA CM

    def serve_rping(self):
        """One server for all clients."""
        serving = self.hosts[0].spawn("rping -s -P -a 0.0.0.0")
        self.addCleanup(serving.wait, check=False)
        self.addCleanup(serving.kill)
        pair.await_cm_listener(self.hosts[0], RPING_PORT, serving)
        return serving

    def client(self, arguments):
        return f"stdbuf -oL rping -c -v -a {self.hosts[0].ipv4} {arguments}"

    def await_answers(self, task, count=10):
        goal = task.output().count(PING) + count
        self.assertTrue(wait_until(
            lambda: task.output().count(PING) >= goal or not task.running(), 60))
        self.assertTrue(task.running(), task.output()[-500:])

    def connected_stream(self):
        """The two halves of perftest that has connected by RDMA CM and sends, and its QPs' numbers:
        one by which the halves talk, and the one that is measured."""
        server, client = self.hosts
        command = "ib_write_bw -R -D 600"

        def connected():
            told = client.run("rdma resource show qp").out
            return re.findall(r" lqpn (\d+) .*type RC state RTS .*comm ib_write_bw", told)

        for chances in reversed(range(CHANCES)):
            serving = server.spawn(f"{command} {self.verbs(server)}")
            self.addCleanup(serving.give_up)
            pair.await_cm_listener(server, pair.PERFTEST_PORT, serving)
            sending = client.spawn(f"{command} {self.verbs(client)} {server.ipv4}")
            self.addCleanup(sending.give_up)
            wait_until(lambda: len(connected()) == 2 or EARLY.search(sending.said()), 60)
            if len(connected()) == 2:
                return serving, sending, connected()
            told = serving.give_up() + sending.give_up()
            self.assertTrue(chances and EARLY.search(told), told)
        raise AssertionError("there is always a last chance")

    def broken_stream(self, end_it, patience):
        """end_it(its QPs' numbers) ends a connected_stream(), of which the program tells. Returns
        the status of the work request that failed. rping would wait for ever when its completions
        are flushed."""
        serving, sending, qpns = self.connected_stream()
        end_it(qpns)
        self.assertTrue(wait_until(lambda: not sending.running(), patience))
        told = sending.wait(check=False)
        serving.give_up()
        self.assertNotEqual(told.code, 0)
        failed = re.search(r"Completion with error .*\s+Failed status (\d+)", told.out + told.err)
        self.assertTrue(failed, told)
        return int(failed[1])

    def test_connection_after_a_flap(self):
        """When the cable is out for a second, retries keep the connection alive. When a QP fails,
        its connection ends, and RDMA CM can make another one."""
        self.serve_rping()
        client = self.hosts[1].spawn(self.client(""))
        with self.cell("rping while the cable flaps", "result"):
            self.await_answers(client)
            self.do("cable", "host2", "flap")
            self.await_answers(client)
        client.kill()
        client.wait(check=False)
        with self.cell("ib_write_bw -R again after a QP's error", "result"):
            status = self.broken_stream(lambda qpns: [
                self.do("inject", "host2", "error", "--qp", qpn) for qpn in qpns], 60)
            self.assertEqual(status, FLUSHED)
            self.cm_perftest(self.hosts, "ib_write_bw", "-n 100")

    def test_connection_after_an_outage(self):
        """The cable of either host is out until retries are exhausted, and connections fail. When
        it is back, the same server process has a new one, by which right data comes."""
        client = self.hosts[1]
        gids = [host.gids(self.devices[host.name]) for host in self.hosts]
        serving = self.serve_rping()
        for host in self.hosts:
            with self.cell(f"rping again after an outage at {host.name}", "result"):
                self.addCleanup(self.do, "cable", host.name, "on")
                cut = client.spawn(self.client(""))
                self.addCleanup(cut.give_up)
                self.await_answers(cut)
                heard = len(serving.said())
                status = self.broken_stream(lambda _: self.do("cable", host.name, "off"), 60)
                self.assertEqual(status, RETRIES_EXCEEDED)
                # Only the side of rping that has a request under way fails. The other side waits
                # for a message and gets no error.
                failure = f"cq completion failed status {RETRIES_EXCEEDED}\n"
                self.assertTrue(wait_until(
                    lambda: failure in cut.said() + serving.said()[heard:], 60))
                self.do("cable", host.name, "on")
                cut.give_up()
                self.assertEqual(client.run(self.client("-V -C 20")).out.count(PING), 20)
                self.assertTrue(serving.running(), serving.output())
        self.assertEqual([host.gids(self.devices[host.name]) for host in self.hosts], gids)

    # --- UCX

    def ucx(self, host):
        """Over both cards, whose subnets do not reach each other."""
        rails = ",".join(f"{host.rdma_device(card=card)}:1" for card in range(2))
        return (f"UCX_NET_DEVICES={rails} UCX_TLS=rc_verbs,ud_verbs:aux UCX_MAX_RNDV_RAILS=2 "
                f"UCX_IB_ROCE_LOCAL_SUBNET=y UCX_RC_TIMEOUT={UCX_TIMEOUT} ucx_perftest")

    def ucx_client(self, count):
        server, client = self.hosts
        return f"{self.ucx(client)} {server.ipv4} -t tag_bw -s {UCX_MESSAGE} -n {count} -w 10"

    def received(self):
        """The bytes that each card of the server has received."""
        return [self.hosts[0].hw_counter("rcvd_bytes", card) for card in range(2)]

    def ucx_shares(self, count=50):
        """What each card carries of a run of ucx_perftest, as a part of its @count messages. How
        many of the messages for warming up precede them differs from run to run, so the sum is 1
        or more."""
        server, client = self.hosts
        before = self.received()
        said = pair.run_pair(server, self.ucx(server), client, self.ucx_client(count),
                             port=UCX_PORT)
        self.assertRegex(said, rf"Final:\s+{count}\s")
        return [(after - old) / count / UCX_MESSAGE
                for old, after in zip(before, self.received())]

    def test_ucx_loses_a_rail(self):
        """UCX stripes messages over two cards. It does not move what is under way off a card: when
        the cable of one is out, the program ends with an error that names the card. The next one
        finds that the port is down and does with the other card, until the cable is back."""
        server, client = self.hosts
        with self.cell("ucx_perftest over two rails", "result"):
            for share in self.ucx_shares():
                self.assertGreater(share, 0.25)
        with self.cell("ucx_perftest loses one", "result"):
            self.addCleanup(self.do, "cable", "host2", 1, "on")
            serving = server.spawn(self.ucx(server))
            pair.await_listener(server, UCX_PORT, serving)
            asking = client.spawn(self.ucx_client(1 << 30))
            self.addCleanup(asking.give_up)
            self.addCleanup(serving.give_up)
            before = self.received()
            self.assertTrue(wait_until(
                lambda: all(now - old > 10 * UCX_MESSAGE
                            for old, now in zip(before, self.received())), 60))
            self.do("cable", "host2", 1, "off")
            # Either side may be the one that has a request under way.
            self.assertTrue(wait_until(lambda: serving.failed() or asking.failed(), 60))
            told = serving.give_up() + asking.give_up()
            self.assertRegex(told, r"transport retry counter exceeded(?s:.)*:10\.77\.1\.")
        with self.cell("ucx_perftest over the rail that is left", "result"):
            left, lost = self.ucx_shares()
            self.assertEqual(lost, 0)
            self.assertGreaterEqual(left, 1)
        with self.cell("ucx_perftest over both again", "result"):
            self.do("cable", "host2", 1, "on")
            client.run(f"until grep -q ACTIVE /sys/class/infiniband/{client.rdma_device(card=1)}"
                       "/ports/1/state; do sleep 0.1; done")
            for share in self.ucx_shares():
                self.assertGreater(share, 0.25)


if __name__ == "__main__":
    main()
