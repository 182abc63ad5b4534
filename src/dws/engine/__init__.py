"""Makes it happen: the synchronous application layer that owns ports and transactions.

Faces call `Engine` (in `app`); it decides through `planner` and `lifecycle`, writes through the
committer and the ledger, and acts through backends.
"""
