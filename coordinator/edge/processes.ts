// Routes of a box's detached processes (spec §4.14): list, status with output tail, kill.
import { z } from 'zod'
import {
  execKilledSchema,
  execListSchema,
  execStatusQuerySchema,
  execStatusSchema,
} from '../../shared/api/processes.ts'
import { byKey } from '../http/access.ts'
import { type Route, route } from '../http/route.ts'
import { ACQUIRE_ERRORS, boxParams } from './acquire-box.ts'
import type { EdgeContext } from './context.ts'
import { forwardRequest } from './request-agent.ts'

/** A malformed id is answered with 404, without a request to the agent. */
export const processParams = boxParams.extend({
  processId: z
    .string()
    .regex(/^p_[0-9a-f]{24}$/)
    .meta({ param: { id: 'processId' } }),
})

/** Covers SIGTERM, the grace period, SIGKILL and the scans of the process table. */
const KILL_TIMEOUT_MS = 60_000

export function processRoutes(context: EdgeContext): Route[] {
  return [
    route({
      id: 'processes.list',
      method: 'GET',
      path: '/exec',
      access: byKey('boxes', 'read', { acceptsTickets: true }),
      summary: 'List detached processes, newest first',
      request: { params: boxParams },
      responses: { 200: execListSchema },
      errors: ACQUIRE_ERRORS,
      handler: (input) => forwardRequest(context, input, { method: 'GET', path: '/exec', type: 'exec.list' }),
    }),
    route({
      id: 'processes.get',
      method: 'GET',
      path: '/exec/:processId',
      access: byKey('boxes', 'read', { acceptsTickets: true }),
      summary: 'Get a detached process and the tail of its output',
      request: { params: processParams, query: execStatusQuerySchema },
      responses: { 200: execStatusSchema },
      errors: [...ACQUIRE_ERRORS, 'invalid_request'],
      handler(input) {
        const { processId } = input.params
        const { tail } = input.query
        const path = `/exec/${processId}${tail === undefined ? '' : `?tail=${tail}`}`
        return forwardRequest(context, input, { method: 'GET', path, type: 'exec.status', processId })
      },
    }),
    route({
      id: 'processes.kill',
      method: 'DELETE',
      path: '/exec/:processId',
      access: byKey('boxes', 'run', { acceptsTickets: true }),
      summary: 'Terminate a detached process and its descendants',
      description:
        'Sends SIGTERM, then SIGKILL. If the process has exited, terminates the background processes that it started.',
      request: { params: processParams },
      responses: { 200: execKilledSchema },
      errors: ACQUIRE_ERRORS,
      handler(input) {
        const { processId } = input.params
        return forwardRequest(context, input, {
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
