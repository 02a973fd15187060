// Routes of workspaces (spec §2.3, §5.7).
import {
  closeWorkspaceRequestSchema,
  createWorkspaceRequestSchema,
  updateWorkspaceRequestSchema,
  workspaceResponseSchema,
} from '../../../shared/api/workspaces.ts'
import { LIMITS } from '../../../shared/limits.ts'
import { bySession } from '../../http/access.ts'
import { type Route, route } from '../../http/route.ts'
import type { WorkspaceService } from './service.ts'

/** The requests that a closing workspace refuses. A test checks each of them. */
export const REFUSED_WHILE_CLOSING = [
  'POST /boxes',
  'PATCH /boxes/{id}',
  'POST /boxes/{id}/wake',
  'POST /boxes/{id}/resize',
  'POST /boxes/{id}/region',
  'POST /boxes/{id}/owner',
  'POST /boxes/{id}/fork',
  'POST /boxes/{id}/template',
  'POST /boxes/{id}/tickets',
  'POST /boxes/{id}/port-shares',
  'POST /machines',
  'PATCH /agents/rollout',
  'POST /snapshots',
  'POST /snapshots/{id}/restore',
  'POST /snapshots/{id}/template',
  'POST /images',
  'POST /environments',
  'PATCH /environments/{id}',
  'POST /environments/{id}/default',
  'POST /environments/{id}/toggles',
  'POST /environments/{id}/vars',
  'PUT /environments/{id}/files',
  'POST /environments/{id}/repos',
  'POST /environments/{id}/upgrade',
  'POST /secrets',
  'POST /secrets/{id}/grants',
  'POST /boxes/{id}/secrets',
  'POST /keys',
  'POST /members',
  'PATCH /workspace/policies',
  'PUT /audit/sink',
  'POST /aws-roles',
  'POST /aws-connect',
  'POST /billing/checkout',
] as const

export function workspaceRoutes({ workspaces }: { workspaces: WorkspaceService }): Route[] {
  return [
    route({
      id: 'workspaces.create',
      method: 'POST',
      path: '/workspaces',
      access: bySession(),
      summary: 'Create a workspace',
      description: `The caller becomes its owner, with the same email address and name; POST /session/workspace switches the session to it. The caller is an owner of the coordinator's first workspace, or any person where the operator has opened the sign-up; otherwise not_owner. A person is an owner of at most ${LIMITS.ownedWorkspaces} workspaces: not_allowed.`,
      request: { body: createWorkspaceRequestSchema },
      responses: { 201: workspaceResponseSchema },
      errors: ['not_owner'],
      handler: async ({ actor, body }) => ({ workspace: await workspaces.create(actor, body.name) }),
    }),
    route({
      id: 'workspace.get',
      method: 'GET',
      path: '/workspace',
      access: bySession(),
      summary: 'Get the workspace of the session',
      responses: { 200: workspaceResponseSchema },
      handler: async ({ actor }) => ({ workspace: await workspaces.get(actor) }),
    }),
    route({
      id: 'workspace.update',
      method: 'PATCH',
      path: '/workspace',
      access: bySession('owner'),
      summary: 'Change the name or the data retention of the workspace',
      request: { body: updateWorkspaceRequestSchema },
      responses: { 200: workspaceResponseSchema },
      handler: async ({ actor, body }) => ({ workspace: await workspaces.update(actor, body) }),
    }),
    route({
      id: 'workspace.close',
      method: 'POST',
      path: '/workspace/close',
      access: bySession('owner'),
      summary: 'Close the workspace',
      description: `Everything of the workspace is deleted at purgeAfter: boxes with their files, snapshots, history, members, keys and the audit log. Until then an owner can reopen it with POST /workspace/reopen. Then every credential ends at once. The operator configures the time in between (BOXWOOD_PURGE_DAYS).

A closing workspace answers 409 workspace_closing to these requests, when they would have an effect, and writes nothing:

${REFUSED_WHILE_CLOSING.map((request) => `- ${request}`).join('\n')}

Everything else continues to work, such as reading, the edge of running boxes, deletions and sign-ins.

Closing a closing workspace has no effect. The first workspace of a coordinator cannot be closed (not_allowed), because its owners operate the coordinator.`,
      request: { body: closeWorkspaceRequestSchema },
      responses: { 200: workspaceResponseSchema },
      handler: async ({ actor, body }) => ({ workspace: await workspaces.close(actor, body.name) }),
    }),
    route({
      id: 'workspace.reopen',
      method: 'POST',
      path: '/workspace/reopen',
      access: bySession('owner'),
      summary: 'Reopen a closing workspace',
      description:
        'Sets closingAt and purgeAfter to null. No effect on an open workspace. From purgeAfter on, the workspace is being deleted and cannot be reopened: workspace_closing.',
      responses: { 200: workspaceResponseSchema },
      errors: ['workspace_closing'],
      handler: async ({ actor }) => ({ workspace: await workspaces.reopen(actor) }),
    }),
  ]
}
