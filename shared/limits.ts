// Every number of the spec's §8 that is in force, under the name it is used by. Bytes, seconds and counts.

const KiB = 1024
const MiB = 1024 * KiB

export const LIMITS = {
  jsonBodyBytes: 64 * KiB,
  gzipFromBytes: KiB,
  idempotencyWindowMs: 24 * 60 * 60 * 1000,
  idempotencyKeyLength: 128,
  edgeConcurrency: 8,
  edgeRequestsPerSecond: 20,
  execTimeoutSeconds: { min: 1, max: 600, default: 30 },
  execEnvEntries: 32,
  syncOutputBytes: MiB,
  detachedTailBytes: { default: 16_384, max: MiB },
  streamsPerToken: 4,
  streamHeartbeatMs: 15_000,
  streamReconnectMs: 10 * 60_000,
  inlineFileBytes: MiB,
  transferBytes: KiB * MiB,
  ttlMinutes: { min: 5, max: 43_200 },
  autoPauseMin: { min: 30, max: 10_080 },
  autoSnapshotHours: { min: 1, max: 168 },
  autoSnapshotKeep: { min: 1, max: 10 },
  boxEnvNames: 100,
  boxEnvBytes: 64 * KiB,
  boxNameLength: 32,
  boxEvents: 50,
  commandPage: { min: 1, max: 200, default: 50 },
  commandChars: 8192,
  /** Of each stream in the command history: what is kept, and the largest page of it. */
  commandOutputBytes: MiB,
} as const

/** Not in the spec: bytes of output of detached commands on the disk of a box. */
export const LOG_LIMITS = {
  /** Of each stream of one. The least is eight blocks: a log is given up by the eighth of its bound. */
  stream: { default: 64 * MiB, min: 32 * KiB },
  /** Of all that have ended, together. */
  ended: { default: KiB * MiB },
} as const

/** Not in the spec: what the tunnel lets a box make the coordinator hold, and when bytes leave the tunnel. */
export const TUNNEL_LIMITS = {
  /** The largest JSON answer of a box: two full 1 MiB streams whose every byte needs a six-byte escape, and some. */
  answerBytes: 14 * MiB,
  /** File bodies up to this size stay on the tunnel; larger ones get a connection of their own. */
  inlineBodyBytes: 128 * KiB,
  /** Request streams at once on one tunnel: far above the edge's 8, so that reports never wait. */
  streams: 128,
  /** A line of the reports stream. */
  reportBytes: 256 * KiB,
} as const
