// Commands on a box (spec §4.14, synchronous part). The agent answers in these shapes; the edge passes them on.
import { z } from 'zod'
import { LIMITS } from '../limits.ts'
import { ENV_NAME, timestamp } from './common.ts'

const noNul = (text: string) => !text.includes('\0')
const { min, max } = LIMITS.execTimeoutSeconds

export const execRequest = z
  .object({
    command: z
      .string()
      .refine((text) => text.trim() !== '', 'command is empty')
      .refine(noNul, 'command has a NUL byte')
      .meta({ description: 'run by sh -c as the box user' }),
    cwd: z
      .string()
      .refine(noNul, 'cwd has a NUL byte')
      .refine((text) => !/[\r\n]/.test(text), 'cwd has a newline')
      .optional()
      .meta({ description: 'a relative or ~/ path resolves under the home directory, the default' }),
    timeoutSeconds: z
      .number()
      .min(min)
      .max(max)
      .optional()
      .meta({
        description: `default ${LIMITS.execTimeoutSeconds.default}; a detached run has no limit unless it is sent`,
      }),
    env: z
      .record(
        z.string().regex(ENV_NAME, 'a variable name is letters, digits and _, and begins with no digit'),
        z.string().refine(noNul, 'a variable value has a NUL byte'),
      )
      .refine(
        (env) => Object.keys(env).length <= LIMITS.execEnvEntries,
        `env has more than ${LIMITS.execEnvEntries} entries`,
      )
      .optional(),
    detached: z.boolean().optional(),
  })
  .meta({ id: 'ExecRequest' })
export type ExecRequest = z.infer<typeof execRequest>

/** The error code of each field of execRequest; a field not listed is invalid_request. */
export const EXEC_CODES = { timeoutSeconds: 'invalid_timeout' } as const

/** What the coordinator asks of the agent: the request, and the box's own variables beneath the request's. */
export const agentExecRequest = execRequest.omit({ env: true }).extend({
  env: z.record(z.string(), z.string()).optional(),
  boxEnv: z.record(z.string(), z.string()).optional(),
  record: z
    .object({
      commandId: z.string().regex(/^p_[0-9a-f]{24}$/),
      receipt: z.string().max(2048).meta({
        description: "the coordinator's sealed word on who ran it; comes back with the run's reports",
      }),
      keepOutput: z.boolean().meta({ description: 'false under zero data retention' }),
    })
    .optional()
    .meta({ description: 'absent: the run is not recorded in the command history' }),
})
export type AgentExecRequest = z.infer<typeof agentExecRequest>

export const execResult = z
  .object({
    ok: z.literal(true),
    type: z.literal('exec.result'),
    exitCode: z.int().nullable().meta({ description: 'null when a signal ended the command' }),
    signal: z
      .string()
      .nullable()
      .meta({ description: 'the signal that ended it, without SIG, such as TERM' }),
    stdout: z.string().meta({ description: 'the last 1 MiB as UTF-8; invalid bytes become U+FFFD' }),
    stderr: z.string(),
    stdoutTruncated: z.boolean(),
    stderrTruncated: z.boolean(),
    timedOut: z.boolean().meta({ description: 'true only when the time limit ended the command' }),
    startedAt: timestamp,
    finishedAt: timestamp,
    cwd: z.string().meta({ description: 'the one sent, or ~' }),
    commandId: z.string().optional().meta({ description: 'of its record in the command history' }),
  })
  .meta({ id: 'ExecResult' })
export type ExecResult = z.infer<typeof execResult>
