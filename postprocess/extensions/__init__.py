"""Packages that the core does not know: found beside it (:mod:`postprocess.cli.extensions`)."""
