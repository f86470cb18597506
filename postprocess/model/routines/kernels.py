"""The application kernels of Taboada et al. (Java Grande Forum), and the names of their cases."""

from site_configs.programs.program import PROGRAMS

KERNELS = "kernels"  #: the program, and the family that is its smallest size

#: Bytes of the data of each kernel (coefficients, matrix, matrix, vector, text) by size. The published matrix
#: of LUFact C is singular, so that size uses a matrix of ours.
SIZES = {
    "series": {"A": 160_000, "B": 1_600_000, "C": 16_000_000},
    "lufact": {"A": 2_000_000, "B": 8_000_000, "C_own": 32_000_000},
    "sor": {"A": 8_000_000, "B": 18_000_000, "C": 32_000_000},
    "sparse": {"A": 400_000, "B": 800_000, "C": 4_000_000},
    "crypt": {"A": 3_000_000, "B": 20_000_000, "C": 50_000_000},
}

WITHOUT_RETURN = "_compute"  #: suffix of a case that does not return the results to rank 0
RETURNS_NOTHING = ("sparse",)  #: all ranks have the result

SMALLEST = "A"

#: Runs of a kernel, of which the first is dropped
TRIALS: int = PROGRAMS[KERNELS].options["trials"]

#: Rough seconds of a run on one core, used if none was measured
ROUGH_RUN = {"A": 0.1, "B": 0.3, "C": 2.0}
ROUGH_SERIES = {"A": 1.0, "B": 9.0, "C": 93.0}


def guess_run_seconds(name: str, processes: int) -> float:
    """Estimate the seconds of a run of a case, as if its work were shared evenly."""
    kernel, size, *_ = name.split("_")
    return (ROUGH_SERIES if kernel == "series" else ROUGH_RUN)[size] / processes


def name_cases(kernel: str, size: str) -> tuple[str, ...]:
    """Return the names of the cases of a kernel at a size: the whole run, and the run without the return."""
    whole = f"{kernel}_{size}"
    return (whole,) if kernel in RETURNS_NOTHING else (whole, whole + WITHOUT_RETURN)


#: Bytes by case name, in the order of the suite.
BYTES = {
    name: count
    for kernel, sizes in SIZES.items()
    for size, count in sizes.items()
    for name in name_cases(kernel, size)
}

#: What ``--family kernels`` measures.
FAMILY = tuple(name for kernel in SIZES for name in name_cases(kernel, SMALLEST))
