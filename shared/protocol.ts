// What agent and coordinator must agree on besides shapes: the version, the paths and headers of the tunnel.

/**
 * The version of what agent and coordinator say to each other.
 * 1: HTTP/2 over a WebSocket with the roles reversed; exec, files, reports; transfers on connections of their own.
 * 2: detached commands and their streams; records of commands among the reports. A coordinator takes 1 too: such an
 * agent runs what it knows, and records nothing.
 */
export const PROTOCOL_VERSION = 2
export const OLDEST_PROTOCOL_VERSION = 1

export const AGENT_VERSION = '0.1.0'

/** On the coordinator: the WebSocket the agent opens, and where it fetches or brings a large body. */
export const TUNNEL_PATH = '/agent/tunnel'
export const TRANSFER_PATH = '/agent/transfers/'
/** And the WebSocket it opens for what is followed. */
export const STREAM_PATH = '/agent/streams/'

/** Headers of the tunnel's upgrade request, next to `Authorization: Bearer <box token>`. */
export const BOX_HEADER = 'boxwood-box'
export const PROTOCOL_HEADER = 'boxwood-protocol'
/** A new value for each process of an agent: tells its own reconnect from a second agent with the same token. */
export const INSTANCE_HEADER = 'boxwood-instance'
export const AGENT_VERSION_HEADER = 'boxwood-agent-version'

/**
 * On a tunnel request for a file or a stream: the one-time id of what goes beside the tunnel. An answer that repeats it is
 * empty; in one that does not is the body.
 */
export const TRANSFER_HEADER = 'boxwood-transfer'
/** Beside it, for an upload: how many bytes the transfer will have, where its sender said. */
export const TRANSFER_LENGTH_HEADER = 'boxwood-transfer-length'
/** Milliseconds after which an agent that was sent away should come back. */
export const RECONNECT_AFTER_HEADER = 'boxwood-reconnect-after-ms'
/** The box command names its version here (spec §9). */
export const CLI_VERSION_HEADER = 'x-service-cli-version'
