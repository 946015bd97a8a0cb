"""Results as JSON, and from there into docs/performance.md, with a plot."""
import json
import os
import re
import sys

from measurement import arguments
from measurement.conditions import ROOT

PAGE = os.path.join(ROOT, "docs", "performance.md")
IMAGES = os.path.join(ROOT, "docs", "images")


def run(name, parser, measure, words, svg=None):
    """A benchmark's command line: measures, or takes results from a file; prints them as Markdown, and documents them.

    `name` is that of the marks in docs/performance.md, of the JSON and of the plot. `measure(options)` gives the
    results as JSON can hold them, `options.command` being the command line with what is not as it is by default, `words(results)` the Markdown, `svg(results)` the plot."""
    parser.add_argument("--json", metavar="FILE", default=os.path.join(ROOT, ".build", name + ".json"),
                        help="where the results go")
    parser.add_argument("--from", dest="results", metavar="FILE", help="measure nothing, report these results")
    parser.add_argument("--document", action="store_true", help="put table, plot and JSON into docs/")
    options = parser.parse_args()
    options.command = arguments.command(parser, options)
    if options.results:
        with open(options.results) as file:
            results = json.load(file)
    else:
        results = measure(options)
        with open(options.json, "w") as file:
            json.dump(results, file)
    print(words(results), flush=True)
    if options.document:
        put(name, words(results), svg(results) if svg else None, results)
    return results


def image(name, meaning):
    return f"![{meaning}](images/{name}.svg)"


def put(name, words, plot, results):
    """Puts the words into the page between the marks of that name, and plot and results beside it."""
    begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    with open(PAGE) as file:
        text = file.read()
    pattern = re.escape(begin) + ".*" + re.escape(end)
    if not re.search(pattern, text, re.DOTALL):
        sys.exit(f"{PAGE} has no place for it, between {begin} and {end}")
    os.makedirs(IMAGES, exist_ok=True)
    if plot:
        with open(os.path.join(IMAGES, name + ".svg"), "w") as file:
            file.write(plot)
    with open(os.path.join(IMAGES, name + ".json"), "w") as file:
        json.dump(results, file)
    with open(PAGE, "w") as file:
        file.write(re.sub(pattern, lambda _: f"{begin}\n{words}\n{end}", text, flags=re.DOTALL))
