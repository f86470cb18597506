"""What a machine is: its topology, its MPIs, and the ReFrame configuration of each site."""
