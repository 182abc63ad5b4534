"""The typed client of the native API, for programs and for the `dws` command.

Knows `dws.wire` and the errors of `dws.model`; the server is only reached over HTTP.
"""

from dws.client.client import Client
from dws.client.transport import NoServer

__all__ = ["Client", "NoServer"]
