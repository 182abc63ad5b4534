"""The forms of what instances are made like: shared by templates, instances and bulk inserts."""

from __future__ import annotations

from typing import Final

from dws.api.compute_v1.forms import (
    DURATION,
    OUTPUT_ONLY,
    Form,
    Kind,
    anything,
    boolean,
    int32,
    many,
    named,
    text,
    words,
)


def carried(*names: str) -> dict[str, Kind]:
    """Fields that mean nothing here: kept, and given back."""
    return dict.fromkeys(names, anything)


MODELS: Final = ("FLEX_START", "RESERVATION_BOUND", "SPOT", "STANDARD")
_SCHEDULING: Final[dict[str, Kind]] = {
    "provisioningModel": words(*MODELS),
    "maxRunDuration": DURATION,
    "terminationTime": text,
    "instanceTerminationAction": words("DELETE", "STOP"),
    "onHostMaintenance": words("MIGRATE", "TERMINATE"),
    "automaticRestart": boolean,
    "preemptible": boolean,
    "requestValidForDuration": DURATION,
    "availabilityDomain": int32,
    "gracefulShutdown": anything,
    "hostErrorTimeoutSeconds": int32,
    "localSsdRecoveryTimeout": DURATION,
    "locationHint": text,
    "minNodeCpus": int32,
    "nodeAffinities": many(anything),
    "onInstanceStopAction": anything,
    "skipGuestOsShutdown": boolean,
    "maintenanceInterval": text,
}
SCHEDULING: Final = Form(
    _SCHEDULING
    | carried(
        "currentCpus",
        "currentMemoryMb",
        "exposeHostTopology",
        "latencyTolerant",
        "maintenanceFreezeDurationHours",
        "preemptionNoticeDuration",
        "protectionTier",
        "shutdownTimeout",
        "vsockMode",
        "windowsLicenseOptimizationMode",
    )
)
AFFINITY: Final = Form(
    {
        "consumeReservationType": words(
            "ANY_RESERVATION", "NO_RESERVATION", "SPECIFIC_RESERVATION", "UNSPECIFIED"
        ),
        "key": text,
        "values": many(text),
    }
)
METADATA: Final = Form(
    {"items": many(Form({"key": text, "value": text}))}, ignored=frozenset({"kind", "fingerprint"})
)
TAGS: Final = Form({"items": many(text)}, ignored=frozenset({"fingerprint"}))
ACCELERATOR: Final = Form({"acceleratorType": text, "acceleratorCount": int32})
_READ: Final[dict[str, Kind]] = {
    "description": text,
    "machineType": text,
    "scheduling": SCHEDULING,
    "reservationAffinity": AFFINITY,
    "metadata": METADATA,
    "labels": named(text),
    "guestAccelerators": many(ACCELERATOR),
    "minCpuPlatform": text,
    "tags": TAGS,
    "canIpForward": boolean,
    "disks": many(anything),
    "networkInterfaces": many(anything),
    "serviceAccounts": many(anything),
    "privateIpv6GoogleAccess": text,
    "keyRevocationActionType": text,
}
_SHARED: Final[dict[str, Kind]] = _READ | carried(
    "advancedMachineFeatures",
    "confidentialInstanceConfig",
    "displayDevice",
    "identity",
    "identityCertificate",
    "localSsdEncryptionMode",
    "networkPerformanceConfig",
    "partnerMetadata",
    "postKeyRevocationActionType",
    "secureTags",
    "serviceIntegrationSpecs",
    "shieldedInstanceConfig",
    "shieldedVmConfig",
    "workloadIdentityConfig",
)
PROPERTIES: Final = Form(_SHARED | {"resourceManagerTags": named(text), "resourcePolicies": many(text)})
"""A template's or bulk insert's properties of an instance."""
INSTANCE: Final = Form(
    _SHARED
    | {
        "name": text,
        "hostname": text,
        "deletionProtection": boolean,
        "eraseWindowsVssSignature": boolean,
        "resourcePolicies": many(text),
        "params": Form({"resourceManagerTags": named(text), "requestValidForDuration": DURATION}),
        "instanceEncryptionKey": anything,
        "sourceMachineImage": text,
        "sourceMachineImageEncryptionKey": anything,
        "managementInterfaces": anything,
        "shieldedInstanceIntegrityPolicy": anything,
    },
    ignored=OUTPUT_ONLY
    | {
        "labelFingerprint",
        "resourceStatus",
        "lastStartTimestamp",
        "lastStopTimestamp",
        "cpuPlatform",
        "startRestricted",
        "statusMessage",
        "lastSuspendedTimestamp",
        "preservedStateSizeGb",
        "satisfiesPzi",
        "satisfiesPzs",
        "shieldedVmIntegrityPolicy",
        "upcomingMaintenance",
    },
)
"""An instance by itself."""
