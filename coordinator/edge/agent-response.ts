// What a box answers is a stranger's word: it is bounded, parsed and checked before anybody gets to see it.
import type { Readable } from 'node:stream'
import { z } from 'zod'
import { edgeError } from '../../shared/api/common.ts'
import { ApiError, type ErrorCode } from '../../shared/errors.ts'
import { TUNNEL_LIMITS } from '../../shared/limits.ts'
import type { TunnelResponse } from '../tunnel/types.ts'

/** What a box may refuse with. Any other code from it is exec_failed. */
const BOX_CODES: ReadonlySet<string> = new Set<ErrorCode>([
  'invalid_request',
  'invalid_timeout',
  'invalid_path',
  'permission_denied',
  'not_found',
  'payload_too_large',
  'exec_failed',
])
const MESSAGE_CHARS = 4096

export const isAgentErrorCode = (code: string): code is ErrorCode => BOX_CODES.has(code)

/** The whole body, up to `limit` bytes; more is exec_failed and the stream is destroyed. */
export async function readBody(body: Readable, limit: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of body) {
    size += chunk.length
    if (size > limit) {
      body.destroy()
      throw new ApiError('exec_failed', `The box sent more than ${limit} bytes where it may not.`)
    }
    chunks.push(chunk)
  }
  return chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks, size)
}

function parse(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'))
  } catch (cause) {
    throw new ApiError('exec_failed', 'The box sent an answer that is not JSON.', { cause })
  }
}

/** Throws the box's refusal as ours. */
export async function throwAgentError(response: TunnelResponse): Promise<never> {
  const refusal = edgeError.safeParse(parse(await readBody(response.body, TUNNEL_LIMITS.reportBytes)))
  if (!refusal.success) throw new ApiError('exec_failed', `The box answered ${response.status}.`)
  const { code, message } = refusal.data.error
  throw new ApiError(isAgentErrorCode(code) ? code : 'exec_failed', message.slice(0, MESSAGE_CHARS))
}

/**
 * The bytes of a JSON answer that has the shape it must have; a refusal is thrown.
 * @param accept may refuse it for what it says, by throwing
 */
export async function readAgentResponse<T>(
  response: TunnelResponse,
  shape: z.ZodType<T>,
  accept?: (answer: T) => void,
): Promise<Buffer> {
  if (response.status !== 200) return throwAgentError(response)
  const bytes = await readBody(response.body, TUNNEL_LIMITS.responseBytes)
  const checked = shape.safeParse(parse(bytes))
  if (!checked.success)
    throw new ApiError(
      'exec_failed',
      `The box sent an answer of another shape: ${z.prettifyError(checked.error)}`,
    )
  accept?.(checked.data)
  return bytes
}
