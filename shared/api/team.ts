// Schemas of the team status (spec §2.10, §4.13): what the members and boxes of a workspace do, and what they spend.
import * as z from 'zod'
import { ROLES } from '../field-values.ts'
import { LIMITS } from '../limits.ts'
import { auditEventSchema } from './audit.ts'
import { DESIRED_STATES } from './boxes.ts'
import { microDollarsSchema, observedStateSchema, tierSchema, timestampSchema } from './common.ts'

const SPEND_DESCRIPTION = 'micro-dollars; 0 while billing is off'
const spendSchema = microDollarsSchema.meta({ description: SPEND_DESCRIPTION })
const sessionsSchema = z.int().min(0).meta({
  id: 'OpenSessions',
  description:
    'open terminals and attached commands (`box ssh`, `box attach`, `box exec`), and followed prompts. Requests that wait for a response, and streams of the output of commands, do not count',
})

export const teamBoxSchema = z
  .object({
    id: z.string(),
    hostname: z.string(),
    tier: tierSchema,
    desiredState: z.enum(DESIRED_STATES),
    observedState: observedStateSchema,
    ownerUserId: z.string(),
    ownerName: z.string().nullable().meta({ description: 'also of an owner who has left the workspace' }),
    ownerEmail: z.string().nullable(),
    idleForSec: z.int().nullable().meta({ description: 'null unless the box is running' }),
    cpuPct: z.number().nullable().meta({ description: 'as in Vitals; null unless the box is running' }),
    memPct: z.number().nullable().meta({ description: 'as in Vitals; null unless the box is running' }),
    lastHeartbeatAt: timestampSchema.nullable(),
    sessions: sessionsSchema,
    lastPromptAt: timestampSchema.nullable().meta({
      description:
        'when the box last accepted a prompt. null: it has accepted none, or only ones before the coordinator recorded this time',
    }),
    lastExecAt: timestampSchema.nullable().meta({
      description:
        'when the newest command of the command history was requested; null: the history has no command of the box',
    }),
    spendTodayMicros: spendSchema,
    spendCycleMicros: spendSchema,
  })
  .meta({ id: 'TeamBox' })
export type TeamBox = z.infer<typeof teamBoxSchema>

export const teamMemberSchema = z
  .object({
    userId: z.string(),
    name: z.string(),
    email: z.string().nullable(),
    role: z.enum(ROLES),
    boxes: z.int().min(0).meta({ description: 'live boxes that the member owns' }),
    sessions: sessionsSchema,
    spendCycleMicros: spendSchema,
    lastActiveAt: timestampSchema.nullable().meta({ description: 'as in Member' }),
  })
  .meta({ id: 'TeamMember' })
export type TeamMember = z.infer<typeof teamMemberSchema>

export const teamStatusSchema = z.object({
  now: timestampSchema,
  cycle: z
    .object({ start: timestampSchema, end: timestampSchema })
    .meta({ description: 'the billing cycle: the calendar month, in UTC. It ends before `end`' }),
  scope: z.enum(['workspace', 'own']).meta({
    description:
      'own: the caller is a contractor. boxes has their boxes, recent the events of these boxes, and members is empty',
  }),
  boxes: z.array(teamBoxSchema).meta({ description: 'boxes that are not deleted, newest first' }),
  members: z.array(teamMemberSchema).meta({ description: 'also invited ones, oldest first' }),
  totals: z.object({
    spendTodayMicros: spendSchema,
    spendCycleMicros: spendSchema,
    running: z.int().min(0).meta({ description: 'boxes whose observedState is running' }),
    sessions: sessionsSchema,
  }),
  recent: z.array(auditEventSchema).max(LIMITS.teamEvents).meta({
    description: 'the newest audit events. Of a contractor: those of their boxes that are not deleted',
  }),
})
export type TeamStatus = z.infer<typeof teamStatusSchema>
