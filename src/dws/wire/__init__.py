"""What travels: wire structs and time formats shared by the HTTP API and the clients.

Structs exactly as on the wire, no logic. Neither the engine nor the planner is known here.
"""
