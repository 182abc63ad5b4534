"""The native door, `/dws/v1/…`: says what the model says. Structs are in `dws.wire.native_v1`."""
