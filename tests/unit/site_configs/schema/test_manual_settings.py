"""What a shell sets for an MPI is found, and what its surroundings set is not taken for it."""

import pytest

from site_configs.schema import manual_settings

BY_HAND = """UCX_TLS=tcp OMPI_MCA_coll=^tuned OMPI_MCA_btl_tcp_if_include=10.0.0.0/24 PMIX_MCA_gds=hash
PRTE_MCA_rmaps_default_mapping_policy=core FI_PROVIDER=cxi I_MPI_FABRICS=shm MPICH_OFI_NIC_POLICY=NUMA
MPIR_CVAR_BCAST_INTRA_ALGORITHM=binomial MPIR_PARAM_NOLOCAL=1 MV2_USE_SHMEM_COLL=0 MVP_USE_SHMEM_COLL=0
UCC_TLS=ucp HCOLL_ENABLE_SHARP=3 PSM2_MQ_EAGER_SDMA_SZ=16384 PSM3_RV="""
#: Paths, and what a batch system or an outer mpiexec sets.
NOT_BY_HAND = """PATH=/usr/bin HOME_UCX_TLS=tcp OMPI_COMM_WORLD_RANK=0 I_MPI_ROOT=/opt/intel FI_PROVIDER_PATH=
UCX_MODULE_DIR=/opt/ucx/lib MPICH_DIR=~/mpich FI_HOOK=lib:/opt/lib I_MPI_HYDRA_BOOTSTRAP=slurm
I_MPI_INFO_NUMA_NODE_NUM=2 OMPI_MCA_orte_ess_num_procs=4 OMPI_MCA_ess_base_vpid=0 PRTE_MCA_ess_base_vpid=0
OMPI_MCA_plm_slurm_args=--external-launcher PMIX_MCA_mca_base_component_show_load_errors=0"""


def test_what_steers_an_mpi_is_found_and_nothing_else():
    meant, others = (dict(word.split("=") for word in text.split()) for text in (BY_HAND, NOT_BY_HAND))
    assert manual_settings.select_shell_settings(meant | others) == meant


def test_it_is_told_only_where_there_is_some():
    assert manual_settings.collect_manual_settings({}, False, "mpich", {}) == {}
    shell = {"UCX_TLS": "tcp"}
    expected = {"oversubscribe": True, "set_env": {"A": "1"}, "shell": shell}
    assert manual_settings.collect_manual_settings({"mpich": {"A": "1"}}, True, "mpich", shell) == expected


TCP, RC = {"shell": {"UCX_TLS": "tcp"}}, {"shell": {"UCX_TLS": "rc"}}


@pytest.mark.parametrize(
    ("ours", "theirs", "same"),
    [({}, {}, True), (TCP, TCP, True), (TCP, {}, False), ({}, TCP, False), (TCP, RC, False)],
)
def test_a_shell_compares_with_the_same_only(ours, theirs, same):
    assert manual_settings.has_all_settings(ours, theirs) is same
    assert manual_settings.has_all_settings({"oversubscribe": True, **ours}, theirs) is same
    assert (manual_settings.list_shell_differences(ours, theirs) == {}) is same
    assert not manual_settings.has_all_settings(ours, {"oversubscribe": True, **theirs})


@pytest.mark.parametrize(
    ("theirs", "ours", "way"),
    [
        (TCP, {}, True),
        ({}, TCP, False),
        (RC, TCP, False),
        (TCP, TCP, False),
        ({"oversubscribe": True, **TCP}, TCP, True),
    ],
)
def test_an_automatic_reference_gives_way_to_a_plain_launch_and_not_to_a_forgotten_variable(theirs, ours, way):
    assert manual_settings.is_replaced_by(theirs, ours) is way
