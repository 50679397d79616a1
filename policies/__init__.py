"""Policies: which dose of context a question gets. Pure functions of a situation; no I/O, no model.

A part (what decides one question of the dose) is a file here, and a field of
:class:`~policies.router.Router`; a policy with a name is a choice of parts, in :data:`~policies.specs.PRESETS`.
A strategy that is asked for by name is :class:`~policies.fixed.Fixed`.
"""
