"""What the benchmarks' command lines have in common."""
import argparse
import os
import re
import shlex

ENVIRONMENT = "environment:\n  NIGHTJAR    the program to measure, instead of .build/release/nightjar\n"
# Where results go, which changes nothing of them.
ELSEWHERE = {"json", "results", "document", "keep", "former"}


class Parser(argparse.ArgumentParser):
    """Its help has the description as it stands, and tells how to name the program; errors are one line."""

    def __init__(self, description, environment=""):
        super().__init__(description=description, epilog=ENVIRONMENT + environment,
                         formatter_class=argparse.RawDescriptionHelpFormatter)

    def error(self, message):
        self.exit(64, f"{self.prog}: {message.removeprefix('argument ')}\n")


def at_least(least, kind=int):
    """A type of argument: a number that is not smaller."""
    def number(text):
        try:
            value = kind(text)
        except ValueError:
            value = None
        # Not a number is not equal to itself.
        if value is None or not least <= value < float("inf"):
            raise argparse.ArgumentTypeError(f"'{text}': choose {least:g} or more")
        return value
    return number


def size(text):
    """A type of argument: WIDTHxHEIGHT, even, as YUV 4:2:0 wants it."""
    if not re.fullmatch(r"[1-9]\d{0,4}x[1-9]\d{0,4}", text) or any(int(part) % 2 for part in text.split("x")):
        raise argparse.ArgumentTypeError(f"'{text}': choose WIDTHxHEIGHT, two even numbers, as in 1280x720")
    return text


def mode(text):
    """A type of argument: WIDTHxHEIGHT@FPS."""
    picture, _, rate = text.partition("@")
    if not re.fullmatch(r"[1-9]\d{0,2}", rate):
        raise argparse.ArgumentTypeError(f"'{text}': choose WIDTHxHEIGHT@FPS, as in 1280x720@30")
    size(picture)
    return text


def several(each, separator=","):
    """A type of argument: several of another type; the text as it is."""
    def texts(text):
        for part in text.split(separator):
            each(part)
        return text
    return texts


def one_of(names):
    """A type of argument: a name."""
    def name(text):
        if text not in names:
            raise argparse.ArgumentTypeError(f"'{text}' is none of them: {' '.join(names)}")
        return text
    return name


def row(text):
    """A type of argument: NAME=WORDS."""
    name, equals, words = text.partition("=")
    if not name or not equals or not words:
        raise argparse.ArgumentTypeError(f"'{text}': choose NAME=…")
    return text


def command(parser, options):
    """The command line with all options that are not as they are by default, to stand beside the results. Of paths only
    their last part, because the folders are this machine's."""
    words = ["Benchmarks/" + os.path.basename(parser.prog)]
    for action in parser._actions:
        value = getattr(options, action.dest, None)
        if not action.option_strings or action.dest in {"help", *ELSEWHERE} or value == action.default:
            continue
        name = action.option_strings[0]
        if isinstance(action, argparse.BooleanOptionalAction):
            words.append(action.option_strings[0 if value else 1])
        elif action.nargs == 0:
            words.append(name)
        else:
            for each in value if isinstance(value, list) else [value]:
                text = f"{each:g}" if isinstance(each, float) else str(each)
                words += [name, shlex.quote(re.sub(r"(?<![^=\s])/\S*/", "", text))]
    return " ".join(words)
