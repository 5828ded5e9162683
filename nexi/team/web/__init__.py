"""The team server over HTTP: `app` finds out who asks; the other modules are what only a team has.

Above is `nexi.web.server`; below are `Team`, and the doors of `nexi.web`, which know one person each.
"""
