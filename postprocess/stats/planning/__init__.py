"""How many launches and trials it takes to see a slowdown, and what they cost. It may know all beside it."""
