// The limits of what one box may send, on all of its connections together.
import type { Clock } from '../../../shared/clock.ts'
import { createTokenBuckets } from '../../base/token-buckets.ts'

const KiB = 1024
const MiB = 1024 * KiB

/** Connection attempts: 60, then one per second. */
const ATTEMPTS = { capacity: 60, perSecond: 1 }
/** Attempts that a flood costs: the box may not reconnect for at least 30 seconds. */
const FLOOD_ATTEMPTS = 90

/** Messages of tunnels. An idle agent sends less than one per second. */
const MESSAGES = { capacity: 20_000, perSecond: 2000 }
/** The credit for one response. The largest has the events of several prompts: up to 31 MiB in chunks of 64 KiB. */
const MESSAGES_PER_REQUEST = 500
/** A ping or pong counts as many messages: 200 at once, 20 per second. An agent sends one of each every 15 s. */
const MESSAGES_PER_CONTROL_FRAME = 100

/**
 * Bytes of reports. The capacity is twice the output of eight concurrent commands with 2 MiB each, as base64.
 */
const REPORT_BYTES = { capacity: 48 * MiB, perSecond: 8 * MiB }
/** A line has a cost besides its bytes: it is parsed, validated and committed. */
const MIN_LINE_BYTES = 4 * KiB

/** Frames of output streams. Above the rate at which an agent can read and send the output of a command. */
const STREAM_FRAMES = { capacity: 40_000, perSecond: 20_000 }

export type BoxLimits = {
  /** Counts a connection attempt. Returns 0 when it is allowed, else the milliseconds until the next one is. */
  attempt(boxId: string): number
  /** Counts a message of the tunnel. False: the box floods the coordinator and has to be disconnected. */
  allowMessage(boxId: string): boolean
  allowControlFrame(boxId: string): boolean
  /** Call it for each request of a client: its response consists of messages. */
  expectResponse(boxId: string): void
  /** Refuses connection attempts for some time. */
  backOff(boxId: string): void
  /** Counts report lines. Returns the milliseconds until the next lines may be read. */
  countLines(boxId: string, lines: number, bytes: number): number
  /** Counts a frame of an output stream. Returns the milliseconds until the next one may be read. */
  countStreamFrame(boxId: string): number
}

export function createBoxLimits(clock: Clock): BoxLimits {
  const attempts = createTokenBuckets(clock, ATTEMPTS)
  const messages = createTokenBuckets(clock, MESSAGES)
  const reportBytes = createTokenBuckets(clock, REPORT_BYTES)
  const streamFrames = createTokenBuckets(clock, STREAM_FRAMES)
  return {
    attempt: attempts.take,
    allowMessage: (boxId) => messages.spend(boxId, 1) === 0,
    allowControlFrame: (boxId) => messages.spend(boxId, MESSAGES_PER_CONTROL_FRAME) === 0,
    expectResponse: (boxId) => messages.credit(boxId, MESSAGES_PER_REQUEST),
    backOff: (boxId) => void attempts.spend(boxId, FLOOD_ATTEMPTS),
    countLines: (boxId, lines, bytes) => reportBytes.spend(boxId, Math.max(bytes, lines * MIN_LINE_BYTES)),
    countStreamFrame: (boxId) => streamFrames.spend(boxId, 1),
  }
}
