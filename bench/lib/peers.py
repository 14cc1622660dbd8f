# SPDX-License-Identifier: MIT
"""
The swap devices that are compared. Each is set up for one run and gone after it, so that no two
are ever there together and each run starts from an empty device.

uzswap itself is in uzswapd.py.
"""

import os
import shutil
import time

from .system import (MIB, PAGE_BYTES, BenchError, is_swap, read_fields, read_text, run_command,
                     write_text)

SWAP_PRIORITY = 100

# What zswap is asked for; it has no list of what it takes.
COMPRESSORS = ("lz4", "lzo", "lzo-rle", "zstd", "deflate", "842", "lz4hc")

# Named as skipped where the kernel lacks them: readers will look for them.
EXPECTED = ("lz4", "zstd", "deflate")


class Device:
    """A swap device that is on."""

    def __init__(self, path):
        self.path = path
        self.block_name = os.path.basename(path)


def swap_on(path, discard):
    """mkswap and swapon, with the records to undo them already on the stack."""
    run_command("mkswap", "--quiet", path)
    options = ["--discard=pages"] if discard else []
    run_command("swapon", "--priority", str(SWAP_PRIORITY), *options, path)
    if not is_swap(path):
        raise BenchError(f"{path} is not in /proc/swaps after swapon")


def attach_loop(undo, directory, file):
    """A loop device as swap wants it: whole pages, no second copy in the page cache."""
    device = run_command("losetup", "--find", "--show", "--sector-size", str(PAGE_BYTES),
                         "--direct-io=on", file).strip()
    undo.push("loop", device, directory)
    name = os.path.basename(device)
    # losetup succeeds also where the kernel falls back to the page cache.
    if read_text(f"/sys/block/{name}/loop/dio", default="").strip() != "1":
        raise BenchError(f"{device} on {file} does not do direct I/O")
    return device


# Without it the file's own pages can be swapped out, to the device that they are: a deadlock that
# only a reboot ends. It takes no shortage of memory, proactive reclaim will do.
NEEDS_NOSWAP = "tmpfs cannot be kept out of swap here (its option noswap came with Linux 6.4)"


def has_noswap(undo):
    with undo.scope():
        try:
            _mount_tmpfs(undo.directory("probe"), MIB)
        except BenchError:
            return False
    return True


def _mount_tmpfs(directory, size_bytes):
    run_command("mount", "-t", "tmpfs", "-o",
                f"size={size_bytes + 16 * MIB},mode=700,huge=never,noswap", "uzswap-bench",
                directory)


def _tmpfs_loop(undo, size_bytes):
    """A loop device on a file in tmpfs whose memory is there beforehand."""
    directory = undo.directory("tmpfs")
    _mount_tmpfs(directory, size_bytes)
    file = f"{directory}/swap"
    descriptor = os.open(file, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    try:
        os.posix_fallocate(descriptor, 0, size_bytes)
    finally:
        os.close(descriptor)
    return attach_loop(undo, directory, file)


class Peer:
    """
    One entry of the comparison. `missing` is a reason when this machine cannot have it.
    `compresses` tells whether its memory per page is worth measuring.
    """

    compresses = True
    missing = None

    def __init__(self, name):
        self.name = name

    def set_up(self, undo, size_bytes):
        """Makes the device and swaps it on, in the current scope of the stack."""
        raise NotImplementedError

    def check(self):
        """After a run: BenchError when the device has been in trouble."""

    def footprint(self, swapped_pages):
        """
        Memory for what is stored now: {"pages": stored pages that are not same-filled,
        "used_bytes": by the kernel's accounting}; others are for the reader of the JSON file.
        None where nothing tells.
        """
        raise NotImplementedError


class Plain(Peer):
    """The floor of everything that needs a loop device: no compression, no daemon."""

    compresses = False

    def set_up(self, undo, size_bytes):
        device = _tmpfs_loop(undo, size_bytes)
        # No discard: punching holes into tmpfs and filling them again is not part of the floor.
        swap_on(device, discard=False)
        return Device(device)


class Zram(Peer):
    """The kernel's compressed RAM disk."""

    ADD = "/sys/class/zram-control/hot_add"

    def __init__(self, name, algorithm):
        super().__init__(name)
        self._algorithm = algorithm
        self._number = None

    def _file(self, name):
        return f"/sys/block/zram{self._number}/{name}"

    @staticmethod
    def _add(undo):
        number = int(read_text(Zram.ADD))
        undo.push("zram", number)
        return number

    @staticmethod
    def offered(undo):
        """(algorithms, None), or ((), reason)."""
        if not os.path.exists(Zram.ADD):
            return (), "zram is not in this kernel, or not loaded (modprobe zram)"
        with undo.scope():
            text = read_text(f"/sys/block/zram{Zram._add(undo)}/comp_algorithm")
        return tuple(text.replace("[", "").replace("]", "").split()), None

    def set_up(self, undo, size_bytes):
        self._number = self._add(undo)
        write_text(self._file("comp_algorithm"), self._algorithm)
        write_text(self._file("disksize"), str(size_bytes))
        device = f"/dev/zram{self._number}"
        for _ in range(200):  # devtmpfs makes the node at once, udev may take its time
            if os.path.exists(device):
                break
            time.sleep(0.01)
        swap_on(device, discard=True)
        return Device(device)

    TABLE_ENTRY_BYTES = 16  # struct zram_table_entry: handle and flags, one per page of the device

    def footprint(self, swapped_pages):
        names = ("orig_data_size", "compr_data_size", "mem_used_total", "mem_limit",
                 "mem_used_max", "same_pages", "pages_compacted", "huge_pages")
        stat = dict(zip(names, map(int, read_text(self._file("mm_stat")).split())))
        stored = stat["orig_data_size"] // PAGE_BYTES
        return {
            "pages": stored - stat["same_pages"],
            "used_bytes": stat["mem_used_total"] + self.TABLE_ENTRY_BYTES * stored,
            "mm_stat": stat,
        }


class Zswap(Peer):
    """The kernel's compressed cache in front of a swap device, here a loop device on tmpfs."""

    PARAMETERS = "/sys/module/zswap/parameters"

    def __init__(self, name, compressor):
        super().__init__(name)
        self._compressor = compressor

    @classmethod
    def _enable(cls, undo, compressor):
        """Switches zswap on with that compressor; False when the kernel does not have it."""
        # First on: a zswap that was never on takes any name and falls back to another later.
        undo.write(f"{cls.PARAMETERS}/enabled", "Y")
        path = f"{cls.PARAMETERS}/compressor"
        try:
            undo.write(path, compressor)
        except BenchError:
            return False
        return read_text(path).strip() == compressor

    @classmethod
    def offered(cls, undo):
        """({compressor: whether the kernel accepts it}, None), or ({}, reason)."""
        if not os.path.exists(f"{cls.PARAMETERS}/enabled"):
            return {}, "zswap is not in this kernel"
        if not has_noswap(undo):
            return {}, NEEDS_NOSWAP
        accepted = {}
        for compressor in COMPRESSORS:
            with undo.scope():
                accepted[compressor] = cls._enable(undo, compressor)
        return accepted, None

    def set_up(self, undo, size_bytes):
        device = _tmpfs_loop(undo, size_bytes)
        if not self._enable(undo, self._compressor):
            raise BenchError(f"zswap does not take the compressor {self._compressor} any more")
        # The pool is not to overflow here: that is another benchmark.
        for parameter, value in (("max_pool_percent", "50"), ("shrinker_enabled", "N")):
            if os.path.exists(f"{self.PARAMETERS}/{parameter}"):
                undo.write(f"{self.PARAMETERS}/{parameter}", value)
        swap_on(device, discard=False)
        return Device(device)

    def footprint(self, swapped_pages):
        meminfo = read_fields("/proc/meminfo", ":")
        if "Zswapped" not in meminfo:
            return None
        stored_bytes, used_bytes = (int(meminfo[key]) * 1024 for key in ("Zswapped", "Zswap"))
        return {"pages": stored_bytes // PAGE_BYTES, "used_bytes": used_bytes,
                "excludes": "zswap's entries and trees; the slots of its swap device"}


class Nbdkit(Peer):
    """What a user can put together: nbdkit's compressing memory disk, nbdfuse, a loop device."""

    def __init__(self, name, level):
        super().__init__(name)
        self._allocator = self.allocator(level)
        self._server = None
        self._before_bytes = 0

    @staticmethod
    def allocator(level):
        return f"allocator=zstd,level={level}" if level else "allocator=zstd"

    @classmethod
    def lacking(cls, level):
        for tool in ("nbdkit", "nbdfuse"):
            if not shutil.which(tool):
                return f"{tool} is not installed"
        try:
            run_command("nbdkit", "memory", "size=1M", cls.allocator(level), "--run", "true")
        except BenchError as error:
            return str(error).splitlines()[0].rpartition("nbdkit: error: ")[2]
        return None

    def _private_bytes(self):
        smaps = read_fields(f"/proc/{self._server.pid}/smaps_rollup", ":")
        return int(smaps["Private_Dirty"]) * 1024 + int(smaps["Private_Clean"]) * 1024

    def set_up(self, undo, size_bytes):
        directory = undo.directory("nbdkit")
        socket, mount = f"{directory}/socket", f"{directory}/mount"
        os.mkdir(mount)
        with open(f"{directory}/log", "w", encoding="utf-8") as log:
            self._server = undo.spawn(
                ["nbdkit", "--foreground", "--swap", "--unix", socket, "memory",
                 f"size={size_bytes}", self._allocator], stdin=-3, stdout=log, stderr=log)
            _wait_for_path(socket, self._server, log.name)
            client = undo.spawn(["nbdfuse", f"{mount}/disk", "--unix", socket],
                                stdin=-3, stdout=log, stderr=log)
            _wait_for_path(f"{mount}/disk", client, log.name)
        device = attach_loop(undo, directory, f"{mount}/disk")
        swap_on(device, discard=True)
        self._before_bytes = self._private_bytes()
        return Device(device)

    def footprint(self, swapped_pages):
        return {"pages": swapped_pages, "used_bytes": self._private_bytes() - self._before_bytes}


def _wait_for_path(path, process, log):
    for _ in range(1000):
        if os.path.exists(path):
            return
        if process.poll() is not None:
            break
        time.sleep(0.01)
    raise BenchError(f"{process.args[0]} does not come up: {read_text(log).strip()[-500:]}")


# ---- Lists of names.

FAMILIES = ("zram", "zswap", "plain", "nbdkit")


class Missing(Peer):
    """A peer that was asked for and cannot be had."""

    def __init__(self, name, reason):
        super().__init__(name)
        self.missing = reason


def _zram_peers(undo, algorithm, level):
    if level:
        raise BenchError("zram's level cannot be chosen here")
    offered, reason = Zram.offered(undo)
    names = (algorithm,) if algorithm else \
        tuple(dict.fromkeys(offered + EXPECTED))
    for name in names:
        if name in offered:
            yield Zram(f"zram-{name}", name)
        else:
            yield Missing(f"zram-{name}", reason or "not in this kernel's zram, which offers "
                          + " ".join(offered))


def _zswap_peers(undo, compressor, level):
    if level:
        raise BenchError("zswap's level cannot be chosen")
    accepted, reason = Zswap.offered(undo)
    taken = tuple(name for name in accepted if accepted[name])
    names = (compressor,) if compressor else tuple(dict.fromkeys(taken + EXPECTED))
    for name in names:
        if name in taken:
            yield Zswap(f"zswap-{name}", name)
        else:
            yield Missing(f"zswap-{name}", reason or "not in this kernel's zswap, which takes "
                          + " ".join(taken))


def _nbdkit_peers(_undo, algorithm, level):
    if algorithm not in ("", "zstd"):
        raise BenchError("nbdkit compresses with zstd only")
    name = f"nbdkit:{level}" if level else "nbdkit"
    reason = Nbdkit.lacking(level)
    yield Missing(name, reason) if reason else Nbdkit(name, level)


def _plain_peers(undo, algorithm, level):
    if algorithm or level:
        raise BenchError("plain does not compress")
    yield Plain("plain") if has_noswap(undo) else Missing("plain", NEEDS_NOSWAP)


def parse_peers(undo, text):
    """
    Peers of a list such as "zram,zswap-lzo,plain,nbdkit:3": a family stands for all that it
    offers here, and those that are well known and lacking come along as missing.
    """
    makers = {"zram": _zram_peers, "zswap": _zswap_peers, "plain": _plain_peers,
              "nbdkit": _nbdkit_peers}
    peers = {}
    for entry in filter(None, (entry.strip() for entry in text.split(","))):
        name, _, level = entry.partition(":")
        family, _, algorithm = name.partition("-")
        if family not in makers:
            raise BenchError(f"{entry}: no such peer; there are {', '.join(FAMILIES)}, and "
                             "zram-ALGORITHM, zswap-COMPRESSOR, nbdkit:LEVEL (where nbdkit takes "
                             "it); uzswap goes with --on")
        if level and not level.lstrip("-").isdigit():
            raise BenchError(f"{entry}: the level is not a number")
        try:
            for peer in makers[family](undo, algorithm, level):
                peers.setdefault(peer.name, peer)
        except BenchError as error:
            raise BenchError(f"{entry}: {error}") from None
    return list(peers.values())
