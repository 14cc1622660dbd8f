# SPDX-License-Identifier: MIT
"""
Corpora: dumps of the anonymous pages of real processes, made once and kept.

The processes are started here, without address space randomization and with fixed seeds, work on
data that the machine has (standard libraries, a generated C file), and are dumped at a fixed amount
of memory. So two machines with the same versions get almost the same pages.
"""

import hashlib
import os
import platform
import shutil
import struct
import sys
import time

from .system import MIB, BenchError, interruptible, read_text, run_command, write_text

WORKLOADS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "workloads")

KEEP_MIB = 96      # pages of one corpus at most
TARGET_MIB = 160   # memory that a process has when it is dumped; some of it is not worth keeping
PROCESS_SECONDS = 180


class Corpus:
    """A corpus file and what is known of it."""

    HEADER = struct.Struct("8sII6Q64s")  # struct corpus_header of corpus.h

    def __init__(self, path):
        self.path = path
        try:
            with open(path, "rb") as file:
                header = file.read(self.HEADER.size)
                magic, version, page_bytes, self.pages, *counts, name = self.HEADER.unpack(header)
                file.seek(0)
                self.sha256 = hashlib.sha256(file.read()).hexdigest()
        except (OSError, struct.error) as error:
            raise BenchError(f"{path}: {error}") from None
        if magic != b"uzcorpus" or version != 1 or page_bytes != 4096 or \
           os.path.getsize(path) != (1 + self.pages) * 4096:
            raise BenchError(f"{path}: not a corpus that bench/pagedump wrote here")
        self.name = name.rstrip(b"\0").decode()
        self.counts = dict(zip(("seen_pages", "zero_pages", "same_filled_pages",
                                "unreadable_pages", "thinned_pages"), counts))

    def describe(self):
        return {"name": self.name, "pages": self.pages, "sha256": self.sha256, **self.counts}


# ---- The processes. Each maker starts one and returns it when it holds its memory.

def _wait_for(process, condition):
    """Waits for what the process is to come to. BenchError when it ends or takes too long."""
    os.set_blocking(process.stdout.fileno(), False)
    deadline = time.monotonic() + PROCESS_SECONDS
    output = b""
    with interruptible():
        while not condition(output):
            output += process.stdout.read() or b""
            if process.poll() is not None:
                text = output.decode(errors="replace").strip()
                raise BenchError(f"the process ended before its dump: {text or process.returncode}")
            if time.monotonic() > deadline:
                raise BenchError(f"the process did not get ready within {PROCESS_SECONDS} s")
            time.sleep(0.005)


def _spawn(undo, *argv, **environment):
    """Without address space randomization: addresses are part of the contents."""
    return undo.spawn(["setarch", platform.machine(), "-R", *argv],
                      stdin=-1, stdout=-1, stderr=-2,
                      env={"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": "/nonexistent",
                           "LANG": "C.UTF-8", **environment})


def _spawn_ready(undo, *argv, **environment):
    process = _spawn(undo, *argv, **environment)
    _wait_for(process, lambda output: b"ready" in output)
    return process


def _make_python(undo, _directory):
    return _spawn_ready(undo, sys.executable, "-I", "-X", "utf8",
                        f"{WORKLOADS}/load.py", str(TARGET_MIB), PYTHONHASHSEED="0")


def _make_node(undo, _directory):
    return _spawn_ready(undo, "node", "--random-seed=1", "--hash-seed=1", "--single-threaded-gc",
                        f"{WORKLOADS}/load.js", str(TARGET_MIB))


def _make_java(undo, directory):
    run_command("javac", "-d", directory, f"{WORKLOADS}/Load.java")
    # A heap of a fixed size and one thread that collects: the same garbage each time.
    return _spawn_ready(undo, "java", "-XX:+UseSerialGC", "-Xms256m", "-Xmx256m", "-Xmn96m",
                        "-cp", directory, "Load", "120")


def _rss_mib(pid):
    fields = read_text(f"/proc/{pid}/statm", default="0 0").split()
    return int(fields[1]) * 4096 // MIB


def _make_cc1(undo, directory):
    cc1 = run_command("gcc", "-print-prog-name=cc1").strip()
    source = f"{directory}/large.c"
    write_text(source, run_command(sys.executable, "-I", f"{WORKLOADS}/generate_c.py", "3000"))
    process = _spawn(undo, cc1, "-w", "-quiet", "-O2", "-g", source, "-o", "/dev/null")
    # More than parsing takes: the dump is of a compiler that optimizes.
    _wait_for(process, lambda _output: _rss_mib(process.pid) >= 200)
    return process


def _has_cc1():
    try:
        return os.path.isabs(run_command("gcc", "-print-prog-name=cc1").strip())
    except BenchError:
        return False


# name: (maker, whether this machine can, what it lacks otherwise)
_MAKERS = {
    "cc1": (_make_cc1, _has_cc1, "gcc is not installed"),
    "java": (_make_java, lambda: shutil.which("java") and shutil.which("javac"),
             "no JDK is installed"),
    "node": (_make_node, lambda: shutil.which("node"), "Node.js is not installed"),
    "python": (_make_python, lambda: True, ""),
}


def _make(undo, pagedump, name, maker, path):
    with undo.scope():
        process = maker(undo, undo.directory("corpus"))
        run_command(pagedump, "--name", name, "--max-mib", str(KEEP_MIB), str(process.pid), path)


def load(undo, pagedump, directory, make, say):
    """
    All corpora of a directory, after making those that are missing, if `make`. Returns (corpora,
    {name: reason} of what could not be made).
    """
    os.makedirs(directory, exist_ok=True)
    skipped = {}
    for name, (maker, possible, reason) in _MAKERS.items() if make else ():
        path = f"{directory}/{name}.corpus"
        if os.path.exists(path):
            continue
        if not possible():
            skipped[name] = reason
            continue
        say(f"making the corpus {name} in {directory}")
        try:
            _make(undo, pagedump, name, maker, path)
        except BenchError as error:
            skipped[name] = str(error)
    corpora = [Corpus(f"{directory}/{entry}") for entry in sorted(os.listdir(directory))
               if entry.endswith(".corpus")]
    if not corpora:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in skipped.items())
        raise BenchError(f"no corpus in {directory}" + (f" ({reasons})" if reasons else ""))
    return corpora, skipped
