// Schemas of workspaces (spec §2.3): fields, and the requests to create, change and close them.
import * as z from 'zod'
import { LIMITS } from '../limits.ts'
import { displayNameSchema, timestampSchema } from './common.ts'

export const workspaceNameSchema = displayNameSchema(LIMITS.workspaceNameChars)

export const workspaceSchema = z
  .object({
    id: z.string().meta({ description: 'the id of the workspace, such as ws_…' }),
    name: z.string(),
    createdAt: timestampSchema,
    zeroDataRetention: z.boolean().meta({
      description:
        'true: the coordinator stores no command, working directory or output in the command history, no command lines in process snapshots, and no details of client reports in the audit log',
    }),
    closable: z.boolean().meta({
      description:
        'whether POST /workspace/close is possible. false: the first workspace of the coordinator, whose owners operate it',
    }),
    closingAt: timestampSchema.nullable().meta({
      description: 'when the closing of the workspace was requested; null: the workspace is open',
    }),
    purgeAfter: timestampSchema.nullable().meta({
      description:
        'when everything of the workspace is deleted. Until then an owner can reopen it. null: the workspace is open',
    }),
  })
  .meta({ id: 'Workspace' })
export type Workspace = z.infer<typeof workspaceSchema>

export const workspaceResponseSchema = z.object({ workspace: workspaceSchema })

export const createWorkspaceRequestSchema = z
  .strictObject({ name: workspaceNameSchema.meta({ description: 'names are not unique' }) })
  .meta({ id: 'CreateWorkspace' })

export const updateWorkspaceRequestSchema = z
  .strictObject({
    name: workspaceNameSchema.optional(),
    zeroDataRetention: z.boolean('must be true or false').optional().meta({
      description:
        'true also erases what is stored already, in the background, also of terminated boxes. Logs on the boxes and environment variables stay. false does not restore what has been erased.',
    }),
  })
  .meta({ id: 'UpdateWorkspace', description: 'The fields to change. At least one is required.' })
export type UpdateWorkspaceRequest = z.infer<typeof updateWorkspaceRequestSchema>

export const closeWorkspaceRequestSchema = z
  .strictObject({
    name: z.string('must be the name of the workspace').max(200, 'must be the name of the workspace').meta({
      description: 'the name of the workspace, which confirms the request',
    }),
  })
  .meta({ id: 'CloseWorkspace' })
