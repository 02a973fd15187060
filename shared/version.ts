// The version of Boxwood: of the coordinator, the agent and the box command. The same as in package.json.

export const VERSION = '1.0.0-rc.1'

/** The version of the paths and fields of the HTTP API. */
export const API_VERSION = '1'
