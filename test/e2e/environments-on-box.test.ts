// What an environment does on a real box: variables, secret files, a private repository through the broker, and upgrades.

import { execFileSync } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { startUpstream } from '../support/broker/upstream.ts'
import { limitsEnv } from '../support/limits-env.ts'
import { requires } from '../support/requires.ts'
import { createTempDir } from '../support/temp-dir.ts'
import { waitUntil } from '../support/wait-until.ts'
import { HIGH_EDGE_LIMITS, startCoordinatorWithBox } from './coordinator-with-box.ts'

const VALUE = 'the-real-token-of-git'
const REPO = 'https://git.example.com/team/project.git'
const basicOf = (password: string) => `Basic ${Buffer.from(`x-access-token:${password}`).toString('base64')}`

/** A repository, served as static files to requests with the password. */
function createRepository(t: Test) {
  const dir = createTempDir(t, 'repository')
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@example.com', ...args], {
      cwd: dir,
      env: { PATH: process.env.PATH, HOME: dir },
      encoding: 'utf8',
    }).trim()
  git('init', '--quiet', '--initial-branch=main', 'work')
  git('init', '--quiet', '--bare', '--initial-branch=main', 'bare')
  return {
    async commit(content: string): Promise<string> {
      await writeFile(join(dir, 'work/file'), content)
      git('-C', 'work', 'add', '.')
      git('-C', 'work', 'commit', '--quiet', '-m', 'change')
      git('-C', 'work', 'push', '--quiet', '../bare', 'main')
      git('-C', 'bare', 'update-server-info')
      return git('-C', 'work', 'rev-parse', 'HEAD')
    },
    async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
      if (request.headers.authorization !== basicOf(VALUE))
        return void response.writeHead(401, { 'www-authenticate': 'Basic realm="git"' }).end()
      const { pathname } = new URL(request.url ?? '/', REPO)
      const content = await readFile(join(dir, 'bare', pathname.slice('/team/project.git'.length))).catch(
        () => null,
      )
      response.writeHead(content === null ? 404 : 200).end(content)
    },
  }
}

t.test('the environment of a box', { skip: requires('git') }, async (t) => {
  const repository = createRepository(t)
  const firstCommit = await repository.commit('1')
  const upstream = await startUpstream(t, (...exchange) => void repository.serve(...exchange))
  const coordinator = await startCoordinatorWithBox(t, {
    env: { ...limitsEnv(HIGH_EDGE_LIMITS), BOXWOOD_SECRETS_PRIVATE: '127.0.0.1' },
    secretBroker: {
      resolve: async () => ['127.0.0.1'],
      upstreamPort: upstream.port,
      upstreamCa: upstream.authority.certificate,
    },
  })
  const { api, edge, waitForState, instance } = coordinator
  const send = async (method: string, path: string, body?: object) => {
    const { status, json } = await api(method, path, body)
    if (status >= 300) throw new Error(`${method} ${path}: ${status} ${JSON.stringify(json)}`)
    return json
  }
  const createBox = async (body: object): Promise<string> => {
    const { box } = await send('POST', '/boxes', body)
    await waitForState(box.id, 'running')
    return box.id
  }
  const run = async (box: string, command: string): Promise<string> => {
    const { json } = await edge(box, 'POST', '/exec', { command })
    return json.stdout === undefined ? JSON.stringify(json) : json.stdout.trim()
  }
  const listReasons = async (id: string): Promise<string[]> =>
    (await send('GET', `/boxes/${id}`)).events.map(({ reason }: { reason: string }) => reason)
  const waitForRepo = async (id: string, state: string) => {
    const isDone = (repo: { state: string }) => !['pending', 'cloning'].includes(repo.state)
    const [repo] = await waitUntil('git has finished', async () => {
      const { repos } = await send('GET', `/boxes/${id}/repos`)
      return repos.every(isDone) && repos
    })
    t.equal(repo.state, state, repo.error)
    return repo
  }

  const secret = { name: 'GIT_TOKEN', value: VALUE, hosts: ['git.example.com'] }
  await send('POST', '/secrets', secret)
  const { environment } = await send('POST', '/environments', {
    name: 'web',
    vars: { STAGE: 'test' },
    files: [
      { path: '~/.config/tool/token', content: 'first', mode: '0400' },
      { path: '~/old', content: 'old' },
      { path: '/proc/boxwood/token', content: 'x' },
    ],
    repos: [{ repo: REPO, secret: 'GIT_TOKEN' }],
  })
  const fig = await createBox({ name: 'fig', environment: 'web' })

  await t.test('its first command has the variables and the files', async (t) => {
    const command = 'echo $STAGE; stat -c %a ~/.config ~/.config/tool/token ~/old; cat ~/.config/tool/token'
    t.equal(await run(fig, command), ['test', '700', '400', '600', 'first'].join('\n'))
    const failure = /^a file of the environment could not be written or removed: \/proc\/boxwood\/token: /
    t.ok((await listReasons(fig)).some((reason) => failure.test(reason)))
  })

  await t.test('git clones with the value, and the box has only the placeholder', async (t) => {
    t.match(await waitForRepo(fig, 'ready'), {
      repo: REPO,
      path: '~/project',
      commit: firstCommit,
      error: null,
    })
    t.ok((await listReasons(fig)).includes(`cloned ${REPO} in ~/project at ${firstCommit.slice(0, 10)}`))
    const header = await run(fig, 'git -C ~/project config http.https://git.example.com/.extraHeader')
    const placeholder = await run(fig, 'echo $GIT_TOKEN')
    t.match(placeholder, /^dcpsec_/)
    t.equal(header, `Authorization: ${basicOf(placeholder)}`)
    t.equal(await run(fig, `grep -rc '${VALUE}' ~/project ~/.config | grep -v ':0$'`), '')
    t.equal(await run(fig, 'cd ~/project && git pull 2>&1'), 'Already up to date.')
  })

  await t.test('an update moves the clone forward, and never overwrites changes', async (t) => {
    const secondCommit = await repository.commit('2')
    const { repos } = await send('POST', `/boxes/${fig}/repos/update`)
    t.match(repos, [{ state: 'pending', commit: firstCommit }])
    t.match(await waitForRepo(fig, 'ready'), { commit: secondCommit })
    await run(fig, 'echo mine > ~/project/file')
    await repository.commit('3')
    await send('POST', `/boxes/${fig}/repos/update`)
    t.match(await waitForRepo(fig, 'failed'), { commit: secondCommit, error: /local changes/ })
    t.equal(await run(fig, 'cat ~/project/file'), 'mine')
  })

  const readApplied = async () =>
    (
      await instance.context.db
        .selectFrom('boxes')
        .select('applied_version_no')
        .where('id', '=', fig)
        .executeTakeFirstOrThrow()
    ).applied_version_no

  await t.test('an upgrade writes and removes files at once', async (t) => {
    const path = `/environments/${environment.id}`
    await send('PUT', `${path}/files`, { path: '~/.config/tool/token', content: 'second' })
    for (const file of ['~/old', '/proc/boxwood/token'])
      await api('DELETE', `${path}/files?path=${encodeURIComponent(file)}`)
    const { upgraded, latestVersionNo } = await send('POST', `${path}/upgrade`)
    t.match(upgraded, [{ boxId: fig }])
    await waitUntil('the files are written', async () => (await readApplied()) === latestVersionNo)
    t.equal(
      await run(fig, 'cat ~/.config/tool/token; echo; stat -c %a ~/.config/tool/token; ls ~'),
      'second\n600\nproject',
    )
  })

  await t.test('a coordinator that was killed before it recorded the delivery repeats it', async (t) => {
    const latest = await readApplied()
    await run(fig, 'rm ~/.config/tool/token')
    await instance.context.db
      .updateTable('boxes')
      .set({ applied_version_no: 1 })
      .where('id', '=', fig)
      .execute()
    instance.context.tunnels.disconnect(fig, 'the test breaks the connection', { reconnect: 'immediately' })
    await waitUntil('the files are written again', async () => (await readApplied()) === latest)
    t.equal(await run(fig, 'cat ~/.config/tool/token'), 'second')
  })

  await t.test('a restricted box gets the variables, no files and no private repository', async (t) => {
    const id = await createBox({ name: 'lime', environment: 'web', restricted: true })
    t.equal(await run(id, 'echo $STAGE $GIT_TOKEN; ls -A ~/.config/tool 2>/dev/null'), 'test')
    t.match(await waitForRepo(id, 'failed'), { error: /restricted/ })
    t.equal((await send('GET', `/boxes/${id}`)).box.observedState, 'running')
  })

  await t.test('a fork without the environment has none of its files', async (t) => {
    const { box } = await send('POST', `/boxes/${fig}/fork`, { name: 'kiwi', environment: null })
    await waitForState(box.id, 'running')
    t.equal(await run(box.id, 'ls -A ~/.config/tool; cat ~/project/file; echo $STAGE'), 'mine')
  })

  await t.test('a box that becomes restricted loses the files', async (t) => {
    const path = `/environments/${environment.id}`
    await api('DELETE', `${path}/files?path=${encodeURIComponent('~/.config/tool/token')}`)
    await send('POST', `${path}/toggles`, { restricted: true })
    const { latestVersionNo } = await send('POST', `${path}/upgrade`)
    await waitUntil('the files are removed', async () => (await readApplied()) === latestVersionNo)
    t.equal(await run(fig, 'ls -A ~/.config/tool; echo $STAGE $GIT_TOKEN'), 'test')
  })
})
