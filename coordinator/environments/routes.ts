// Routes of environments (spec §4.9).
import { z } from 'zod'
import {
  createEnvironmentRequestSchema,
  environmentFileInputSchema,
  environmentListSchema,
  environmentRepoSchema,
  environmentResponseSchema,
  patchEnvironmentRequestSchema,
  removeFileQuerySchema,
  removeRepoQuerySchema,
  setVarRequestSchema,
  togglesRequestSchema,
  upgradeResponseSchema,
} from '../../shared/api/environments.ts'
import { LIMITS } from '../../shared/limits.ts'
import { byKey } from '../http/access.ts'
import { joinFields, sendJson, stringifyPages } from '../http/json-pages.ts'
import { idParam, type Route, route } from '../http/route.ts'
import type { EnvironmentService } from './service.ts'
import type { UpgradeEnvironment } from './upgrade.ts'

const params = z.object({ id: idParam })
const read = byKey('workspace', 'read', { roles: 'not_contractor' })
const write = byKey('workspace', 'write', { roles: 'not_contractor' })
const bodyLimit = LIMITS.environmentBodyBytes
const responses = { 200: environmentResponseSchema }
const FIELD_ERRORS = { name: 'invalid_name', vars: 'invalid_env', image: 'invalid_image' } as const
const errorDescriptions = {
  invalid_env: `The name of a variable must be one of a shell, and there must be at most ${LIMITS.boxEnvNames}. The message names the rule.`,
  environment_too_large: `The variables are larger than ${LIMITS.boxEnvBytes / 1024} KiB in total, or the files larger than ${LIMITS.environmentFilesBytes / 1024 ** 2} MiB.`,
  name_taken: 'Another environment of the workspace has this name.',
}
const VERSION =
  'A change creates a version. Boxes keep the version with which they were created, until POST /environments/{id}/upgrade.'

export type EnvironmentRoutesOptions = { environments: EnvironmentService; upgrade: UpgradeEnvironment }

export const environmentRoutes = (options: EnvironmentRoutesOptions): Route[] => [
  ...createRoutes(options),
  ...createContentRoutes(options.environments),
]

function createRoutes({ environments, upgrade }: EnvironmentRoutesOptions): Route[] {
  return [
    route({
      id: 'environments.list',
      method: 'GET',
      path: '/environments',
      access: read,
      summary: 'List environments, in the order of their names',
      description:
        'An environment is what new boxes start with: variables, secret files, repositories and an image.',
      responses: { 200: environmentListSchema },
      async handler({ actor, reply }) {
        const list = await stringifyPages(environments.listPages(actor))
        return sendJson(reply, joinFields({ environments: list }))
      },
    }),
    route({
      id: 'environments.create',
      method: 'POST',
      path: '/environments',
      access: write,
      summary: 'Create an environment',
      description: `A workspace has at most ${LIMITS.environments}. The contents of files are stored encrypted, and no response has them. Variables are no secrets: all members read them.`,
      request: { body: createEnvironmentRequestSchema },
      fieldErrorCodes: FIELD_ERRORS,
      bodyLimit,
      responses: { 201: environmentResponseSchema },
      errors: ['name_taken', 'environment_limit', 'environment_too_large', 'workspace_closing'],
      errorDescriptions,
      handler: async ({ actor, body }) => ({ environment: await environments.create(actor, body) }),
    }),
    route({
      id: 'environments.update',
      method: 'PATCH',
      path: '/environments/:id',
      access: write,
      summary: 'Change an environment',
      description: `${VERSION} A new name or description, or isDefault, creates none.`,
      request: { params, body: patchEnvironmentRequestSchema },
      fieldErrorCodes: FIELD_ERRORS,
      bodyLimit,
      responses,
      errors: ['name_taken', 'environment_too_large', 'workspace_closing'],
      errorDescriptions,
      handler: async ({ actor, params, body }) => ({
        environment: await environments.patch(actor, params.id, body),
      }),
    }),
    route({
      id: 'environments.delete',
      method: 'DELETE',
      path: '/environments/:id',
      access: write,
      summary: 'Delete an environment',
      description:
        'Boxes and snapshots keep their versions. New boxes get no environment if it was the default. No effect on a deleted environment, which is not found 30 days later.',
      request: { params },
      responses: { 204: null },
      handler: ({ actor, params }) => environments.remove(actor, params.id),
    }),
    route({
      id: 'environments.makeDefault',
      method: 'POST',
      path: '/environments/:id/default',
      access: write,
      summary: 'Make an environment the default',
      description:
        'New boxes that name no environment get it, except those from a snapshot. The previous default is none any more.',
      request: { params },
      responses,
      errors: ['workspace_closing'],
      handler: async ({ actor, params }) => ({
        environment: await environments.setDefault(actor, params.id),
      }),
    }),
    route({
      id: 'environments.setToggles',
      method: 'POST',
      path: '/environments/:id/toggles',
      access: write,
      summary: 'Set whether boxes are safe for third parties, and which credentials they get',
      description: `Toggles that the body does not have stay. ${VERSION}`,
      request: { params, body: togglesRequestSchema },
      responses,
      errors: ['workspace_closing'],
      handler: async ({ actor, params, body }) => ({
        environment: await environments.setToggles(actor, params.id, body),
      }),
    }),
    route({
      id: 'environments.upgradeBoxes',
      method: 'POST',
      path: '/environments/:id/upgrade',
      access: write,
      summary: 'Pin the boxes of an environment to its latest version',
      description:
        'A running box gets the variables, files and repositories at once, any other box at its next start. What the secrets of a channel add is mounted, and nothing is unmounted, unless the version is restricted: then the boxes become restricted, and stay so.',
      request: { params },
      responses: { 200: upgradeResponseSchema },
      errors: ['workspace_closing'],
      handler: ({ actor, params }) => upgrade(actor, params.id),
    }),
  ]
}

/** The routes that change one variable, file or repository. */
function createContentRoutes(environments: EnvironmentService): Route[] {
  return [
    route({
      id: 'environments.setVariable',
      method: 'POST',
      path: '/environments/:id/vars',
      access: write,
      summary: 'Set a variable',
      description: VERSION,
      request: { params, body: setVarRequestSchema },
      fieldErrorCodes: { name: 'invalid_env', value: 'invalid_env' },
      responses,
      errors: ['environment_too_large', 'workspace_closing'],
      errorDescriptions,
      handler: async ({ actor, params, body }) => ({
        environment: await environments.setVar(actor, params.id, body),
      }),
    }),
    route({
      id: 'environments.removeVariable',
      method: 'DELETE',
      path: '/environments/:id/vars/:name',
      access: write,
      summary: 'Remove a variable',
      description: 'No effect if the environment does not have it.',
      request: { params: params.extend({ name: z.string() }) },
      responses: { 204: null },
      handler: async ({ actor, params }) =>
        void (await environments.removeVar(actor, params.id, params.name)),
    }),
    route({
      id: 'environments.setFile',
      method: 'PUT',
      path: '/environments/:id/files',
      access: write,
      summary: 'Set a secret file',
      description: `Replaces the file with this path. ${VERSION}`,
      request: { params, body: environmentFileInputSchema },
      bodyLimit,
      responses,
      errors: ['environment_too_large', 'workspace_closing'],
      errorDescriptions,
      handler: async ({ actor, params, body }) => ({
        environment: await environments.setFile(actor, params.id, body),
      }),
    }),
    route({
      id: 'environments.removeFile',
      method: 'DELETE',
      path: '/environments/:id/files',
      access: write,
      summary: 'Remove a secret file',
      description:
        'No effect if the environment does not have it. The content is deleted when no version has the file any more.',
      request: { params, query: removeFileQuerySchema },
      responses: { 204: null },
      handler: async ({ actor, params, query }) =>
        void (await environments.removeFile(actor, params.id, query.path)),
    }),
    route({
      id: 'environments.setRepo',
      method: 'POST',
      path: '/environments/:id/repos',
      access: write,
      summary: 'Add a repository, or change it',
      description: `Replaces the repository with the same URL. ${VERSION}`,
      request: { params, body: environmentRepoSchema },
      bodyLimit,
      responses,
      errors: ['workspace_closing'],
      handler: async ({ actor, params, body }) => ({
        environment: await environments.setRepo(actor, params.id, body),
      }),
    }),
    route({
      id: 'environments.removeRepo',
      method: 'DELETE',
      path: '/environments/:id/repos',
      access: write,
      summary: 'Remove a repository',
      description: 'No effect if the environment does not have it. Clones on boxes stay.',
      request: { params, query: removeRepoQuerySchema },
      responses: { 204: null },
      handler: async ({ actor, params, query }) =>
        void (await environments.removeRepo(actor, params.id, query.repo)),
    }),
  ]
}
