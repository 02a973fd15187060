// The agent protocol: its version, the paths on the coordinator and the headers. See docs/protocol.md.

import { VERSION } from './version.ts'

/**
 * Version history:
 * 1: HTTP/2 over a WebSocket with reversed roles; exec, files, reports; dial-back connections for large bodies.
 * 2: detached commands and their streams; command records among the reports.
 * 3: output streams as typed frames (shared/stream-frames.ts); `claimsToken` in command records.
 * 4: builds of the agent by `POST /upgrade`; FAILED_BUILD_HEADER.
 * 5: small requests and reports as text messages (shared/tunnel-messages.ts); HTTP/2 only while it is used.
 * 6: all requests as messages, large bodies in chunks (shared/tunnel-bodies.ts); all transfers over dial-back connections.
 */
export const PROTOCOL_VERSION = 6
/**
 * The previous version. A coordinator accepts both, and an agent falls back to it, so that either side can be upgraded first.
 * Between two versions, only what fits into a message works: reports, small requests and upgrades.
 */
export const PREVIOUS_PROTOCOL_VERSION = 5

/** The first version with chunks, and with all transfers over dial-back connections. */
export const CHUNKS_PROTOCOL_VERSION = 6

/** @param build identifies the content of the bundle */
export const formatAgentVersion = (build: string): string => `${VERSION}+${build}`

/** The tunnel: the WebSocket that each agent keeps open. */
export const TUNNEL_PATH = '/agent/tunnel'
/** The agent of a new machine exchanges its token here: POST, with an EnrollRequest. */
export const ENROLL_PATH = '/agent/enroll'
/** Dial-back connection for a large body, followed by the id: GET fetches an upload, PUT sends a download. */
export const TRANSFER_PATH_PREFIX = '/agent/transfers/'
/** Dial-back connection for an output stream, followed by the id: a WebSocket. */
export const STREAM_PATH_PREFIX = '/agent/streams/'
/** Dial-back connection for an attached client, followed by the id: a WebSocket. */
export const SOCKET_PATH_PREFIX = '/agent/sockets/'

/**
 * A connection of a program of the box to a host of a secret, followed by the host: a WebSocket, which the agent opens without a
 * request of the coordinator. It carries the bytes of TLS (tcp-over-websocket.ts).
 */
export const SECRET_PATH_PREFIX = '/agent/secrets/'

/** The box id. On every connection that an agent opens, with `Authorization: Bearer <box token>`. */
export const BOX_HEADER = 'boxwood-box'
/**
 * On the tunnel: the protocol version of this connection. On a response that rejects a tunnel with 426: the newest version
 * of the coordinator.
 */
export const PROTOCOL_HEADER = 'boxwood-protocol'
/** On the tunnel: random per agent process. Distinguishes a reconnect from a second agent with the same token. */
export const INSTANCE_HEADER = 'boxwood-instance'
/** On the tunnel: VERSION, followed by + and the build if the agent is bundled. */
export const AGENT_VERSION_HEADER = 'boxwood-agent-version'
/** On the tunnel of an agent that installs builds by POST /upgrade: its platform, such as linux-x64. */
export const PLATFORM_HEADER = 'boxwood-platform'
/** On the tunnel, after a failed upgrade: the build that did not connect, `@`, and a text that differs for each failure. */
export const FAILED_BUILD_HEADER = 'boxwood-failed-build'

/**
 * On the tunnel of an enrolled machine: the ids of its last agent processes, newest first, separated by commas. A copy of the
 * disk continues with other ids than the original.
 */
export const LINEAGE_HEADER = 'boxwood-lineage'
/** The error code of a tunnel that is refused with 410: the agent uninstalls itself. */
export const BOX_DELETED = 'box_deleted'
/** An id of LINEAGE_HEADER: 64 random bits, hex. */
export const LINEAGE_ID = /^[0-9a-f]{16}$/
export const LINEAGE_LENGTH = 32

/** On the tunnel of an enrolled machine: random per connection. The coordinator signs it (coordinator-proof.ts). */
export const NONCE_HEADER = 'boxwood-nonce'
/** On the response to a tunnel with NONCE_HEADER: the signature. */
export const PROOF_HEADER = 'boxwood-proof'

/** On a tunnel request: the one-time id of a dial-back connection for the body, the content or the stream. */
export const DIAL_BACK_HEADER = 'boxwood-dial-back'
/**
 * On a request that reads files: the client may not run commands. The agent refuses the files with which programs of the box get
 * access to others. An agent of an earlier version ignores the header.
 */
export const READER_HEADER = 'boxwood-reader'
/** With DIAL_BACK_HEADER, for an upload: the length of the body in bytes, if the client declared it. */
export const TRANSFER_LENGTH_HEADER = 'boxwood-transfer-length'
/** On a response that rejects a tunnel with 429 or 503: milliseconds until the agent may reconnect. */
export const RECONNECT_AFTER_HEADER = 'boxwood-reconnect-after-ms'
/** On a request of the `box` command: the version of the command (spec §9). */
export const CLI_VERSION_HEADER = 'x-service-cli-version'
