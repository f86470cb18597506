"""What a language costs over C: one program in each, started in rounds on one node."""
