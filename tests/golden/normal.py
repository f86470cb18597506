"""Takes out of a text what another run, place, machine or version would change, and nothing else."""

import re
from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timezone
from hashlib import sha256

from postprocess.base.version import VERSION

DIGITS = 10  #: of a number; the last ones hang on the processor and on how a library was built
LONG_NUMBER = re.compile(r"-?\d+\.\d{9,}(?:e[-+]?\d+)?|-?\d+\.\d+e-?\d+")
MOMENT = re.compile(r"\b(\d{4})-?(\d\d)-?(\d\d)T(\d\d):?(\d\d):?(\d\d)(?:\.\d+)?(Z-\d+|Z|\+00:00)")
PICTURE = re.compile(r"<svg\b.*?</svg>", re.DOTALL)
STYLE = re.compile(r"<style>.*?</style>", re.DOTALL)
LABEL = re.compile(r"<text\b[^>]*>(.*?)</text>", re.DOTALL)
TAKEN = re.compile(r"^time: .*$", re.MULTILINE)
ELEMENT = re.compile(r"<([a-z]\w*)")


def normalise(text: str, places: Mapping[str, str], began: datetime) -> str:
    """Return a text without paths, times since ``began``, version, long digits and drawn pictures.

    :param places: what stands for each path
    """
    text = PICTURE.sub(describe_picture, text)
    text = STYLE.sub(lambda match: f"<style>{_digest(match[0])}</style>", text)
    for path, word in sorted(places.items(), key=lambda each: -len(each[0])):
        text = text.replace(path, word)
    text = MOMENT.sub(lambda match: replace_moment(match, began), text)
    text = TAKEN.sub("time: TIME", text)
    text = LONG_NUMBER.sub(lambda match: f"{float(match[0]):.{DIGITS}g}", text)
    return re.sub(rf"\b{re.escape(VERSION)}\b", "VERSION", text)


def replace_moment(match: re.Match[str], began: datetime) -> str:
    """Replace a moment of this run, or the session that began then; leave recorded ones."""
    numbers = map(int, match.groups()[:6])
    try:
        moment = datetime(*numbers, tzinfo=timezone.utc)
    except ValueError:
        return match[0]
    if moment < began.replace(microsecond=0):
        return match[0]
    return "SESSION" if "-" in match[7] else "NOW"


def describe_picture(match: re.Match[str]) -> str:
    """Describe a picture by its labels and the number of its elements."""
    elements = Counter(ELEMENT.findall(match[0]))
    counted = " ".join(f"{name}:{elements[name]}" for name in sorted(elements))
    labels = " | ".join(" ".join(label.split()) for label in LABEL.findall(match[0]))
    return f"<svg>{counted}\n{labels}\n</svg>"


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:12]
