// Finds the engines in the order of the docker and podman commands.
import { createHash } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { findEngine, listEngines } from '../../../../coordinator/providers/docker/find-engine.ts'
import { listIncusServers } from '../../../../coordinator/providers/incus/find-server.ts'
import { createTempDir } from '../../../support/temp-dir.ts'

const EMPTY = { configured: null, env: {}, home: '/nonexistent', uid: 1000 }

const withEnv = (env: Record<string, string>) => ({ ...EMPTY, env })

t.test('without settings, the usual sockets are candidates', async (t) => {
  const urls = (kind: 'docker' | 'podman', env = {}) => listEngines(kind, withEnv(env)).map(({ url }) => url)
  t.same(urls('docker'), ['unix:///var/run/docker.sock', 'unix:///run/user/1000/docker.sock'])
  t.same(urls('docker', { XDG_RUNTIME_DIR: '/r' }), ['unix:///var/run/docker.sock', 'unix:///r/docker.sock'])
  t.same(urls('podman'), ['unix:///run/podman/podman.sock', 'unix:///run/user/1000/podman/podman.sock'])
})

t.test('a provider uses the first socket that its user may connect to', async (t) => {
  const dir = createTempDir(t, 'engines')
  mkdirSync(join(dir, 'podman'))
  const environment = withEnv({ XDG_RUNTIME_DIR: dir })
  const usual = findEngine('podman', environment).url
  writeFileSync(join(dir, 'podman/podman.sock'), '')
  const found = findEngine('podman', environment).url
  t.match([usual, found], ['unix:///run/podman/podman.sock', `unix://${dir}/podman/podman.sock`])
})

t.test('an engine that is not up yet does not lose its boxes to another one', async (t) => {
  const dir = createTempDir(t, 'engines')
  mkdirSync(join(dir, 'podman'))
  writeFileSync(join(dir, 'podman/podman.sock'), '')
  const environment = withEnv({ XDG_RUNTIME_DIR: dir })
  const find = (previous: string | null, env = environment) => findEngine('podman', { ...env, previous }).url
  t.equal(find('unix:///run/podman/podman.sock'), 'unix:///run/podman/podman.sock')
  t.equal(find(null), `unix://${dir}/podman/podman.sock`)
  t.equal(
    find('unix:///run/podman/podman.sock', withEnv({ CONTAINER_HOST: 'unix:///p.sock' })),
    'unix:///p.sock',
  )
})

t.test('a file of the docker command that cannot be read selects no other engine', async (t) => {
  const { home, tlsDir } = createContext(t, 'tcp://10.0.0.1:2376')
  const list = () => listEngines('docker', { ...EMPTY, home })
  // A directory in place of the file, which root cannot read either.
  mkdirSync(join(tlsDir, 'ca.pem'))
  t.throws(list, { name: 'PermanentProviderError', message: /ca\.pem .*cannot be read.*BOXWOOD_DOCKER_HOST/ })
  writeFileSync(join(home, '.docker/config.json'), '{"currentContext":')
  t.throws(list, { name: 'PermanentProviderError', message: /config\.json .*cannot be read/ })
})

t.test('a variable names the only candidate', async (t) => {
  const env = { DOCKER_HOST: 'unix:///d.sock', CONTAINER_HOST: 'unix:///p.sock' }
  const find = (kind: 'docker' | 'podman', configured: string | null = null) =>
    listEngines(kind, { ...withEnv(env), configured }).map(({ source, endpoint }) => ({ source, endpoint }))
  t.same(find('docker'), [{ source: 'DOCKER_HOST', endpoint: { socketPath: '/d.sock' } }])
  t.same(find('podman'), [{ source: 'CONTAINER_HOST', endpoint: { socketPath: '/p.sock' } }])
  t.same(find('docker', 'unix:///b.sock'), [
    { source: 'BOXWOOD_DOCKER_HOST', endpoint: { socketPath: '/b.sock' } },
  ])
  t.same(find('podman', 'tcp://[::1]:1234'), [
    { source: 'BOXWOOD_PODMAN_HOST', endpoint: { host: '::1', port: 1234, tls: null } },
  ])
})

t.test('DOCKER_CERT_PATH and DOCKER_TLS_VERIFY select TLS', async (t) => {
  const dir = createTempDir(t, 'certificates')
  for (const name of ['ca', 'cert', 'key']) writeFileSync(join(dir, `${name}.pem`), name)
  const tls = { ca: 'ca', cert: 'cert', key: 'key', isVerified: true }
  for (const env of [{ DOCKER_CERT_PATH: dir }, { DOCKER_TLS_VERIFY: '1', DOCKER_CONFIG: dir }])
    t.match(listEngines('docker', withEnv({ ...env, DOCKER_HOST: 'tcp://engine.example.com' })), [
      { endpoint: { host: 'engine.example.com', port: 2376, tls } },
    ])
})

function createContext(t: Test, host: string) {
  const home = createTempDir(t, 'docker-home')
  const id = createHash('sha256').update('remote').digest('hex')
  for (const dir of ['meta', `tls/${id}/docker`, `meta/${id}`])
    mkdirSync(join(home, '.docker/contexts', dir), { recursive: true })
  writeFileSync(join(home, '.docker/config.json'), '{"currentContext":"remote"}')
  writeFileSync(
    join(home, `.docker/contexts/meta/${id}/meta.json`),
    JSON.stringify({ Name: 'remote', Endpoints: { docker: { Host: host, SkipTLSVerify: false } } }),
  )
  return { home, tlsDir: join(home, `.docker/contexts/tls/${id}/docker`) }
}

t.test('the context of the docker command is used, with its certificates', async (t) => {
  const { home, tlsDir } = createContext(t, 'tcp://10.0.0.1:2376')
  const find = (env: Record<string, string> = {}) => listEngines('docker', { ...withEnv(env), home })
  const endpoint = { host: '10.0.0.1', port: 2376, tls: null }
  t.match(find(), [{ source: 'the docker context remote', endpoint }])
  writeFileSync(join(tlsDir, 'ca.pem'), 'authority')
  t.match(find(), [{ endpoint: { tls: { ca: 'authority', cert: null, isVerified: true } } }])
  t.match(find({ DOCKER_CONTEXT: 'default' }), [{ source: null }, { source: null }])
  t.match(find({ DOCKER_HOST: 'unix:///d.sock' }), [{ source: 'DOCKER_HOST' }])
  t.throws(() => find({ DOCKER_CONTEXT: 'missing' }), { message: /uses the context missing, which does not/ })
})

t.test('refuses ssh with the command that forwards the socket', async (t) => {
  t.throws(() => findEngine('docker', withEnv({ DOCKER_HOST: 'ssh://ada@host' })), {
    name: 'PermanentProviderError',
    message: /DOCKER_HOST is ssh:.*`ssh -N -L .* host`/,
  })
  t.throws(() => findEngine('podman', withEnv({ CONTAINER_HOST: 'fd://3' })), {
    message: /CONTAINER_HOST must be unix/,
  })
})

t.test('Incus is found by its variables and at its usual paths', async (t) => {
  t.same(listIncusServers('https://a:8443', { INCUS_DIR: '/i' }), [
    { source: 'BOXWOOD_INCUS', address: 'https://a:8443' },
  ])
  t.same(listIncusServers(null, { INCUS_DIR: '/i' }), [{ source: 'INCUS_DIR', address: '/i/unix.socket' }])
  t.same(listIncusServers(null, { INCUS_SOCKET: '/s', INCUS_DIR: '/i' }), [
    { source: 'INCUS_SOCKET', address: '/s' },
  ])
  t.same(
    listIncusServers(null, {}).map(({ address }) => address),
    ['/var/lib/incus/unix.socket', '/run/incus/unix.socket'],
  )
})
