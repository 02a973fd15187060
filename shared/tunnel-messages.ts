// The text messages of the tunnel: requests with a small body, and their responses. See docs/protocol.md.
import { z } from 'zod'
import { BoundedJsonError, parseBoundedJson } from './bounded-json.ts'

/** Chosen by the coordinator. Unique on a connection. */
const idSchema = z.int().min(1)

/** What the coordinator sends. A request is followed by its body. */
export const coordinatorMessageSchema = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('request'),
    id: idSchema,
    method: z.enum(['GET', 'POST', 'PUT', 'DELETE']),
    /** Path and query. */
    path: z.string(),
    headers: z.record(z.string(), z.string()).optional(),
  }),
  /**
   * The response is not needed. The agent stops the work, and sends a response nevertheless. After the response, it
   * discards the stored body.
   */
  z.object({ type: z.literal('cancel'), id: idSchema }),
  /** The HTTP/2 session is closed. Later binary messages belong to the next one. */
  z.object({ type: z.literal('http2.close') }),
])
export type CoordinatorMessage = z.infer<typeof coordinatorMessageSchema>

/** What the agent sends. A response is followed by its body, unless that is stored. */
export const agentMessageSchema = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('response'),
    id: idSchema,
    status: z.int().min(200).max(599),
    /** The body is too large for a message. The agent keeps it for `GET /responses/<id>` until a cancel. */
    isStored: z.literal(true).optional(),
  }),
  /** The agent is stopping and has not executed the request. */
  z.object({ type: z.literal('reset'), id: idSchema }),
  /** Responds to http2.close. Later binary messages belong to the next session. */
  z.object({ type: z.literal('http2.closed') }),
])
export type AgentMessage = z.infer<typeof agentMessageSchema>

/** A violation of the format. */
export class InvalidMessageError extends Error {}

const NEWLINE = 10
const MAX_HEAD_TOKENS = 64
/** The largest head that an agent may send. It has some 60 bytes. */
export const MAX_AGENT_HEAD_BYTES = 1024

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
