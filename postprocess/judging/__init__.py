"""Turn the files of a launch into verdicts: outcomes, rules, confirmation runs, common causes.

What decides which verdict:

- ``crashed``, ``timeout``, ``incorrect``, ``incomplete`` of a launch: :func:`.outcome.determine_outcome`; the
  worst launch of a case decides: :func:`.evaluate.evaluate_case`.
- ``pass``, ``regressed``, ``fast``, ``provisional``, ``no-reference``: :func:`.evaluate.judge_case`.
- ``not-comparable``: :func:`.evaluate.evaluate_case` for other conditions, :func:`.evaluate.judge_case` for
  another method; :func:`.evaluate.judge_elsewhere` for ranks on other cores (or ``provisional``).
- ``incorrect`` because ReFrame contradicts: :func:`.evaluate.check_reframe_agrees` (its assertion),
  :func:`.outcome.compare_transport` (its number).
- ``cleared``, or still ``regressed``: :meth:`.confirmation.RetestCandidate.verdict`.
- ``suspect`` in place of ``regressed``: :func:`.suspicion.decide_suspicion`.
- ``skipped``: :func:`.evaluate.list_skipped`.
- ``incomplete`` because nothing planned it: :mod:`.notes`.
"""
