"""What is measured, one file a family. ReFrame loads this file before any check."""

import runpy
from pathlib import Path

runpy.run_path(str(Path(__file__).resolve().parent.parent / "site_configs" / "__init__.py"))
