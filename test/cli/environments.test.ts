// box environments and repos, and the environments of new boxes.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Environment } from '../../shared/api/environments.ts'
import { createTempDir } from '../support/temp-dir.ts'
import { startCliCoordinator } from './coordinator.ts'
import { type BoxOptions, runBox } from './run-box.ts'

const coordinator = await startCliCoordinator(t, ['fig'])
const { api, findBox } = coordinator
const dir = createTempDir(t, 'files')
const box = (args: string[], options?: BoxOptions) => runBox(coordinator, args, { cwd: dir, ...options })
const run = async (...args: string[]) => {
  const { code, stdout, stderr } = await box(args)
  t.equal(code, 0, `box ${args.join(' ')}: ${stderr}`)
  return stdout + stderr
}
const listEnvironments = async (): Promise<Environment[]> =>
  (await api('GET', '/environments')).json.environments
const getWeb = async () => (await listEnvironments()).find(({ name }) => name === 'web')

t.beforeEach(async () => {
  for (const { id } of await listEnvironments()) await api('DELETE', `/environments/${id}`)
  await run('environments', 'create', 'web', '-q', '-e', 'A=1', '--repo', 'owner/name', '--coding-agents')
})

t.test('create, list and show', async (t) => {
  t.match(await getWeb(), {
    vars: [{ name: 'A', value: '1' }],
    repos: [{ repo: 'owner/name' }],
    toggles: { codingAgents: true, git: false },
  })
  t.match(
    await run('envs', 'create', 'third', '--restricted', '--default'),
    /third: created; new boxes get it/,
  )
  const list = await run('environments', 'ls')
  t.match(list, /^web +- +1 +0 +1 +0 +1 +codingAgents /m)
  t.match(list, /^third +yes .* restricted /m)
  t.match(
    await run('environment', 'show', 'web'),
    /^Variables:\n {2}A=1\n\nRepositories:\n {2}owner\/name +- +default branch +public$/m,
  )
  t.match(await box(['environments', 'show', 'wbe']), { code: 5, stderr: /No such environment: 'wbe'.*web/s })
  t.match(await box(['env', 'create', 'web']), {
    code: 5,
    stderr: /`box environments create` is about environments/,
  })
})

t.test('set and unset: several variables are one version', async (t) => {
  t.match(await run('environments', 'set', 'web', 'B=2'), /web: version 2/)
  t.match(await run('environments', 'set', 'web', 'C=3', 'D=4 5'), /web: version 3/)
  t.same(
    (await getWeb())?.vars.map(({ name, value }) => `${name}=${value}`),
    ['A=1', 'B=2', 'C=3', 'D=4 5'],
  )
  t.match(await run('environments', 'unset', 'web', 'A', 'B'), /web: version 4/)
  t.match(await box(['environments', 'unset', 'web', 'A']), { code: 5, stderr: /A is not set in web/ })
  t.match(await box(['environments', 'set', 'web', 'A']), { code: 2, stderr: /'A' must be NAME=VALUE/ })
  t.match(await box(['environments', 'set', 'web']), { code: 2, stderr: /Nothing to set/ })
  t.match(await run('environments', 'set', 'web', '--name', 'site'), /site: no new version; it was web/)
})

t.test('files', async (t) => {
  writeFileSync(join(dir, '.npmrc'), 'registry=x\n')
  await run('environments', 'file', 'put', 'web', '.npmrc')
  const piped = await box(['environments', 'file', 'put', 'web', '-', '/etc/x.conf', '--mode', '0644'], {
    stdin: 'x',
  })
  t.match(piped, { code: 0, stderr: /web: version 3/ })
  t.match((await getWeb())?.files, [
    { path: '/etc/x.conf', mode: '0644', size: 1 },
    { path: '~/.npmrc', mode: '0600', size: 'registry=x\n'.length },
  ])
  t.match(await box(['environments', 'file', 'put', 'web', '-']), { code: 2, stderr: /Stdin has no name/ })
  t.match(await box(['environments', 'file', 'put', 'web', 'none']), {
    code: 2,
    stderr: /Cannot read none: no such file/,
  })
  const expanded = await box(['environments', 'file', 'put', 'web', '.npmrc', '/home/me/.npmrc'], {
    env: { HOME: '/home/me' },
  })
  t.match(expanded, { code: 0, stderr: /your shell has replaced ~/ })
  await run('environments', 'file', 'rm', 'web', '.npmrc', '/home/me/.npmrc')
  t.match((await getWeb())?.files, [{ path: '/etc/x.conf' }])
  t.match(await box(['environments', 'file', 'rm', 'web', 'none']), {
    code: 5,
    stderr: /web has no file 'none'/,
  })
})

t.test('repositories, toggles and the default', async (t) => {
  const url = 'https://git.example.com/team/app.git'
  await run(
    'environments',
    'repo',
    'add',
    'web',
    url,
    '--path',
    'src',
    '--ref',
    'main',
    '--secret',
    'GIT_TOKEN',
  )
  await run('environments', 'repo', 'rm', 'web', 'owner/name')
  t.same((await getWeb())?.repos, [{ repo: url, path: '~/src', ref: 'main', secret: 'GIT_TOKEN' }])
  t.match(await run('environments', 'toggle', 'web', 'git', 'on'), /web: toggles git, codingAgents/)
  t.match(await box(['environments', 'toggle', 'web', 'all', 'on']), {
    code: 2,
    stderr: /restricted, git, cloud, codingAgents/,
  })
  t.match(await run('environments', 'default', 'web'), /web: new boxes get it/)
  t.match(await box(['environments', 'rm', 'web', '-y']), {
    code: 0,
    stderr: /web: deleted; new boxes get no environment/,
  })
  t.same(await listEnvironments(), [])
})

t.test('upgrade prints each box with the reason of a skip', async (t) => {
  await run('create', 'cherry', '-q', '--environment', 'web')
  await run('environments', 'set', 'web', 'B=2')
  await run('create', 'plum', '-q', '--environment', 'web')
  t.match(
    await run('environments', 'upgrade', 'web'),
    /cherry: version 2 instead of 1\nplum: skipped: it uses the latest version\nRunning boxes get/,
  )
})

t.test('box repos lists and updates the clones', async (t) => {
  t.match(await run('repos', 'fig'), /no repositories\. `\S*box environments repo add/)
  const clone = {
    repo: 'https://github.com/owner/name',
    path: '~/name',
    ref: null,
    state: 'failed',
    commit: null,
    error: 'not found',
    updatedAt: new Date().toISOString(),
  }
  const { id } = await findBox('fig')
  coordinator.changeNext(`GET /api/v1/boxes/${id}/repos`, () => ({ repos: [clone] }))
  t.match(await run('repos', 'fig'), /^https:\S+ +~\/name +- +failed +- +\d+s ago +not found$/m)
  coordinator.changeNext(`POST /api/v1/boxes/${id}/repos/update`, () => ({ repos: [clone] }))
  t.match(await run('repos', 'update', 'fig'), /fig: updating 1 repository; `\S*box repos fig`/)
})

t.test('a new box takes an environment, none, and --restricted', async (t) => {
  await run('environments', 'default', 'web')
  for (const [name, args] of [
    ['peach', ['--environment', 'web', '--restricted']],
    ['pear', ['--environment', 'none']],
    ['kaki', []],
  ] as const)
    await run('create', name, '-q', ...args)
  const { id: environmentId } = (await getWeb()) ?? {}
  t.match(await findBox('peach'), { environmentId, restricted: true })
  t.match(await findBox('pear'), { environmentId: null, restricted: false })
  t.match(await findBox('kaki'), { environmentId }, 'the default')
})

t.test('box show: the pinned version, and what restricted means', async (t) => {
  await run('create', 'lime', '-q', '--environment', 'web', '--restricted')
  await run('environments', 'set', 'web', 'B=2')
  const shown = await run('show', 'lime')
  t.match(shown, /^environment +web, version 1 of 2 \(.*environments upgrade web\)$/m)
  t.match(
    shown,
    /^restricted +yes: no secrets, no secret files, no cloud tokens, and links only for members$/m,
  )
  await run('environments', 'rm', 'web', '-y')
  t.match(
    await run('show', 'lime'),
    /^environment +web, version 1; deleted at [^,]+, the box keeps its version$/m,
  )
})
