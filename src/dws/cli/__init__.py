"""The `dws` command. A client like any other: it talks HTTP, except where it is the server or works on files.

`main` has the table of commands; each is in the module of its noun and loaded when used.
"""
