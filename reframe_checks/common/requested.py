"""Families of mpicost that are measured only where they are asked for."""

from reframe_checks.common.mpicost import MpicostCheck


class RequestedCheck(MpicostCheck, family=True):
    """A family whose routines are measured where they were named: by ``--family``, or ``--routine``."""

    def chosen_routines(self) -> list[str]:
        wanted = self.wanted_routines() or {}
        return super().chosen_routines() if self.routines or wanted else []
