"""Plan, parse, judge, store and report: a stack of packages, each of which imports only from below."""
