// The agent protocol: its version, the paths on the coordinator and the headers. See docs/protocol.md.

/**
 * Version history:
 * 1: HTTP/2 over a WebSocket with reversed roles; exec, files, reports; dial-back connections for large bodies.
 * 2: detached commands and their streams; command records among the reports.
 * 3: output streams as typed frames (shared/stream-frames.ts); `claimsToken` in command records.
 * Versions 1 and 2 were never released; a coordinator accepts version 3 only.
 */
export const PROTOCOL_VERSION = 3

export const AGENT_VERSION = '0.1.0'

/** The tunnel: the WebSocket that each agent keeps open. */
export const TUNNEL_PATH = '/agent/tunnel'
/** Dial-back connection for a large body, an HTTP request: GET fetches an upload, PUT sends a download. */
export const TRANSFER_PATH = '/agent/transfers/'
/** Dial-back connection for an output stream, a WebSocket. */
export const STREAM_PATH = '/agent/streams/'

/** Headers of every connection that an agent opens, next to `Authorization: Bearer <box token>`. */
export const BOX_HEADER = 'boxwood-box'
export const PROTOCOL_HEADER = 'boxwood-protocol'
/** Random per agent process: distinguishes a reconnect from a second agent with the same token. */
export const INSTANCE_HEADER = 'boxwood-instance'
export const AGENT_VERSION_HEADER = 'boxwood-agent-version'

/**
 * On a tunnel request: the one-time id of a dial-back connection that the agent may use for the body or the stream. A
 * response that repeats the header has an empty body: the content follows on that connection.
 */
export const DIAL_BACK_HEADER = 'boxwood-dial-back'
/** With DIAL_BACK_HEADER, for an upload: the length of the body in bytes, if the client declared it. */
export const TRANSFER_LENGTH_HEADER = 'boxwood-transfer-length'
/** On a rejected tunnel: milliseconds until the agent may reconnect. */
export const RECONNECT_AFTER_HEADER = 'boxwood-reconnect-after-ms'
/** The version of the `box` command (spec §9). */
export const CLI_VERSION_HEADER = 'x-service-cli-version'
