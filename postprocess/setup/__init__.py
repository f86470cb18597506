"""MPIs, Spack, environments and programs, made ready for a session."""
