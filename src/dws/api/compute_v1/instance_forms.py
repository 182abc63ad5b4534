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
_RUN: Final[dict[str, Kind]] = {
    "provisioningModel": words(*MODELS),
    "maxRunDuration": DURATION,
    "terminationTime": text,
    "instanceTerminationAction": words("DELETE", "STOP"),
    "requestValidForDuration": DURATION,
}
SCHEDULING: Final = Form(
    _RUN
    | carried(
        "automaticRestart",
        "availabilityDomain",
        "currentCpus",
        "currentMemoryMb",
        "exposeHostTopology",
        "gracefulShutdown",
        "hostErrorTimeoutSeconds",
        "latencyTolerant",
        "localSsdRecoveryTimeout",
        "locationHint",
        "maintenanceFreezeDurationHours",
        "maintenanceInterval",
        "minNodeCpus",
        "nodeAffinities",
        "onHostMaintenance",
        "onInstanceStopAction",
        "preemptible",
        "preemptionNoticeDuration",
        "protectionTier",
        "shutdownTimeout",
        "skipGuestOsShutdown",
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
TAGS: Final = Form(carried("items"), ignored=frozenset({"fingerprint"}))
ACCELERATOR: Final = Form({"acceleratorType": text, "acceleratorCount": int32})
_READ: Final[dict[str, Kind]] = {
    "machineType": text,
    "scheduling": SCHEDULING,
    "reservationAffinity": AFFINITY,
    "metadata": METADATA,
    "labels": named(text),
    "tags": TAGS,
}
_SHARED: Final = _READ | carried(
    "advancedMachineFeatures",
    "canIpForward",
    "confidentialInstanceConfig",
    "description",
    "disks",
    "displayDevice",
    "guestAccelerators",
    "identity",
    "identityCertificate",
    "keyRevocationActionType",
    "localSsdEncryptionMode",
    "minCpuPlatform",
    "networkInterfaces",
    "networkPerformanceConfig",
    "partnerMetadata",
    "postKeyRevocationActionType",
    "privateIpv6GoogleAccess",
    "resourcePolicies",
    "secureTags",
    "serviceAccounts",
    "serviceIntegrationSpecs",
    "shieldedInstanceConfig",
    "shieldedVmConfig",
    "workloadIdentityConfig",
)
PROPERTIES: Final = Form(_SHARED | carried("resourceManagerTags"))
"""A template's or bulk insert's properties of an instance."""
INSTANCE: Final = Form(
    _SHARED
    | {
        "name": text,
        "deletionProtection": boolean,
        "params": Form({"requestValidForDuration": DURATION} | carried("resourceManagerTags")),
    }
    | carried(
        "eraseWindowsVssSignature",
        "hostname",
        "instanceEncryptionKey",
        "managementInterfaces",
        "shieldedInstanceIntegrityPolicy",
        "sourceMachineImage",
        "sourceMachineImageEncryptionKey",
    ),
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
