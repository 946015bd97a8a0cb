"""Results as Markdown and as a plot."""
import statistics

from camerawire import programs
from measurement import conditions, document, figures, plot

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


def condensed(row):
    """A row's rounds with percentiles instead of every latency, and those of all rounds together for the plot."""
    pooled = {which: sorted(value for run in row["rounds"] for value in run[which]) for which in ["first", "last"]}
    row["quantiles"] = {which: [round(figures.percentile(values, part), 3) for part in range(101)]
                        for which, values in pooled.items()}
    for run in row["rounds"]:
        for which in ["first", "last"]:
            ordered = sorted(run[which])
            run[which] = {name: round(figures.percentile(ordered, part), 3)
                          for name, part in [("p50", 50), ("p99", 99), ("max", 100)]}
        for key in ["mbit", "ticks", "switches"]:
            run[key] = round(run[key], 3)
        run["threads"] = {name: round(value, 3) for name, value in run["threads"].items() if value >= 0.01}
    return row


def discontinuities(row):
    return {key: sum(run[key] for run in row["rounds"]) for key in ["frames", "missing", "twice", "gaps"]}


def table(results):
    """Markdown: the figures of each program, then those of nightjar as multiples of the better peer's."""
    heads = [name for name, _, _, _ in FIGURES]
    lines, verdicts = [], []
    for source in dict.fromkeys(row["source"] for row in results["rows"]):
        rows = {row["program"]: row for row in results["rows"] if row["source"] == source}
        values = {name: {head: [value(run) for run in row["rounds"]] for head, value, _, _ in FIGURES}
                  for name, row in rows.items()}
        for name, row in rows.items():
            # Who only reads sends no packets: it is when the program has the picture.
            is_reader = name == programs.READER
            cells = ["–" if is_reader and "last" not in head else figures.written(values[name][head], text)
                     for head, _, text, _ in FIGURES]
            lost = "{missing}, {twice}; {gaps}; of {frames} pictures".format(**discontinuities(row))
            rate = statistics.median(run["mbit"] for run in row["rounds"])
            lines.append([source.upper(), name, *cells, lost, "–" if is_reader else f"{rate:.2f}"])
        for name, row in rows.items():
            if not name.startswith("nightjar"):
                continue
            for head, _, _, goal in FIGURES:
                ours, *peers = (statistics.median(values[program][head]) for program in [name, *PEERS])
                ratio = ours / min(peers)
                verdicts.append([source.upper(), name, head, f"{ratio:.2f}",
                                 figures.verdict(ratio, goal) if goal is not None else "–"])
            counts = discontinuities(row)
            broken = counts["missing"] + counts["twice"] + counts["gaps"]
            verdicts.append([source.upper(), name, "discontinuities", broken,
                             "0, " + ("**reached**" if broken == 0 else "**missed**")])
    return "\n\n".join([
        figures.table(["camera", "program", *heads, "pictures missing, twice; packets missing", "Mbit/s"], lines),
        figures.table(["camera", "program", "figure", "multiple of the better peer", "goal"], verdicts)])


def described(results):
    """What was measured with what, in words."""
    machine, rounds, jpeg = results["machine"], len(results["rows"][0]["rounds"]), results["jpeg_bytes"] // 1000
    return "\n".join([
        f"`{results['command']}` on {machine['system']}, {machine['processors']} processors ({machine['processor']})",
        f"that had a load of {results['load']} by other work, above which the rig was put; the rig is Linux",
        f"{machine['kernel']} with one processor. {results['size']} at 30 frames a second, JPEGs of {jpeg} kB,",
        f"{results['kbit'] / 1000:g} Mbit/s, {rounds} rounds of {results['seconds']} s in turns; medians of the rounds",
        "(least and most), times in milliseconds from when the camera had handed a picture over.",
        conditions.named(results["versions"]) + "."])


def words(results):
    """What is printed, and stands in the document."""
    commands = [row["command"] for row in results["rows"] if row["program"] != programs.READER]
    return "\n\n".join([
        described(results), table(results),
        document.image("camera-to-wire", "Camera to wire: latency by part of the pictures"),
        "The commands, `{node}` and `{port}` being those of the run:", conditions.command_lines(commands)])


def svg(results):
    """A panel for each coding: solid lines are last packets, dashed ones first packets."""
    panels = []
    for source in dict.fromkeys(row["source"] for row in results["rows"]):
        lines = {row["program"]: [(row["quantiles"][which], which == "first") for which in ["last", "first"]
                                  if which == "last" or row["program"] != programs.READER]
                 for row in results["rows"] if row["source"] == source}
        panels.append((f"{source.upper()}: last packet, dashed: first", lines))
    return plot.curves(panels, "ms after the camera handed the picture over")
