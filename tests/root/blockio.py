#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Direct I/O on a block device against a plain array: random reads, writes and discards of any
4 KiB alignment, from several processes, each in a part of the device of its own.

blockio.py DEVICE [--requests N] [--processes N] [--mib N] [--largest BYTES] [--seed N]

Exit status: 0, 1 a request failed, 3 contents wrong. The last line says what was done.
"""

import argparse
import fcntl
import mmap
import os
import random
import struct
import sys
import time

PAGE = 4096
BLKDISCARD = 0x1277
FIRST_PAGE = 1  # 0 has the swap signature
LARGEST = 1 << 20


class Region:
    """Pages [first, first + count) of the device, and what they must hold."""

    def __init__(self, path, first, count, largest, seed):
        self.device = os.open(path, os.O_RDWR | os.O_DIRECT)
        self.first = first
        self.count = count
        self.largest_pages = min(largest // PAGE, count)
        self.random = random.Random(seed)
        self.model = bytearray(count * PAGE)
        self.buffer = mmap.mmap(-1, LARGEST)  # aligned, as direct I/O needs it
        self.view = memoryview(self.buffer)
        self.longest_seconds = 0.0

    def page(self):
        kind = self.random.randrange(8)
        if kind == 0:
            return self.random.randbytes(PAGE)
        if kind == 1:
            return self.random.randbytes(8) * (PAGE // 8)
        if kind == 2:
            return bytes(PAGE)
        text = b"%d is the number of this line; " % self.random.getrandbits(48)
        noise = self.random.randbytes(self.random.randrange(0, 1500))
        return (noise + text * (PAGE // len(text) + 1))[:PAGE]

    def pick(self):
        """Offset and length of a request in this region: mostly small, any alignment."""
        most = self.random.choice((1, 1, 1, 8, self.largest_pages))
        pages = self.random.randint(1, most)
        start = self.random.randrange(self.count - pages + 1)
        return start * PAGE, pages * PAGE

    def timed(self, call, *arguments):
        start = time.monotonic()
        result = call(*arguments)
        self.longest_seconds = max(self.longest_seconds, time.monotonic() - start)
        return result

    def write(self):
        offset, length = self.pick()
        one = self.page()
        data = b"".join(self.page() if length <= 8 * PAGE else one for _ in range(length // PAGE))
        self.view[:length] = data
        done = self.timed(os.pwrite, self.device, self.view[:length], self.first * PAGE + offset)
        if done != length:
            raise OSError(f"short write: {done} of {length}")
        self.model[offset:offset + length] = data

    def check(self, offset, length):
        done = self.timed(os.preadv, self.device, [self.view[:length]], self.first * PAGE + offset)
        if done != length:
            raise OSError(f"short read: {done} of {length}")
        if self.view[:length] == memoryview(self.model)[offset:offset + length]:
            return
        for at in range(length):
            if self.view[at] != self.model[offset + at]:
                where = self.first * PAGE + offset + at
                print(f"CONTENTS WRONG at byte {where} (page {where // PAGE}): {self.view[at]} "
                      f"instead of {self.model[offset + at]}", file=sys.stderr)
                sys.exit(3)

    def discard(self):
        offset, length = self.pick()
        self.timed(fcntl.ioctl, self.device, BLKDISCARD,
                   struct.pack("QQ", self.first * PAGE + offset, length))
        self.model[offset:offset + length] = bytes(length)

    def run(self, requests):
        # What was there before is nobody's business.
        fcntl.ioctl(self.device, BLKDISCARD, struct.pack("QQ", self.first * PAGE, self.count * PAGE))
        for _ in range(requests):
            kind = self.random.randrange(20)
            if kind < 9:
                self.check(*self.pick())
            elif kind < 19:
                self.write()
            else:
                self.discard()
        for start in range(0, self.count * PAGE, LARGEST):
            self.check(start, min(LARGEST, self.count * PAGE - start))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("device")
    parser.add_argument("--requests", type=int, default=10000, help="of all processes together")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--mib", type=int, default=32, help="of the device that is used")
    parser.add_argument("--largest", type=int, default=LARGEST, help="request, in bytes")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    pages = options.mib * 256 // options.processes
    children = []
    for number in range(options.processes):
        child = os.fork()
        if child == 0:
            region = Region(options.device, FIRST_PAGE + number * pages, pages, options.largest,
                            options.seed * 100 + number)
            region.run(options.requests // options.processes)
            print(f"process {number}: longest request {region.longest_seconds * 1000:.1f} ms",
                  flush=True)
            os._exit(0)
        children.append(child)
    statuses = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    if any(statuses):
        print(f"failed: {statuses}")
        sys.exit(max(abs(status) for status in statuses))
    print(f"{options.requests} requests, all right")


main()
