// Validates agent responses. Agents are untrusted: size, JSON and schema are checked before anything is forwarded.
import type { Readable } from 'node:stream'
import type { z } from 'zod'
import { edgeErrorSchema } from '../../shared/api/common.ts'
import { ApiError, type ErrorCode } from '../../shared/errors.ts'
import { TUNNEL_LIMITS } from '../../shared/limits.ts'
import { validationMessage } from '../../shared/validation-message.ts'
import type { TunnelResponse } from '../tunnel/types.ts'

/** The codes that an agent may respond with. Any other becomes exec_failed. */
const AGENT_ERROR_CODES: ReadonlySet<string> = new Set<ErrorCode>([
  'invalid_request',
  'invalid_timeout',
  'invalid_path',
  'permission_denied',
  'not_found',
  'payload_too_large',
  'exec_failed',
])
const MAX_MESSAGE_CHARS = 4096

/** The error for an agent that violates the protocol. `problem` is a sentence about the agent. */
export const createAgentProtocolError = (problem: string, cause?: unknown) =>
  new ApiError('exec_failed', `${problem} If this persists, suspend and wake the box to restart its agent.`, {
    cause,
  })

export const isAgentErrorCode = (code: string): code is ErrorCode => AGENT_ERROR_CODES.has(code)

/** Reads the whole body. Above `limit` bytes it throws exec_failed and destroys the stream. */
export async function readBody(body: Readable, limit: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of body) {
    size += chunk.length
    if (size > limit) {
      body.destroy()
      throw createAgentProtocolError(`The response of the agent exceeds ${limit} bytes.`)
    }
    chunks.push(chunk)
  }
  return chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks, size)
}

function parseJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'))
  } catch (cause) {
    throw createAgentProtocolError('The response of the agent is not JSON.', cause)
  }
}

/** Throws the agent's error response as an ApiError. */
export async function throwAgentError(response: TunnelResponse): Promise<never> {
  const body = edgeErrorSchema.safeParse(parseJson(await readBody(response.body, TUNNEL_LIMITS.reportBytes)))
  if (!body.success) throw createAgentProtocolError(`The agent responded with status ${response.status}.`)
  const { code, message } = body.data.error
  throw new ApiError(isAgentErrorCode(code) ? code : 'exec_failed', message.slice(0, MAX_MESSAGE_CHARS))
}

/**
 * The bytes of a JSON response that matches the schema. Throws an error response.
 * @param check may reject a valid response by throwing
 */
export async function readAgentResponse<T>(
  response: TunnelResponse,
  schema: z.ZodType<T>,
  check?: (body: T) => void,
): Promise<Buffer> {
  if (response.status !== 200) return throwAgentError(response)
  const bytes = await readBody(response.body, TUNNEL_LIMITS.responseBytes)
  const parsed = schema.safeParse(parseJson(bytes), { reportInput: true })
  if (!parsed.success) {
    const problem = validationMessage(parsed.error.issues, 'response')
    throw createAgentProtocolError(`The agent sent an invalid response: ${problem}.`)
  }
  check?.(parsed.data)
  return bytes
}
