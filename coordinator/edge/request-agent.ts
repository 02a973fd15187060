// Sends one request to the agent and reads its JSON response.

import { createAgentProtocolError } from '../agents/tunnel/agent-errors.ts'
import type { TunnelCall } from '../agents/tunnel/types.ts'
import type { RouteInput, RouteSchemas } from '../http/route.ts'
import { type AcquiredBox, acquireBox } from './acquire-box.ts'
import { maxResponseBytes, readAgentResponse } from './agent-response.ts'
import type { AgentResponseType } from './agent-response-types.ts'
import type { EdgeContext } from './context.ts'
import type { AgentResponse } from './response-parser.ts'

const RESPONSE_TIMEOUT_MS = 30_000

export type AgentRequest = Pick<TunnelCall, 'method' | 'path' | 'headers' | 'body'> & {
  /** The type of the response. */
  type: AgentResponseType
  /** The time limit for the complete response. Default: 30 s. */
  timeoutMs?: number
}

/** @throws ApiError the agent's error response, box_unreachable, or exec_failed for an invalid response */
export async function requestAgent(
  { responseParser }: Pick<EdgeContext, 'responseParser'>,
  { tunnel, signal }: Pick<AcquiredBox, 'tunnel' | 'signal'>,
  { type, timeoutMs = RESPONSE_TIMEOUT_MS, ...request }: AgentRequest,
): Promise<AgentResponse> {
  const maxBytes = maxResponseBytes(type)
  const response = await tunnel.call({ ...request, signal, timeoutMs, maxBytes })
  return readAgentResponse(responseParser, response, type)
}

export type ForwardOptions = AgentRequest & {
  /** The response must be for this process. */
  processId?: string
  /** The response must be for this terminal session. */
  session?: string
  /** The response must be for this run. */
  runId?: string
}

/** Acquires the box of an edge request, sends a request to its agent and responds to the client with the response. */
export async function forwardRequest(
  context: EdgeContext,
  input: Omit<RouteInput<RouteSchemas>, 'params'> & { params: { box: string } },
  { processId, session, runId, ...request }: ForwardOptions,
) {
  const response = await requestAgent(context, await acquireBox(context, input), request)
  if (response.processId !== processId)
    throw createAgentProtocolError('The agent responded for a different process.')
  if (response.session !== session)
    throw createAgentProtocolError('The agent responded for a different session.')
  if (response.runId !== runId) throw createAgentProtocolError('The agent responded for a different run.')
  return input.reply.type('application/json; charset=utf-8').send(response.json)
}
