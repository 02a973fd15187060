// The beginning of an event, read from its bytes: one that comes alone costs less so than by way of a string and a
// regular expression, each of which the processor has to fetch again. Pure.
import type { Offsets, StreamEvents } from '../../shared/api/processes.ts'

export type EventName = keyof StreamEvents

/** What an event is called, where its reader stands after it, and where its data begins: at the opening brace. */
export type EventHead = { name: EventName; after: Offsets; dataAt: number }

/** The most frequent first. */
const NAMES: readonly EventName[] = [
  'stdout',
  'stderr',
  'heartbeat',
  'attached',
  'exit',
  'reconnect',
  'error',
]
const BEGINNINGS = NAMES.map((name) => ({ name, bytes: Buffer.from(`event: ${name}\nid: `) }))
const DATA = Buffer.from('\ndata: {')
const [COLON, ZERO] = [0x3a, 0x30]
const MOST_DIGITS = 15

/** No event's head is longer. */
export const LONGEST_HEAD =
  `event: reconnect\nid: ${'9'.repeat(MOST_DIGITS)}:${'9'.repeat(MOST_DIGITS)}\ndata: {`.length

/** The head at `from` as the agent writes it: three fields, in this order, each on one line. Else null. */
export function readHead(chunk: Buffer, from: number): EventHead | null {
  for (const { name, bytes } of BEGINNINGS) {
    if (!stands(chunk, from, bytes)) continue
    const stdoutAt = from + bytes.length
    const colonAt = endOfDigits(chunk, stdoutAt)
    if (colonAt === stdoutAt || chunk[colonAt] !== COLON) return null
    const end = endOfDigits(chunk, colonAt + 1)
    if (end === colonAt + 1 || !stands(chunk, end, DATA)) return null
    const after = { stdout: number(chunk, stdoutAt, colonAt), stderr: number(chunk, colonAt + 1, end) }
    return { name, after, dataAt: end + DATA.length - 1 }
  }
  return null
}

function stands(chunk: Buffer, at: number, bytes: Buffer): boolean {
  for (let index = 0; index < bytes.length; index++) if (chunk[at + index] !== bytes[index]) return false
  return true
}

const digit = (chunk: Buffer, at: number): number => (chunk[at] ?? 0) - ZERO

/** Behind as many digits as a number may have. */
function endOfDigits(chunk: Buffer, from: number): number {
  let at = from
  while (at < from + MOST_DIGITS && digit(chunk, at) >= 0 && digit(chunk, at) <= 9) at++
  return at
}

function number(chunk: Buffer, from: number, end: number): number {
  let value = 0
  for (let at = from; at < end; at++) value = value * 10 + digit(chunk, at)
  return value
}
