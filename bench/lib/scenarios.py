# SPDX-License-Identifier: MIT
"""
The scenarios: what one run does on a device that is on, and what of its outcome is reported.

A further scenario is a class here and a line in SCENARIOS.
"""

import contextlib
import json
import statistics
import subprocess

from .cgroup import Cgroup
from .system import (MIB, PAGE_BYTES, BenchError, active_swaps, interruptible, vm_sysctls,
                     vmstat)

# A swap device with room to spare: a kernel whose swap is more than half full handles pages that
# come back differently, which is not what is compared here.
DEVICE_FACTOR = 2.5

PAGEWORK_SECONDS = 1800


class Metric:
    """One column of the report."""

    def __init__(self, key, label, unit, higher_is_better, digits=0):
        self.key = key
        self.label = label
        self.unit = unit
        self.higher_is_better = higher_is_better
        self.digits = digits

    def describe(self):
        return {"key": self.key, "label": self.label, "unit": self.unit,
                "higher_is_better": self.higher_is_better, "digits": self.digits}


class Settings:
    """What was chosen on the command line."""

    def __init__(self, size_mib, limit_mib, seconds, dirty_percent, pagework, corpora):
        self.size_mib = size_mib
        self.limit_mib = limit_mib
        self.seconds = seconds
        self.dirty_percent = dirty_percent
        self.pagework = pagework
        self.corpora = corpora


# ---- The measured program.

def _explain_failure(process, errors, cgroup):
    if process.returncode == 3:
        return f"CONTENTS WRONG: a page came back other than it was written\n{errors}"
    if process.returncode == -7:
        return "SIGBUS: the swap device failed to read a page back"
    if process.returncode == -9 and cgroup.oom_kills():
        return "killed for want of memory in its cgroup: the swap device is full or refuses writes"
    if process.returncode < 0:
        return f"killed by signal {-process.returncode}"
    return errors or f"status {process.returncode}"


def _pagework(undo, settings, device, mode, limit_mib, corpora, *options, while_held=None):
    """
    Runs pagework in a cgroup and returns its outcome. With while_held, calls it with the number of
    pages on the device while all is there, and returns (outcome, what it returned).
    """
    swaps = active_swaps()
    with undo.scope():
        cgroup = Cgroup(undo, limit_mib * MIB)
        process = undo.spawn(
            [settings.pagework, mode, "--cgroup", cgroup.path, "--device", device.block_name,
             *options, *(corpus.path for corpus in corpora)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        before = vmstat()
        held = None
        try:
            with interruptible():
                if while_held:
                    line = process.stdout.readline()
                    if line:
                        cgroup.drop_swap_cache()
                        held = while_held(json.loads(line)["swapped_pages"])
                output, errors = process.communicate("\n", timeout=PAGEWORK_SECONDS)
        except subprocess.TimeoutExpired:
            raise BenchError(f"pagework {mode}: no end after {PAGEWORK_SECONDS} s") from None
        if process.returncode != 0:
            raise BenchError(f"pagework {mode}: "
                             + _explain_failure(process, errors.strip(), cgroup))
        if active_swaps() != swaps:
            raise BenchError("other swap came on or went off during the run")
        outcome = json.loads(output.splitlines()[-1])
        after = vmstat()
        outcome["vmstat"] = {key: after[key] - before[key]
                             for key in ("pswpin", "pswpout", "zswpin", "zswpout", "zswpwb",
                                         "pgmajfault") if key in after}
        return (outcome, held) if while_held else outcome


@contextlib.contextmanager
def _checked(peer):
    """Has the device checked after the work; when that failed, the device may tell why."""
    try:
        yield
    except BenchError as error:
        try:
            peer.check()
        except BenchError as cause:
            raise BenchError(f"{error}; {cause}") from None
        raise
    peer.check()


# ---- The scenarios.

class Scenario:
    """`page_cluster` is vm.page-cluster for its runs; `metrics` may depend on the corpora."""

    name = None
    summary = None
    page_cluster = 3
    needs_compression = False

    def __init__(self, settings):
        self.settings = settings

    def describe(self):
        return (f"{self.summary}; {self.settings.size_mib} MiB under a limit of "
                f"{self.settings.limit_mib} MiB")

    def metrics(self):
        raise NotImplementedError

    def device_bytes(self):
        return int(self.settings.size_mib * DEVICE_FACTOR) * MIB

    def run_once(self, undo, peer):
        """One sample: {metric key: value, "raw": all that was measured}."""
        with undo.scope():
            device = peer.set_up(undo, self.device_bytes())
            sysctls = vm_sysctls()
            if sysctls["page-cluster"] != str(self.page_cluster):
                raise BenchError(f"vm.page-cluster is {sysctls['page-cluster']} instead of "
                                 f"{self.page_cluster} with the device on")
            with _checked(peer):
                outcome = self.work(undo, device)
            outcome["sysctls"] = sysctls
        return {**self.evaluate(outcome), "raw": outcome}

    def note(self, sample):
        """What a reader must know beside the figures of a device, or None."""

    def work(self, undo, device):
        return _pagework(undo, self.settings, device, self.name, self.settings.limit_mib,
                         self.settings.corpora, "--size-mib", str(self.settings.size_mib),
                         *self.options())

    def options(self):
        return ()

    def evaluate(self, outcome):
        raise NotImplementedError


def _mb_per_s(pages, elapsed_ns):
    return pages * PAGE_BYTES * 1e3 / elapsed_ns


class Fill(Scenario):
    """How fast pages get out."""

    name = "fill"
    summary = "a program writes memory in order until all that must is on the device"

    def metrics(self):
        return [Metric("mb_per_s", "swapped out", "MB/s", True),
                Metric("cpu_us_per_page", "CPU time of the whole machine", "us/page", False, 1)]

    def evaluate(self, outcome):
        fill, pages = outcome["fill"], outcome["swapped_pages"]
        return {"mb_per_s": _mb_per_s(pages, fill["elapsed_ns"]),
                "cpu_us_per_page": fill["cpu_busy_ns"] / 1e3 / max(pages, 1)}


class Swapin(Scenario):
    """What a page fault costs."""

    name = "swapin"
    summary = "a program touches random pages of memory that is mostly swapped out"
    page_cluster = 0

    def describe(self):
        dirty = self.settings.dirty_percent
        writes = f"{dirty} % of the touches write" if dirty else "the touches only read"
        return f"{super().describe()}; {self.settings.seconds} s a run; {writes}"

    def metrics(self):
        return [Metric("p50_us", "major fault p50", "us", False, 1),
                Metric("p99_us", "p99", "us", False, 0),
                Metric("max_us", "longest", "us", False, 0),
                Metric("touches_per_s", "touches", "per second", True)]

    def options(self):
        return ("--seconds", str(self.settings.seconds),
                "--dirty", str(self.settings.dirty_percent))

    def evaluate(self, outcome):
        latency_ns = outcome["latency_ns"]
        if not latency_ns:
            raise BenchError("not one major fault: the limit is too high for the size")
        return {"p50_us": latency_ns["p50"] / 1e3, "p99_us": latency_ns["p99"] / 1e3,
                "max_us": latency_ns["max"] / 1e3,
                "touches_per_s": outcome["touches"] * 1e9 / outcome["work"]["elapsed_ns"]}


class Seqin(Scenario):
    """How fast pages come back when readahead can help."""

    name = "seqin"
    summary = "a program reads memory in order that is mostly swapped out"

    def metrics(self):
        return [Metric("mb_per_s", "read", "MB/s", True),
                Metric("cpu_us_per_page", "CPU time of the whole machine", "us/page", False, 1)]

    def evaluate(self, outcome):
        work = outcome["work"]
        return {"mb_per_s": _mb_per_s(outcome["pages"], work["elapsed_ns"]),
                "cpu_us_per_page": work["cpu_busy_ns"] / 1e3 / outcome["pages"]}


class Ratio(Scenario):
    """What a stored page costs in memory."""

    name = "ratio"
    summary = ("memory per stored page that is not same-filled, by the kernel's accounting, "
               "overhead and tables included")
    needs_compression = True

    LIMIT_MIB = 64

    def describe(self):
        pages = sum(corpus.pages for corpus in self.settings.corpora)
        return f"{self.summary}; {pages * PAGE_BYTES // MIB} MiB in all"

    def _sets(self):
        """(key, corpora) of each measurement: every corpus by itself, then all together."""
        sets = [(corpus.name, [corpus]) for corpus in self.settings.corpora]
        if len(sets) > 1:
            sets.append(("all", self.settings.corpora))
        return sets

    def metrics(self):
        metrics = [Metric(key, key, "bytes/page", False) for key, _corpora in self._sets()]
        metrics.append(Metric("own", f"{metrics[-1].label}, by its own account", "bytes/page",
                              False))
        return metrics

    def run_once(self, undo, peer):
        sample = {"raw": {}}
        for key, corpora in self._sets():
            pages = sum(corpus.pages for corpus in corpora)
            with undo.scope():
                # Just large enough: a table for slots that stay empty is not a page's cost.
                device = peer.set_up(undo, (pages + pages // 16) * PAGE_BYTES + 4 * MIB)
                with _checked(peer):
                    outcome, footprint = _pagework(undo, self.settings, device, "hold",
                                                   self.LIMIT_MIB, corpora,
                                                   while_held=peer.footprint)
            if footprint is None:
                raise BenchError("nothing tells what memory it uses")
            if footprint["pages"] < pages * 0.99:
                raise BenchError(f"{key}: only {footprint['pages']} of {pages} pages are stored: "
                                 f"{footprint}")
            sample["raw"][key] = {"outcome": outcome, "footprint": footprint}
            sample[key] = footprint["used_bytes"] / footprint["pages"]
        if "own_bytes" in footprint:
            sample["own"] = footprint["own_bytes"] / footprint["pages"]
        return sample


    def note(self, sample):
        excludes = list(sample["raw"].values())[-1]["footprint"].get("excludes")
        return f"leaves out {excludes}" if excludes else None


SCENARIOS = {scenario.name: scenario for scenario in (Fill, Swapin, Seqin, Ratio)}


# ---- Running them.

def summarize(samples, metrics):
    """{key: median, min, max} of what the samples have."""
    summary = {}
    for metric in metrics:
        values = [sample[metric.key] for sample in samples if metric.key in sample]
        if values:
            summary[metric.key] = {"median": statistics.median(values), "min": min(values),
                                   "max": max(values)}
    return summary


def order(peers, round_number):
    """Another order in each round, so that no peer always follows the same one."""
    if not peers:
        return []
    shift = round_number % len(peers)
    rotated = peers[shift:] + peers[:shift]
    return rotated if round_number % 2 == 0 else rotated[::-1]


def run_scenario(undo, scenario, peers, rounds, busy_percent, say):
    """All rounds of one scenario; what comes out is described in doc/benchmarks.md."""
    skipped = [{"peer": peer.name, "reason": peer.missing} for peer in peers if peer.missing]
    takes_part = []
    for peer in peers:
        if peer.missing:
            continue
        if scenario.needs_compression and not peer.compresses:
            skipped.append({"peer": peer.name, "reason": "it does not compress"})
        else:
            takes_part.append(peer)
    metrics = scenario.metrics()
    samples = {peer.name: [] for peer in takes_part}
    with undo.scope():
        undo.write("/proc/sys/vm/page-cluster", scenario.page_cluster)
        for number in range(rounds):
            for peer in order(takes_part, number):
                with interruptible():
                    busy, steal = busy_percent(0.3)
                try:
                    sample = scenario.run_once(undo, peer)
                except BenchError as error:
                    raise BenchError(f"{scenario.name} on {peer.name}: {error}") from None
                if undo.failures:
                    raise BenchError(f"{scenario.name} on {peer.name}: cleaning up failed")
                sample["round"] = number
                sample["busy_before_percent"] = round(busy, 1)
                sample["steal_before_percent"] = round(steal, 1)
                samples[peer.name].append(sample)
                say(f"{scenario.name} {number + 1}/{rounds} {peer.name}: "
                    + ", ".join(f"{sample[metric.key]:.{metric.digits}f} {metric.unit}"
                                for metric in metrics if metric.key in sample))
    return {
        "title": scenario.describe(),
        "page_cluster": scenario.page_cluster,
        "metrics": [metric.describe() for metric in metrics],
        "peers": {name: {"summary": summarize(values, metrics), "samples": values}
                  for name, values in samples.items()},
        "notes": {name: scenario.note(values[-1]) for name, values in samples.items()
                  if values and scenario.note(values[-1])},
        "skipped": skipped,
    }
