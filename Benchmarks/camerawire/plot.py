"""A plot of latencies: which part of the pictures was there after how long, as SVG."""
from camerawire import programs

COLORS = {"nightjar": "#0b6e4f", "ffmpeg": "#c44536", "GStreamer": "#3d5a9e", programs.READER: "#888888"}
OTHERS = ["#d98e04", "#7b2d8b", "#00838f"]
WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 400, 260, 46, 34, 40


def svg(results):
    """A panel for each coding: solid lines are last packets, dashed ones first packets."""
    sources = list(dict.fromkeys(row["source"] for row in results["rows"]))
    longest = max(row["quantiles"]["last"][99] for row in results["rows"])
    step = next(step for step in [1, 2, 5, 10, 20, 50, 100, 1000] if longest / step <= 10)
    limit = -(-longest // step) * step
    names = list(dict.fromkeys(row["program"] for row in results["rows"]))
    others = [name for name in names if name not in COLORS]
    colors = {**COLORS, **{name: OTHERS[index % len(OTHERS)] for index, name in enumerate(others)}}
    height = HEIGHT + 22 * ((len(names) + 2) // 3) + 8
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH * len(sources)} {height}" '
             'font-family="sans-serif" font-size="12">',
             f'<rect width="{WIDTH * len(sources)}" height="{height}" fill="white"/>']
    for index, source in enumerate(sources):
        rows = [row for row in results["rows"] if row["source"] == source]
        parts.append(panel(source, rows, colors, limit, step, index * WIDTH))
    for index, name in enumerate(names):
        x, y = LEFT + index % 3 * 230, HEIGHT + 16 + index // 3 * 22
        parts.append(f'<path d="M{x} {y - 4}h24" stroke="{colors[name]}" stroke-width="2.5"/>'
                     f'<text x="{x + 30}" y="{y}">{name}</text>')
    return "\n".join(parts + ["</svg>"]) + "\n"


def panel(source, rows, colors, limit, step, offset):
    inner, tall = WIDTH - LEFT - 14, HEIGHT - TOP - BOTTOM

    def x(milliseconds):
        return round(offset + LEFT + min(milliseconds, limit) / limit * inner, 1)

    def y(part):
        return round(TOP + (1 - part / 100) * tall, 1)

    parts = [f'<text x="{offset + LEFT}" y="20" font-weight="bold">{source.upper()}: last packet, dashed: first</text>']
    for part in [0, 50, 99]:
        parts.append(f'<path d="M{x(0)} {y(part)}H{x(limit)}" stroke="#ddd"/>'
                     f'<text x="{offset + LEFT - 6}" y="{y(part) + 4}" text-anchor="end">{part} %</text>')
    for index in range(int(limit / step) + 1):
        parts.append(f'<path d="M{x(index * step)} {y(0)}v4" stroke="#333"/>'
                     f'<text x="{x(index * step)}" y="{y(0) + 18}" text-anchor="middle">{index * step}</text>')
    parts.append(f'<text x="{x(limit)}" y="{y(0) + 34}" text-anchor="end">'
                 'ms after the camera handed the picture over</text>')
    for row in rows:
        for which, dash in [("last", ""), ("first", ' stroke-dasharray="4 3"')]:
            if row["program"] == programs.READER and which == "first":
                continue
            points = " ".join(f"{x(value)},{y(part)}" for part, value in enumerate(row["quantiles"][which][:100]))
            parts.append(f'<polyline points="{points}" fill="none" stroke="{colors[row["program"]]}" '
                         f'stroke-width="1.8"{dash}/>')
    return "\n".join(parts)
