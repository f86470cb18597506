"""What is measured where neither the user nor the site says otherwise."""

from __future__ import annotations

from postprocess.statistics import PAPERS

TRIALS = PAPERS  #: of mpicost, per case
CACHE = "flush"  #: of mpicost, before each trial
WARM = "warm"  #: of OSU and IMB, whose loops leave the caches so, and of the comparison of nodes
SYNC = "dissemination"  #: what starts the processes of a trial of mpicost together
