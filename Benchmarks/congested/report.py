"""Results as Markdown and as a plot."""
import statistics

from congested.runs import WAYS
from measurement import conditions, document, figures, plot

GOALS = {"below": 1, "waiting": 200, "used": 0.8, "recovered": 15, "frozen": 2, "share": 0.8, "gap": 0.3, "pictures": 5, "longest": 2,
         "core": 0.02, "allocations": 0.001}


def seconds(value):
    return "never" if value is None else f"{value:.2f}"


def judged(value, goal, text, is_least=False):
    """A value, in bold letters where it misses the goal."""
    is_reached = value is not None and (value >= goal if is_least else value <= goal)
    return text if is_reached else f"**{text}**"


def others(row):
    """Lost and late pictures of the other viewers in the weak time, and before it."""
    def sums(when):
        both = [counts[when] for counts in row["beside"].values()]
        return ", ".join(str(sum(one[key] for one in both)) for key in ("lost", "late"))
    return f"{sums('weak')} ({sums('before')}); {'?' if row['overtaxed'] is None else row['overtaxed']}"


OTHERS = "the other viewers' lost, late pictures (before); frames too fast for the encoder"


def falls(part):
    heads = ["network", "by", "below the capacity after, s", "queue p95, ms", "used", "90 % back after, s", "frozen, s",
             "longest picture, s", "pictures a second", "small", "exact", "delay p50, p95, s", OTHERS]
    rows = [[f"{row['rate']}bit/s, {row['queue']}B", WAYS[row["way"]], judged(row["below"], GOALS["below"], seconds(row["below"])),
             judged(row["waiting"], GOALS["waiting"], f"{row['waiting']:.0f}"),
             judged(row["used"], GOALS["used"], f"{row['used']:.0%}", is_least=True),
             judged(row["recovered"], GOALS["recovered"], seconds(row["recovered"])),
             judged(row["frozen"], GOALS["frozen"], seconds(row["frozen"])), seconds(row["longest"]), f"{row['pictures']:.1f}",
             f"{row['small']:.0%}", "–" if row["exact"] is None else f"{row['exact']:.0%}",
             ", ".join(map(seconds, row["delay"])) if row["delay"] else "–", others(row)] for row in part["rows"]]
    return [f"A network of {part['usual'][0]}bit/s that takes less for {part['weak']} s. Goals: less is sent than it takes after "
            f"{GOALS['below']} s, a queue of {GOALS['waiting']} ms at p95 from the third second on, {GOALS['used']:.0%} of it used, "
            f"90 % of the former bitrate back after {GOALS['recovered']} s, frozen for {GOALS['frozen']} s at most, and of the other "
            "viewers no picture lost or late. What misses a goal is bold.", figures.table(heads, rows)]


def losses(part):
    heads = ["random loss", "by", "bitrate without, kbit/s", "with", "share", "frozen, s", "pictures a second", OTHERS]
    rows = [[f"{row['loss']:.0%}", WAYS[row["way"]], f"{row['before'] / 1000:.0f}", f"{row['bitrate'] / 1000:.0f}",
             judged(row["share"], GOALS["share"], f"{row['share']:.0%}", is_least=True), seconds(row["frozen"]),
             f"{row['pictures']:.1f}", others(row)] for row in part["rows"]]
    return [f"Packets that a network of {part['rate']}bit/s loses by chance. The bitrate is what is sent into it, with what is sent again. "
            f"Goal: {GOALS['share']:.0%} of the bitrate without losses.", figures.table(heads, rows)]


def sound(part):
    heads = ["network", "by", "longest gap in sound, s (before)", "sound missing", "pictures a second", "longest picture, s", "small",
             "queue p95, ms", OTHERS]
    rows = [[f"{row['rate']}bit/s, {row['queue']}B", WAYS[row["way"]],
             judged(row["gap"], GOALS["gap"], seconds(row["gap"])) + f" ({seconds(row['gap before'])})", f"{row['missing']:.1%}",
             judged(row["pictures"], GOALS["pictures"], f"{row['pictures']:.1f}", is_least=True),
             judged(row["longest"], GOALS["longest"], seconds(row["longest"])), f"{row['small']:.0%}", f"{row['waiting']:.0f}",
             others(row)] for row in part["rows"]]
    return [f"With sound, {part['weak']} s of less. A gap is the time between two packets of sound that come, before any buffer of the "
            f"player. Goals: a gap of {GOALS['gap'] * 1000:.0f} ms at most, {GOALS['pictures']} pictures a second, none of which stands "
            f"for more than {GOALS['longest']} s.", figures.table(heads, rows)]


def estimates(part):
    costs = [one - other for one, other in zip(part["with"], part["without"])]
    cost, counted = statistics.median(costs), part["counted"]
    each = counted["allocations"] / max(1, counted["packets"])
    heads = ["viewers, which reported", "of a core without reports", "with them", "difference (least, most)", "packets a second",
             "allocations on the threads of frames, a packet", "on other threads, a second"]
    rows = [[f"{part['viewers']}, {part['reporters']}", *(f"{statistics.median(part[key]):.1%}" for key in ("without", "with")),
             judged(cost, GOALS["core"], f"{cost:.2%}") + f" ({min(costs):.2%}, {max(costs):.2%})",
             f"{statistics.median(part['packets']):.0f}",
             judged(each, GOALS["allocations"], f"{each:.2g}"),
             f"{sum(counted['others'].values()) / counted['seconds']:.1f}"]]
    return [f"One stream of {part['bitrate'] / 1e6:g} Mbit/s to many viewers on one core. Rounds without reports and rounds in which each "
            f"viewer reports each {part['interval']} ms take turns. The difference is the cost of reading the reports, of the estimates "
            "and of their limits. In both kinds of rounds, nightjar notes each packet that leaves. Goals: "
            f"{GOALS['core']:.0%} of a core, and no allocation for each packet. If a busy machine delays a viewer, nightjar reports "
            "that, which takes a few allocations.",
            figures.table(heads, rows)]


PARTS = {"falls": falls, "losses": losses, "sound": sound, "estimates": estimates}


def words(results):
    about, text = conditions.described(results), []
    for name, part in results["parts"].items():
        text += ([f"`{part['command']}`:"] if part["command"] != results["command"] else []) + PARTS[name](part)
        if name == "falls" and svg(results):
            text.append(document.image("congestion", "A network that gets weak: bitrate and queue by each transport"))
    return "\n\n".join([about, *text])


def svg(results):
    """The first network, by each transport."""
    rows = results["parts"].get("falls", {"rows": []})["rows"]
    rows = [row for row in rows if (row["rate"], row["queue"]) == (rows[0]["rate"], rows[0]["queue"])]
    if not rows:
        return None
    columns = []
    for row in rows:
        points = row["series"]["points"]
        columns.append((f"{WAYS[row['way']]}, {row['rate']}bit/s for {row['series']['capacity'][3][0]} s", [
            ("Mbit/s", {"capacity": row["series"]["capacity"], "sent": [(at, bits) for at, bits, _ in points]}),
            ("ms of queue", {"queue": [(at, queue) for at, _, queue in points]})]))
    return plot.timelines(columns)
