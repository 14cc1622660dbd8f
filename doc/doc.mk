# SPDX-License-Identifier: MIT
EXTRA_DIST += doc/design.md doc/benchmarks.md
