"""Deep research: a question divided into tasks, researched in rounds, judged, and written up.

`state` is pure: what a run is, folded from its facts, and what it does next. Everything else here carries out the next step, so
that a run can be resumed from its log alone.
"""
