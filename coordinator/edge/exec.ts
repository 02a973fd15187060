// POST /exec (spec §4.14): runs a command on a box, or starts it detached.
import { z } from 'zod'
import {
  EXEC_ERROR_CODES,
  type ExecRequest,
  execRequestSchema,
  execResultSchema,
} from '../../shared/api/exec.ts'
import { execStartedSchema } from '../../shared/api/processes.ts'
import { ApiError } from '../../shared/errors.ts'
import { LIMITS } from '../../shared/limits.ts'
import { CLI_VERSION_HEADER } from '../../shared/protocol.ts'
import { getBoxVariables } from '../boxes/variables.ts'
import { byKey } from '../http/access.ts'
import { assertIdempotencyKey } from '../http/idempotency.ts'
import { type Route, route } from '../http/route.ts'
import { acquireBox, boxParams, CWD_DENIED, INVALID_CWD, NO_BOX_OR_CWD, WAKE_ERRORS } from './acquire-box.ts'
import type { EdgeContext } from './context.ts'
import { requestAgent } from './request-agent.ts'
import { startDetached } from './start-detached.ts'
import { getProcessId, startKeyHeader } from './start-key.ts'

/** Added to the command's time limit: terminating its processes, reading the last output, a slow connection. */
const RESPONSE_GRACE_MS = 30_000

export function execRoutes(context: EdgeContext): Route[] {
  return [
    route({
      id: 'commands.run',
      method: 'POST',
      path: '/exec',
      access: byKey('boxes', 'run', { acceptsTickets: true }),
      summary: 'Run a command and return its output, or start it detached or attached',
      description:
        'Wakes a suspended box and waits for it. A synchronous command is terminated when the client disconnects.',
      request: { params: boxParams, body: execRequestSchema },
      requestHeaders: startKeyHeader,
      fieldErrorCodes: EXEC_ERROR_CODES,
      responses: { 200: z.union([execResultSchema, execStartedSchema]) },
      errors: [
        ...WAKE_ERRORS,
        ...(['invalid_request', 'invalid_timeout', 'permission_denied'] as const),
        ...(['invalid_idempotency_key', 'idempotency_key_reused'] as const),
      ],
      errorDescriptions: {
        invalid_path: INVALID_CWD,
        not_found: NO_BOX_OR_CWD,
        permission_denied: CWD_DENIED,
      },
      async handler(input) {
        const { actor, body, request, reply } = input
        assertStartMode(body)
        const { detached = false, ...command } = body
        const isStart = detached || command.attached === true
        // A command that runs to its end in the request has no process to find: as on most routes, its key has no effect.
        const startKey = isStart ? request.headers['idempotency-key'] : undefined
        if (startKey !== undefined) assertIdempotencyKey(startKey)
        const acquired = await acquireBox(context, input, { wakesBox: true })
        const { box } = acquired
        const boxEnv = getBoxVariables(box)
        const seconds = body.timeoutSeconds ?? LIMITS.execTimeoutSeconds.default
        const commandRequest = {
          boxId: box.id,
          actor,
          mode: detached ? 'detached' : 'sync',
          respondsAt: isStart ? 'start' : 'exit',
          fromCli: request.headers[CLI_VERSION_HEADER] !== undefined,
          command: body.command,
          cwd: body.cwd,
          ...(startKey !== undefined && { id: getProcessId(startKey, { actor, boxId: box.id }) }),
        } as const
        const response = await context.commandTracker.track(commandRequest, async (tracked) => {
          const agentRequest = { ...command, boxEnv, record: tracked.record }
          if (isStart) return startDetached(context, acquired, agentRequest, tracked)
          const result = await requestAgent(context, acquired, {
            method: 'POST',
            path: '/exec',
            body: JSON.stringify(agentRequest),
            type: 'exec.result',
            timeoutMs: seconds * 1000 + RESPONSE_GRACE_MS,
          })
          tracked.acceptResponse(result)
          return result.json
        })
        return reply.type('application/json; charset=utf-8').send(response)
      },
    }),
  ]
}

/** Throws invalid_request for fields that exclude each other. */
function assertStartMode({ detached, attached, stdin, disconnectTimeoutSeconds }: ExecRequest): void {
  if (detached && attached)
    throw new ApiError('invalid_request', 'detached and attached must not be given together')
  const field = stdin !== undefined ? 'stdin' : 'disconnectTimeoutSeconds'
  if (!attached && (stdin !== undefined || disconnectTimeoutSeconds !== undefined))
    throw new ApiError('invalid_request', `${field} must be given together with attached`)
}
