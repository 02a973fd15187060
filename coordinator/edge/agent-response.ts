// Reads agent responses. Agents are untrusted: size, JSON and schema are checked, and only the validated fields are
// forwarded.
import { edgeErrorSchema } from '../../shared/api/common.ts'
import { ApiError, type ErrorCode } from '../../shared/errors.ts'
import { createAgentProtocolError } from '../agents/tunnel/agent-errors.ts'
import type { TunnelCallResponse } from '../agents/tunnel/types.ts'
import { AGENT_RESPONSES, type AgentResponseType } from './agent-response-types.ts'
import { InvalidResponseError, parseJson } from './parse-response.ts'
import type { AgentResponse, ResponseParser } from './response-parser.ts'

/** The codes that an agent may respond with. Any other becomes exec_failed. */
const AGENT_ERROR_CODES: ReadonlySet<string> = new Set<ErrorCode>([
  'idempotency_key_reused',
  'invalid_request',
  'invalid_timeout',
  'invalid_path',
  'permission_denied',
  'not_found',
  'payload_too_large',
  'range_not_satisfiable',
  'exec_failed',
  'path_exists',
  'directory_not_empty',
  'desktop_not_installed',
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
export const MAX_ERROR_BYTES = 256 * 1024
const MAX_SMALL_TOKENS = 64

export const isAgentErrorCode = (code: string): code is ErrorCode => AGENT_ERROR_CODES.has(code)

/** Returns the agent's error response as an ApiError, and its unchecked further fields. */
export function readAgentError(response: TunnelCallResponse): {
  error: ApiError
  fields: Record<string, unknown>
} {
  const body = edgeErrorSchema.safeParse(parseAgentJson(response.body))
  if (!body.success) throw createAgentProtocolError(`The agent responded with status ${response.status}.`)
  const { code, message, ...fields } = body.data.error
  const knownCode = isAgentErrorCode(code) ? code : 'exec_failed'
  return { error: new ApiError(knownCode, message.slice(0, MAX_MESSAGE_CHARS)), fields }
}

/** Throws the agent's error response as an ApiError. */
export function throwAgentError(response: TunnelCallResponse): never {
  throw readAgentError(response).error
}

const isSuccess = (status: number): boolean => status === 200 || status === 202

/** The bounds of a response of this type, and of an error response. See TunnelCall. */
export const maxResponseBytes = (type: AgentResponseType) => (status: number) =>
  isSuccess(status) ? AGENT_RESPONSES[type].maxBytes : MAX_ERROR_BYTES

/** Reads a response of this type. Throws an error response, and exec_failed for an invalid one. */
export async function readAgentResponse(
  parser: ResponseParser,
  { status, body }: TunnelCallResponse,
  type: AgentResponseType,
): Promise<AgentResponse> {
  if (!isSuccess(status)) return throwAgentError({ status, body })
  return parser.parse(type, body).catch(throwProtocolError)
}

/** Parses a small response. @throws ApiError exec_failed */
export function parseAgentJson(bytes: Buffer): unknown {
  try {
    return parseJson(bytes.toString('utf8'), MAX_SMALL_TOKENS)
  } catch (error) {
    return throwProtocolError(error)
  }
}

/** Throws exec_failed for an invalid response, and any other error unchanged. */
function throwProtocolError(error: unknown): never {
  throw error instanceof InvalidResponseError ? createAgentProtocolError(error.message, error) : error
}
