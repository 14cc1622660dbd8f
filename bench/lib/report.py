# SPDX-License-Identifier: MIT
"""The outcome as text. The JSON file is the outcome itself; doc/benchmarks.md has its members."""

from .system import MIB


def ratios(scenario, subjects):
    """{subject: {peer: {metric key: median of the subject / median of the peer}}}."""
    medians = {name: {key: value["median"] for key, value in peer["summary"].items()}
               for name, peer in scenario["peers"].items()}
    result = {}
    for subject in subjects:
        if subject not in medians:
            continue
        result[subject] = {
            peer: {key: medians[subject][key] / values[key] for key in values
                   if key in medians[subject] and values[key]}
            for peer, values in medians.items() if peer != subject}
    return result


def _number(value, digits):
    return f"{value:,.{digits}f}"


def _heading(metric):
    return f"{metric['label']}, {metric['unit']} {'+' if metric['higher_is_better'] else '-'}"


def _table(rows):
    """Rows of cells as lines: the first column to the left, the others to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  " + "  ".join(cell.ljust(width) if column == 0 else cell.rjust(width)
                             for column, (cell, width) in enumerate(zip(row, widths))).rstrip()
            for row in rows]


def _spread(summary, key, digits):
    if key not in summary:
        return ""
    value = summary[key]
    return (f"{_number(value['median'], digits)} "
            f"({_number(value['min'], digits)} to {_number(value['max'], digits)})")


def _scenario_lines(name, scenario):
    metrics = scenario["metrics"]
    peers = scenario["peers"]
    runs = max((len(peer["samples"]) for peer in peers.values()), default=0)
    lines = [f"{name}: {scenario['title']}",
             f"  page-cluster {scenario['page_cluster']}; median (least to most) of {runs} "
             f"run{'s' if runs != 1 else ''}; + higher is better, - lower is better", ""]
    lines += _table([["", *map(_heading, metrics)],
                     *([peer, *(_spread(outcome["summary"], metric["key"], metric["digits"])
                                for metric in metrics)] for peer, outcome in peers.items())])
    for subject, against in scenario["ratios"].items():
        rows = [[peer, *(f"{values[metric['key']]:.2f}" if metric["key"] in values else ""
                         for metric in metrics)] for peer, values in against.items()]
        if rows:
            lines += ["", f"  {subject} divided by",
                      *_table([["", *map(_heading, metrics)], *rows])]
    if scenario["notes"] or scenario["skipped"]:
        lines.append("")
        lines += [f"  {peer} {note}" for peer, note in scenario["notes"].items()]
        lines += [f"  skipped {entry['peer']}: {entry['reason']}" for entry in scenario["skipped"]]
    return lines


def text(result):
    machine = result["machine"]
    virtual = " (virtual)" if machine["virtual"] else ""
    lines = [f"{machine['cpu']}, {machine['cpus']} CPUs{virtual}, "
             f"{machine['memory_bytes'] // MIB} MiB, Linux {machine['kernel']}, "
             f"cgroup v{machine['cgroup_version']}, "
             f"transparent huge pages {machine['transparent_hugepage']}, "
             f"load {machine['load_average'][0]:.2f}",
             "contents: " + ", ".join(f"{corpus['name']} {corpus['pages'] * 4096 // MIB} MiB"
                                      for corpus in result["corpora"])]
    for name, scenario in result["scenarios"].items():
        lines += ["", *_scenario_lines(name, scenario)]
    if result["warnings"]:
        lines += ["", *(f"warning: {warning}" for warning in result["warnings"])]
    return "\n".join(lines) + "\n"
