// The version of the coordinator, in coordinator.json.

export const COORDINATOR_VERSION = '0.1.0'
