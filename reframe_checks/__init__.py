"""What is measured, one file a family. ReFrame loads this file before any check."""

import runpy
import sys
from importlib.util import find_spec
from pathlib import Path

NEEDED = ("numpy", "scipy")  #: by the checks, beside what ReFrame itself needs

# An ImportError would not do: ReFrame warns of checks that do not load, drops them and passes.
try:
    runpy.run_path(str(Path(__file__).resolve().parent.parent / "site_configs" / "__init__.py"))
except ImportError as error:
    sys.exit(f"plumbline: {error}")
if lacking := [name for name in NEEDED if not find_spec(name)]:
    fix = f"{sys.executable} -m pip install {' '.join(lacking)}"
    sys.exit(f"plumbline: {' and '.join(lacking)}: not in this ReFrame's Python; {fix}")
