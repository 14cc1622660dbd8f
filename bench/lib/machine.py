# SPDX-License-Identifier: MIT
"""What machine this is, and whether it is quiet enough to measure on."""

import glob
import os
import platform
import re
import time

from . import cgroup
from .system import BenchError, interruptible, read_fields, read_text, run_command, vm_sysctls

# Above this share of all CPUs' time, others distort what is measured; a quiet machine shows 0-2 %.
QUIET_BUSY_PERCENT = 5


def busy_percent(seconds):
    """Share of all CPUs' time that was in use, and share that the hypervisor took, over a while."""
    def sample():
        values = [int(field) for field in read_text("/proc/stat").split("\n", 1)[0].split()[1:9]]
        idle, steal = values[3] + values[4], values[7]
        return sum(values), idle, steal

    before = sample()
    time.sleep(seconds)
    total, idle, steal = (b - a for a, b in zip(before, sample()))
    if total <= 0:
        return 0.0, 0.0
    return 100.0 * (total - idle) / total, 100.0 * steal / total


def load_warning():
    """A sentence when the machine is not quiet, else None."""
    busy, steal = busy_percent(1.0)
    if busy > QUIET_BUSY_PERCENT:
        stolen = f", {steal:.0f} % of it taken by the hypervisor" if steal >= 1 else ""
        return (f"the machine is not quiet: {busy:.0f} % of its CPU time is in use{stolen} before "
                f"the benchmark starts (load {os.getloadavg()[0]:.2f}); latencies and ratios will "
                "be off")
    return None


def wait_until_quiet(seconds, say):
    """Waits for a quiet machine, at most so long. Returns the warning if it never was."""
    deadline = time.monotonic() + seconds
    with interruptible():
        warning = load_warning()
        if warning and seconds:
            say(f"waiting up to {seconds} s for a quiet machine")
        while warning and time.monotonic() < deadline:
            warning = load_warning()
    return warning


def _first_line(*argv):
    try:
        return run_command(*argv).splitlines()[0].strip()
    except (BenchError, IndexError):
        return None


def _cpu_model():
    text = read_text("/proc/cpuinfo", default="")
    match = re.search(r"^(?:model name|Model|cpu model)\s*:\s*(.+)$", text, re.MULTILINE)
    return match.group(1) if match else platform.machine()


def _selected(path):
    """The bracketed word of a sysfs file that lists the choices."""
    match = re.search(r"\[(\S+)\]", read_text(path, default=""))
    return match.group(1) if match else None


def proactive_reclaim():
    """Whether DAMON pages out what is cold, on the whole machine, as soon as there is swap."""
    if read_text("/sys/module/damon_reclaim/parameters/enabled", default="").strip() == "Y":
        return True
    return any(read_text(f"{kdamond}/state", default="").strip() == "on"
               and any(read_text(action).strip() == "pageout"
                       for action in glob.glob(f"{kdamond}/contexts/*/schemes/*/action"))
               for kdamond in glob.glob("/sys/kernel/mm/damon/admin/kdamonds/*"))


def describe():
    """All that a reader needs to judge figures or to repeat them."""
    meminfo = read_fields("/proc/meminfo", ":")
    return {
        "kernel": platform.release(),
        "kernel_version": platform.version(),
        "architecture": platform.machine(),
        "cpu": _cpu_model(),
        "cpus": len(os.sched_getaffinity(0)),
        "virtual": "hypervisor" in read_text("/proc/cpuinfo", default=""),
        "memory_bytes": int(meminfo.get("MemTotal", 0)) * 1024,
        "memory_available_bytes": int(meminfo.get("MemAvailable", 0)) * 1024,
        "load_average": list(os.getloadavg()),
        "sysctls": vm_sysctls(),
        "transparent_hugepage": _selected("/sys/kernel/mm/transparent_hugepage/enabled"),
        "multi_gen_lru": read_text("/sys/kernel/mm/lru_gen/enabled", default="absent").strip(),
        "proactive_reclaim": proactive_reclaim(),
        "cpu_governor": read_text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
                                  default="").strip() or None,
        "cgroup_version": cgroup.version(),
        "swaps_before": read_text("/proc/swaps").splitlines()[1:],
        "versions": {
            "python": platform.python_version(),
            "util-linux": _first_line("losetup", "--version"),
            "nbdkit": _first_line("nbdkit", "--version"),
            "nbdfuse": _first_line("nbdfuse", "--version"),
        },
    }
