"""From the files of a launch to verdicts: outcomes, rules, confirmation runs, common causes."""
