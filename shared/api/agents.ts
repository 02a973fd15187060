// Schemas of the agents of a workspace and of the rollout of new builds.
import * as z from 'zod'
import { AGENT_STATES } from '../field-values.ts'
import { boxIdSchema, integerBetween, timestampSchema } from './common.ts'

export type AgentState = (typeof AGENT_STATES)[number]

export const agentSchema = z
  .object({
    boxId: boxIdSchema,
    hostname: z.string(),
    version: z.string().nullable().meta({
      description:
        'such as 1.0.0+4f2a81c09d3e5b76: the version and the build; null: the agent has not connected yet',
    }),
    targetBuild: z
      .string()
      .nullable()
      .meta({ description: 'the build that the coordinator offers; null: unknown, or the agent is offline' }),
    state: z.enum(AGENT_STATES).meta({
      description:
        'current: runs the build that the coordinator offers. outdated: runs another one. upgrading: gets the build, or waits until its box is not in use. failed: returned from the build, which did not connect. offline: not connected.',
    }),
    detail: z.string().nullable().meta({ description: 'why the agent is outdated, upgrading or failed' }),
  })
  .meta({ id: 'Agent' })
export type Agent = z.infer<typeof agentSchema>

const shareSchema = integerBetween(0, 100)

export const rolloutSchema = z
  .object({
    share: shareSchema.meta({ description: 'the percentage of the boxes that get new builds' }),
    paused: z.boolean().meta({ description: 'whether no agent gets another build' }),
    updatedBy: z.string().nullable().meta({
      description: 'the id of the user who made the last change; null: there was none, or a key did',
    }),
    updatedAt: timestampSchema.nullable(),
  })
  .meta({ id: 'AgentRollout' })
export type Rollout = z.infer<typeof rolloutSchema>

export const agentListSchema = z.object({
  rollout: rolloutSchema,
  agents: z.array(agentSchema).meta({ description: 'newest box first' }),
})
export type AgentList = z.infer<typeof agentListSchema>

/** The body of PATCH /agents/rollout. */
export const patchRolloutRequestSchema = z
  .strictObject({ share: shareSchema.optional(), paused: z.boolean().optional() })
  .meta({
    id: 'PatchAgentRollout',
    description: 'The settings to change. paused: false also offers builds again that have failed on a box.',
  })
export type PatchRolloutRequest = z.infer<typeof patchRolloutRequestSchema>

export const rolloutResponseSchema = z.object({ rollout: rolloutSchema })
export type RolloutResponse = z.infer<typeof rolloutResponseSchema>
