"""Results as Markdown and as a plot."""
import json
import os
import re
import statistics

from camerawire import plot, programs

PEERS = ["ffmpeg", "GStreamer"]
# What is measured of a round, how it is written, and the goal as a multiple of the better peer.
FIGURES = [
    ("first packet, p50", lambda run: run["first"]["p50"], "{:.2f}", 0.4),
    ("first packet, p99", lambda run: run["first"]["p99"], "{:.2f}", None),
    ("last packet, p50", lambda run: run["last"]["p50"], "{:.2f}", 0.75),
    ("last packet, p99", lambda run: run["last"]["p99"], "{:.2f}", 0.6),
    ("last packet, max", lambda run: run["last"]["max"], "{:.1f}", None),
    ("CPU, ticks for 1000 frames", lambda run: run["ticks"], "{:.0f}", 0.8),
]


def percentile(ordered, part):
    """The nearest-rank percentile of values in order."""
    return ordered[min(len(ordered) - 1, max(0, -int(-len(ordered) * part // 100) - 1))]


def condensed(row):
    """A row's rounds with percentiles instead of every latency, and those of all rounds together for the plot."""
    pooled = {which: sorted(value for run in row["rounds"] for value in run[which]) for which in ["first", "last"]}
    row["quantiles"] = {which: [round(percentile(values, part), 3) for part in range(101)]
                        for which, values in pooled.items()}
    for run in row["rounds"]:
        for which in ["first", "last"]:
            ordered = sorted(run[which])
            run[which] = {name: round(percentile(ordered, part), 3)
                          for name, part in [("p50", 50), ("p99", 99), ("max", 100)]}
        for key in ["mbit", "ticks", "switches"]:
            run[key] = round(run[key], 3)
        run["threads"] = {name: round(value, 3) for name, value in run["threads"].items() if value >= 0.01}
    return row


def medians(row):
    """Each figure as (median, least, most) of the rounds."""
    result = {}
    for name, figure, _, _ in FIGURES:
        values = [figure(run) for run in row["rounds"]]
        result[name] = statistics.median(values), min(values), max(values)
    return result


def discontinuities(row):
    return {key: sum(run[key] for run in row["rounds"]) for key in ["frames", "missing", "twice", "gaps"]}


def table(results):
    """Markdown: the figures of each program, then those of nightjar as multiples of the better peer's."""
    heads = [name for name, _, _, _ in FIGURES]
    lines = ["| camera | program | " + " | ".join(heads) + " | pictures missing, twice; packets missing | Mbit/s |",
             "|---" * (len(heads) + 4) + "|"]
    verdicts = ["| camera | program | figure | multiple of the better peer | goal |", "|---|---|---|---|---|"]
    for source in dict.fromkeys(row["source"] for row in results["rows"]):
        rows = {row["program"]: row for row in results["rows"] if row["source"] == source}
        figures = {name: medians(row) for name, row in rows.items()}
        for name, row in rows.items():
            cells = []
            for head, _, text, _ in FIGURES:
                # There are no packets: it is when the program has the picture.
                if name == programs.READER and "last" not in head:
                    cells.append("–")
                    continue
                cells.append("{} ({}–{})".format(*(text.format(value) for value in figures[name][head])))
            counts = discontinuities(row)
            lost = "{missing}, {twice}; {gaps}; of {frames} pictures".format(**counts)
            rate = statistics.median(run["mbit"] for run in row["rounds"])
            lines.append(f"| {source.upper()} | {name} | " + " | ".join(cells) + f" | {lost} | "
                         + ("–" if name == programs.READER else f"{rate:.2f}") + " |")
        for name, row in rows.items():
            if not name.startswith("nightjar"):
                continue
            for head, _, _, goal in FIGURES:
                better = min(figures[peer][head][0] for peer in PEERS)
                ratio = figures[name][head][0] / better
                verdict = "–"
                if goal is not None:
                    verdict = f"≤ {goal}, " + ("**reached**" if ratio <= goal else "**missed**")
                verdicts.append(f"| {source.upper()} | {name} | {head} | {ratio:.2f} | {verdict} |")
            counts = discontinuities(row)
            broken = counts["missing"] + counts["twice"] + counts["gaps"]
            verdicts.append(f"| {source.upper()} | {name} | discontinuities | {broken} | 0, "
                            + ("**reached** |" if broken == 0 else "**missed** |"))
    return "\n".join(lines) + "\n\n" + "\n".join(verdicts)


def conditions(results):
    """What was measured with what, in words."""
    machine, versions = results["machine"], results["versions"]
    rounds, jpeg = len(results["rows"][0]["rounds"]), results["jpeg_bytes"] // 1000
    lines = [
        f"`{results['command']}` on {machine['system']}, {machine['processors']} processors ({machine['processor']})",
        f"that had a load of {results['load']} by other work, above which the rig was put; the rig is Linux",
        f"{machine['kernel']} with one processor. {results['size']} at 30 frames a second, JPEGs of {jpeg} kB,",
        f"{results['kbit'] / 1000:g} Mbit/s, {rounds} rounds of {results['seconds']} s in turns; medians of the rounds",
        "(least and most), times in milliseconds from when the camera had handed a picture over.",
        ", ".join(f"{name} {version}" for name, version in versions.items()) + "."]
    return "\n".join(lines)


def command_lines(results):
    """What was run, a line for each program and camera."""
    names = [programs.READER]
    return "\n".join("    " + " ".join(os.path.basename(word) if word.startswith("/") else word
                                       for word in row["command"])
                     for row in results["rows"] if row["program"] not in names)


def document(results, root):
    """Puts the table into docs/performance.md, between its markers, and plot and results beside it."""
    images = os.path.join(root, "docs", "images")
    with open(os.path.join(images, "camera-to-wire.svg"), "w") as file:
        file.write(plot.svg(results))
    with open(os.path.join(images, "camera-to-wire.json"), "w") as file:
        json.dump(results, file)
    path = os.path.join(root, "docs", "performance.md")
    with open(path) as file:
        text = file.read()
    words = "\n\n".join([conditions(results), table(results),
                         "![Camera to wire: latency by part of the pictures](images/camera-to-wire.svg)",
                         "The commands, `{node}` and `{port}` being those of the run:", command_lines(results)])
    begin, end = "<!-- camera-to-wire -->", "<!-- /camera-to-wire -->"
    pattern = re.escape(begin) + ".*" + re.escape(end)
    if not re.search(pattern, text, re.DOTALL):
        raise ValueError(f"{path} has no place for it, between {begin} and {end}")
    with open(path, "w") as file:
        file.write(re.sub(pattern, lambda _: f"{begin}\n{words}\n{end}", text, flags=re.DOTALL))
