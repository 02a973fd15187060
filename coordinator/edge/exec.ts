// POST /exec (spec §4.14): one command on a box, and what came of it.
import { EXEC_CODES, execRequest, execResult } from '../../shared/api/exec.ts'
import { ApiError } from '../../shared/errors.ts'
import { LIMITS } from '../../shared/limits.ts'
import { CLI_VERSION_HEADER } from '../../shared/protocol.ts'
import type { BoxRow } from '../db/schema.ts'
import { type Route, route } from '../http/route.ts'
import { readAnswer } from './box-answer.ts'
import type { EdgeContext } from './context.ts'
import { boxParams, VISIT_ERRORS, visit } from './visit.ts'

/** Past the command's own limit: ending its processes, the last output, a slow link. */
const ANSWER_GRACE_MS = 30_000

/** The box's own variables as an object. */
function boxEnv(box: BoxRow): Record<string, string> {
  const list: { name: string; value: string }[] = JSON.parse(box.env_vars)
  return Object.fromEntries(list.map(({ name, value }) => [name, value]))
}

export function execRoutes(context: EdgeContext): Route[] {
  return [
    route({
      method: 'POST',
      path: '/exec',
      summary: 'Run a command and answer with its output; wakes a suspended box and waits for it',
      request: { params: boxParams, body: execRequest },
      codes: EXEC_CODES,
      answers: { 200: execResult },
      errors: [...VISIT_ERRORS, 'invalid_request', 'invalid_timeout'],
      async handle(input) {
        const { actor, body, request, reply } = input
        if (body.detached)
          throw new ApiError('invalid_request', 'This coordinator does not run detached commands yet.')
        const { box, tunnel, signal } = await visit(context, input, { wakes: true })
        const seconds = body.timeoutSeconds ?? LIMITS.execTimeoutSeconds.default
        const { command, cwd } = body
        const fromCli = request.headers[CLI_VERSION_HEADER] !== undefined
        const what = { boxId: box.id, actor, mode: 'sync', fromCli, command, cwd } as const
        const answer = await context.recorder.record(what, async ({ record, accept }) => {
          const response = await tunnel.request({
            method: 'POST',
            path: '/exec',
            headers: { 'content-type': 'application/json' },
            body: Buffer.from(JSON.stringify({ ...body, boxEnv: boxEnv(box), record })),
            signal: AbortSignal.any([signal, AbortSignal.timeout(seconds * 1000 + ANSWER_GRACE_MS)]),
          })
          return readAnswer(response, execResult, accept)
        })
        return reply.type('application/json; charset=utf-8').send(answer)
      },
    }),
  ]
}
