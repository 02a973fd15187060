// Schemas of command requests and of the results of synchronous commands (spec §4.14).
import * as z from 'zod'
import { ENV_NAME_PATTERN } from '../field-values.ts'
import { LIMITS } from '../limits.ts'
import { ENV_NAME_RULE, exitCodeSchema, NO_NUL_RULE, noNul, timestampSchema } from './common.ts'

const { min, max } = LIMITS.execTimeoutSeconds
const TIMEOUT_RULE = `must be a number between ${min} and ${max}`
const disconnect = LIMITS.disconnectTimeoutSeconds
const DISCONNECT_RULE = `must be a number between ${disconnect.min} and ${disconnect.max}`

export const execRequestSchema = z
  .object({
    command: z
      .string()
      .refine((text) => text.trim() !== '', 'must not be empty')
      .refine(noNul, NO_NUL_RULE)
      .meta({ description: 'run by sh -c as the box user' }),
    cwd: z
      .string()
      .refine(noNul, NO_NUL_RULE)
      .refine((text) => !/[\r\n]/.test(text), 'must not contain a newline')
      .optional()
      .meta({ description: 'a relative or ~/ path resolves under the home directory, the default' }),
    timeoutSeconds: z
      .number(TIMEOUT_RULE)
      .min(min, TIMEOUT_RULE)
      .max(max, TIMEOUT_RULE)
      .optional()
      .meta({
        description: `default ${LIMITS.execTimeoutSeconds.default}; detached and attached commands have no time limit by default`,
      }),
    env: z
      .record(z.string().regex(ENV_NAME_PATTERN, ENV_NAME_RULE), z.string().refine(noNul, NO_NUL_RULE))
      .refine(
        (env) => Object.keys(env).length <= LIMITS.execEnvEntries,
        `must have at most ${LIMITS.execEnvEntries} entries`,
      )
      .optional(),
    detached: z.boolean().optional(),
    attached: z
      .boolean()
      .optional()
      .meta({
        description:
          'start the command for GET /exec/{processId}/attach. Its output waits for the client. The command is terminated ' +
          'when no client has been attached for disconnectTimeoutSeconds. Excludes detached',
      }),
    stdin: z
      .boolean()
      .optional()
      .meta({ description: 'only with attached: the attached client sends stdin. Default: no stdin' }),
    disconnectTimeoutSeconds: z
      .number(DISCONNECT_RULE)
      .min(disconnect.min, DISCONNECT_RULE)
      .max(disconnect.max, DISCONNECT_RULE)
      .optional()
      .meta({ description: `only with attached; default ${disconnect.default}` }),
  })
  .meta({ id: 'ExecRequest' })
export type ExecRequest = z.infer<typeof execRequestSchema>

/** Error codes by field of execRequestSchema. Fields that are not listed: invalid_request. */
export const EXEC_ERROR_CODES = { timeoutSeconds: 'invalid_timeout' } as const

/** The request to the agent. `env` overrides `boxEnv`. */
export const agentExecRequestSchema = execRequestSchema.omit({ env: true }).extend({
  env: z.record(z.string(), z.string()).optional(),
  boxEnv: z.record(z.string(), z.string()).optional(),
  record: z
    .object({
      commandId: z.string().regex(/^p_[0-9a-f]{24}$/),
      claimsToken: z.string().max(2048).meta({
        description:
          'signed by the coordinator; identifies the requester and the command; returned in command.started',
      }),
      keepOutput: z.boolean().meta({ description: 'false under zero data retention' }),
    })
    .optional()
    .meta({ description: 'absent: the command is not recorded in the history' }),
})
export type AgentExecRequest = z.infer<typeof agentExecRequestSchema>

export const execResultSchema = z
  .object({
    ok: z.literal(true),
    type: z.literal('exec.result'),
    exitCode: exitCodeSchema.nullable().meta({ description: 'null when a signal terminated the command' }),
    signal: z.string().nullable().meta({
      description:
        'the signal that terminated the command: name without SIG, such as TERM, or a real-time signal number; else null',
    }),
    stdout: z.string().meta({ description: 'the last 1 MiB as UTF-8; invalid bytes become U+FFFD' }),
    stderr: z.string(),
    stdoutTruncated: z.boolean(),
    stderrTruncated: z.boolean(),
    timedOut: z.boolean().meta({ description: 'true only when the time limit terminated the command' }),
    startedAt: timestampSchema,
    finishedAt: timestampSchema,
    cwd: z.string().meta({ description: 'as given in the request; ~ when the request has none' }),
    commandId: z.string().optional().meta({ description: 'id of the record in the command history' }),
  })
  .meta({ id: 'ExecResult' })
export type ExecResult = z.infer<typeof execResultSchema>
