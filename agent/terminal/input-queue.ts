// Writes the input of a session's clients to its terminal, exactly once: a client that reconnects continues at the number of
// bytes that were written from its id.
import { ATTACH_LIMITS } from '../../shared/attach-format.ts'

export type ClientInput = {
  /** Number of bytes that the terminal has accepted. A terminal host keeps them for the next agent. */
  accepted(): number
  /** Returns false for more bytes than a client may send. @param onWritten called when the terminal has accepted the bytes */
  push(bytes: Buffer, onWritten: () => void): boolean
  /** Called when another connection with the same id replaces this one. */
  onReplaced(handler: () => void): void
  /** Discards what is queued: the client has not been sent an acknowledgement of it, and sends it again. */
  close(): void
}

export type InputQueue = {
  /** @param id of a client that may reconnect */
  open(id: string | undefined): ClientInput
  /** Whether the id has been used. */
  knows(id: string): boolean
  /** The ids with the number of bytes that the terminal has accepted from each. The last one was used last. */
  listAccepted(): [id: string, accepted: number][]
}

/** Remembered ids. The oldest id without a connection is forgotten first. */
const MAX_CLIENT_IDS = 256

/** A client may send many short messages while the program does not read. */
const MAX_QUEUED_MESSAGES = 16_384

/** Where bytes are in the input of their client. */
export type InputPosition = { client: string | undefined; offset: number }

type Position = {
  id: string | undefined
  /** Number of bytes that the terminal has accepted. */
  accepted: number
  /** Like `accepted`, with the bytes that are being written. */
  submitted: number
  owner: Owner | null
  onReplaced: () => void
}
/** A connection, with the size of its entries in the queue. */
type Owner = { queuedBytes: number; queuedMessages: number }
type Entry = { position: Position; offset: number; bytes: Buffer; onWritten: () => void; owner: Owner }

/**
 * @param write resolves when the bytes are written; called again only after that
 * @param known bytes that an earlier agent has accepted from each client
 */
export function createInputQueue(
  write: (bytes: Buffer, from: InputPosition) => Promise<void>,
  known: ReadonlyMap<string, number> = new Map(),
): InputQueue {
  const positions = new Map<string, Position>()
  for (const [id, accepted] of known) positions.set(id, createPosition(id, accepted))
  let queue: Entry[] = []
  let isWriting = false

  async function writeQueued(): Promise<void> {
    if (isWriting) return
    isWriting = true
    for (let entry = queue.shift(); entry !== undefined; entry = queue.shift()) {
      const { position, offset, bytes, onWritten, owner } = entry
      // A client that reconnected during a write has sent the bytes of this write again.
      const unsent = bytes.subarray(Math.min(bytes.length, position.submitted - offset))
      if (unsent.length > 0) {
        const from = { client: position.id, offset: position.submitted }
        position.submitted += unsent.length
        await write(unsent, from)
        position.accepted = position.submitted
      }
      owner.queuedBytes -= bytes.length
      owner.queuedMessages--
      if (position.owner === owner) onWritten()
    }
    isWriting = false
  }

  function positionOf(id: string | undefined): Position {
    const position = (id !== undefined && positions.get(id)) || createPosition(id, 0)
    if (id === undefined) return position
    // A Map keeps the order of insertion: the newest position is the last one.
    positions.delete(id)
    positions.set(id, position)
    for (const [oldId, { owner }] of positions) {
      if (positions.size <= MAX_CLIENT_IDS) break
      if (owner === null && oldId !== id) positions.delete(oldId)
    }
    return position
  }

  return {
    knows: (id) => positions.has(id),
    listAccepted: () => [...positions].map(([id, { accepted }]) => [id, accepted]),
    open(id) {
      const position = positionOf(id)
      const owner: Owner = { queuedBytes: 0, queuedMessages: 0 }
      let nextOffset = position.accepted
      const discard = (previous: Owner) => {
        queue = queue.filter((entry) => entry.owner !== previous)
      }
      if (position.owner !== null) {
        discard(position.owner)
        position.onReplaced()
      }
      position.owner = owner
      return {
        accepted: () => position.accepted,
        push(bytes, onWritten) {
          if (position.owner !== owner) return true
          owner.queuedBytes += bytes.length
          owner.queuedMessages++
          if (
            owner.queuedBytes > ATTACH_LIMITS.stdinWindowBytes ||
            owner.queuedMessages > MAX_QUEUED_MESSAGES
          )
            return false
          queue.push({ position, offset: nextOffset, bytes, onWritten, owner })
          nextOffset += bytes.length
          void writeQueued()
          return true
        },
        onReplaced(handler) {
          position.onReplaced = handler
        },
        close() {
          discard(owner)
          if (position.owner === owner) position.owner = null
        },
      }
    },
  }
}

const createPosition = (id: string | undefined, accepted: number): Position => ({
  id,
  accepted,
  submitted: accepted,
  owner: null,
  onReplaced: () => undefined,
})
