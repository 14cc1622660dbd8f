# SPDX-License-Identifier: MIT
"""Holds the standard library as a program analyser would: sources, syntax trees, an index."""

import ast
import os
import re
import sys
import sysconfig

WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def rss_mib():
    with open("/proc/self/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20


def sources():
    for directory, subdirectories, names in os.walk(sysconfig.get_path("stdlib")):
        subdirectories[:] = sorted(name for name in subdirectories
                                   if name not in ("site-packages", "dist-packages", "test"))
        for name in sorted(names):
            if name.endswith(".py"):
                yield os.path.join(directory, name)


def main():
    target_mib = int(sys.argv[1])
    texts, trees, index = {}, {}, {}
    while rss_mib() < target_mib:
        before = rss_mib()
        for path in sources():
            with open(path, encoding="utf-8", errors="replace") as file:
                text = file.read()
            try:
                tree = ast.parse(text)
            except (SyntaxError, ValueError):
                continue
            key = (path, len(texts))
            texts[key] = text
            trees[key] = tree
            for number, line in enumerate(text.splitlines()):
                for word in WORD.findall(line):
                    index.setdefault(word, []).append((path, number))
            if rss_mib() >= target_mib:
                break
        if rss_mib() == before:
            sys.exit("no sources of the standard library to load")
    print("ready", flush=True)
    sys.stdin.read()


main()
