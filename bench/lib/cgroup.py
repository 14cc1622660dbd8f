# SPDX-License-Identifier: MIT
"""A memory cgroup with a limit, below our own: of version 1 or 2, whichever the machine has."""

import os

from .system import BenchError, read_fields, read_text, write_text


def _memory_hierarchy():
    """(version, mount point, our path in it) of the hierarchy that limits memory."""
    mounts = {}
    for line in read_text("/proc/self/mountinfo").splitlines():
        fields, _, filesystem = line.partition(" - ")
        kind, _, options = filesystem.split(" ", 2)
        root, point = fields.split()[3:5]
        if kind == "cgroup" and "memory" in options.split(","):
            mounts[1] = (root, point)
        elif kind == "cgroup2" and "memory" in read_text(f"{point}/cgroup.controllers",
                                                         default="").split():
            mounts[2] = (root, point)
    for version in (1, 2):
        if version not in mounts:
            continue
        root, point = mounts[version]
        for line in read_text("/proc/self/cgroup").splitlines():
            number, controllers, path = line.split(":", 2)
            if (version == 1 and "memory" in controllers.split(",")) or \
               (version == 2 and number == "0"):
                # In a container the mount shows a part of the tree only.
                if root != "/" and path.startswith(root):
                    path = path[len(root):]
                return version, point, path.rstrip("/")
    raise BenchError("no memory cgroup controller is mounted: the benchmark needs one to make "
                     "a program swap")


def _parent_for_children(version, point, path):
    """Where a limited child may be made: in version 2 not beside processes, but at the root."""
    if version == 1:
        return point + path
    while path and "memory" not in read_text(f"{point}{path}/cgroup.subtree_control",
                                             default="").split():
        path = os.path.dirname(path).rstrip("/")
    parent = point + path
    if "memory" not in read_text(f"{parent}/cgroup.subtree_control").split():
        write_text(f"{parent}/cgroup.subtree_control", "+memory")
    return parent


class Cgroup:
    """Made in the current scope of the undo stack, and gone with it."""

    def __init__(self, undo, limit_bytes):
        self.version, point, own = _memory_hierarchy()
        parent = _parent_for_children(self.version, point, own)
        self.path = f"{parent}/uzswap-bench-{os.getpid()}"
        undo.push("cgroup", self.path)
        try:
            os.mkdir(self.path)
        except OSError as error:
            raise BenchError(f"cgroup {self.path}: {error.strerror}") from None
        name = "memory.limit_in_bytes" if self.version == 1 else "memory.max"
        write_text(f"{self.path}/{name}", str(limit_bytes))

    def drop_swap_cache(self):
        """
        Frees the pages that have been written to the device and are still in memory: without that,
        reading them back would not ask the device.
        """
        if self.version == 1:
            write_text(f"{self.path}/memory.force_empty", "0")
            return
        for _ in range(10):
            used_bytes = int(read_text(f"{self.path}/memory.current"))
            try:
                write_text(f"{self.path}/memory.reclaim", str(used_bytes))
            except BenchError:  # less than that could be freed: page tables stay, for example
                if int(read_text(f"{self.path}/memory.current")) >= used_bytes:
                    return

    def oom_kills(self):
        name = "memory.oom_control" if self.version == 1 else "memory.events"
        return int(read_fields(f"{self.path}/{name}").get("oom_kill", 0))


def version():
    return _memory_hierarchy()[0]
