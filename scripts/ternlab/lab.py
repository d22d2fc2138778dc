# SPDX-License-Identifier: GPL-2.0-or-later
"""A lab: some hosts, one wire, and a folder that remembers them."""

import concurrent.futures
import contextlib
import json
import os
import re
import shutil

from . import cards, parts, paths, stack
from .errors import LabError
from .host import MAX_HOSTS, Host, Options
from .image import Image
from .lock import exclusive
from .own_disk import OwnDisk, OwnDiskHost
from .process import Process
from .progress import step
from .wire import MAX_PORTS, Wire

STATE = "lab.json"
LOCK = ".lock"
# A socket's path has at most 107 bytes. That leaves 67 for the folders above a lab's (paths.py) and
# for the socket's own name, to which ssh adds 17 until it listens.
MAX_NAME = 40
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*", re.ASCII)


def is_name(text):
    """Whether a lab may have this name: its folder is in no other place than those of all labs, and
    is not where a lab's lock is."""
    return (len(text) <= MAX_NAME and _NAME.fullmatch(text) is not None
            and not text.endswith(LOCK))


class NoLab(LabError):
    """No lab of that name is up."""


class Lab:
    def __init__(self, name="lab"):
        self.name = name
        self.folder = paths.runtime(name)
        self.logs = paths.logs(name)
        self.fault_log = self.logs / "faults.jsonl"
        self.hosts = []
        self.wire = Wire(self.folder)
        self.stack = None  # the name of its hosts' one; also None if an older version made the lab
        self._image = None
        self._owner = None  # the process with which the lab dies, if there is one
        self._first = 1  # the least number of a host

    # --- life

    def up(self, hosts, owned=False, topology=None, tap="", first=1, disk=None, **image):
        """Boots a host for each Options. An owned lab dies with this process. With a topology, a
        file, the hosts are those that topology.hosts() makes of it. By a TAP interface the lab's
        Ethernet reaches others; labs that share one have different first numbers, as a host's
        number is in its name and addresses. disk: the path of an image that the hosts boot. Without
        one, more options are those of Image.get(): with packages, files of Debian's, the hosts have
        these installed and nothing that is built here."""
        hosts = cards.for_this_stack(hosts)
        with self._lock():
            self._claim()
            try:
                self._owner = Process.this("the lab's owner") if owned else None
                self.stack, self._first = stack.ask(), first
                self._check_room(hosts)
                if topology:
                    shutil.copyfile(topology, self.wire.topology)
                self._image = OwnDisk.get(disk, self.folder) if disk else Image.get(**image)
                archive = self._archive(hosts)
                self.wire.start(self.logs / "wire.log", owned, tap)
                # `down` must be able to end what has started, even if this process is killed now.
                self._save()
                self.hosts = [self._host(*place) for place in enumerate(hosts, first)]
                self._boot(self.hosts, archive)
            except BaseException:
                self._take_down()
                raise

    def down(self):
        """Ends the lab that this process has brought up or found; without one, does nothing."""
        if not self.wire.process:
            return
        with self._lock():
            if self._is_mine() or self._load():
                self._take_down()

    def add(self, hosts):
        """Boots one more host for each Options, on the same wire. Returns these hosts."""
        hosts = cards.for_this_stack(hosts)
        with self._changing("add"):
            self._check_room([*(host.options for host in self.hosts), *hosts])
            archive = self._archive(hosts)
            free = sorted(set(range(self._first, MAX_HOSTS + 1))
                          - {host.index for host in self.hosts})
            fresh = [self._host(*place) for place in zip(free, hosts)]
            for host in fresh:
                host.log.unlink(missing_ok=True)  # of another host that had the number before
            self.hosts = sorted([*self.hosts, *fresh], key=lambda host: host.index)
            try:
                self._boot(fresh, archive)
            except BaseException:
                self._forget(fresh)
                raise
            return fresh

    def remove(self, name):
        """Stops a host and forgets it."""
        with self._changing("remove"):
            host = self.host(name)
            if self.hosts == [host]:
                raise LabError(f"{host.name} is the last host of lab \"{self.name}\"; "
                               f"`{paths.COMMAND} down` ends the lab")
            self._forget([host])

    def kill(self, name):
        """As a power cut does: nothing in the host and none of its peers hears of it before."""
        host = self.host(name)
        if not host.process.alive():
            raise LabError(f"{host.name} is down already")
        host.kill()

    def restart(self, name):
        """Starts a host anew with all that it had, whatever state it is in. If that fails, it
        stays down."""
        with self._changing():
            host = self.host(name)
            archive = self._archive([host.options])
            host.kill()
            try:
                self._boot([host], archive)
            except BaseException:
                host.kill()
                self._save()
                raise

    @property
    def has_own_disk(self):
        """Whether its hosts boot a disk image of the user's."""
        return isinstance(self._image, OwnDisk)

    def _host(self, index, options, *running):
        kind = OwnDiskHost if self.has_own_disk else Host
        return kind(index, self._image, options, self.folder, self.logs / f"host{index}.log",
                    *running)

    def _archive(self, hosts):
        """What hosts with such Options get of what is built here."""
        if self.has_own_disk:
            return None
        if any(options.load and options.nic == "tern" for options in hosts):
            parts.require_module(self._image)
        return parts.archive(self._image)

    def _boot(self, hosts, archive):
        """Starts some of the lab's hosts. Returns when they can be worked on."""
        for host in hosts:
            host.start(self.wire, self._is_mine(), archive)
            self._save()
        names = ", ".join(host.name for host in hosts)
        with step(f"starting {names if len(hosts) < 4 else f'{len(hosts)} hosts'}"):
            self.each(Host.wait_ready, hosts)
        self._save()
        if self.wire.topology.exists():
            self._spread_names(hosts)
        with step("giving them their addresses"):
            self.each(self._configure, [host for host in hosts if host.options.load])

    def _forget(self, hosts):
        self.hosts = [host for host in self.hosts if host not in hosts]
        self._save()
        self.each(Host.stop, hosts)

    def _take_down(self):
        with step("taking the lab down"):
            if self.hosts:
                self.each(Host.stop)
            self.wire.stop()
            self.hosts, self._owner = [], None
            shutil.rmtree(self.folder, ignore_errors=True)

    @classmethod
    def find(cls, name="lab"):
        """The lab of that name, which must be up."""
        lab = cls(name)
        if not lab._load():
            raise lab._missing()
        return lab

    @classmethod
    def all(cls):
        """The labs of this checkout that were brought up and not taken down."""
        labs = [cls(state.parent.name) for state in sorted(paths.runtime("").glob(f"*/{STATE}"))]
        return [lab for lab in labs if lab._load()]

    def _spread_names(self, hosts):
        """Writes the hosts' names and addresses to /etc/hosts, in place of the image's names."""
        known = [("localhost", "127.0.0.1"), ("localhost", "::1"),
                 *(entry for host in self.hosts for entry in host.names())]
        table = "".join(f"{address} {name}\n" for name, address in known)
        self.each(lambda host: host.write_file("/etc/hosts", table.encode()), hosts)

    @staticmethod
    def _configure(host):
        try:
            host.configure()
        except LabError as error:
            host.check_alive()
            raise LabError(f"{host.name}: its network card did not come up\n{error}\n"
                           f"{host.last_words()}") from None

    def _check_room(self, hosts):
        """Raises a LabError if so many hosts do not fit on one wire."""
        ports, room = sum(options.cards for options in hosts), MAX_HOSTS + 1 - self._first
        if room < 1:
            raise LabError(f"there is no host{self._first}: a lab has hosts up to number "
                           f"{MAX_HOSTS}")
        if len(hosts) > room:
            most = (f"a lab has at most {MAX_HOSTS} hosts" if self._first == 1 else
                    f"a lab has hosts up to number {MAX_HOSTS}, from {self._first} on {room}")
            raise LabError(f"{most}, and these would be {len(hosts)}")
        if ports > MAX_PORTS:
            raise LabError(f"a wire has at most {MAX_PORTS} cards, and these would be {ports}")

    # --- its hosts

    def each(self, action, hosts=None):
        """action(host) for all at the same time; the first failure is raised when all are done. A
        signal is not kept waiting."""
        hosts = self.hosts if hosts is None else hosts
        pool = concurrent.futures.ThreadPoolExecutor(max(1, len(hosts)))
        try:
            calls = [pool.submit(action, host) for host in hosts]
            concurrent.futures.wait(calls)
        finally:
            # A signal has the hosts taken down, and only that ends calls that wait for a guest.
            pool.shutdown(wait=False)
        return [call.result() for call in calls]

    def host(self, name):
        for host in self.hosts:
            if name in (host.name, str(host.index)):
                return host
        raise LabError(f"no host \"{name}\"; there are " + ", ".join(h.name for h in self.hosts))

    def select(self, names):
        """"all", or hosts separated by commas."""
        return self.hosts if names == "all" else [self.host(name) for name in names.split(",")]

    # --- its memory

    def _lock(self):
        """The lock that lets one command at a time change the lab."""
        return exclusive(self.folder.with_name(f"{self.name}{LOCK}"),
                         f"another command is changing lab \"{self.name}\"; waiting for it")

    @contextlib.contextmanager
    def _changing(self, hosts_by=None):
        """Has the lab as it is now, and to itself. hosts_by: the command, if it changes which
        hosts there are."""
        with self._lock():
            if not self._is_mine():
                if not self._load():
                    raise self._missing()
                if self._owner and self._owner.alive():
                    raise LabError(f"lab \"{self.name}\" belongs to process {self._owner.pid}, "
                                   "with which it ends; no other process can start hosts in it")
            if hosts_by and self.wire.topology.exists():
                raise LabError(f"{hosts_by}: the topology of lab \"{self.name}\" says which hosts "
                               "there are; change its file, and bring the lab up with it")
            if not self.wire.process.alive():
                raise LabError(f"the wire of lab \"{self.name}\" has ended; `{paths.COMMAND} down` "
                               f"and `{paths.COMMAND} up` start another one")
            yield

    def _is_mine(self):
        """Whether this process owns the lab: only the owner changes its state and has channels."""
        return self._owner is not None and self._owner.pid == os.getpid()

    def _missing(self):
        return NoLab(f"there is no lab \"{self.name}\" here; `{paths.COMMAND} up` starts it")

    def _claim(self):
        if self._load():
            if any(host.process.alive() for host in self.hosts):
                self.hosts, self._owner, self.wire = [], None, Wire(self.folder)
                raise LabError(f"lab \"{self.name}\" is up already; `{paths.COMMAND} down` ends it")
            self._take_down()
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True, mode=0o700)
        shutil.rmtree(self.logs, ignore_errors=True)
        self.logs.mkdir(parents=True)

    def _save(self):
        """A command that reads the state meanwhile sees either the old one or the new one."""
        state = {
            **self._image.to_json(),
            "stack": self.stack,
            "owner": self._owner and self._owner.to_json(),
            "wire": self.wire.process.to_json(),
            "first": self._first,
            "hosts": [host.to_json() for host in self.hosts if host.process],
        }
        fresh = self.folder / f"{STATE}.new"
        fresh.write_text(json.dumps(state, indent=2), encoding="utf-8")
        fresh.replace(self.folder / STATE)

    def _load(self):
        try:
            state = json.loads((self.folder / STATE).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return False
        if "disk" in state:
            self._image = OwnDisk(state["disk"], self.folder)
        else:
            self._image = Image(state["image"])
            self._image.touch()
        # A lab of an older version tells of no owner, and must still end.
        self._owner = Process.from_json(state["owner"]) if state.get("owner") else None
        self.wire = Wire(self.folder, Process.from_json(state["wire"]))
        self.stack, self._first = state.get("stack"), state.get("first", 1)
        self.hosts = [self._host(saved["index"], Options(**saved["options"]),
                                 Process.from_json(saved["process"]), saved["port"],
                                 saved.get("cards", ()))
                      for saved in state["hosts"]]
        return True
