// The messages of the tunnel: requests of the coordinator and responses of the agent. See docs/protocol.md.
import * as z from 'zod'
import { BoundedJsonError, parseBoundedJson } from './bounded-json.ts'

/** Chosen by the coordinator. Unique on a connection. */
const idSchema = z.int().min(1)
/** The size of a body that is too large for the message: it follows in chunks. */
const sizeSchema = z.int().min(1).optional()

/** From the receiver of a body: the sender may send as many further bytes of it. */
const windowSchema = z.object({ type: z.literal('window'), id: idSchema, bytes: z.int().min(1) })
export type WindowMessage = z.infer<typeof windowSchema>
/** Followed by the next bytes of the body. A binary message, because these may end within a character. */
const chunkSchema = z.object({ type: z.literal('chunk'), id: idSchema })
export type ChunkMessage = z.infer<typeof chunkSchema>

/** What the coordinator sends. A request is followed by its body, unless it has a size. */
export const coordinatorMessageSchema = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('request'),
    id: idSchema,
    method: z.enum(['GET', 'POST', 'PUT', 'DELETE']),
    /** Path and query. */
    path: z.string(),
    headers: z.record(z.string(), z.string()).optional(),
    size: sizeSchema,
  }),
  /** The response is not needed. The agent stops the work, and sends a response or a reset nevertheless. */
  z.object({ type: z.literal('cancel'), id: idSchema }),
  windowSchema,
  chunkSchema,
])
export type CoordinatorMessage = z.infer<typeof coordinatorMessageSchema>

/** What the agent sends. A response is followed by its body, unless it has a size. */
export const agentMessageSchema = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('response'),
    id: idSchema,
    status: z.int().min(200).max(599),
    size: sizeSchema,
    /** From an agent of version 5: it keeps a body that is too large for the message, until a cancel. */
    isStored: z.literal(true).optional(),
  }),
  /** The agent is stopping and has not executed the request, or the rest of its response does not follow after a cancel. */
  z.object({ type: z.literal('reset'), id: idSchema }),
  windowSchema,
  chunkSchema,
])
export type AgentMessage = z.infer<typeof agentMessageSchema>

/** A violation of the format. */
export class InvalidMessageError extends Error {}

const NEWLINE = 10
const MAX_HEAD_TOKENS = 64
/** The largest head that an agent may send. It has some 60 bytes. */
export const MAX_AGENT_HEAD_BYTES = 1024
/** The largest message that a connection accepts: a body of 64 KiB, and a head with a path and headers. */
export const MAX_MESSAGE_BYTES = 256 * 1024

export const formatMessage = (head: CoordinatorMessage | AgentMessage, body = ''): string =>
  `${JSON.stringify(head)}\n${body}`

/**
 * @param message the head as JSON, a newline and the body
 * @param maxHeadBytes default: unlimited
 * @throws InvalidMessageError
 */
export function parseMessage<T extends CoordinatorMessage | AgentMessage>(
  schema: z.ZodType<T>,
  message: Buffer<ArrayBuffer>,
  maxHeadBytes = Number.POSITIVE_INFINITY,
): { head: T; body: Buffer<ArrayBuffer> } {
  const end = message.indexOf(NEWLINE)
  if (end === -1) throw new InvalidMessageError('a message has no head')
  if (end > maxHeadBytes) throw new InvalidMessageError('the head of a message is too large')
  try {
    const head = schema.safeParse(parseBoundedJson(message.toString('utf8', 0, end), MAX_HEAD_TOKENS))
    if (head.success) return { head: head.data, body: message.subarray(end + 1) }
  } catch (error) {
    if (!(error instanceof BoundedJsonError)) throw error
  }
  throw new InvalidMessageError('the head of a message is not valid')
}
