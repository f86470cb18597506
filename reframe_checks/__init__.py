"""What is measured, one file a family. ReFrame loads this file before any check.

- ``mpicost``: the tests of Luecke et al. (2001, 2003) and the controls; every night.
- ``routines``: each routine of these as a test of its own, where a plain ReFrame chooses tests (``-n bcast``).
- ``osu``, ``imb``: OSU Micro-Benchmarks and Intel MPI Benchmarks; every night.
- ``compositions``: operations put together from other calls; ``--family compositions``.
- ``swaps``: messages both ways, and ping-pong by modes of sending; ``--family swaps`` or ``sends``.
- ``taboada``: the primitives of Taboada et al. at their sizes; ``--family taboada``.
- ``kernels``: application kernels; ``--program kernels``, or ``--family kernels``.
- ``bindings``: MPI from several languages; ``--program bindings``.
- ``guidelines``: operations and what they should not be slower than; ``./plumbline guidelines``.
- ``agreement``: the same cases by ``mpicost``, OSU and IMB; ``./plumbline agree``.
- ``links``: ping-pong between all pairs of nodes; ``./plumbline links``.
"""

import runpy
import sys
from pathlib import Path

# An ImportError would not do: ReFrame warns of checks that do not load, drops them and passes.
try:
    runpy.run_path(str(Path(__file__).resolve().parent.parent / "site_configs" / "__init__.py"))
except ImportError as error:
    sys.exit(f"plumbline: {error}")
