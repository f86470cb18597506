"""What is measured, one file per family. ReFrame loads this file before any check.

- ``mpicost``: the tests of Luecke et al. (2001, 2003) and the controls; every night.
- ``routines``: each of these routines as its own test, if plain ReFrame selects tests (``-n bcast``).
- ``osu``, ``imb``: OSU Micro-Benchmarks and Intel MPI Benchmarks; every night.
- ``compositions``: operations composed of other calls; ``--family compositions``.
- ``swaps``: messages both ways, and ping-pong by send mode; ``--family swaps`` or ``sends``.
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

# An ImportError would not do: ReFrame warns about checks that do not load, drops them and passes.
try:
    runpy.run_path(str(Path(__file__).resolve().parent.parent / "site_configs" / "__init__.py"))
except ImportError as error:
    sys.exit(f"plumbline: {error}")
