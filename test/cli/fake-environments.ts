// Environments of a fake coordinator (spec §4.9).
import { randomBytes } from 'node:crypto'
import {
  type BoxRepo,
  createEnvironmentRequestSchema,
  type Environment,
  type EnvironmentToggles,
  environmentFileInputSchema,
  environmentRepoSchema,
  NO_TOGGLES,
  patchEnvironmentRequestSchema,
  setVarRequestSchema,
  togglesRequestSchema,
  type UpgradedEnvironment,
} from '../../shared/api/environments.ts'
import { ApiError } from '../../shared/errors.ts'
import { type FakeCoordinator, readText, sendJson } from './fake-coordinator.ts'

export type FakeEnvironments = {
  environments: Environment[]
  /** The contents of the files by their paths. */
  contents: Map<string, string>
  upgrade: UpgradedEnvironment
  repos: BoxRepo[]
}

const toVars = (vars: Record<string, string>) =>
  Object.entries(vars).map(([name, value]) => ({ name, value }))

const mergeToggles = (
  before: EnvironmentToggles,
  changes: { [Name in keyof EnvironmentToggles]?: boolean | undefined },
): EnvironmentToggles => ({
  restricted: changes.restricted ?? before.restricted,
  git: changes.git ?? before.git,
  cloud: changes.cloud ?? before.cloud,
  codingAgents: changes.codingAgents ?? before.codingAgents,
})

export function addFakeEnvironments(fake: FakeCoordinator): FakeEnvironments {
  const state: FakeEnvironments = {
    environments: [],
    contents: new Map(),
    upgrade: { upgraded: [], skipped: [], latestVersionNo: 1 },
    repos: [],
  }
  const now = () => new Date().toISOString()
  const find = (id: string): Environment => {
    const environment = state.environments.find((candidate) => candidate.id === id)
    if (environment === undefined) throw new ApiError('not_found')
    return environment
  }
  const change = (id: string, changes: Partial<Environment>): Environment =>
    Object.assign(find(id), changes, { latestVersionNo: find(id).latestVersionNo + 1 })

  fake.addRoutes([
    [
      /^GET \/api\/v1\/environments$/,
      async (_, response) => sendJson(response, { environments: state.environments }),
    ],
    [
      /^POST \/api\/v1\/environments$/,
      async (request, response) => {
        const body = createEnvironmentRequestSchema.parse(JSON.parse(await readText(request)))
        const environment: Environment = {
          id: `env_${randomBytes(4).toString('hex')}`,
          name: body.name,
          description: body.description ?? null,
          isDefault: body.isDefault ?? false,
          latestVersionNo: 1,
          vars: toVars(body.vars ?? {}),
          files: [],
          repos: body.repos ?? [],
          image: body.image ?? null,
          toggles: mergeToggles(NO_TOGGLES, body.toggles ?? {}),
          boxCount: 0,
          createdAt: now(),
          updatedAt: now(),
        }
        state.environments.push(environment)
        sendJson(response, { environment }, 201)
      },
    ],
    [
      /^PATCH \/api\/v1\/environments\/([^/]+)$/,
      async (request, response, [, id = '']) => {
        const body = patchEnvironmentRequestSchema.parse(JSON.parse(await readText(request)))
        const { name, vars, image } = body
        if (name !== undefined) find(id).name = name
        if (image !== undefined) change(id, { image })
        if (vars !== undefined) change(id, { vars: toVars(vars) })
        sendJson(response, { environment: find(id) })
      },
    ],
    [
      /^DELETE \/api\/v1\/environments\/([^/]+)$/,
      async (_, response, [, id = '']) => {
        const environment = find(id)
        state.environments = state.environments.filter((other) => other !== environment)
        response.writeHead(204).end()
      },
    ],
    [
      /^POST \/api\/v1\/environments\/([^/]+)\/default$/,
      async (_, response, [, id = '']) => {
        for (const environment of state.environments) environment.isDefault = environment.id === id
        sendJson(response, { environment: find(id) })
      },
    ],
    [
      /^POST \/api\/v1\/environments\/([^/]+)\/toggles$/,
      async (request, response, [, id = '']) => {
        const toggles = togglesRequestSchema.parse(JSON.parse(await readText(request)))
        sendJson(response, { environment: change(id, { toggles: mergeToggles(find(id).toggles, toggles) }) })
      },
    ],
    [
      /^POST \/api\/v1\/environments\/([^/]+)\/vars$/,
      async (request, response, [, id = '']) => {
        const variable = setVarRequestSchema.parse(JSON.parse(await readText(request)))
        const others = find(id).vars.filter(({ name }) => name !== variable.name)
        sendJson(response, { environment: change(id, { vars: [...others, variable] }) })
      },
    ],
    [
      /^PUT \/api\/v1\/environments\/([^/]+)\/files$/,
      async (request, response, [, id = '']) => {
        const {
          path,
          contentBase64 = '',
          mode = '0600',
        } = environmentFileInputSchema.parse(JSON.parse(await readText(request)))
        const content = Buffer.from(contentBase64, 'base64')
        state.contents.set(path, content.toString())
        const others = find(id).files.filter((file) => file.path !== path)
        const file = { path, mode, size: content.length, updatedAt: now() }
        sendJson(response, { environment: change(id, { files: [...others, file] }) })
      },
    ],
    [
      /^DELETE \/api\/v1\/environments\/([^/]+)\/files\?path=(.*)$/,
      async (_, response, [, id = '', path = '']) => {
        const removed = decodeURIComponent(path)
        change(id, { files: find(id).files.filter((file) => file.path !== removed) })
        response.writeHead(204).end()
      },
    ],
    [
      /^POST \/api\/v1\/environments\/([^/]+)\/repos$/,
      async (request, response, [, id = '']) => {
        const repo = environmentRepoSchema.parse(JSON.parse(await readText(request)))
        sendJson(response, { environment: change(id, { repos: [...find(id).repos, repo] }) })
      },
    ],
    [
      /^DELETE \/api\/v1\/environments\/([^/]+)\/repos\?repo=(.*)$/,
      async (_, response, [, id = '', repo = '']) => {
        const removed = decodeURIComponent(repo)
        change(id, { repos: find(id).repos.filter((candidate) => candidate.repo !== removed) })
        response.writeHead(204).end()
      },
    ],
    [
      /^POST \/api\/v1\/environments\/([^/]+)\/upgrade$/,
      async (_, response) => sendJson(response, state.upgrade),
    ],
    [
      /^GET \/api\/v1\/boxes\/([^/]+)\/repos$/,
      async (_, response) => sendJson(response, { repos: state.repos }),
    ],
    [
      /^POST \/api\/v1\/boxes\/([^/]+)\/repos\/update$/,
      async (_, response) => sendJson(response, { repos: state.repos }, 202),
    ],
  ])
  return state
}
