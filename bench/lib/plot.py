# SPDX-License-Identifier: MIT
"""
One SVG file per scenario, written by hand: a panel per metric, a bar per device (the median) with
the range from the least to the most sample.
"""

import math
import os
from xml.sax.saxutils import escape

WIDTH = 760
LABEL_WIDTH = 130    # names of the devices, left of the bars
VALUE_WIDTH = 190    # figures, right of the bars
ROW_HEIGHT = 24
BAR_HEIGHT = 14
PANEL_HEAD = 46
PANEL_FOOT = 26
TITLE_HEIGHT = 62
FOOTER_HEIGHT = 40

STYLE = """
text { font-family: 'DejaVu Sans', Verdana, Arial, sans-serif; font-size: 12px; fill: #222; }
.title { font-size: 16px; font-weight: bold; }
.note { font-size: 11px; fill: #666; }
.panel { font-size: 13px; font-weight: bold; }
.tick { font-size: 10px; fill: #888; }
.grid { stroke: #ddd; stroke-width: 1; }
.peer { fill: #9aa7b4; }
.subject { fill: #1f6fb2; }
.range { stroke: #222; stroke-width: 1.2; }
"""


def nice_step(most, steps=5):
    """A step of 1, 2 or 5 times a power of ten that divides 0..most into about so many parts."""
    if most <= 0:
        return 1.0
    rough = most / steps
    power = 10.0 ** math.floor(math.log10(rough))
    for factor in (1, 2, 5, 10):
        if factor * power >= rough:
            return factor * power
    return 10 * power


def _element(x, y, content, kind=None, anchor="start"):
    style = f' class="{kind}"' if kind else ""
    side = f' text-anchor="{anchor}"' if anchor != "start" else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{style}{side}>{escape(content)}</text>'


def _wrap(words, width):
    """Lines of at most so many characters."""
    lines = [""]
    for word in words.split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > width:
            lines.append("")
        lines[-1] += (" " if lines[-1] else "") + word
    return lines


def _panel(metric, rows, top, subjects):
    """One metric: rows are (device, summary). Returns the elements and the height."""
    left, right = LABEL_WIDTH, WIDTH - VALUE_WIDTH
    most = max(summary["max"] for _name, summary in rows)
    step = nice_step(most)
    scale_end = step * math.ceil(most / step) or 1.0
    bottom = top + PANEL_HEAD + len(rows) * ROW_HEIGHT

    def x_of(value):
        return left + (right - left) * value / scale_end

    better = "higher is better" if metric["higher_is_better"] else "lower is better"
    elements = [_element(10, top + 20, f"{metric['label']}, {metric['unit']}", "panel"),
                _element(WIDTH - 10, top + 20, better, "note", "end")]
    tick = 0.0
    while tick <= scale_end * 1.001:
        x = x_of(tick)
        elements.append(f'<line class="grid" x1="{x:.1f}" y1="{top + PANEL_HEAD - 8}" '
                        f'x2="{x:.1f}" y2="{bottom}"/>')
        elements.append(_element(x, bottom + 14, f"{tick:,.10g}", "tick", "middle"))
        tick += step
    for number, (name, summary) in enumerate(rows):
        y = top + PANEL_HEAD + number * ROW_HEIGHT
        middle = y + BAR_HEIGHT / 2
        kind = "subject" if name in subjects else "peer"
        elements.append(_element(left - 8, middle + 4, name, anchor="end"))
        elements.append(f'<rect class="{kind}" x="{left}" y="{y}" height="{BAR_HEIGHT}" '
                        f'width="{x_of(summary["median"]) - left:.1f}"/>')
        low, high = x_of(summary["min"]), x_of(summary["max"])
        upper, lower = y + 3, y + BAR_HEIGHT - 3
        elements.append(f'<path class="range" fill="none" d="M{low:.1f} {upper}V{lower}'
                        f'M{low:.1f} {middle}H{high:.1f}M{high:.1f} {upper}V{lower}"/>')
        median, least, most_here = (f"{summary[key]:,.{metric['digits']}f}"
                                    for key in ("median", "min", "max"))
        elements.append(_element(right + 12, middle + 4, f"{median} ({least} to {most_here})"))
    return elements, bottom + PANEL_FOOT - top


def scenario_svg(name, scenario, machine, subjects, warnings):
    """The text of one SVG file."""
    runs = max((len(peer["samples"]) for peer in scenario["peers"].values()), default=0)
    title_lines = _wrap(scenario["title"], 115)
    top = TITLE_HEIGHT + 14 * (len(title_lines) - 1)
    body = []
    for metric in scenario["metrics"]:
        rows = [(peer, outcome["summary"][metric["key"]])
                for peer, outcome in scenario["peers"].items()
                if metric["key"] in outcome["summary"]]
        if rows:
            elements, height = _panel(metric, rows, top, subjects)
            body += elements
            top += height
    head = [_element(10, 26, f"{name}: uzswap and its peers", "title")]
    head += [_element(10, 46 + 14 * number, line, "note")
             for number, line in enumerate(title_lines)]
    foot = [_element(10, top + 16, f"Bars: median of {runs} run{'s' if runs != 1 else ''}; "
                     "whiskers: least and most. "
                     f"vm.page-cluster {scenario['page_cluster']}.", "note"),
            _element(10, top + 31, f"{machine['cpu']}, {machine['cpus']} CPUs, "
                     f"Linux {machine['kernel']}"
                     + (f"; with {warnings} warnings, see the report" if warnings else ""), "note")]
    height = top + FOOTER_HEIGHT
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}">',
        f"<style>{STYLE}</style>",
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        *head, *body, *foot, "</svg>", ""])


def write_plots(result, directory):
    """Writes DIRECTORY/SCENARIO.svg for all scenarios; returns the paths."""
    os.makedirs(directory, exist_ok=True)
    paths = []
    for name, scenario in result["scenarios"].items():
        if not scenario["peers"]:
            continue
        path = os.path.join(directory, f"{name}.svg")
        with open(path, "w", encoding="utf-8") as file:
            file.write(scenario_svg(name, scenario, result["machine"], result["subjects"],
                                    len(result["warnings"])))
        paths.append(path)
    return paths
