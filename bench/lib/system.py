# SPDX-License-Identifier: MIT
"""Commands, small files, signals, and what the kernel says about swap, loop devices and mounts."""

import contextlib
import os
import signal
import subprocess

PAGE_BYTES = 4096
MIB = 1 << 20

COMMAND_SECONDS = 120


class BenchError(Exception):
    """Something that the user is told in one line, without a traceback."""


class Interrupted(Exception):
    """A signal asked the benchmark to stop."""

    def __init__(self, signum):
        super().__init__(f"stopped by {signal.Signals(signum).name}")
        self.signum = signum


# ---- Signals. They are acted on only where the benchmark waits for long, so that no device is
# made without its undo record and no clean-up is cut short.

_pending_signal = None
_waiting = False


def _on_signal(signum, _frame):
    global _pending_signal
    _pending_signal = signum
    if _waiting:
        raise Interrupted(signum)


def install_signal_handlers():
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(signum, _on_signal)


@contextlib.contextmanager
def interruptible():
    """Inside, a signal raises Interrupted; one that came earlier does so at once."""
    global _waiting
    _waiting = True
    try:
        if _pending_signal is not None:
            raise Interrupted(_pending_signal)
        yield
    finally:
        _waiting = False


# ---- Commands and files.

def run_command(*argv, seconds=COMMAND_SECONDS):
    """Runs a command and returns its output. BenchError with its message when it fails."""
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=seconds,
                              start_new_session=True, check=False)
    except FileNotFoundError:
        raise BenchError(f"{argv[0]}: not installed") from None
    except subprocess.TimeoutExpired:
        raise BenchError(f"{' '.join(argv)}: no end after {seconds} s") from None
    if done.returncode != 0:
        raise BenchError(f"{' '.join(argv)}: {done.stderr.strip() or done.returncode}")
    return done.stdout


def read_text(path, default=None):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError as error:
        if default is not None:
            return default
        raise BenchError(f"{path}: {error.strerror}") from None


def write_text(path, text):
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise BenchError(f"writing {text.strip()!r} to {path}: {error.strerror}") from None


def read_fields(path, separator=None):
    """A file of "key value" lines as a dictionary; values with a unit keep only their number."""
    fields = {}
    for line in read_text(path, default="").splitlines():
        key, _, value = line.partition(separator or " ")
        if value.split():
            fields[key.strip()] = value.split()[0]
    return fields


# ---- What the kernel says.

def _unescape(path):
    """/proc writes blanks and backslashes in paths as octal."""
    return path.encode("latin-1", "replace").decode("unicode_escape")


def active_swaps():
    """{device or file: priority} of /proc/swaps."""
    swaps = {}
    for line in read_text("/proc/swaps").splitlines()[1:]:
        fields = line.split()
        swaps[_unescape(fields[0])] = int(fields[-1])
    return swaps


def is_swap(device):
    """
    Whether a block device is swapped on. By its name alone: when swapon was done in a mount namespace
    that has gone, as with a daemon that was killed, /proc/swaps shows a path without "/dev".
    """
    return os.path.basename(device) in map(os.path.basename, active_swaps())


def loop_devices(under):
    """{"/dev/loopN": backing file} of loop devices whose backing file lies under a directory."""
    found = {}
    for name in os.listdir("/sys/block"):
        backing = read_text(f"/sys/block/{name}/loop/backing_file", default="").strip()
        if backing.startswith(under + "/"):
            found[f"/dev/{name}"] = backing
    return found


def mount_points(under):
    """Mount points at or below a directory, the latest mounted first."""
    points = [_unescape(line.split()[4])
              for line in read_text("/proc/self/mountinfo").splitlines()]
    return [point for point in reversed(points)
            if point == under or point.startswith(under + "/")]


# Those that swap depends on; some swap daemons change some of them.
VM_SYSCTLS = ("page-cluster", "swappiness", "watermark_boost_factor", "watermark_scale_factor",
              "min_free_kbytes")


def vm_sysctl_path(name):
    return f"/proc/sys/vm/{name}"


def vm_sysctls():
    return {name: read_text(vm_sysctl_path(name)).strip() for name in VM_SYSCTLS}


def vmstat():
    return {key: int(value) for key, value in read_fields("/proc/vmstat").items()}
