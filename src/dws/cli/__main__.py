"""`python -m dws.cli`: the dws command."""

from dws.cli.main import main

main()
