// The text of a NOTIFY: all messages of a transaction, as JSON.
import type { Message } from '../notification-hub.ts'

export type ReceivedMessages = {
  /** The id of the coordinator that has sent them. */
  sender: string
  messages: readonly Message[]
  /** The topics of which there were too many messages: their subscribers read again. */
  again: readonly string[]
}

/** Postgres accepts 7,999 bytes. */
const MAX_BYTES = 7_000

export function encodeMessages(sender: string, messages: readonly Message[]): string {
  const text = JSON.stringify({
    sender,
    messages: messages.map(({ topic, payload }) => [topic, payload]),
    again: [],
  })
  if (Buffer.byteLength(text) <= MAX_BYTES) return text
  const again = [...new Set(messages.map(({ topic }) => topic))]
  return JSON.stringify({ sender, messages: [], again })
}

/** @throws Error when another program has sent the text */
export function decodeMessages(text: string): ReceivedMessages {
  const { sender, messages, again } = JSON.parse(text) as {
    sender: string
    messages: [topic: string, payload: unknown][]
    again: string[]
  }
  return { sender, messages: messages.map(([topic, payload]) => ({ topic, payload })), again }
}
