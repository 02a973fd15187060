// The detached processes of a box (spec §4.14): all of them, one with the end of its output, and ending one.
import { z } from 'zod'
import { execKilled, execList, execStatus, statusQuery } from '../../shared/api/processes.ts'
import { ApiError } from '../../shared/errors.ts'
import { type Route, type RouteInput, type RouteSchemas, route } from '../http/route.ts'
import type { TunnelRequest } from '../tunnel/types.ts'
import { ACQUIRE_ERRORS, acquireBox, boxParams } from './acquire-box.ts'
import { readAgentResponse } from './agent-response.ts'
import type { EdgeContext } from './context.ts'
import { withDeadline } from './deadline.ts'

/** A malformed id names nothing: 404, and the box is not asked. */
export const processParams = boxParams.extend({ processId: z.string().regex(/^p_[0-9a-f]{24}$/) })

const ANSWER_MS = 30_000
/** TERM, the time it is given, KILL, and a tree that has to be looked for. */
const KILL_MS = 60_000

type Asking<T> = {
  method: TunnelRequest['method']
  path: string
  shape: z.ZodType<T>
  /** The answer must be about this one. */
  processId?: string
  ms?: number
}

export function processRoutes(context: EdgeContext): Route[] {
  async function ask<T>(
    input: Omit<RouteInput<RouteSchemas>, 'params'> & { params: { box: string } },
    { method, path, shape, processId, ms = ANSWER_MS }: Asking<T>,
  ) {
    const { tunnel, signal } = await acquireBox(context, input)
    const answer = await withDeadline(ms, signal, async (signal) =>
      readAgentResponse(await tunnel.request({ method, path, signal }), shape, (answer) => {
        const about = (answer as { processId?: string }).processId
        if (about !== processId) throw new ApiError('exec_failed', 'The box answered about another process.')
      }),
    )
    return input.reply.type('application/json; charset=utf-8').send(answer)
  }

  return [
    route({
      method: 'GET',
      path: '/exec',
      summary: 'The detached processes of the box, newest first',
      request: { params: boxParams },
      responses: { 200: execList },
      errors: ACQUIRE_ERRORS,
      handle: (input) => ask(input, { method: 'GET', path: '/exec', shape: execList }),
    }),
    route({
      method: 'GET',
      path: '/exec/:processId',
      summary: 'A detached process and the end of its output',
      request: { params: processParams, query: statusQuery },
      responses: { 200: execStatus },
      errors: [...ACQUIRE_ERRORS, 'invalid_request'],
      handle(input) {
        const { processId } = input.params
        const { tail } = input.query
        const path = `/exec/${processId}${tail === undefined ? '' : `?tail=${tail}`}`
        return ask(input, { method: 'GET', path, shape: execStatus, processId })
      },
    }),
    route({
      method: 'DELETE',
      path: '/exec/:processId',
      summary: 'End a detached process with all that it started: TERM, then KILL',
      request: { params: processParams },
      responses: { 200: execKilled },
      errors: ACQUIRE_ERRORS,
      handle(input) {
        const { processId } = input.params
        return ask(input, {
          method: 'DELETE',
          path: `/exec/${processId}`,
          shape: execKilled,
          processId,
          ms: KILL_MS,
        })
      },
    }),
  ]
}
