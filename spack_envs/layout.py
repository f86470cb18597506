"""The folders of Spack below a work directory."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spack_envs.recipes import Recipes


@dataclass(frozen=True)
class SpackLayout:
    """Folders below ``<work>/spack``."""

    work: Path

    @property
    def root(self) -> Path:
        """Everything of Spack that is not Spack itself."""
        return self.work / "spack"

    @property
    def environments(self) -> Path:
        """One folder per environment, and ``common``."""
        return self.root / "environments"

    @property
    def installed(self) -> Path:
        """What Spack has built."""
        return self.root / "installed"

    @property
    def facades(self) -> Path:
        """Prefixes of the MPIs that do not look as Spack expects."""
        return self.root / "facades"

    @property
    def recipes(self) -> Path:
        """Closed worlds of recipes."""
        return self.root / "recipes"

    @property
    def mirrored(self) -> Path:
        """What was unpacked from a mirror, and recipes of sources that it replaces."""
        return self.root / "mirrored"

    @property
    def user_cache(self) -> Path:
        """What Spack would keep in the home directory."""
        return self.root / "cache"

    def environment(self, name: str) -> Path:
        """Return the folder of one environment."""
        return self.environments / name

    def make_folders(self) -> None:
        """Spack makes its folders itself, except the one for links to stages."""
        (self.root / "links").mkdir(parents=True, exist_ok=True)

    def config(self, recipes: Recipes) -> dict[str, Any]:
        """Return Spack's section ``config``: every place that Spack writes to."""
        return {
            "install_tree": {"root": str(self.installed)},
            "build_stage": [str(self.root / "stage")],
            "test_stage": str(self.root / "test"),
            "source_cache": str(self.root / "sources"),
            "misc_cache": str(recipes.index),
            "environments_root": str(self.environments),
            "license_dir": str(self.root / "licenses"),
            "develop_stage_link": str(self.root / "links" / "{name}-{hash:7}"),
        }
