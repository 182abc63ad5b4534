"""OpenDWS: a self-hosted dynamic workload scheduler for accelerator fleets."""
