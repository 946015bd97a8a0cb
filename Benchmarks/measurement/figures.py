"""What many measured values come down to, and how that is written."""
import statistics


def percentile(ordered, part):
    """The nearest-rank percentile of values in order, `part` from 0 to 100."""
    return ordered[min(len(ordered) - 1, max(0, -int(-len(ordered) * part // 100) - 1))]


def latencies(seconds, parts=((50, "p50"), (99, "p99"), (100, "max"))):
    """By name, in milliseconds; `seconds` in any order, at least one: with none the benchmark ends."""
    ordered = sorted(seconds)
    if not ordered:
        raise SystemExit("no time was measured: nothing came that could be timed")
    return {name: round(percentile(ordered, part) * 1000, 3) for part, name in parts} | {"count": len(ordered)}


def spread(values):
    """Median, least and most."""
    return statistics.median(values), min(values), max(values)


def written(values, text="{:.2f}"):
    """The median, and in brackets the least and the most."""
    return "{} ({}–{})".format(*(text.format(value) for value in spread(values)))


def verdict(value, goal, text="{:g}"):
    """Whether a value that is to be small enough is so."""
    return f"≤ {text.format(goal)}, " + ("**reached**" if value <= goal else "**missed**")


def in_turns(names, rounds):
    """(round, name), each round beginning with another one, so that nobody always runs after the same."""
    names = list(names)
    for index in range(rounds):
        start = index % len(names)
        for name in names[start:] + names[:start]:
            yield index, name


def shares(count, rounds):
    """How many of `count` each round has: as equal as can be, the first ones more, and none without any."""
    return [count // rounds + (index < count % rounds) for index in range(min(count, rounds))]


def table(heads, rows):
    """Markdown."""
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    return "\n".join(lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows])
