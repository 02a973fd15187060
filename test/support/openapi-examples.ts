// Writes coordinator/http/openapi-examples.ts, the examples of the OpenAPI document: real requests and responses of a coordinator
// with one box. Ids, times, secrets and addresses are replaced by fixed ones. `npm run docs:examples` writes the file.
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { startCoordinatorWithBox } from '../e2e/coordinator-with-box.ts'
import type { RequestOptions } from './coordinator.ts'
import { expandDocument, type OpenApiDocument } from './openapi-document.ts'
import { PROJECT_DIR } from './project.ts'
import { createTestSession } from './session.ts'

const FILE = join(PROJECT_DIR, 'coordinator/http/openapi-examples.ts')

type Example = { request?: unknown; response?: unknown; error?: unknown }
/** What of a call is no example: others show the same. */
type Omitted = 'response' | 'all'

/** Values that differ from run to run, by the name of their field. */
const FIXED: Record<string, unknown> = {
  pid: 4211,
  durationMs: 12,
  mtimeMs: 1_769_860_800_000,
  userAgent: 'curl/8.14.1',
  modifiedAt: '2026-01-31T12:00:00.000Z',
  agentVersion: '1.0.0',
  uid: 1000,
  gid: 1000,
  ending: 'Xk4q',
}

function fix(value: unknown, name = ''): unknown {
  if (name in FIXED && value !== null) return FIXED[name]
  if (Array.isArray(value)) return value.slice(0, 1).map((item) => fix(item))
  if (typeof value === 'object' && value !== null)
    return Object.fromEntries(Object.entries(value).map(([key, child]) => [key, fix(child, key)]))
  if (typeof value !== 'string') return value
  return value
    .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '2026-01-31T12:00:00.000Z')
    .replace(/[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}/g, '1f0c8a52-7d3e-4b6a-9c41-0a2b3c4d5e6f')
    .replace(/\b(dcp|dct|dcm|bwe|bwl)_\w{16,}/g, '$1_…')
    .replace(/\b([a-z]{1,6})_([\w-]{16,})/g, (_, prefix: string, id: string) =>
      /^[0-9a-f]{24}$/.test(id) ? `${prefix}_0123456789abcdef01234567` : `${prefix}_0123456789abcdef`,
    )
    .replace(/https?:\/\/127\.0\.0\.1:\d+/g, 'https://boxwood.example.com')
}

/** Makes one call for each example. */
async function collectExamples(t: Test): Promise<Record<string, Example>> {
  const coordinator = await startCoordinatorWithBox(t)
  const { api, edge, send, box, waitForState } = coordinator
  const { paths } = expandDocument((await send('GET', '/openapi.json')).json as OpenApiDocument)
  const session = await createTestSession(coordinator)
  const routes = new Map(
    Object.entries(paths).flatMap(([path, operations]) =>
      Object.entries(operations).map(
        ([method, operation]) => [operation.operationId, { method: method.toUpperCase(), path }] as const,
      ),
    ),
  )
  const examples: Record<string, Example> = {}
  const call = async (
    id: string,
    request?: Record<string, unknown>,
    params: Record<string, string> = {},
    query = '',
    { omit, ...options }: RequestOptions & { omit?: Omitted } = {},
  ) => {
    const route = routes.get(id)
    if (route === undefined) throw new Error(`there is no operation ${id}`)
    const path = route.path.replace(/\{(\w+)\}/g, (_, name: string) => params[name] ?? '')
    const { status, json, text } = await send(route.method, path + query, request, options)
    if (status >= 300) throw new Error(`${id}: ${status} ${text}`)
    if (omit !== 'all')
      examples[id] = {
        ...(request && Object.keys(request).length > 0 && { request: fix(request) }),
        ...(json !== undefined && omit === undefined && { response: fix(json) }),
      }
    return json
  }

  const inBox = { box: box.hostname }
  const { processId } = await call(
    'commands.run',
    { command: 'echo ready; sleep 60', detached: true },
    inBox,
    '',
    {
      omit: 'all',
    },
  )
  await call('commands.run', { command: 'echo hello' }, inBox)
  await call('processes.get', undefined, { ...inBox, processId })
  await call('processes.kill', undefined, { ...inBox, processId })
  await call('files.write', { path: 'notes.md', content: 'hello\n' }, inBox)
  await call('files.read', undefined, inBox, '?path=notes.md')
  await call('files.stat', undefined, inBox, '?path=notes.md')
  await call('files.makeDirectory', { path: 'src' }, inBox)
  await call('files.move', { from: 'notes.md', to: 'src/notes.md' }, inBox)
  await call('files.remove', undefined, inBox, '?path=src/notes.md')
  const { session: terminal } = await call('terminals.start', { cols: 80, rows: 24 }, inBox)
  await call('terminals.kill', undefined, { ...inBox, session: terminal?.name ?? terminal ?? '' })
  const { commands } = (await api('GET', `/boxes/${box.id}/commands`)).json
  const { id: commandId } = commands.find(({ command }: { command: string }) => command === 'echo hello')
  await call('commands.get', undefined, { id: box.id, commandId })
  const { box: fig } = await call(
    'boxes.create',
    { name: 'fig', tier: 'lite', labels: { team: 'web' } },
    {},
    '',
    {
      omit: 'response',
    },
  )
  await waitForState(fig.id, 'running')
  await call('boxes.update', { autoPauseMin: 60 }, { id: fig.id })
  await call('snapshots.create', { boxId: fig.id, name: 'with-tools' })
  const { box: copy } = await call('boxes.fork', { name: 'fig-copy' }, { id: fig.id }, '', {
    omit: 'response',
  })
  await waitForState(copy.id, 'running')
  const { operation } = await call('boxes.delete', undefined, { id: copy.id }, '', { omit: 'all' })
  await call('operations.get', undefined, { id: operation.id })
  await call('tickets.create', undefined, { id: fig.id }, '', session)
  const { environment } = await call('environments.create', { name: 'web', vars: { NODE_ENV: 'test' } })
  const inEnvironment = { id: environment.id }
  await call('environments.update', { description: 'for web' }, inEnvironment, '', { omit: 'response' })
  await call('environments.setVariable', { name: 'CI', value: '1' }, inEnvironment, '', { omit: 'response' })
  const { secret } = await call('secrets.create', {
    name: 'NPM_TOKEN',
    value: 'npm_…',
    hosts: ['registry.npmjs.org'],
  })
  await call('secrets.update', { hosts: ['*.npmjs.org'] }, { id: secret.id }, '', { omit: 'response' })
  const { key } = await call('keys.create', { name: 'ci', access: { boxes: 'run' } }, {}, '', session)
  await call('keys.update', { access: 'read' }, { id: key.id }, '', { ...session, omit: 'response' })
  const invited = await call('members.invite', { email: 'ada@example.com', role: 'member' }, {}, '', session)
  await call('members.update', { role: 'owner' }, { id: invited.member.id }, '', {
    ...session,
    omit: 'response',
  })
  await call('policies.update', { memberBoxLimit: 3 }, {}, '', { ...session, omit: 'response' })
  await call('session.updateUser', { name: 'Ada' }, {}, '', { ...session, omit: 'response' })
  await call('machines.createToken', { name: 'build-server' }, {}, '', session)
  await call('workspace.update', { name: 'Example' }, {}, '', session)
  const { box: plum } = await call('boxes.resize', { target_tier: 'flow' }, { id: fig.id }, '', {
    omit: 'response',
  })
  await call('boxes.createTemplate', { name: 'web' }, { id: plum.id }, '', { omit: 'response' })
  await call('downloads.createLink', { path: 'notes.md' }, { id: box.id }, '', { omit: 'response' })
  const missing = await api('GET', `/boxes/${'0'.repeat(8)}-0000-4000-8000-${'0'.repeat(12)}`)
  examples['boxes.get'] = { error: fix(missing.json) }
  examples['files.list'] = { error: fix((await edge(box.hostname, 'GET', '/files/list?path=none')).json) }
  return examples
}

async function main(): Promise<void> {
  const teardowns: (() => unknown)[] = []
  const t = { teardown: (run: () => unknown) => teardowns.unshift(run) } as unknown as Test
  try {
    const examples = await collectExamples(t)
    const lines = [
      '// Requests and responses of a coordinator, for the OpenAPI document. `npm run docs:examples` writes this file.',
      '',
      '/** By operationId. */',
      `export const EXAMPLES: Record<string, { request?: unknown; response?: unknown; error?: unknown }> = ${JSON.stringify(examples)}`,
      '',
    ]
    writeFileSync(FILE, lines.join('\n'))
    execFileSync('biome', ['format', '--write', FILE], { cwd: PROJECT_DIR })
  } finally {
    for (const run of teardowns) await run()
  }
}

if (import.meta.main) await main()
