// Reads the HTTP response with which the coordinator, or a proxy, has refused a tunnel.
import type { IncomingMessage } from 'node:http'
import * as z from 'zod'
import { RECONNECT_AFTER_HEADER } from '../../shared/protocol.ts'
import type { DisconnectReason } from './disconnect-reason.ts'

const MAX_BODY_BYTES = 16 * 1024

const bodySchema = z.object({
  error: z.object({ code: z.string().max(64), message: z.string().max(1000) }),
})

/** Never rejects. A body that is not the coordinator's, too large or late is ignored. */
export async function readRejection(response: IncomingMessage, timeoutMs: number): Promise<DisconnectReason> {
  const { statusCode, headers } = response
  const after = Number(headers[RECONNECT_AFTER_HEADER])
  const parsed = bodySchema.safeParse(await readJson(response, timeoutMs))
  const reason = `rejected with HTTP status ${statusCode}`
  return {
    reason: parsed.success ? `${reason}: ${parsed.data.error.message}` : reason,
    ...(statusCode !== undefined && { status: statusCode }),
    ...(parsed.success && parsed.data.error),
    ...(Number.isFinite(after) && { reconnectAfterMs: after }),
  }
}

async function readJson(response: IncomingMessage, timeoutMs: number): Promise<unknown> {
  const timer = setTimeout(() => response.destroy(), timeoutMs)
  const chunks: Buffer[] = []
  let size = 0
  try {
    for await (const chunk of response) {
      size += (chunk as Buffer).length
      if (size > MAX_BODY_BYTES) return undefined
      chunks.push(chunk as Buffer)
    }
    return JSON.parse(Buffer.concat(chunks).toString())
  } catch {
    return undefined
  } finally {
    clearTimeout(timer)
  }
}
