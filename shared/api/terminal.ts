// Schemas of the terminal sessions of a box. The messages of GET /terminal are in attach.ts.
import * as z from 'zod'
import { SESSION_NAME_PATTERN } from '../attach-format.ts'
import { LIMITS } from '../limits.ts'
import { terminalSizeFields } from './attach.ts'
import { boundedArray, pidSchema, queryIntegerBetween, queryOffset, timestampSchema } from './common.ts'
import { agentExecRequestSchema, execRequestSchema } from './exec.ts'

const NAME_RULE =
  'must be 1 to 64 letters, digits, periods, underscores and hyphens, and start and end with a letter or digit'
export const sessionNameSchema = z.string().regex(SESSION_NAME_PATTERN, NAME_RULE)

const TERM_RULE = 'must be 1 to 64 printable ASCII characters without spaces'
const termSchema = z
  .string()
  .regex(/^[\x21-\x7e]{1,64}$/, TERM_RULE)
  .meta({ description: 'value of TERM; default xterm-256color' })

/** POST /terminal/sessions. */
export const terminalStartSchema = z
  .object({
    session: sessionNameSchema
      .optional()
      .meta({ description: 'default: the lowest number that is not in use' }),
    command: execRequestSchema.shape.command.optional().meta({
      description: 'run by sh -c as the box user; default: the login shell of the user',
    }),
    cwd: execRequestSchema.shape.cwd,
    env: execRequestSchema.shape.env,
    term: termSchema.optional(),
    cols: terminalSizeFields.cols.optional().meta({ description: 'default 80' }),
    rows: terminalSizeFields.rows.optional().meta({ description: 'default 24' }),
  })
  .meta({ id: 'TerminalStart' })
export type TerminalStart = z.infer<typeof terminalStartSchema>

/** The request to the agent. */
export const agentTerminalStartSchema = terminalStartSchema.omit({ env: true }).extend({
  env: z.record(z.string(), z.string()).optional(),
  boxEnv: z.record(z.string(), z.string()).optional(),
  record: agentExecRequestSchema.shape.record,
})
export type AgentTerminalStart = z.infer<typeof agentTerminalStartSchema>

/** The command text of a login shell in the history. */
export const LOGIN_SHELL_COMMAND = '$SHELL -l'

/** The query of GET /terminal. */
export const terminalQuerySchema = z.object({
  session: sessionNameSchema
    .optional()
    .meta({ description: 'default: a new session, or with create=never the newest session' }),
  create: z.enum(['auto', 'never']).optional().meta({
    description:
      'auto, the default: create the session, with a login shell, if it does not exist; never: 404',
  }),
  client: z
    .string()
    .regex(/^[A-Za-z0-9_-]{1,64}$/, 'must be 1 to 64 letters, digits, underscores and hyphens')
    .optional()
    .meta({
      description: 'random id of the client: a client that reconnects with its id continues its stdin',
    }),
  offset: queryOffset()
    .optional()
    .meta({ description: 'continue the output from here; default: the current screen' }),
  cols: queryIntegerBetween(1, 1000).optional().meta({ description: 'default: the size of the session' }),
  rows: queryIntegerBetween(1, 1000).optional(),
  term: termSchema.optional(),
})
export type TerminalQuery = z.infer<typeof terminalQuerySchema>

/** The query of the request to the agent. */
export const agentAttachQuerySchema = terminalQuerySchema
  .pick({ client: true, offset: true, cols: true, rows: true })
  .extend({
    isNew: z.enum(['true', 'false']),
    exited: z
      .enum(['true', 'false'])
      .meta({ description: 'also an exited session that had this client or none' }),
  })

export const terminalSessionSchema = z.object({
  session: z.string().regex(SESSION_NAME_PATTERN),
  pid: pidSchema,
  command: z
    .string()
    .max(2048)
    .nullable()
    .meta({ description: 'null: the login shell; at most 2048 characters' }),
  ...terminalSizeFields,
  clients: z.int().min(0).max(LIMITS.edgeAttachments).meta({ description: 'attached connections' }),
  startedAt: timestampSchema,
  lastActiveAt: timestampSchema.meta({ description: 'last input or output' }),
})
export type TerminalSession = z.infer<typeof terminalSessionSchema>

export const terminalStartedSchema = z
  .object({
    ok: z.literal(true),
    type: z.literal('terminal.started'),
    ...terminalSessionSchema.shape,
    commandId: z.string().optional().meta({ description: 'id of the record in the command history' }),
  })
  .meta({ id: 'TerminalStarted' })
export type TerminalStarted = z.infer<typeof terminalStartedSchema>

export const terminalListSchema = z
  .object({
    ok: z.literal(true),
    type: z.literal('terminal.list'),
    sessions: boundedArray(terminalSessionSchema, LIMITS.terminalSessions),
  })
  .meta({ id: 'TerminalList', description: 'Running sessions, newest first.' })
export type TerminalList = z.infer<typeof terminalListSchema>

export const terminalKilledSchema = z
  .object({
    ok: z.literal(true),
    type: z.literal('terminal.killed'),
    session: z.string(),
    signal: z.enum(['HUP', 'TERM', 'KILL']).nullable(),
  })
  .meta({ id: 'TerminalKilled' })
export type TerminalKilled = z.infer<typeof terminalKilledSchema>
