"""What a machine is: its topology, its MPIs, and the ReFrame configuration of each site.

ReFrame loads this file before a site file, and ``reframe_checks`` runs it too. It makes the code that sites and
checks share importable, wherever ReFrame was started and whatever PYTHONPATH says.
"""

import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path

PACKAGES = ("postprocess", "reframe_checks", "site_configs", "spack_envs")
ROOT = Path(__file__).resolve().parent.parent
#: packages that sites and checks need in addition to those of ReFrame itself
NEEDED = ("numpy", "scipy", "msgspec")


class PackagesBesideChecks(MetaPathFinder):
    """Find the packages of Plumbline in its own folder, and nothing else there."""

    def find_spec(self, name, path=None, target=None):
        """Return the spec of a package of Plumbline; None for anything else."""
        return PathFinder.find_spec(name, [str(ROOT)]) if name in PACKAGES else None


def make_packages_importable() -> None:
    """Make the packages importable. Raises ImportError if Python has another package of one of these names."""
    specs = {name: find_spec(name) for name in PACKAGES}
    for name, spec in specs.items():
        if spec and spec.origin and ROOT not in Path(spec.origin).resolve().parents:
            fix = f"take {Path(spec.origin).parent.parent} off PYTHONPATH"
            raise ImportError(f"{spec.origin} hides {ROOT / name}; {fix}")
    if not all(specs.values()):
        sys.meta_path.append(PackagesBesideChecks())


def check_needed_packages() -> None:
    """Check that Python has the packages that sites and checks need. Raises ImportError if one is missing."""
    if lacking := [name for name in NEEDED if not find_spec(name)]:
        fix = f"{sys.executable} -m pip install {' '.join(lacking)}"
        raise ImportError(f"{' and '.join(lacking)}: not in this ReFrame's Python; {fix}")


make_packages_importable()
check_needed_packages()
