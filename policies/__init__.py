"""Policies: which dose of context a question gets. Pure functions of a situation; no I/O, no model.

:data:`policies.specs.POLICIES` is the registry. A part, which decides one question of the dose, is a file here and a
field of :class:`~policies.router.Router`; presets of the router are combinations of parts. A strategy that is asked for
by name is :class:`~policies.fixed.Fixed`.
"""
