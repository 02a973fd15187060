// Routes of a box's detached processes (spec §4.14): list, status with output tail, kill.
import { z } from 'zod'
import {
  execKilledSchema,
  execListSchema,
  execStatusQuerySchema,
  execStatusSchema,
} from '../../shared/api/processes.ts'
import { type Route, type RouteInput, type RouteSchemas, route } from '../http/route.ts'
import type { TunnelRequest } from '../tunnel/types.ts'
import { ACQUIRE_ERRORS, acquireBox, boxParams } from './acquire-box.ts'
import { createAgentProtocolError, readAgentResponse } from './agent-response.ts'
import type { AgentResponseType } from './agent-response-types.ts'
import type { EdgeContext } from './context.ts'
import { withDeadline } from './deadline.ts'

/** A malformed id is answered with 404, without a request to the agent. */
export const processParams = boxParams.extend({ processId: z.string().regex(/^p_[0-9a-f]{24}$/) })

const RESPONSE_TIMEOUT_MS = 30_000
/** Covers SIGTERM, the grace period, SIGKILL and the scans of the process table. */
const KILL_TIMEOUT_MS = 60_000

type ProcessRequest = {
  method: TunnelRequest['method']
  path: string
  type: AgentResponseType
  /** The response must be for this process. */
  processId?: string
  timeoutMs?: number
}

export function processRoutes(context: EdgeContext): Route[] {
  async function forward(
    input: Omit<RouteInput<RouteSchemas>, 'params'> & { params: { box: string } },
    { method, path, type, processId, timeoutMs = RESPONSE_TIMEOUT_MS }: ProcessRequest,
  ) {
    const { tunnel, signal } = await acquireBox(context, input)
    const response = await withDeadline(timeoutMs, signal, async (signal) =>
      readAgentResponse(context.responseParser, await tunnel.request({ method, path, signal }), type),
    )
    if (response.processId !== processId)
      throw createAgentProtocolError('The agent responded for a different process.')
    return input.reply.type('application/json; charset=utf-8').send(response.json)
  }

  return [
    route({
      method: 'GET',
      path: '/exec',
      summary: 'List detached processes, newest first',
      request: { params: boxParams },
      responses: { 200: execListSchema },
      errors: ACQUIRE_ERRORS,
      handler: (input) => forward(input, { method: 'GET', path: '/exec', type: 'exec.list' }),
    }),
    route({
      method: 'GET',
      path: '/exec/:processId',
      summary: 'Get a detached process and the tail of its output',
      request: { params: processParams, query: execStatusQuerySchema },
      responses: { 200: execStatusSchema },
      errors: [...ACQUIRE_ERRORS, 'invalid_request'],
      handler(input) {
        const { processId } = input.params
        const { tail } = input.query
        const path = `/exec/${processId}${tail === undefined ? '' : `?tail=${tail}`}`
        return forward(input, { method: 'GET', path, type: 'exec.status', processId })
      },
    }),
    route({
      method: 'DELETE',
      path: '/exec/:processId',
      summary: 'Terminate a detached process and its descendants',
      description:
        'Sends SIGTERM, then SIGKILL. If the process has exited, terminates the background processes that it started.',
      request: { params: processParams },
      responses: { 200: execKilledSchema },
      errors: ACQUIRE_ERRORS,
      handler(input) {
        const { processId } = input.params
        return forward(input, {
          method: 'DELETE',
          path: `/exec/${processId}`,
          type: 'exec.killed',
          processId,
          timeoutMs: KILL_TIMEOUT_MS,
        })
      },
    }),
  ]
}
