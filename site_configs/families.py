"""The families of MPIs: one record per family of all that depends on it.

A new family is a record here. No other code knows a family by name, which a test checks.
"""

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

SIMULATED = "simgrid"  #: family of SimGrid, which stands for an MPI in simulated time
NOTHING = "(?!)"  #: a pattern without a match


@dataclass(frozen=True)
class ThreadBinding:
    """Additions to a launch: options behind the launcher's words, and variables."""

    options: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class SourceVersion:
    """Where the source of an MPI has its version."""

    file: str
    pattern: re.Pattern[str]  #: its groups are the parts of the version
    unreleased: str  #: Spack's version of a source without ``configure``


def set_nothing(prefix: Path) -> Mapping[str, str]:
    return {}


@dataclass(frozen=True)
class Family:
    """One family of MPIs. A field that is left out means that it has no such thing, or that it is unknown."""

    name: str  #: name in the names of environments, in site files and on the command line
    #: Beginning of its MPI_Get_library_version: the version is the one or two groups. A library that names
    #: another one later wraps it or is derived from it, and does not belong to the family of that one.
    library: str = NOTHING
    version_numbers: int = 3  #: count of numbers of a whole version
    by_default: bool = False  #: whether it is measured if no family is asked for
    modules: str = ""  #: pattern of the names that sites, vendors, Spack and EasyBuild give it
    #: first release with all of an MPI standard, by its release notes
    standards: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    # --- to build for it
    package: str = ""  #: Spack's package; its environment is ``spack_envs/<name>/spack.yaml``
    variants: str = ""  #: variants of that package; only C is needed
    in_component_folder: bool = False  #: whether Spack looks for it in oneAPI's folder ``mpi/VERSION``
    source: SourceVersion | None = None  #: how its source is recognised
    shares_mpich_abi: bool = True  #: whether it may have the library of MPICH's binary interface
    brings_imb: bool = False  #: whether IMB comes with it
    java: str = ""  #: file of its own Java binding, below its prefix
    no_cluster_wheel: str = ""  #: why its wheel is useless on a cluster

    # --- to start its programs
    #: variables that an MPI at this prefix needs to start here, and to bind ranks to cores
    environment: Callable[[Path], Mapping[str, str]] = set_nothing
    #: whether an MPI that is not identified yet gets these variables: this family starts no program without
    needs_environment: bool = False
    #: variables with which more processes than cores are started, and not very slowly
    oversubscribed: dict[str, str] = field(default_factory=dict)
    #: variables that save time on a machine of one node, unless the user's shell sets them
    one_node: Mapping[str, str] = field(default_factory=dict)
    threads: ThreadBinding | None = None  #: how its own ``mpiexec`` binds ranks to hardware threads
    #: ReFrame's launcher, and why; empty: the MPI's own
    launcher: tuple[str, str] = ("", "the MPI's own launcher")
    srun: str = ""  #: its kind among those of ``srun --mpi=list``, if Slurm should start it
    #: the MPI's own launcher in a job of Slurm if srun lacks that kind, and why; empty: plain srun
    slurm: tuple[str, str] = ("mpiexec", "its own Hydra, which asks Slurm for the job's nodes")

    # --- its settings
    variables: tuple[str, ...] = ()  #: beginnings of the variables that change how it behaves
    control_prefix: str = ""  #: what makes the name of a control variable that of a variable, if it differs
    #: by device, as MPI_Get_library_version names it: beginnings of the control variables that only it reads,
    #: though each device has all of them
    devices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    #: by library below it (``layers.py``): variables that make this carry all messages, even within a node
    layers: Mapping[str, dict[str, str]] = field(default_factory=dict)
    #: by library below it: the variable that names the file of the library
    layer_files: Mapping[str, str] = field(default_factory=dict)
    #: by operation: algorithms of its collectives, with the values that choose them
    algorithms: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    algorithm_variable: str = ""  #: chooses one; {name} or {NAME} is the operation
    algorithm_settings: Mapping[str, str] = field(default_factory=dict)  #: without which that has no effect


def find_own_libfabric(prefix: Path) -> dict[str, str]:
    """Find the libfabric beside the library in wheels of Intel MPI up to 2021.15, which looks elsewhere."""
    library = prefix / "lib" / "libfabric.so.1"
    if not library.exists() or not any(library.parent.glob("lib*-fi.so")):
        return {}
    return {"I_MPI_OFI_LIBRARY": str(library), "FI_PROVIDER_PATH": str(library.parent)}


def locate_intel_mpi(prefix: Path) -> Mapping[str, str]:
    return {"I_MPI_ROOT": str(prefix)} | find_own_libfabric(prefix)


def allow_root(prefix: Path) -> Mapping[str, str]:
    allowed = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return allowed if os.geteuid() == 0 else {}


def bind_to_cores(prefix: Path) -> Mapping[str, str]:
    """Bind ranks to cores, as Open MPI and Intel MPI do unasked. Two on one core measure the scheduler."""
    return {"HYDRA_BINDING": "core"}


def chosen_by_name(algorithms: Mapping[str, Iterable[str]]) -> dict[str, dict[str, str]]:
    return {operation: {name: name for name in names} for operation, names in algorithms.items()}


def chosen_by_number(algorithms: Mapping[str, Iterable[str]]) -> dict[str, dict[str, str]]:
    return {
        operation: {name: str(number) for number, name in enumerate(names, 1)}
        for operation, names in algorithms.items()
    }


#: Algorithms of MPICH 3.4 and later.
MPICH_ALGORITHMS = chosen_by_name(
    {
        "barrier": ("k_dissemination", "recexch", "smp"),
        "bcast": (
            *("binomial", "smp", "scatter_recursive_doubling_allgather"),
            *("scatter_ring_allgather", "pipelined_tree", "tree"),
        ),
        "scatter": ("binomial",),
        "gather": ("binomial",),
        "allgather": ("brucks", "k_brucks", "recursive_doubling", "ring", "recexch_doubling"),
        "alltoall": ("brucks", "k_brucks", "pairwise", "pairwise_sendrecv_replace", "scattered"),
        "reduce": ("binomial", "smp", "reduce_scatter_gather"),
        "allreduce": ("smp", "recursive_doubling", "reduce_scatter_allgather", "tree", "recexch", "ring"),
        "scan": ("smp", "recursive_doubling"),
        "reduce_scatter": ("noncommutative", "pairwise", "recursive_doubling", "recursive_halving"),
        "reduce_scatter_block": ("noncommutative", "pairwise", "recursive_doubling", "recursive_halving"),
    }
)
#: Algorithms of Open MPI 4 and 5 (``ompi_info --param coll tuned --level 9``).
OPEN_MPI_ALGORITHMS = chosen_by_number(
    {
        "barrier": ("linear", "double_ring", "recursive_doubling", "bruck", "two_proc", "tree"),
        "bcast": (
            *("basic_linear", "chain", "pipeline", "split_binary_tree", "binary_tree", "binomial"),
            *("knomial", "scatter_allgather", "scatter_allgather_ring"),
        ),
        "scatter": ("basic_linear", "binomial", "linear_nb"),
        "gather": ("basic_linear", "binomial", "linear_sync"),
        "allgather": ("linear", "bruck", "recursive_doubling", "ring", "neighbor", "two_proc"),
        "alltoall": ("linear", "pairwise", "modified_bruck", "linear_sync", "two_proc"),
        "reduce": ("linear", "chain", "pipeline", "binary", "binomial", "in-order_binary", "rabenseifner"),
        "allreduce": (
            *("basic_linear", "nonoverlapping", "recursive_doubling", "ring", "segmented_ring"),
            "rabenseifner",
        ),
        "scan": ("linear", "recursive_doubling"),
        "reduce_scatter": ("non-overlapping", "recursive_halving", "ring", "butterfly"),
        "reduce_scatter_block": ("basic_linear", "recursive_doubling", "recursive_halving", "butterfly"),
    }
)
#: Number of algorithms of Intel MPI 2021, by its developer reference.
INTEL_MPI_ALGORITHMS = {
    **{"barrier": 9, "bcast": 14, "scatter": 4, "gather": 4, "allgather": 6, "alltoall": 5},
    **{"reduce": 11, "allreduce": 12, "scan": 2, "reduce_scatter": 5, "reduce_scatter_block": 3},
}

MPICH = Family(
    "mpich",
    r"MPICH Version:\s*(\d[\w.]*)",
    by_default=True,
    modules=r"mpich\d*",
    standards={"3.0": (3, 0), "4.0": (4, 0)},
    package="mpich",
    variants="~fortran",
    source=SourceVersion("maint/version.m4", re.compile(r"MPICH_VERSION_m4\],\[([^]]+)\]"), "develop"),
    environment=bind_to_cores,
    # It spins in its shared-memory collectives for whole time slices unless they are switched off
    # (slower with two ranks, so only here).
    oversubscribed={
        "MPIR_CVAR_COLL_SHM_LIMIT_PER_NODE": "0",
        "MPIR_CVAR_BARRIER_POSIX_INTRA_ALGORITHM": "mpir",
    },
    threads=ThreadBinding(("-bind-to", "hwthread")),
    srun="pmi2",
    variables=("MPIR_CVAR_", "MPIR_PARAM_", "MPICH_"),
    devices={"ch3": ("MPIR_CVAR_CH3_", "MPIR_CVAR_NEMESIS_"), "ch4": ("MPIR_CVAR_CH4_",)},
    layers={
        "ucx": {"MPIR_CVAR_CH4_NETMOD": "ucx", "MPIR_CVAR_NOLOCAL": "1", "UCX_LOG_LEVEL": "error"},
        "libfabric": {"MPIR_CVAR_CH4_NETMOD": "ofi", "MPIR_CVAR_NOLOCAL": "1"},
    },
    algorithms=MPICH_ALGORITHMS,
    algorithm_variable="MPIR_CVAR_{NAME}_INTRA_ALGORITHM",
    # Instead of an error, another algorithm is used where one does not fit.
    algorithm_settings={"MPIR_CVAR_COLLECTIVE_FALLBACK": "silent"},
)

#: Where several families come into question, in this order. Within a node MPICH's own shared memory carries all
#: messages unless it is switched off, and Open MPI uses neither UCX nor libfabric without a network. A UCX
#: older than the one that its MPI was built with reports that on standard output in each launch.
FAMILIES = {
    family.name: family
    for family in (
        MPICH,
        Family(
            "openmpi",
            r"Open MPI v(\d[\w.]*)(?s:(?!.*\bSpectrum MPI\b))",
            by_default=True,
            modules=r"open[-_]?mpi\d*|ompi\d*|hpc-?x",
            standards={"3.0": (1, 8), "4.0": (5, 0)},
            package="openmpi",
            variants="~fortran",
            source=SourceVersion(
                "VERSION", re.compile(r"^major=(\d+)\s+minor=(\d+)\s+release=(\d+)", re.M), "main"
            ),
            shares_mpich_abi=False,
            environment=allow_root,
            needs_environment=True,
            # Release 5 reads the PRTE variables, and 4 the OMPI one.
            oversubscribed={
                "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
                "PRTE_MCA_hwloc_default_binding_policy": "none",
                "OMPI_MCA_rmaps_base_oversubscribe": "1",
                "OMPI_MCA_mpi_yield_when_idle": "1",
            },
            # It opens its libfabric transport, which one node does not use, and sleeps for a second when it
            # closes it.
            one_node={"OMPI_MCA_btl": "^ofi"},
            # It counts hardware threads as slots only if asked to.
            threads=ThreadBinding(("--use-hwthread-cpus", "--map-by", "hwthread", "--bind-to", "hwthread")),
            slurm=(
                "mpirun",
                "its own mpirun inside the job; srun --mpi=pmix is known to crash at some process counts",
            ),
            variables=("OMPI_MCA_",),
            control_prefix="OMPI_MCA_",
            layers={
                "ucx": {
                    "OMPI_MCA_pml": "ucx",
                    "OMPI_MCA_pml_ucx_tls": "any",
                    "OMPI_MCA_pml_ucx_devices": "any",
                    "UCX_LOG_LEVEL": "error",
                },
                "libfabric": {
                    "OMPI_MCA_pml": "cm",
                    "OMPI_MCA_mtl": "ofi",
                    "OMPI_MCA_mtl_ofi_provider_exclude": "none",
                },
            },
            algorithms=OPEN_MPI_ALGORITHMS,
            algorithm_variable="OMPI_MCA_coll_tuned_{name}_algorithm",
            algorithm_settings={"OMPI_MCA_coll_tuned_use_dynamic_rules": "1"},
        ),
        Family(
            "intel-mpi",
            r"Intel\(R\) MPI Library (\d[\w.]*)(?: Update (\d+))?",
            version_numbers=2,  # it counts by years
            by_default=True,
            modules=r"intel[-_]?mpi|impi",
            standards={"3.0": (5, 0)},
            package="intel-oneapi-mpi",
            variants="+generic-names~classic-names~ilp64~external-libfabric~envmods",
            in_component_folder=True,
            brings_imb=True,
            java="share/java/mpi.jar",
            no_cluster_wheel="its wheel has no libfabric, without which it does not leave its node",
            environment=locate_intel_mpi,
            needs_environment=True,
            threads=ThreadBinding(
                variables={"I_MPI_PIN": "1", "I_MPI_PIN_CELL": "unit", "I_MPI_PIN_DOMAIN": "1:compact"}
            ),
            variables=("I_MPI_",),
            layers={"libfabric": {"I_MPI_FABRICS": "ofi"}},
            layer_files={"libfabric": "I_MPI_OFI_LIBRARY"},
            algorithms={
                operation: {str(number): str(number) for number in range(1, last + 1)}
                for operation, last in INTEL_MPI_ALGORITHMS.items()
            },
            algorithm_variable="I_MPI_ADJUST_{NAME}",
        ),
        Family(
            "mvapich",
            r"MVAPICH\S* Version\s*:\s*(\d[\w.]*)",
            modules=r"mvapich\d*",
            standards={"3.0": (2, 0)},
            srun="pmi2",
            variables=("MV2_", "MVP_"),
            devices=MPICH.devices,
            algorithms=MPICH.algorithms,
            algorithm_variable=MPICH.algorithm_variable,
            algorithm_settings=MPICH.algorithm_settings,
        ),
        Family(
            "cray-mpich",
            r"CRAY MPICH version (\d[\w.]*)",
            modules="cray-mpich",
            standards={"3.0": (7, 0)},
            launcher=("pals", "Cray's PALS, which takes the processes per node by itself"),
            srun="cray_shasta",
            slurm=("", "Slurm is what starts processes on a Cray with Slurm"),
            algorithms=MPICH.algorithms,
            algorithm_variable=MPICH.algorithm_variable,
            algorithm_settings=MPICH.algorithm_settings,
        ),
    )
}
DEFAULT_FAMILIES = tuple(family.name for family in FAMILIES.values() if family.by_default)
#: Families that Spack can build with, with Spack's package.
PACKAGES = {family.name: family.package for family in FAMILIES.values() if family.package}


DEVICE = re.compile(r"Device:\s*(\w+)")  #: in MPI_Get_library_version


def list_unread_variables(family: str, library: str) -> tuple[str, ...]:
    """List the beginnings of control variables that only other devices of an MPI read; none if it names none.

    :param library: its MPI_Get_library_version
    """
    devices, device = find_family(family).devices, DEVICE.search(library)
    if not device or device[1] not in devices:
        return ()
    return tuple(word for name, words in devices.items() if name != device[1] for word in words)


def find_family(name: str) -> Family:
    """Return the record of a family; for an unknown name, a record without facts."""
    return FAMILIES.get(name) or Family(name)
