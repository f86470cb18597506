"""Layouts for site files that were written before :mod:`site_configs.common` offered them."""

from site_configs.topology.layouts import Layout, Topology

__all__ = ["Layout", "Topology"]
