// Submodules of the repositories of an environment, with real git: clones, updates, hosts, protocols, and changes of the user.
import { execFile, execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { createGit } from '../../../agent/environment/git.ts'
import { createRepos } from '../../../agent/environment/repos.ts'
import { baseEnvironment, createEnvironmentFactory } from '../../../agent/exec/environment.ts'
import { startWallTimer } from '../../../agent/running-clock.ts'
import type { AgentRepoRequest } from '../../../shared/api/environment-delivery.ts'
import { requires } from '../../support/requires.ts'
import { createTempDir } from '../../support/temp-dir.ts'

const SETTINGS = [
  ['user.name', 'a'],
  ['user.email', 'a@example.com'],
  ['init.defaultBranch', 'main'],
  ['protocol.file.allow', 'always'],
].flatMap(([name, value]) => ['-c', `${name}=${value}`])

function setUp(t: Test, protocols = 'file') {
  const dir = createTempDir(t, 'environment-submodules')
  const home = join(dir, 'home')
  mkdirSync(home)
  const gitIn = (cwd: string, ...args: string[]) =>
    execFileSync('git', [...SETTINGS, '-C', cwd, ...args], {
      encoding: 'utf8',
      env: { PATH: process.env.PATH, HOME: dir },
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim()
  const createEnv = createEnvironmentFactory(baseEnvironment(home, process.env))
  const git = createGit({ createEnv, startTimer: startWallTimer, spawnerKind: null, protocols })
  t.teardown(git.close)
  const repos = createRepos({
    home,
    stateDir: join(home, '.state'),
    git,
    activity: { startOperation: () => () => undefined },
  })
  /** Commits everything and a file, and returns the commit. */
  function commit(name: string, content: string): string {
    const work = join(dir, name)
    writeFileSync(join(work, 'content'), content)
    gitIn(work, 'add', '.')
    gitIn(work, 'commit', '--quiet', '-m', content)
    gitIn(work, 'push', '--quiet', 'origin', 'HEAD')
    gitIn(join(dir, `${name}.git`), 'update-server-info')
    return gitIn(work, 'rev-parse', 'HEAD')
  }
  return {
    dir,
    home,
    gitIn,
    commit,
    work: (name: string) => join(dir, name),
    url: (name: string) => `file://${dir}/${name}.git`,
    create(name: string) {
      mkdirSync(join(dir, name))
      gitIn(join(dir, name), 'init', '--quiet')
      gitIn(dir, 'init', '--quiet', '--bare', join(dir, `${name}.git`))
      gitIn(join(dir, name), 'remote', 'add', 'origin', `${dir}/${name}.git`)
      return commit(name, `${name} 1`)
    },
    /** Adds a submodule to the next commit. The URL need not exist. */
    addSubmodule(name: string, path: string, target: string, url = `../${target}.git`) {
      const work = join(dir, name)
      gitIn(work, 'submodule', '--quiet', 'add', `${dir}/${target}.git`, path)
      gitIn(work, 'config', '-f', '.gitmodules', `submodule.${path}.url`, url)
    },
    /** Records the newest commit of the submodule in the next commit. */
    moveSubmodule(name: string, path: string, commitId: string) {
      const submodule = join(dir, name, path)
      gitIn(submodule, 'fetch', '--quiet', 'origin')
      gitIn(submodule, 'checkout', '--quiet', commitId)
    },
    ensure: (request: Partial<AgentRepoRequest> = {}) =>
      repos.ensure({
        url: `file://${dir}/app.git`,
        path: '~/app',
        ref: null,
        password: null,
        update: false,
        env: {},
        ...request,
      }),
    read: (path: string) => readFileSync(join(home, 'app', path, 'content'), 'utf8'),
  }
}

const skip = requires('git')

t.test('a clone has its submodules, and theirs', { skip }, async (t) => {
  const { create, addSubmodule, commit, ensure, read, gitIn, home } = setUp(t)
  for (const name of ['app', 'lib', 'deep']) create(name)
  addSubmodule('lib', 'inner', 'deep')
  commit('lib', 'lib 2')
  addSubmodule('app', 'vendor/the lib', 'lib')
  const head = commit('app', 'app 2')
  t.same(await ensure(), { commit: head, isKept: false })
  t.equal(read('vendor/the lib'), 'lib 2')
  t.equal(read('vendor/the lib/inner'), 'deep 1')
  t.equal(gitIn(join(home, 'app'), 'status', '--porcelain'), '')
  t.match(await ensure({ path: '~/pinned', ref: head }), { commit: head })
  t.ok(existsSync(join(home, 'pinned/vendor/the lib/inner/content')))
})

t.test('an update checks out the recorded commits, and clones new submodules', { skip }, async (t) => {
  const { create, addSubmodule, moveSubmodule, commit, ensure, read, gitIn, home } = setUp(t)
  for (const name of ['app', 'lib', 'other']) create(name)
  addSubmodule('app', 'lib', 'lib')
  commit('app', 'app 2')
  await ensure()
  moveSubmodule('app', 'lib', commit('lib', 'lib 2'))
  addSubmodule('app', 'other', 'other')
  const head = commit('app', 'app 3')
  t.match(await ensure(), { isKept: true })
  t.equal(read('lib'), 'lib 1', 'only an update changes a clone')
  t.same(await ensure({ update: true }), { commit: head, isKept: false })
  t.equal(read('lib'), 'lib 2')
  t.equal(read('other'), 'other 1')
  t.equal(gitIn(join(home, 'app'), 'status', '--porcelain'), '')
})

t.test('an update never overwrites changes in a submodule', { skip }, async (t) => {
  const { create, addSubmodule, moveSubmodule, commit, ensure, read, gitIn, home } = setUp(t)
  for (const name of ['app', 'lib']) create(name)
  addSubmodule('app', 'lib', 'lib')
  commit('app', 'app 2')
  await ensure()
  const lib = join(home, 'app/lib')
  gitIn(lib, 'commit', '--quiet', '--allow-empty', '-m', 'mine')
  const mine = gitIn(lib, 'rev-parse', 'HEAD')
  commit('app', 'app 3')
  t.match(await ensure({ update: true }), { commit: /./ }, 'the same commit of the submodule is recorded')
  moveSubmodule('app', 'lib', commit('lib', 'lib 2'))
  commit('app', 'app 4')
  t.match(await ensure({ update: true }), {
    error: /^in lib, another commit is checked out .*submodule stays/,
  })
  t.equal(gitIn(lib, 'rev-parse', 'HEAD'), mine)

  gitIn(join(home, 'app'), 'submodule', '--quiet', 'update')
  writeFileSync(join(lib, 'content'), 'mine')
  moveSubmodule('app', 'lib', commit('lib', 'lib 3'))
  commit('app', 'app 5')
  t.match(await ensure({ update: true }), { error: /overwritten|submodule/ })
  t.equal(read('lib'), 'mine')
})

t.test('a submodule that cannot be cloned', { skip }, async (t) => {
  const { create, addSubmodule, commit, ensure, read, home, dir } = setUp(t)
  for (const name of ['app', 'lib']) create(name)
  addSubmodule('app', 'lib', 'lib', '../missing.git')
  commit('app', 'app 2')
  t.match(await ensure(), { error: /^the repository is cloned, but not all of its submodules: .*missing/s })
  t.equal(read('.'), 'app 2', 'the repository is of use without it')
  t.match(await ensure(), { error: /not all of its submodules/ }, 'a retry does not hide the failure')
  execFileSync('cp', ['-r', join(dir, 'lib.git'), join(dir, 'missing.git')])
  // The coordinator knows no commit of the clone that failed, and so requests no update.
  t.match(await ensure(), { commit: /./, isKept: true })
  t.equal(read('lib'), 'lib 1')
  t.notOk(existsSync(join(home, '.boxwood-clone')))
})

/** Serves the repositories of the directory, and records the paths of requests with their credentials. */
async function serve(t: Test, dir: string) {
  const requests: string[] = []
  const server = createServer(({ url = '', headers }, response) => {
    const path = url.replace(/\?.*$/, '')
    requests.push(`${path.split('/')[1]} ${headers.authorization ?? 'none'}`)
    const file = join(dir, path)
    if (existsSync(file)) response.end(readFileSync(file))
    else response.writeHead(404).end()
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => server.close())
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests }
}

t.test('the password is sent to the host of the repository only', { skip }, async (t) => {
  const { create, addSubmodule, commit, ensure, read, dir, home } = setUp(t, 'http')
  for (const name of ['app', 'same', 'foreign']) create(name)
  const [server, other] = await Promise.all([serve(t, dir), serve(t, dir)])
  addSubmodule('app', 'same', 'same')
  addSubmodule('app', 'foreign', 'foreign', `${other.url}/foreign.git`)
  commit('app', 'app 2')
  const request = { url: `${server.url}/app.git`, password: 'dcpsec_x' }
  t.match(await ensure(request), { commit: /./ })
  t.equal(read('foreign'), 'foreign 1')
  const header = `Basic ${Buffer.from('x-access-token:dcpsec_x').toString('base64')}`
  t.same([...new Set(server.requests)].sort(), [`app.git ${header}`, `same.git ${header}`])
  t.same([...new Set(other.requests)], ['foreign.git none'])

  other.requests.length = 0
  t.match(await ensure({ ...request, update: true }), { commit: /./ })
  t.notOk(other.requests.some((entry) => !entry.endsWith(' none')))
  // A pull of the user.
  server.requests.length = 0
  for (const path of ['same', 'foreign'])
    await promisify(execFile)('git', ['-C', join(home, 'app', path), 'fetch', '--quiet', 'origin'], {
      env: { PATH: process.env.PATH, HOME: dir },
    })
  t.same([...new Set(server.requests)], [`same.git ${header}`])
  t.notOk(other.requests.some((entry) => !entry.endsWith(' none')))
})

t.test('other protocols than that of repositories are refused', { skip }, async (t) => {
  const { create, addSubmodule, commit, ensure, gitIn, dir, home, url, work } = setUp(t, 'http')
  for (const name of ['app', 'lib']) create(name)
  const server = await serve(t, dir)
  addSubmodule('app', 'lib', 'lib')
  const marker = join(dir, 'marker')
  for (const [submodule, problem] of [
    [url('lib'), /transport 'file' not allowed/],
    [`${dir}/lib.git`, /transport 'file' not allowed/],
    [`ext::sh -c 'touch ${marker}'`, /transport 'ext' not allowed/],
    ['git@example.com:a/b.git', /transport 'ssh' not allowed/],
    ['-u./x', /./],
  ] as const) {
    gitIn(work('app'), 'config', '-f', '.gitmodules', 'submodule.lib.url', submodule)
    commit('app', submodule)
    const path = `~/${Buffer.from(submodule).toString('hex').slice(0, 16)}`
    t.match(await ensure({ url: `${server.url}/app.git`, path }), { error: problem }, submodule)
    t.notOk(existsSync(join(home, path.slice(2), 'lib/content')))
  }
  t.notOk(existsSync(marker))
})
