# SPDX-License-Identifier: GPL-2.0-or-later
"""How a host's cards reach its QEMU: as devices of QEMU, or as a process for each, to which QEMU
connects by vfio-user. The stack says which of the two its QEMU takes."""

import dataclasses

from . import machine, stack
from .errors import LabError
from .paths import CARD, QEMU
from .process import Process
from .progress import wait_until

CARD_TIMEOUT = 10


def netdev(card):
    """Both QEMU's id of a card's network and, by guest/net.rules, the interface in the guest."""
    return f"wire{card}"


def card_id(card):
    """QEMU's id of a card."""
    return f"card{card}"


def for_this_stack(hosts):
    """Returns the Options of hosts whose cards are as this stack's QEMU takes them. Raises a
    LabError if they ask for what such cards cannot do."""
    front_end, arch = stack.ask("front-end"), stack.ask("arch")
    hosts = [dataclasses.replace(options, front_end=front_end, arch=arch) for options in hosts]
    for options in hosts:
        if options.viommu and not machine.of(options).iommu:
            raise LabError(f"hosts of the stack {stack.ask()} have no IOMMU")
        if has_processes(options):
            _check_for_processes(options)
    return hosts


def has_processes(options):
    return options.nic == "tern" and options.front_end == "vfio-user"


def of(host, folder, processes=()):
    """Returns the cards of a host. Their sockets are in the folder. processes: what to_json() of
    the same cards has returned earlier."""
    if has_processes(host.options):
        return CardProcesses(host, folder, processes)
    return Devices(host)


def tell(host, command, **arguments):
    """Returns QEMU's answer to a command for the cards of a host. Raises a LabError if it refuses
    the command, or if none answers, as when the host has ended."""
    try:
        with host.cards.control() as monitor:
            return monitor.execute(command, **arguments)
    except (OSError, ValueError) as error:
        raise LabError(f"{host.name}: its QEMU does not answer: {error}") from None
    except LabError as error:
        raise LabError(f"{host.name}: {error}") from None


def _check_for_processes(options):
    if options.wire != "shm":
        raise LabError(f"the cards of the stack {stack.ask()} are processes, which reach the wire "
                       f"through shared memory only, and not by {options.wire}")
    if options.viommu:
        raise LabError(f"the cards of the stack {stack.ask()} are processes, which cannot be "
                       "behind an IOMMU")


def _socket(path, options, card):
    """The path of a card's socket. In a topology each card has its own."""
    return f"{path}.{options.edges[card][0]}" if options.edges else path


def _speed(options, card):
    """[("speed", Mb/s)] for a Tern card in a topology, else an empty list."""
    return [("speed", options.edges[card][1])] if options.edges and options.nic == "tern" else []


class Devices:
    """Devices of QEMU: Tern's, which scripts/tern-qemu adds to it, or QEMU's own."""

    def __init__(self, host):
        self._host, self._devices = host, []
        self.qemu = [machine.of(host.options).qemu]
        if host.options.nic == "tern":
            self.qemu = ["env", f"TERN_QEMU={self.qemu[0]}", QEMU]

    def start(self, wire, _owned):
        """Returns QEMU's arguments for the cards. Call this before QEMU starts."""
        cards = range(self._host.options.cards)
        self._devices = [self._device(wire, card) for card in cards]
        arguments = []
        for card in cards if not self._shares_memory() else ():
            path = _socket(wire.path, self._host.options, card)
            arguments += ["-netdev", f"stream,id={netdev(card)},server=off,addr.type=unix,"
                                     f"addr.path={path}"]
        return arguments

    def plug(self, monitor, card, slot):
        refused = monitor.human(f"device_add {self._devices[card]},bus={slot}")
        if refused:
            raise LabError(refused)

    def control(self):
        """QEMU's monitor, which knows the commands and properties of its devices."""
        return self._host.qmp()

    def check_alive(self):
        """Does nothing, as such cards live as long as QEMU."""

    stop = kill = check_alive

    def logs(self):
        return []

    def to_json(self):
        return []

    def _device(self, wire, card):
        options = self._host.options
        properties = f"id={card_id(card)},mac={self._host.macs()[card]}"
        if options.nic_options:
            properties += f",{options.nic_options}"
        for name, value in _speed(options, card):
            properties += f",{name}={value}"
        if self._shares_memory():
            return f"tern,wire={_socket(wire.shared_path, options, card)},{properties}"
        model = {"tern": "tern", "virtio": "virtio-net-pci,romfile="}[options.nic]
        return f"{model},netdev={netdev(card)},{properties}"

    def _shares_memory(self):
        return self._host.options.nic == "tern" and self._host.options.wire == "shm"


class CardProcesses:
    """A tern-card process for each card, and an unmodified QEMU. No command of the lab unplugs such
    a card: QEMU 11.1.3 would then fail an assertion of its own."""

    def __init__(self, host, folder, processes):
        self._host, self._folder = host, folder
        self.qemu = [machine.of(host.options).qemu]
        self._processes = [Process.from_json(process) for process in processes]

    def start(self, wire, owned):
        """Returns when QEMU can connect."""
        self.kill()
        cards = range(self._host.options.cards)
        for card in cards:
            # A card that was killed leaves its socket behind. Remove it, or the loop below takes it
            # for that of the new card.
            self._path(card).unlink(missing_ok=True)
        self._processes = [
            Process.start(f"{self._host.name}'s tern-card {card}", self._command(wire, card),
                          self._log(card), owned) for card in cards]
        for card, process in zip(cards, self._processes):
            path = self._path(card)
            wait_until(lambda path=path, process=process: path.exists() or not process.alive(),
                       CARD_TIMEOUT)
            if not path.exists():
                self.kill()
                raise LabError(f"{self._host.name}: {self._last_line(card)}")
        return []

    def plug(self, monitor, card, slot):
        monitor.execute("device_add", driver="vfio-user-pci", id=card_id(card), bus=slot,
                        socket={"type": "unix", "path": str(self._path(card))})

    def control(self):
        raise LabError("its card is a process, tern-card, which takes no commands")

    def check_alive(self):
        for card, process in enumerate(self._processes):
            if not process.alive():
                raise LabError(f"{process.name} has ended: {self._last_line(card)}")

    def stop(self):
        for process in self._processes:
            process.stop()

    def kill(self):
        for process in self._processes:
            process.kill()

    def logs(self):
        return [self._log(card) for card in range(self._host.options.cards)]

    def to_json(self):
        return [process.to_json() for process in self._processes]

    def _command(self, wire, card):
        options = self._host.options
        if not CARD.exists():
            raise LabError(f"{CARD} is not built; run `make build`")
        command = [CARD, "--socket", self._path(card), "--wire",
                   _socket(wire.shared_path, options, card), "--mac", self._host.macs()[card]]
        for given in filter(None, options.nic_options.split(",")):
            name, equals, value = given.partition("=")
            command += [f"--{name}", value] if equals else [f"--{name}"]
        for name, value in _speed(options, card):
            command += [f"--{name}", value]
        return command

    def _path(self, card):
        return self._folder / f"{self._host.name}.{card_id(card)}"

    def _log(self, card):
        return self._host.log.with_suffix(f".{card_id(card)}.log")

    def _last_line(self, card):
        said = self._log(card).read_text(encoding="utf-8", errors="replace").split("\n")
        return next((line for line in reversed(said) if line), "it does not say why")
