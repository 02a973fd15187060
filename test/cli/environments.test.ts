// box environments and repos, and the environments of new boxes.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { BoxDetail } from '../../shared/api/boxes.ts'
import { createTempDir } from '../support/temp-dir.ts'
import { KEY, startFakeCoordinator } from './fake-coordinator.ts'
import { addFakeEnvironments } from './fake-environments.ts'
import { type BoxOptions, runBox } from './run-box.ts'

const fake = await startFakeCoordinator(t)
const fig = await fake.addBox('fig')
const state = addFakeEnvironments(fake)
const dir = createTempDir(t, 'files')
const box = (args: string[], options?: BoxOptions) => runBox(fake.url, args, { cwd: dir, ...options })
const run = async (...args: string[]) => {
  const { code, stdout, stderr } = await box(args)
  t.equal(code, 0, `box ${args.join(' ')}: ${stderr}`)
  return stdout + stderr
}
const getWeb = () => state.environments.find(({ name }) => name === 'web')

t.beforeEach(async () => {
  state.environments = []
  await run('environments', 'create', 'web', '-q', '-e', 'A=1', '--repo', 'owner/name', '--coding-agents')
})

t.test('create, list and show', async (t) => {
  t.match(getWeb(), {
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
    getWeb()?.vars.map(({ name, value }) => `${name}=${value}`),
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
  t.match(getWeb()?.files, [
    { path: '~/.npmrc', mode: '0600' },
    { path: '/etc/x.conf', mode: '0644' },
  ])
  t.equal(state.contents.get('~/.npmrc'), 'registry=x\n')
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
  t.match(getWeb()?.files, [{ path: '/etc/x.conf' }])
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
  t.same(getWeb()?.repos, [{ repo: url, path: '~/src', ref: 'main', secret: 'GIT_TOKEN' }])
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
  t.same(state.environments, [])
})

t.test('upgrade prints each box with the reason of a skip', async (t) => {
  state.upgrade = {
    upgraded: [{ boxId: fig.id, hostname: 'fig', versionNo: 1 }],
    skipped: [{ boxId: 'x', hostname: 'plum', versionNo: 3, reason: 'up_to_date' }],
    latestVersionNo: 3,
  }
  t.match(
    await run('environments', 'upgrade', 'web'),
    /fig: version 3 instead of 1\nplum: skipped: it uses the latest version\nRunning boxes get/,
  )
})

t.test('box repos lists and updates the clones', async (t) => {
  t.match(await run('repos', 'fig'), /no repositories\. `\S*box environments repo add/)
  state.repos = [
    {
      repo: 'https://github.com/owner/name',
      path: '~/name',
      ref: null,
      state: 'failed',
      commit: null,
      error: 'not found',
      updatedAt: new Date().toISOString(),
    },
  ]
  t.match(await run('repos', 'fig'), /^https:\S+ +~\/name +- +failed +- +\d+s ago +not found$/m)
  t.match(await run('repos', 'update', 'fig'), /fig: updating 1 repository; `\S*box repos fig`/)
})

t.test('a new box takes an environment, none, and --restricted', async (t) => {
  const bodies: unknown[] = []
  for (const args of [['--environment', 'web', '--restricted'], ['--environment', 'none'], []]) {
    fake.handleNext('POST /api/v1/boxes', async (response, request) => {
      const chunks: Buffer[] = []
      for await (const chunk of request) chunks.push(chunk)
      bodies.push(JSON.parse(Buffer.concat(chunks).toString()))
      response.writeHead(202, { 'content-type': 'application/json' }).end(JSON.stringify({ box: fig }))
    })
    await run('create', '--no-wait', '-q', ...args)
  }
  t.same(bodies, [{ environment: 'web', restricted: true }, { environment: null }, {}])
})

t.test('box show: the pinned version, and what restricted means', async (t) => {
  const { id, hostname } = await fake.addBox('lime', { restricted: true })
  const headers = { authorization: `Bearer ${KEY}` }
  const response = await fetch(`${fake.url}/api/v1/boxes/${id}`, { headers })
  const detail = (await response.json()) as BoxDetail
  const environment = { id: 'env_1', name: 'web', versionNo: 2, latestVersionNo: 5 }
  const respondNext = (deletedAt: string | null) =>
    fake.handleNext(`GET /api/v1/boxes/${id}`, (response) =>
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify({ ...detail, environment: { ...environment, deletedAt } })),
    )
  respondNext('2030-01-01T00:00:00.000Z')
  t.match(
    await run('show', hostname),
    /^environment +web, version 2; deleted at 2030-01-01T00:00:00\.000Z, the box keeps its version$/m,
  )
  respondNext(null)
  const shown = await run('show', hostname)
  t.match(shown, /^environment +web, version 2 of 5 \(.*environments upgrade web\)$/m)
  t.match(
    shown,
    /^restricted +yes: no secrets, no secret files, no cloud tokens, and links only for members$/m,
  )
})
