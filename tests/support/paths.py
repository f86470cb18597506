"""Where the product and the data of tests are."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]  #: of the clone
SUITE = ROOT / "suite"
DATA = ROOT / "tests" / "data"
