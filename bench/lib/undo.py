# SPDX-License-Identifier: MIT
"""
A stack of what must be undone, kept in a file as well.

Every change to the system (a process, a cgroup, a zram device, a sysctl, a directory with loop
devices and mounts in it) pushes a record of how to take it back. Scopes take their records back
in reverse when they end, however they end. The file lets the next run, or `bench/run --clean`,
do it for a run that was killed. So a record is plain data, taking one back twice is harmless, and
what has gone already is no error.
"""

import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import time

from .system import (BenchError, is_swap, loop_devices, mount_points, read_text, run_command,
                     write_text)

RUN_DIR = "/run/uzswap-bench"


# ---- How to take back each kind of change.

def _process_start(pid):
    """Start time of a process (its identity, with the pid), None when it is gone or a zombie."""
    stat = read_text(f"/proc/{pid}/stat", default="")
    fields = stat[stat.rfind(")") + 1:].split()
    return int(fields[19]) if fields and fields[0] not in "ZX" else None


def _wait_until(condition, seconds):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def _undo_process(pid, start, signal_name, seconds):
    """Ends a process: with the signal; with SIGKILL when it has not ended after that time."""
    def gone():
        try:
            os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            pass
        return _process_start(pid) != start

    for signum, patience in ((signal.Signals[signal_name], seconds), (signal.SIGKILL, 20)):
        if gone():
            return
        try:
            os.kill(pid, signum)
        except ProcessLookupError:
            return
        if _wait_until(gone, patience):
            return
    raise BenchError(f"process {pid} does not end")


def _undo_swap(device):
    if is_swap(device):
        run_command("swapoff", device)


def _undo_loop(device, directory):
    """A loop device on a file below a directory of ours."""
    if device not in loop_devices(directory):
        return
    _undo_swap(device)
    run_command("losetup", "--detach", device)
    # It goes when its last user closes it: udev may be having a look.
    if not _wait_until(lambda: device not in loop_devices(directory), 10):
        raise BenchError(f"{device} cannot be detached")


def _undo_directory(path):
    """A directory of ours with all that is in it: loop devices on its files, mounts."""
    for device in loop_devices(path):
        _undo_loop(device, path)
    for point in mount_points(path):
        try:
            run_command("umount", point)
        except BenchError:
            run_command("umount", "--lazy", point)
    shutil.rmtree(path, ignore_errors=True)
    if os.path.exists(path):
        raise BenchError(f"{path} cannot be removed")


def _undo_zram(number):
    device = f"/dev/zram{number}"
    if not os.path.exists(f"/sys/block/zram{number}"):
        return
    _undo_swap(device)

    def removed():
        try:
            write_text("/sys/class/zram-control/hot_remove", str(number))
            return True
        except BenchError:  # busy: udev may be having a look at it
            return False

    if not _wait_until(removed, 10):
        raise BenchError(f"{device} cannot be removed")


def _undo_cgroup(path):
    def removed():
        try:
            os.rmdir(path)
        except FileNotFoundError:
            pass
        except OSError:
            return False
        return True

    if not _wait_until(removed, 10):
        raise BenchError("processes are left in it")


def _undo_write(path, before):
    if read_text(path).strip() != before:
        write_text(path, before)


_VERBS = {
    "process": _undo_process,
    "swap": _undo_swap,
    "loop": _undo_loop,
    "directory": _undo_directory,
    "zram": _undo_zram,
    "cgroup": _undo_cgroup,
    "write": _undo_write,
}


# ---- The stack.

class Undo:
    """The stack of records. One per machine: a lock keeps two benchmarks from running at once."""

    def __init__(self):
        self._path = f"{RUN_DIR}/undo.json"
        self._records = []
        self.failures = []
        os.makedirs(RUN_DIR, mode=0o700, exist_ok=True)
        self._lock = open(f"{RUN_DIR}/lock", "w", encoding="utf-8")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BenchError("another bench/run is at work on this machine; "
                             "two would measure each other") from None
        try:
            self._records = json.loads(read_text(self._path, default="[]"))
        except ValueError:
            raise BenchError(f"{self._path} is damaged: look what an earlier run has left, "
                             f"then remove {RUN_DIR}") from None

    def close(self):
        """Lets the next one have the machine."""
        self._lock.close()

    def left_behind(self):
        """Records of an earlier run that could not clean up."""
        return list(self._records)

    def push(self, verb, *arguments):
        self._records.append([verb, *arguments])
        self._save()

    def _save(self):
        temporary = self._path + ".new"
        write_text(temporary, json.dumps(self._records))
        os.replace(temporary, self._path)

    def back_to(self, depth=0):
        """Takes back all above a depth. What fails is noted and stays for the next try."""
        kept = []
        while len(self._records) > depth:
            verb, *arguments = record = self._records[-1]
            try:
                _VERBS[verb](*arguments)
            except Exception as error:  # whatever it is, the others must be undone
                self.failures.append(f"{verb} {arguments[0]}: {error}")
                kept.append(record)
            self._records.pop()
            self._save()
        if kept:
            self._records.extend(reversed(kept))
            self._save()

    @contextlib.contextmanager
    def scope(self):
        depth = len(self._records)
        try:
            yield
        finally:
            self.back_to(depth)

    # ---- Changes together with their records.

    def keep(self, path):
        """Has a sysctl or module parameter restored that something else may change."""
        self.push("write", path, read_text(path).strip())

    def write(self, path, value):
        """Writes a sysctl or module parameter and has it restored."""
        self.keep(path)
        write_text(path, str(value))

    def directory(self, name):
        path = f"{RUN_DIR}/{name}"
        self.push("directory", path)
        os.mkdir(path, mode=0o700)
        return path

    def spawn(self, argv, stop="SIGKILL", stop_seconds=20, **options):
        """Starts a process in a session of its own (a terminal's ^C is for us only)."""
        try:
            process = subprocess.Popen(argv, start_new_session=True, **options)
        except OSError as error:
            raise BenchError(f"{argv[0]}: {error.strerror}") from None
        start = _process_start(process.pid)
        if start is not None:
            self.push("process", process.pid, start, stop, stop_seconds)
        return process
