"""PBS and Torque: site-file options, queues and nodes, launchers."""
