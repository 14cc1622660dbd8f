# SPDX-License-Identifier: MIT
"""uzswap as one of the compared swap devices: from the build tree, measured from outside."""

import glob
import json
import os
import re
import socket
import time

from .peers import SWAP_PRIORITY, Device, Peer
from .system import (MIB, VM_SYSCTLS, BenchError, interruptible, is_swap, read_text,
                     vm_sysctl_path, write_text)

CODECS = ("lz4", "zstd")
DEVICE = "bench0"
START_SECONDS = 60
STOP_SECONDS = 120


def varlink_call(path, method, seconds=10):
    """One Varlink call: a JSON object and a NUL there, the same back. Returns the parameters."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(seconds)
        connection.connect(path)
        connection.sendall(json.dumps({"method": method, "parameters": {}}).encode() + b"\0")
        reply = b""
        while not reply.endswith(b"\0"):
            part = connection.recv(1 << 16)
            if not part:
                raise BenchError(f"{path}: closed while answering {method}")
            reply += part
    message = json.loads(reply[:-1])
    if "error" in message:
        raise BenchError(f"{path}: {method}: {message['error']} {message.get('parameters', '')}")
    return message.get("parameters", {})


class MemoryMap:
    """
    What the kernel says of a daemon's memory: shared mappings apart from the rest, and of those the
    relief reserve apart from the store. For shared memory the blocks of the file behind it count,
    also those that are not mapped.
    """

    _HEADER = re.compile(r"[0-9a-f]+-[0-9a-f]+ ")  # of a mapping's entry in smaps
    _RELIEF = "uzswap-relief"

    def __init__(self, pid):
        self.store_bytes = 0
        self.relief_bytes = 0
        self.other_bytes = 0
        self.store_swapped_bytes = 0
        files = {}  # (device, inode): a path to it, its name, what is mapped of it
        current = None
        for line in read_text(f"/proc/{pid}/smaps").splitlines():
            if self._HEADER.match(line):
                addresses, permissions, _offset, device, inode, *name = line.split(None, 5)
                current = None
                if permissions[3] == "s" and inode != "0":
                    current = files.setdefault((device, inode), {
                        "path": f"/proc/{pid}/map_files/{addresses}",
                        "name": name[0] if name else "", "mapped_bytes": 0})
                continue
            key, _, value = line.partition(":")
            if key == "Rss":
                size_bytes = int(value.split()[0]) * 1024
                if current:
                    current["mapped_bytes"] += size_bytes
                else:
                    self.other_bytes += size_bytes
            elif key == "Swap" and current:
                self.store_swapped_bytes += int(value.split()[0]) * 1024
        for file in files.values():
            try:
                allocated_bytes = os.stat(file["path"]).st_blocks * 512
            except OSError:
                allocated_bytes = 0
            size_bytes = max(file["mapped_bytes"], allocated_bytes)
            if self._RELIEF in file["name"]:
                self.relief_bytes += size_bytes
            else:
                self.store_bytes += size_bytes

    def total_bytes(self):
        return self.store_bytes + self.relief_bytes + self.other_bytes


class Uzswap(Peer):
    """A uzswapd of its own, with its own configuration and run directory."""

    def __init__(self, name, daemon, codec, level, memory_limit_factor=1.5):
        super().__init__(name)
        self._daemon = daemon
        self._codec = codec
        self._level = level
        self._memory_limit_factor = memory_limit_factor
        self._process = None
        self._log = None
        self._control = None
        self._before = None
        if not os.access(daemon, os.X_OK):
            self.missing = f"{daemon} is not built"

    def _configuration(self, size_bytes):
        # A limit that is never reached: what happens there is another benchmark. No slot balloon:
        # its pages would be counted as ours.
        limit_bytes = int(size_bytes * self._memory_limit_factor) + 64 * MIB
        level = f"Level={self._level}\n" if self._level else ""
        return (f"[Device {DEVICE}]\nSize={size_bytes}\nMemoryLimit={limit_bytes}\n"
                f"Codec={self._codec}\n{level}Priority={SWAP_PRIORITY}\nSwapOn=yes\n"
                "HonestFree=no\n")

    def _fail(self, what):
        tail = read_text(self._log, default="").strip()[-2000:]
        raise BenchError(f"uzswapd {what}; its last lines:\n{tail}")

    def _block_device(self, runtime):
        """The device behind the stable link, once /proc/swaps lists it; else None."""
        for link in (f"{runtime}/dev/{DEVICE}", f"{runtime}/{DEVICE}"):
            if os.path.islink(link) and is_swap(os.path.realpath(link)):
                return os.path.realpath(link)
        return None

    def _answers(self):
        try:
            varlink_call(self._control, "org.varlink.service.GetInfo")
            return True
        except (OSError, ValueError, BenchError):
            return False

    def set_up(self, undo, size_bytes):
        directory = undo.directory("uzswap")
        runtime = f"{directory}/run"
        os.mkdir(runtime, mode=0o755)
        self._control = f"{runtime}/control"
        self._log = f"{directory}/log"
        write_text(f"{directory}/uzswapd.conf", self._configuration(size_bytes))
        for name in VM_SYSCTLS:  # the daemon restores what it changes, unless it is killed
            undo.keep(vm_sysctl_path(name))
        with open(self._log, "w", encoding="utf-8") as log:
            self._process = undo.spawn(
                [self._daemon, "--config", f"{directory}/uzswapd.conf", "--runtime-dir", runtime],
                stop="SIGTERM", stop_seconds=STOP_SECONDS, stdin=-3, stdout=log, stderr=log)
        deadline = time.monotonic() + START_SECONDS
        device = None
        with interruptible():
            while not device or not self._answers():
                device = self._block_device(runtime)
                if self._process.poll() is not None:
                    self._fail(f"ended with status {self._process.returncode} while starting")
                if time.monotonic() > deadline:
                    self._fail(f"is not ready after {START_SECONDS} s")
                time.sleep(0.01)
        # Swapped off before the daemon is told to end, in case that it does not.
        undo.push("swap", device)
        self._before = MemoryMap(self._process.pid)
        return Device(device)

    def check(self):
        if self._process.poll() is not None:
            self._fail(f"ended with status {self._process.returncode} during the run")

    def statistics(self):
        """The device's own figures, as in uzswapctl status --json."""
        return _find_statistics(varlink_call(self._control, "io.uzswap.Control.GetStatus"))

    def footprint(self, swapped_pages):
        own = self.statistics()
        now = MemoryMap(self._process.pid)
        return {
            "pages": own["compressed_pages"] + own["incompressible_pages"],
            "used_bytes": now.store_bytes + max(0, now.other_bytes - self._before.other_bytes),
            "own_bytes": own["memory_used_bytes"],
            "reserve_bytes": own.get("memory_reserve_bytes", 0),
            "table_bytes": own.get("memory_table_bytes", 0),
            "object_bytes": own["compressed_bytes"],
            "relief_bytes": now.relief_bytes,
            "process_bytes": now.total_bytes(),
            "store_swapped_bytes": now.store_swapped_bytes,
            "same_filled_pages": own["same_filled_pages"],
            "excludes": f"the daemon's fixed relief reserve of {now.relief_bytes // MIB} MiB and "
                        f"the {self._before.other_bytes // MIB} MiB that it had when it was ready",
        }


def _find_statistics(reply):
    """The object with the device's figures, wherever the reply has it."""
    if isinstance(reply, dict):
        if "memory_used_bytes" in reply:
            return reply
        reply = list(reply.values())
    if isinstance(reply, list):
        for value in reply:
            found = _find_statistics(value)
            if found:
                return found
    return None


def find_daemon(build_directory):
    """uzswapd in a build tree, or where it would be."""
    found = sorted(path for pattern in ("uzswapd", "src/daemon/uzswapd")
                   for path in glob.glob(os.path.join(build_directory, pattern)))
    return found[0] if found else os.path.join(build_directory, "uzswapd")


def parse_uzswap(text, daemon):
    """Peers of a list such as "uzswap-lz4,uzswap-zstd:3"."""
    peers = {}
    for entry in filter(None, (entry.strip() for entry in text.split(","))):
        if entry == "none":
            continue
        name, _, level = entry.partition(":")
        family, _, codec = name.partition("-")
        if family != "uzswap" or codec not in CODECS:
            raise BenchError(f"--on {entry}: there are "
                             + ", ".join(f"uzswap-{known}" for known in CODECS)
                             + ", each with :LEVEL if you like, and none")
        if level and not level.lstrip("-").isdigit():
            raise BenchError(f"--on {entry}: the level is not a number")
        peers[entry] = Uzswap(entry, daemon, codec, level)
    return list(peers.values())
