"""A checksum inside a file, at a place kept free for it: proof that the file is as it was written.

Parquet keeps its own metadata at the end, and readers differ in what they do with a damaged file:
some stop the whole process. So nothing is handed to one before its seal is seen to be whole.
"""

from __future__ import annotations

import hashlib

MARK = b"sha256 of this file with zeros here: "
BLANK = b"0" * 64
PLACEHOLDER = (MARK + BLANK).decode()  #: text that the file must hold once, last of all its marks


def seal(data: bytes) -> bytes:
    """The file with its checksum in the last placeholder. Raises ValueError if there is none."""
    place = data.rfind(MARK + BLANK)
    if place < 0:
        raise ValueError("the file has no placeholder for a seal")
    digest = hashlib.sha256(data).hexdigest().encode()
    start = place + len(MARK)
    return data[:start] + digest + data[start + len(BLANK) :]


def is_intact(data: bytes) -> bool:
    """Whether the file bears a seal, and not one byte has changed since."""
    place = data.rfind(MARK)
    start = place + len(MARK)
    stated = data[start : start + len(BLANK)]
    blank = data[:start] + BLANK + data[start + len(BLANK) :]
    return place >= 0 and hashlib.sha256(blank).hexdigest().encode() == stated
