// Schemas of agent accounts (spec §5.2, §5.3): workspaces that agents create for themselves.
import * as z from 'zod'
import { LIMITS } from '../limits.ts'
import { displayNameSchema, emailSchema, timestampSchema } from './common.ts'
import { apiKeySchema } from './keys.ts'

const codeFields = {
  codeId: z.string().meta({ description: 'the id of the emailed code, such as sic_…' }),
  codeExpiresAt: timestampSchema,
}

export const createAgentAccountRequestSchema = z
  .strictObject({
    email: emailSchema.meta({ description: 'an email address whose mails the agent or its owner can read' }),
    name: displayNameSchema(LIMITS.workspaceNameChars).optional().meta({
      description:
        'of the workspace, its owner and its key. Default: the part of the email address before the @',
    }),
  })
  .meta({ id: 'CreateAgentAccount' })
export type CreateAgentAccountRequest = z.infer<typeof createAgentAccountRequestSchema>

export const agentAccountSchema = z
  .object({
    key: apiKeySchema,
    secret: z.string().meta({
      description:
        'dcp_…, for the header Authorization: Bearer. Until the code is confirmed, it is accepted only on GET /me.',
    }),
    workspace: z.object({ id: z.string(), name: z.string() }),
    ...codeFields,
  })
  .meta({ id: 'AgentAccount', description: 'A new workspace with an API key of its owner' })
export type AgentAccount = z.infer<typeof agentAccountSchema>

export const agentAccountCodeRequestSchema = z
  .strictObject({ keyId: z.string('must be the id of the key').max(100) })
  .meta({ id: 'RequestAgentAccountCode' })

export const agentAccountCodeSchema = z.object(codeFields)
export type AgentAccountCode = z.infer<typeof agentAccountCodeSchema>

export const verifiedSchema = z.object({ verified: z.literal(true) })
