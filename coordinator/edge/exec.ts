// POST /exec (spec §4.14): one command on a box, and what came of it, or that it has been started.
import { z } from 'zod'
import { EXEC_CODES, execRequest, execResult } from '../../shared/api/exec.ts'
import { execStarted } from '../../shared/api/processes.ts'
import { LIMITS } from '../../shared/limits.ts'
import { CLI_VERSION_HEADER } from '../../shared/protocol.ts'
import { type Route, route } from '../http/route.ts'
import { ACQUIRE_ERRORS, acquireBox, boxParams } from './acquire-box.ts'
import { readAgentResponse } from './agent-response.ts'
import { boxEnv } from './box-env.ts'
import type { EdgeContext } from './context.ts'
import { withDeadline } from './deadline.ts'
import { startDetached } from './start-detached.ts'

/** Past the command's own limit: ending its processes, the last output, a slow link. */
const ANSWER_GRACE_MS = 30_000

export function execRoutes(context: EdgeContext): Route[] {
  return [
    route({
      method: 'POST',
      path: '/exec',
      summary: 'Run a command and answer with its output; wakes a suspended box and waits for it',
      request: { params: boxParams, body: execRequest },
      codes: EXEC_CODES,
      responses: { 200: z.union([execResult, execStarted]) },
      errors: [...ACQUIRE_ERRORS, 'invalid_request', 'invalid_timeout'],
      async handle(input) {
        const { actor, body, request, reply } = input
        const place = await acquireBox(context, input, { wakesBox: true })
        const { box, tunnel } = place
        const { detached = false, ...what } = body
        const { command, cwd } = body
        const mode = detached ? 'detached' : 'sync'
        const fromCli = request.headers[CLI_VERSION_HEADER] !== undefined
        const seconds = body.timeoutSeconds ?? LIMITS.execTimeoutSeconds.default
        const recorded = { boxId: box.id, actor, mode, fromCli, command, cwd } as const
        const answer = await context.commandTracker.track(recorded, async (recording) => {
          if (detached) return startDetached(context, place, what, recording)
          const { record, acceptResponse } = recording
          return withDeadline(seconds * 1000 + ANSWER_GRACE_MS, place.signal, async (signal) => {
            const response = await tunnel.request({
              method: 'POST',
              path: '/exec',
              headers: { 'content-type': 'application/json' },
              body: Buffer.from(JSON.stringify({ ...what, boxEnv: boxEnv(box), record })),
              signal,
            })
            return readAgentResponse(response, execResult, acceptResponse)
          })
        })
        return reply.type('application/json; charset=utf-8').send(answer)
      },
    }),
  ]
}
