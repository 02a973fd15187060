// The repositories of an environment, with real git: clones, references, updates, failures, and a repeated request.
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { createGit } from '../../../agent/environment/git.ts'
import { createRepos } from '../../../agent/environment/repos.ts'
import { baseEnvironment, createEnvironmentFactory } from '../../../agent/exec/environment.ts'
import { RequestResetError } from '../../../agent/requests/json-routes.ts'
import { startWallTimer } from '../../../agent/running-clock.ts'
import type { AgentRepoRequest } from '../../../shared/api/environment-delivery.ts'
import { requires } from '../../support/requires.ts'
import { createTempDir } from '../../support/temp-dir.ts'
import { waitUntil } from '../../support/wait-until.ts'

const AUTHOR = ['-c', 'user.name=a', '-c', 'user.email=a@example.com', '-c', 'init.defaultBranch=main']

const createEnvOf = (home: string) => createEnvironmentFactory(baseEnvironment(home, process.env))

function setUp(t: Test) {
  const dir = createTempDir(t, 'environment-repos')
  const home = join(dir, 'home')
  const work = join(dir, 'work')
  const bare = join(dir, 'tool.git')
  for (const path of [home, work]) mkdirSync(path)
  const gitIn = (cwd: string, ...args: string[]) =>
    execFileSync('git', [...AUTHOR, '-C', cwd, ...args], {
      encoding: 'utf8',
      env: { PATH: process.env.PATH, HOME: dir },
    }).trim()
  gitIn(work, 'init', '--quiet')
  gitIn(dir, 'init', '--quiet', '--bare', bare)
  gitIn(work, 'remote', 'add', 'origin', bare)
  const git = createGit({
    createEnv: createEnvOf(home),
    startTimer: startWallTimer,
    spawnerKind: null,
    protocols: 'file',
  })
  let operations = 0
  const activity = {
    startOperation() {
      operations++
      return () => void operations--
    },
  }
  const repos = createRepos({ home, stateDir: join(home, '.state'), git, activity })
  t.teardown(git.close)
  const url = `file://${bare}`
  return {
    ...{ home, work, bare, url, git, gitIn },
    countOperations: () => operations,
    /** Commits a file, and returns the commit. */
    commit(name: string, content: string) {
      writeFileSync(join(work, name), content)
      gitIn(work, 'add', '.')
      gitIn(work, 'commit', '--quiet', '-m', name)
      gitIn(work, 'push', '--quiet', '--tags', 'origin', 'HEAD')
      return gitIn(work, 'rev-parse', 'HEAD')
    },
    ensure: (request: Partial<AgentRepoRequest> = {}) =>
      repos.ensure({ url, path: '~/tool', ref: null, password: null, update: false, env: {}, ...request }),
    read: (path: string) => readFileSync(join(home, path), 'utf8'),
  }
}

const skip = requires('git')

t.test('clones once, and repeated requests share the clone', { skip }, async (t) => {
  const { ensure, commit, read, home, countOperations } = setUp(t)
  const first = commit('a', '1')
  const clones = [ensure(), ensure()]
  await waitUntil('the box is active', () => countOperations() === 1)
  t.match(await Promise.all(clones), [{ commit: first }, { commit: first }])
  t.equal(read('tool/a'), '1')
  t.equal(countOperations(), 0)
  commit('a', '2')
  t.same(await ensure(), { commit: first, isKept: true }, 'a clone that exists stays as it is')
  t.match(await ensure({ path: '~/deep/er/tool' }), {
    commit: ((await ensure({ path: '~/deep/er/tool' })) as { commit: string }).commit,
  })
  t.same(readdirSync(home).sort(), ['deep', 'tool'], 'no partial clone is left')
})

t.test('branches, tags and commits', { skip }, async (t) => {
  const { ensure, commit, gitIn, work, home } = setUp(t)
  const first = commit('a', '1')
  gitIn(work, 'tag', 'v1')
  gitIn(work, 'checkout', '--quiet', '-b', 'feature/x')
  const second = commit('a', '2')
  gitIn(work, 'checkout', '--quiet', 'main')
  const third = commit('a', '3')
  t.match(await ensure({ ref: 'feature/x', path: '~/branch' }), { commit: second })
  t.match(await ensure({ ref: 'v1', path: '~/tag' }), { commit: first })
  t.match(await ensure({ ref: first, path: '~/commit' }), { commit: first })
  t.match(await ensure({ path: '~/default' }), { commit: third })
  t.match(await ensure({ ref: 'nope', path: '~/none' }), { error: /nope/ })

  gitIn(work, 'checkout', '--quiet', 'feature/x')
  const fourth = commit('b', '4')
  t.match(await ensure({ ref: 'feature/x', path: '~/branch', update: true }), { commit: fourth })
  t.match(await ensure({ ref: 'v1', path: '~/tag', update: true }), { commit: first, isKept: false })
  t.match(await ensure({ ref: third, path: '~/tag', update: true }), { commit: third })
  gitIn(join(home, 'tag'), 'commit', '--quiet', '--allow-empty', '-m', 'mine')
  const lost = { error: /is on no branch and no tag/ }
  t.match(await ensure({ ref: 'v1', path: '~/tag', update: true }), lost)
})

t.test('an update never overwrites changes', { skip }, async (t) => {
  const { ensure, commit, gitIn, home, read } = setUp(t)
  commit('a', '1')
  await ensure()
  const second = commit('a', '2')
  writeFileSync(join(home, 'tool/a'), 'mine')
  t.match(await ensure({ update: true }), { error: /local changes.*overwritten/ })
  t.equal(read('tool/a'), 'mine')
  gitIn(join(home, 'tool'), 'checkout', '--quiet', 'a')
  t.match(await ensure({ update: true }), { commit: second })

  gitIn(join(home, 'tool'), 'commit', '--quiet', '--allow-empty', '-m', 'mine')
  commit('a', '3')
  t.match(await ensure({ update: true }), { error: /fast-forward/i })
  gitIn(join(home, 'tool'), 'checkout', '--quiet', '--detach')
  t.match(await ensure({ update: true }), { error: /no branch is checked out/ })
})

t.test(
  'a directory that is no clone of the repository, and one that cannot be created',
  { skip },
  async (t) => {
    const { ensure, commit, gitIn, home, read } = setUp(t)
    const first = commit('a', '1')
    mkdirSync(join(home, 'empty'))
    t.match(await ensure({ path: '~/empty' }), { commit: first })
    mkdirSync(join(home, 'mine'))
    writeFileSync(join(home, 'mine/file'), 'mine')
    const message = { error: /^~\/mine exists and is not a clone of the repository/ }
    t.match(await ensure({ path: '~/mine' }), message)
    t.equal(read('mine/file'), 'mine')
    gitIn(home, 'clone', '--quiet', join(home, 'empty'), `${home}/other`)
    t.match(await ensure({ path: '~/other', update: true }), { error: /not a clone/ })
    // The home directory may be a repository.
    gitIn(home, 'init', '--quiet')
    gitIn(home, 'remote', 'add', 'origin', setUp(t).url)
    t.match(await ensure({ path: '~/mine' }), message)
    writeFileSync(join(home, 'file'), '')
    t.match(await ensure({ path: '~/file' }), { error: /not a clone/ })
    t.match(await ensure({ path: '~/file/tool' }), { error: /^~\/file\/tool: / })
    t.match(await ensure({ path: '~/.state/tool' }), { error: /belongs to the agent/ })
  },
)

t.test('a repository that does not exist, and a protocol that is not allowed', { skip }, async (t) => {
  const { ensure, url, home } = setUp(t)
  t.match(await ensure({ url: `${url}-no` }), { error: /^'[^']*' does not appear to be a git repository; / })
  t.match(await ensure({ url: 'https://127.0.0.1/tool' }), { error: /transport 'https' not allowed/ })
  t.same(readdirSync(home), [])
})

t.test('an empty repository', { skip }, async (t) => {
  const { ensure } = setUp(t)
  t.match(await ensure(), { commit: null })
})

t.test('only the placeholder of the secret is in the clone', { skip }, async (t) => {
  const { home, work, bare, gitIn } = setUp(t)
  // Git reads the URL of the remote from a setting, so that the clone has an https URL.
  const git = createGit({
    createEnv: createEnvOf(home),
    startTimer: startWallTimer,
    spawnerKind: null,
    protocols: 'file',
  })
  t.teardown(git.close)
  const calls: (readonly string[])[] = []
  const settings: unknown[] = []
  const repos = createRepos({
    home,
    stateDir: join(home, '.state'),
    git: {
      ...git,
      run(args, run) {
        calls.push(args)
        settings.push(run.config)
        return git.run(
          args.map((arg) => (arg.startsWith('https:') ? `file://${bare}` : arg)),
          run,
        )
      },
    },
    activity: { startOperation: () => () => undefined },
  })
  writeFileSync(join(work, 'a'), '')
  gitIn(work, 'add', '.')
  gitIn(work, 'commit', '--quiet', '-m', 'a')
  gitIn(work, 'push', '--quiet', 'origin', 'HEAD')
  const url = 'https://git.example.com/me/tool'
  const result = await repos.ensure({
    url,
    path: '~/tool',
    ref: null,
    password: 'dcpsec_x',
    update: false,
    env: {},
  })
  t.match(result, { commit: /^[0-9a-f]{40}$/ })
  const header = `Authorization: Basic ${Buffer.from('x-access-token:dcpsec_x').toString('base64')}`
  t.match(settings[0], [
    ['http.https://git.example.com/.extraHeader', ''],
    ['http.https://git.example.com/.extraHeader', header],
  ])
  t.equal(gitIn(join(home, 'tool'), 'config', 'http.https://git.example.com/.extraHeader'), header)
  t.notOk(
    calls.flat().some((arg) => arg.includes('dcpsec')),
    'no argument of git has the placeholder in clear text',
  )
})

t.test('the agent stops during a clone', { skip }, async (t) => {
  const { home, url, commit, git, ensure } = setUp(t)
  commit('a', '1')
  // A post-checkout hook blocks the clone.
  const templates = join(home, 'templates/hooks')
  mkdirSync(templates, { recursive: true })
  writeFileSync(join(templates, 'post-checkout'), `#!/bin/sh\ntouch '${home}/started'\nexec sleep 1000\n`, {
    mode: 0o755,
  })
  const env = { GIT_TEMPLATE_DIR: join(home, 'templates') }
  const clone = ensure({ env })
  await waitUntil('the clone runs', () => existsSync(join(home, 'started')))
  const failure = clone.catch((error: unknown) => error)
  await git.close()
  t.ok((await failure) instanceof RequestResetError)
  t.notOk(existsSync(join(home, 'tool')))
  t.notOk(
    readdirSync(home).some((name) => name.startsWith('.boxwood-clone')),
    url,
  )
})
