"""Everything that happens around a measurement: plan, parse, judge, store, report."""
