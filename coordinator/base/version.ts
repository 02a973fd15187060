// The versions of the coordinator and of its API.

export const COORDINATOR_VERSION = '0.1.0'

/** The version of the paths and fields of the HTTP API. */
export const API_VERSION = '1'
