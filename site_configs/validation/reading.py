"""The contents of a site file as read by ``site_configs.validation.reader``. ReFrame is not imported."""

from dataclasses import dataclass, field
from typing import Any

from postprocess.base.records import parse_record
from postprocess.base.strict_json import parse_json


@dataclass(frozen=True, order=True)
class SiteFault:
    """One fault, with its line in the site file; 0 if it has no line."""

    line: int
    text: str


@dataclass
class SiteReading:
    """The contents of a site file."""

    faults: list[SiteFault] = field(default_factory=list)
    #: ReFrame's configuration of the one system; None if the file makes none.
    configuration: dict[str, Any] | None = None
    #: Line of each call, by ``environment NAME``, ``partition NAME``, ``site NAME``.
    lines: dict[str, int] = field(default_factory=dict)
    #: Wrong calls, so that no further fault is derived from their placeholders.
    broken: list[str] = field(default_factory=list)
    #: Names that the site's ReFrame knows.
    launchers: list[str] = field(default_factory=list)
    schedulers: list[str] = field(default_factory=list)
    #: What the file needs and this machine lacks, and how to get it.
    not_installed: str = ""
    #: Parts of backends that cannot be used here, and why (Flux without its Python package).
    unusable: dict[str, str] = field(default_factory=dict)

    @property
    def sound_configuration(self) -> dict[str, Any]:
        """ReFrame's configuration, of a file that makes one."""
        assert self.configuration is not None
        return self.configuration


def parse_reading(text: str) -> SiteReading:
    """Parse the output of :func:`site_configs.validation.reader.main`."""
    return parse_record(parse_json(text), SiteReading, exact=True)
