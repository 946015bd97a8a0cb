"""Plots as SVG: bars with their spread, ranges of latencies, curves of which part was there after how long, and values over time."""
import math
from xml.sax.saxutils import escape

COLORS = {"nightjar": "#0b6e4f", "ffmpeg": "#c44536", "GStreamer": "#3d5a9e", "x264": "#888888"}
OTHERS = ["#d98e04", "#7b2d8b", "#00838f"]
GRAY = "#888888"


def color(program):
    """That of the program which a row's name begins with."""
    return next((value for name, value in COLORS.items() if program.startswith(name)), GRAY)


def axis(longest):
    """(limit, step) for values up to `longest`: at most ten steps."""
    longest = max(longest, 1e-9)
    power = 10.0 ** math.floor(math.log10(longest))
    step = next(power / part for part in (10, 5, 2, 1) if longest / power * part <= 10)
    return -(-longest // step) * step, step


def number(value):
    """With three digits, or all before the point."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def page(width, height, parts):
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
        'font-size="12">', f'<rect width="{width}" height="{height}" fill="white"/>', *parts, "</svg>"]) + "\n"


class Rows:
    """Panels one below the other, a row for each program, values along a common kind of axis to the right."""
    WIDTH, LEFT, RIGHT, ROW = 800, 240, 110, 22

    def __init__(self):
        self.parts, self.top = [], 0

    def panel(self, title, unit, rows, longest):
        """`rows` by name; a function from values to x, and one from a row's index to its middle."""
        limit, step = axis(longest)
        inner, top = self.WIDTH - self.LEFT - self.RIGHT, self.top + 30
        bottom = top + len(rows) * self.ROW

        def x(value):
            return round(self.LEFT + min(value, limit) / limit * inner, 1)

        self.parts.append(f'<text x="10" y="{self.top + 20}" font-weight="bold">{escape(title)}</text>')
        for index in range(round(limit / step) + 1):
            self.parts.append(f'<path d="M{x(index * step)} {top}V{bottom + 4}" stroke="#ddd"/><text '
                              f'x="{x(index * step)}" y="{bottom + 18}" text-anchor="middle">{index * step:g}</text>')
        self.parts.append(f'<text x="{self.WIDTH - 10}" y="{self.top + 20}" text-anchor="end">{escape(unit)}</text>')
        for index, name in enumerate(rows):
            self.parts.append(f'<text x="{self.LEFT - 8}" y="{top + index * self.ROW + 15}" text-anchor="end">'
                              f'{escape(name)}</text>')
        self.top = bottom + 28
        return x, lambda index: top + index * self.ROW + self.ROW // 2

    def written(self):
        return page(self.WIDTH, self.top + 8, self.parts)


def bars(panels):
    """`panels`: (title, unit, {name: (middle, least, most)}). The bar is the median, the line the spread."""
    rows = Rows()
    for title, unit, values in panels:
        x, y = rows.panel(title, unit, values, max(most for _, _, most in values.values()))
        for index, (name, (middle, least, most)) in enumerate(values.items()):
            center = y(index)
            rows.parts.append(
                f'<rect x="{x(0)}" y="{center - 7}" width="{round(x(middle) - x(0), 1)}" height="14" '
                f'fill="{color(name)}" fill-opacity="0.8"/><path d="M{x(least)} {center}H{x(most)}M{x(least)} '
                f'{center - 4}v8M{x(most)} {center - 4}v8" stroke="#222"/><text x="{x(most) + 6}" y="{center + 4}">'
                f'{number(middle)}</text>')
    return rows.written()


def ranges(panels):
    """`panels`: (title, unit, {name: (p50, p99, max)}). The dot is the p50, the bar across the p99, the line goes on to
    the longest."""
    rows = Rows()
    for title, unit, values in panels:
        x, y = rows.panel(title, unit, values, max(most for _, _, most in values.values()))
        for index, (name, (middle, late, most)) in enumerate(values.items()):
            center, paint = y(index), color(name)
            rows.parts.append(
                f'<path d="M{x(middle)} {center}H{x(most)}" stroke="{paint}" stroke-width="1.5"/>'
                f'<path d="M{x(late)} {center - 7}v14" stroke="{paint}" stroke-width="3"/>'
                f'<circle cx="{x(middle)}" cy="{center}" r="5" fill="{paint}"/>'
                f'<text x="{x(most) + 8}" y="{center + 4}">{number(middle)}, {number(late)}</text>')
    return rows.written()


def curves(panels, unit):
    """`panels`, side by side: (title, {name: [(quantiles 0…100, dashed or not)]})."""
    width, tall, left, top, bottom = 400, 260, 46, 34, 40
    limit, step = axis(max(values[99] for _, lines in panels for each in lines.values() for values, _ in each))
    names = list(dict.fromkeys(name for _, lines in panels for name in lines))
    others = [name for name in names if name not in COLORS and color(name) != GRAY]
    colors = {name: OTHERS[others.index(name) % len(OTHERS)] if name in others else color(name) for name in names}
    parts = []
    for index, (title, lines) in enumerate(panels):
        offset = index * width

        def x(value):
            return round(offset + left + min(value, limit) / limit * (width - left - 14), 1)

        def y(part):
            return round(top + (1 - part / 100) * (tall - top - bottom), 1)

        parts.append(f'<text x="{offset + left}" y="20" font-weight="bold">{escape(title)}</text>')
        for part in [0, 50, 99]:
            parts.append(f'<path d="M{x(0)} {y(part)}H{x(limit)}" stroke="#ddd"/>'
                         f'<text x="{offset + left - 6}" y="{y(part) + 4}" text-anchor="end">{part} %</text>')
        for mark in range(round(limit / step) + 1):
            parts.append(f'<path d="M{x(mark * step)} {y(0)}v4" stroke="#333"/><text x="{x(mark * step)}" '
                         f'y="{y(0) + 18}" text-anchor="middle">{mark * step:g}</text>')
        parts.append(f'<text x="{x(limit)}" y="{y(0) + 34}" text-anchor="end">{escape(unit)}</text>')
        for name, each in lines.items():
            for values, is_dashed in each:
                points = " ".join(f"{x(value)},{y(part)}" for part, value in enumerate(values[:100]))
                dash = ' stroke-dasharray="4 3"' if is_dashed else ""
                parts.append(f'<polyline points="{points}" fill="none" stroke="{colors[name]}" '
                             f'stroke-width="1.8"{dash}/>')
    for index, name in enumerate(names):
        x, y = left + index % 3 * 230, tall + 16 + index // 3 * 22
        parts.append(f'<path d="M{x} {y - 4}h24" stroke="{colors[name]}" stroke-width="2.5"/>'
                     f'<text x="{x + 30}" y="{y}">{escape(name)}</text>')
    return page(width * len(panels), tall + 22 * ((len(names) + 2) // 3) + 8, parts)


def timelines(columns):
    """`columns`, side by side: (title, [(unit, {name: [(seconds, value)]})]), a panel for each unit, one below the other. All have one
    axis of time, and the panels of a row one of values."""
    width, tall, left, top = 400, 190, 46, 30
    every = [points for _, panels in columns for _, lines in panels for points in lines.values()]
    begin, end = (edge(at for points in every for at, _ in points) for edge in (min, max))
    step = axis(end - begin)[1]
    names = list(dict.fromkeys(name for _, panels in columns for _, lines in panels for name in lines))
    colors = {name: GRAY if name == "capacity" else OTHERS[index % len(OTHERS)] for index, name in enumerate(names)}
    parts = []
    for row in range(len(columns[0][1])):
        limit, mark = axis(max(value for _, panels in columns for points in panels[row][1].values() for _, value in points))
        above, below = top + row * tall, top + row * tall + tall - 40
        for index, (title, panels) in enumerate(columns):
            offset = index * width + left

            def x(at):
                return round(offset + (at - begin) / (end - begin) * (width - left - 14), 1)

            def y(value):
                return round(below - value / limit * (below - above), 1)

            unit, lines = panels[row]
            if row == 0:
                parts.append(f'<text x="{offset}" y="18" font-weight="bold">{escape(title)}</text>')
            for count in range(round(limit / mark) + 1):
                parts.append(f'<path d="M{x(begin)} {y(count * mark)}H{x(end)}" stroke="#ddd"/><text x="{offset - 6}" '
                             f'y="{y(count * mark) + 4}" text-anchor="end">{count * mark:g}</text>')
            for count in range(math.ceil(begin / step), math.floor(end / step) + 1):
                parts.append(f'<path d="M{x(count * step)} {below}v4" stroke="#333"/><text x="{x(count * step)}" y="{below + 18}" '
                             f'text-anchor="middle">{count * step:g}</text>')
            parts.append(f'<text x="{x(end)}" y="{above - 4}" text-anchor="end">{escape(unit)}, by seconds</text>')
            for name, points in lines.items():
                text = " ".join(f"{x(at)},{y(value)}" for at, value in points)
                dash = ' stroke-dasharray="4 3"' if name == "capacity" else ""
                parts.append(f'<polyline points="{text}" fill="none" stroke="{colors[name]}" stroke-width="1.5"{dash}/>')
    bottom = top + len(columns[0][1]) * tall
    for index, name in enumerate(names):
        parts.append(f'<path d="M{left + index * 130} {bottom - 4}h24" stroke="{colors[name]}" stroke-width="2.5"/>'
                     f'<text x="{left + 30 + index * 130}" y="{bottom}">{escape(name)}</text>')
    return page(width * len(columns), bottom + 12, parts)
