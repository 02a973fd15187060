// Parses and validates a response of an agent, and serialises the validated value: fields that the schema does not have
// are dropped. Runs on the main thread for small responses, in parse-worker.ts for others.
import { BoundedJsonError, parseBoundedJson } from '../../shared/bounded-json.ts'
import { validationMessage } from '../../shared/validation-message.ts'
import { AGENT_RESPONSES, type AgentResponseType } from './agent-response-types.ts'
import type { Bounds, PromptDetails } from './response-bounds.ts'

export type ParsedResponse = PromptDetails & {
  /** Empty for a response that is not forwarded. */
  json: string
  /** These fields of the response, where it has them. */
  processId?: string
  commandId?: string
  session?: string
}

/** A violation of the protocol. The message is a sentence about the agent. */
export class InvalidResponseError extends Error {
  override name = 'InvalidResponseError'
}

type ResponseIds = { processId?: string; commandId?: string | undefined; session?: string }

/** @throws InvalidResponseError */
export function parseResponse(type: AgentResponseType, text: string): ParsedResponse {
  const { schema, maxTokens, hasJson = true, describe }: Bounds = AGENT_RESPONSES[type]
  const parsed = schema.safeParse(parseJson(text, maxTokens), { reportInput: true })
  if (!parsed.success) {
    const problem = validationMessage(parsed.error.issues, 'response')
    throw new InvalidResponseError(`The agent sent an invalid response: ${problem}.`)
  }
  const { processId, commandId, session } = parsed.data as ResponseIds
  return {
    ...serialise(() => ({
      json: hasJson ? JSON.stringify(parsed.data) : '',
      ...describe?.(parsed.data as never),
    })),
    ...(processId !== undefined && { processId }),
    ...(commandId !== undefined && { commandId }),
    ...(session !== undefined && { session }),
  }
}

/** JSON.stringify() is recursive, and JSON.parse() is not. */
function serialise<T>(work: () => T): T {
  try {
    return work()
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    throw new InvalidResponseError('The response of the agent is nested too deeply.')
  }
}

/** @throws InvalidResponseError */
export function parseJson(text: string, maxTokens: number): unknown {
  try {
    return parseBoundedJson(text, maxTokens)
  } catch (error) {
    if (!(error instanceof BoundedJsonError)) throw error
    throw new InvalidResponseError(`The response of the agent ${error.message}.`)
  }
}
