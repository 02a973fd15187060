// Reads agent responses. Agents are untrusted: size, JSON and schema are checked, and only the validated fields are
// forwarded.
import type { Readable } from 'node:stream'
import { edgeErrorSchema } from '../../shared/api/common.ts'
import { ApiError, type ErrorCode } from '../../shared/errors.ts'
import type { TunnelResponse } from '../tunnel/types.ts'
import { AGENT_RESPONSES, type AgentResponseType } from './agent-response-types.ts'
import { InvalidResponseError, parseJson } from './parse-response.ts'
import type { AgentResponse, ResponseParser } from './response-parser.ts'

/** The codes that an agent may respond with. Any other becomes exec_failed. */
const AGENT_ERROR_CODES: ReadonlySet<string> = new Set<ErrorCode>([
  'invalid_request',
  'invalid_timeout',
  'invalid_path',
  'permission_denied',
  'not_found',
  'payload_too_large',
  'range_not_satisfiable',
  'exec_failed',
  'invalid_provider',
  'prompt_required',
  'prompt_in_progress',
  'provider_not_signed_in',
  'provider_not_installed',
  'no_session_to_continue',
  'prompt_limit_reached',
  'provider_mismatch',
])
const MAX_MESSAGE_CHARS = 4096
/** An error may name the path of the request. */
const MAX_ERROR_BYTES = 256 * 1024
const MAX_ERROR_TOKENS = 64

/** The error for an agent that violates the protocol. `problem` is a sentence about the agent. */
export const createAgentProtocolError = (problem: string, cause?: unknown) =>
  new ApiError('exec_failed', `${problem} If this persists, suspend and wake the box to restart its agent.`, {
    cause,
  })

export const isAgentErrorCode = (code: string): code is ErrorCode => AGENT_ERROR_CODES.has(code)

/** Reads the whole body. Above `limit` bytes it throws exec_failed and destroys the stream. */
export async function readBody(body: Readable, limit: number): Promise<Buffer<ArrayBuffer>> {
  const chunks: Buffer<ArrayBuffer>[] = []
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

/** Throws the agent's error response as an ApiError. */
export async function throwAgentError(response: TunnelResponse): Promise<never> {
  const bytes = await readBody(response.body, MAX_ERROR_BYTES)
  const body = edgeErrorSchema.safeParse(parseErrorBody(bytes))
  if (!body.success) throw createAgentProtocolError(`The agent responded with status ${response.status}.`)
  const { code, message } = body.data.error
  throw new ApiError(isAgentErrorCode(code) ? code : 'exec_failed', message.slice(0, MAX_MESSAGE_CHARS))
}

/** Reads a response of this type. Throws an error response, and exec_failed for an invalid one. */
export async function readAgentResponse(
  parser: ResponseParser,
  response: TunnelResponse,
  type: AgentResponseType,
): Promise<AgentResponse> {
  if (response.status !== 200 && response.status !== 202) return throwAgentError(response)
  const bytes = await readBody(response.body, AGENT_RESPONSES[type].maxBytes)
  return parser.parse(type, bytes).catch(throwProtocolError)
}

function parseErrorBody(bytes: Buffer): unknown {
  try {
    return parseJson(bytes.toString('utf8'), MAX_ERROR_TOKENS)
  } catch (error) {
    return throwProtocolError(error)
  }
}

/** Throws exec_failed for an invalid response, and any other error unchanged. */
function throwProtocolError(error: unknown): never {
  throw error instanceof InvalidResponseError ? createAgentProtocolError(error.message, error) : error
}
