// What a box sends as the events of a stream, checked on its bytes: only whole, known and well-formed ones pass.
import { z } from 'zod'
import { type Offsets, STREAM_EVENT_BYTES } from '../../shared/api/processes.ts'
import { isBoxCode } from './box-answer.ts'
import { type EventName, LONGEST_HEAD, readHead } from './event-head.ts'

export type EventFilter = {
  /**
   * The events that the chunk completes, to be passed on in this order. Those before a breach are among them; after
   * the last event and after a breach there are none.
   */
  push(chunk: Buffer): Buffer[]
  /** Where the reader stands after the last event that passed. */
  reached(): Offsets
  /** Whether the event after which nothing may come has passed. */
  ended(): boolean
  /** What the box did that it may not; a sentence. */
  breach(): string | null
}

/** With its first two lines and its end. */
const MAX_EVENT_BYTES = LONGEST_HEAD + STREAM_EVENT_BYTES
const TOO_LARGE = `an event of more than ${MAX_EVENT_BYTES} bytes`
/** Of an event that is not output. */
const MAX_CONTROL_BYTES = 16 * 1024

const [NEWLINE, RETURN, CLOSING_BRACE] = [10, 13, 125]
const NOTHING = Buffer.alloc(0)

const bytes = z.int().min(0)
const offsets = z.object({ stdoutOffset: bytes, stderrOffset: bytes })

/** Output is not parsed: there may be a hundred MB a second of it, and who reads it has to anyway. */
const controlShapes = (processId: string): Partial<Record<EventName, z.ZodType>> => ({
  attached: offsets.extend({ processId: z.literal(processId) }),
  heartbeat: z.object({}),
  reconnect: offsets,
  exit: offsets.extend({
    status: z.enum(['exited', 'killed', 'lost']),
    exitCode: z.int().nullable(),
    signal: z.string().nullable(),
  }),
  error: z.object({ code: z.string().refine(isBoxCode), message: z.string() }),
})
const LAST: ReadonlySet<EventName> = new Set(['reconnect', 'exit', 'error'])

/** @param start where the reader stands before the first event */
export function createEventFilter(processId: string, start: Offsets): EventFilter {
  const shapes = controlShapes(processId)
  let reached = start
  let attached = false
  let ended = false
  let breach: string | null = null
  /** The beginning of an event whose rest has not come. */
  let held: Buffer = NOTHING
  let heldBytes = 0

  function hold(part: Buffer): void {
    const size = heldBytes + part.length
    if (size > MAX_EVENT_BYTES) {
      fail(TOO_LARGE)
      return
    }
    if (size > held.length) {
      // Twice as much each time: a box that sends single bytes costs no more than one that does not.
      const larger = Buffer.allocUnsafe(Math.min(MAX_EVENT_BYTES, Math.max(size, 2 * held.length)))
      held.copy(larger, 0, 0, heldBytes)
      held = larger
    }
    part.copy(held, heldBytes)
    heldBytes = size
  }

  function fail(what: string): void {
    breach ??= `The box sent ${what}.`
    held = NOTHING
    heldBytes = 0
  }

  const open = () => !ended && breach === null

  /** The end of the event at `from`; -1 when its rest is to come, or when it breaks a rule. */
  function check(chunk: Buffer, from: number): number {
    const head = readHead(chunk, from)
    if (head === null) {
      const begun = chunk.length - from < LONGEST_HEAD && chunk.indexOf('\n\n', from) === -1
      if (!begun) fail('what is no event')
      return -1
    }
    const { name, dataAt } = head
    const lineEnd = chunk.indexOf(NEWLINE, dataAt)
    if (lineEnd === -1 || lineEnd + 1 === chunk.length) return -1
    const end = lineEnd + 2
    if (chunk[lineEnd + 1] !== NEWLINE || chunk[lineEnd - 1] !== CLOSING_BRACE)
      fail('an event of more than its fields')
    else if (end - from > MAX_EVENT_BYTES) fail(TOO_LARGE)
    else if (name !== 'error' && (name === 'attached') === attached) fail('its events in the wrong order')
    else if (shapes[name] && !isShape(shapes[name], chunk.subarray(dataAt, lineEnd)))
      fail(`a wrong ${name} event`)
    if (breach !== null) return -1
    attached = true
    ended = LAST.has(name)
    reached = head.after
    return end
  }

  /** Passes the events that the piece has whole, as one piece, and keeps the rest. */
  function scan(piece: Buffer, passed: Buffer[]): void {
    let at = 0
    while (at < piece.length && open()) {
      const end = check(piece, at)
      if (end === -1) break
      at = end
    }
    if (at > 0) passed.push(at === piece.length ? piece : piece.subarray(0, at))
    if (at < piece.length && open()) hold(piece.subarray(at))
  }

  /** How many bytes of what came complete the event that is held; -1: none do. */
  function completing(chunk: Buffer): number {
    if (held[heldBytes - 1] === NEWLINE && chunk[0] === NEWLINE) return 1
    const end = chunk.indexOf('\n\n')
    return end === -1 ? -1 : end + 2
  }

  /** Adds what came to the event that is held, and returns what is left of it. */
  function complete(chunk: Buffer, passed: Buffer[]): Buffer {
    const end = completing(chunk)
    hold(end === -1 ? chunk : chunk.subarray(0, end))
    if (end === -1) return NOTHING
    const event = held.subarray(0, heldBytes)
    held = NOTHING
    heldBytes = 0
    if (open()) scan(event, passed)
    return chunk.subarray(end)
  }

  return {
    push(chunk) {
      const passed: Buffer[] = []
      if (!open()) return passed
      // To who reads events it ends a line too; JSON has none.
      const stray = chunk.indexOf(RETURN)
      const clean = stray === -1 ? chunk : chunk.subarray(0, stray)
      const rest = heldBytes > 0 && clean.length > 0 ? complete(clean, passed) : clean
      if (open()) scan(rest, passed)
      if (stray !== -1 && open()) fail('a carriage return')
      return passed
    },
    reached: () => reached,
    ended: () => ended,
    breach: () => breach,
  }
}

function isShape(shape: z.ZodType, json: Buffer): boolean {
  if (json.length > MAX_CONTROL_BYTES) return false
  try {
    return shape.safeParse(JSON.parse(json.toString('utf8'))).success
  } catch {
    return false
  }
}
