"""What rule files mean for the datasets of a pipeline: which rules code applies, and the checks of whole tables, also as suites of Great
Expectations (docs/reference/rules.md). Rules on rows are judged in `spark/expectations`.
"""
