// Reads agent responses. Agents are untrusted: size, JSON and schema are checked, and only the validated fields are
// forwarded.
import { edgeErrorSchema } from '../../shared/api/common.ts'
import { ApiError, type ErrorCode } from '../../shared/errors.ts'
import { createAgentProtocolError, readBody } from '../agents/tunnel/read-response.ts'
import type { TunnelResponse } from '../agents/tunnel/types.ts'
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

export const isAgentErrorCode = (code: string): code is ErrorCode => AGENT_ERROR_CODES.has(code)

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
