// Reads the state of the agent's connection from `<state>/connection.json`, which the agent writes.
import { watch } from 'node:fs/promises'
import { join } from 'node:path'
import * as z from 'zod'
import { readIfExists } from './layout.ts'

const CONNECTION_FILE = 'connection.json'

const schema = z.object({
  connected: z.boolean(),
  /** Milliseconds since the epoch. */
  at: z.number(),
  /** The version of the agent. */
  version: z.string(),
  reason: z.string().optional(),
  /** The HTTP status and the message with which the coordinator has refused the last attempt. */
  status: z.number().optional(),
  message: z.string().optional(),
})
export type Connection = z.infer<typeof schema>

/** Null when the agent has not tried to connect yet. */
export async function readConnection(stateDir: string): Promise<Connection | null> {
  const text = await readIfExists(join(stateDir, CONNECTION_FILE))
  try {
    return schema.parse(JSON.parse(text ?? ''))
  } catch {
    return null
  }
}

/** Rejections that a retry does not change. */
const FINAL_STATUSES = new Set([401, 403, 404, 409, 410, 426])

/** Why the coordinator refuses this agent; null: it does not. */
export const getRejection = (connection: Connection | null): string | null =>
  connection !== null &&
  !connection.connected &&
  connection.status !== undefined &&
  FINAL_STATUSES.has(connection.status)
    ? (connection.message ?? connection.reason ?? `HTTP status ${connection.status}`)
    : null

/**
 * Waits until the agent has connected or was refused. Returns the last state when `signal` aborts.
 * @param since milliseconds since the epoch: earlier states are ignored
 */
export async function waitForConnection(
  stateDir: string,
  since: number,
  signal: AbortSignal,
): Promise<Connection | null> {
  const read = async () => {
    const connection = await readConnection(stateDir)
    return connection !== null && connection.at >= since ? connection : null
  }
  const isFinal = (connection: Connection | null) =>
    connection !== null && (connection.connected || getRejection(connection) !== null)
  // Watches before the first read, so that no change is missed.
  const closing = new AbortController()
  const changes = watch(stateDir, { signal: AbortSignal.any([signal, closing.signal]) })
  try {
    const pending = changes[Symbol.asyncIterator]()
    for (let next = pending.next(); ; next = pending.next()) {
      next.catch(() => undefined)
      const connection = await read()
      if (isFinal(connection)) return connection
      await next
    }
  } catch (error) {
    if (!signal.aborted) throw error
    return read()
  } finally {
    closing.abort()
  }
}
