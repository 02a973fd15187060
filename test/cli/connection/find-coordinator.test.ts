// How the box command finds its coordinator and its API key, and the errors when it cannot.

import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { toUnreachableError } from '../../../cli/connection/api-errors.ts'
import {
  findCoordinator,
  getRootUrl,
  parseBaseUrl,
  TYPED_URL,
} from '../../../cli/connection/find-coordinator.ts'
import { getProfilePath, writeProfiles } from '../../../cli/connection/profile-file.ts'
import { selectCoordinator } from '../../../cli/local/select-coordinator.ts'
import { newApiKey } from '../../../shared/api-key.ts'
import type { CoordinatorRecord } from '../../../shared/coordinator-process.ts'
import { VERSION } from '../../../shared/version.ts'
import { startCliCoordinator } from '../coordinator.ts'
import { createCoordinatorRecord } from '../coordinator-record.ts'
import { runBox } from '../run-box.ts'

const coordinator = await startCliCoordinator(t, [])

async function createDataDir(path: string, url = coordinator.url): Promise<string> {
  await mkdir(path, { recursive: true })
  await writeFile(join(path, 'owner.key'), `${coordinator.key}\n`, { mode: 0o600 })
  await writeFile(join(path, 'coordinator.json'), createCoordinatorRecord(url))
  return path
}

t.test('reads the data directory: BOXWOOD_DATA, the current directory, or the project', async (t) => {
  const root = t.testdir({ empty: {}, project: {}, here: {} })
  const dataDir = await createDataDir(join(root, 'data'))
  t.match(await runBox(null, ['me'], { env: { BOXWOOD_DATA: dataDir } }), { code: 0 })
  await createDataDir(join(root, 'project', '.boxwood'), 'http://project.example')
  t.match(findCoordinator({ XDG_CONFIG_HOME: root }, join(root, 'empty'), join(root, 'project')), {
    baseUrl: 'http://project.example/api/v1',
    key: coordinator.key,
  })
  await createDataDir(join(root, 'here', '.boxwood'))
  t.match(findCoordinator({ XDG_CONFIG_HOME: root }, join(root, 'here'), join(root, 'project')), {
    baseUrl: `${coordinator.url}/api/v1`,
  })
  t.throws(() => findCoordinator({ BOXWOOD_DATA: join(root, 'empty') }, join(root, 'here'), root), {
    message: /BOXWOOD_DATA.*box up/,
  })
})

t.test('uses BOXWOOD_URL, with or without the path prefix', async (t) => {
  const env = { BOXWOOD_API_KEY: coordinator.key }
  for (const url of [coordinator.url, `${coordinator.url}/`, `${coordinator.url}/api/v1/`])
    t.match(await runBox(null, ['me'], { env: { ...env, BOXWOOD_URL: url } }), { code: 0 })
  t.match(await runBox(null, ['me'], { env: { ...env, BOXWOOD_URL: 'fig' } }), {
    code: 2,
    stderr: 'box: BOXWOOD_URL is not a valid URL: "fig". Example: http://127.0.0.1:7070\n',
  })
  // A proxy adds the path.
  for (const path of ['/boxwood', '/boxwood/', '/boxwood/api/v1/']) {
    const baseUrl = parseBaseUrl(`https://example.com${path}`)
    t.equal(baseUrl, 'https://example.com/boxwood/api/v1')
    t.equal(getRootUrl(baseUrl), 'https://example.com/boxwood')
    const selected = selectCoordinator({ BOXWOOD_URL: baseUrl, BOXWOOD_DATA: t.testdirName }, t.testdirName)
    t.match(selected, { isLocal: false, url: 'https://example.com/boxwood' })
  }
})

t.test('does not send the key of a data directory to another coordinator', async (t) => {
  const dataDir = await createDataDir(join(t.testdir({}), 'data'), 'http://127.0.0.1:1')
  const result = await runBox(null, ['me'], { env: { BOXWOOD_DATA: dataDir, BOXWOOD_URL: coordinator.url } })
  t.match(result, {
    code: 4,
    stderr: /You are not signed in at http:\S+, the URL in BOXWOOD_URL\. .*Check BOXWOOD_URL\./,
  })
})

t.test('a typing error in BOXWOOD_URL names the URL, and the coordinator of this machine', async (t) => {
  const dataDir = await createDataDir(join(t.testdir({}), 'data'))
  const env = { BOXWOOD_DATA: dataDir, BOXWOOD_URL: coordinator.url.replace('http:', 'https:') }
  const { code, stderr } = await runBox(null, ['ls'], { env })
  t.equal(code, 4)
  t.match(stderr, `You are not signed in at ${env.BOXWOOD_URL}, the URL in BOXWOOD_URL.`)
  t.match(stderr, `The coordinator of this machine is at ${coordinator.url}.`)
})

t.test('an unknown certificate names the option that helps', async (t) => {
  const url = 'https://boxes.example/api/v1'
  const config = { baseUrl: url, key: null, keySource: '', urlSource: TYPED_URL }
  const describe = (code: string) =>
    toUnreachableError(Object.assign(new Error('certificate'), { code }), config, `${url}/me`).message
  t.match(describe('SELF_SIGNED_CERT_IN_CHAIN'), /does not trust its certificate;.* set NODE_EXTRA_CA_CERTS /)
  t.match(describe('UNABLE_TO_VERIFY_LEAF_SIGNATURE'), /set NODE_EXTRA_CA_CERTS /)
  t.match(describe('CERT_HAS_EXPIRED'), /its certificate has expired\)/)
  t.match(describe('ERR_TLS_OTHER'), /\(certificate\)/)
})

t.test('each connection error names the setting to change', async (t) => {
  const cwd = t.testdir({})
  t.throws(() => findCoordinator({ XDG_CONFIG_HOME: cwd }, cwd, cwd), { message: /box up.*box login URL/ })
  t.match(
    await runBox('http://127.0.0.1:1', ['ls']),
    { code: 3, stderr: /connection refused.*BOXWOOD_URL/ },
    'no server at BOXWOOD_URL',
  )
  const dataDir = await createDataDir(join(cwd, 'data'), 'http://127.0.0.1:1')
  t.match(
    await runBox(null, ['ls'], { env: { BOXWOOD_DATA: dataDir } }),
    { code: 3, stderr: /box up/ },
    'no server at the URL of the data directory',
  )
  t.match(
    await runBox(coordinator, ['ls'], { env: { BOXWOOD_API_KEY: 'dcp_wrong' } }),
    { code: 4, stderr: /key in BOXWOOD_API_KEY was rejected/ },
    'wrong key',
  )
  const key = newApiKey()
  const mistyped = `${key.slice(0, -1)}${key.endsWith('0') ? '1' : '0'}`
  t.throws(
    () => findCoordinator({ BOXWOOD_URL: coordinator.url, BOXWOOD_API_KEY: mistyped }, cwd, cwd),
    { message: /API key in BOXWOOD_API_KEY has a typing error/ },
    'a mistyped key is recognised without a request',
  )
  coordinator.failNext('GET /api/v1/boxes', (response) => response.end('<html>'))
  t.match(
    await runBox(coordinator, ['ls']),
    { code: 1, stderr: /is not from a Boxwood coordinator.*BOXWOOD_URL/ },
    'another server',
  )
  t.match(
    await runBox(coordinator.url.replace('http:', 'https:'), ['ls']),
    { code: 3, stderr: /\(the server does not use TLS; try http:\/\/\)\. Check BOXWOOD_URL/ },
    'https:// for a server without TLS',
  )
})

t.test(
  'reports a key file without read permission',
  { skip: process.getuid?.() === 0 && 'root can read every file' },
  async (t) => {
    const dataDir = await createDataDir(join(t.testdir({}), 'data'))
    await chmod(join(dataDir, 'owner.key'), 0o000)
    t.match(await runBox(null, ['ls'], { env: { BOXWOOD_DATA: dataDir } }), {
      code: 4,
      stderr: /permission denied/,
    })
  },
)

t.test('--version is the version of the package', async (t) => {
  const { default: manifest } = await import('../../../package.json', { with: { type: 'json' } })
  t.equal(manifest.version, VERSION)
  t.match(await runBox(null, ['--version']), { code: 0, stdout: `${VERSION}\n` })
})

t.test('a credential is not sent to the port of a coordinator that has been killed', async (t) => {
  const root = t.testdir({ data: { 'owner.key': coordinator.key, 'sign-in.key': 'secret' } })
  const dataDir = join(root, 'data')
  const env = { BOXWOOD_DATA: dataDir, XDG_CONFIG_HOME: root }
  const write = (change: Partial<CoordinatorRecord>) =>
    writeFile(join(dataDir, 'coordinator.json'), createCoordinatorRecord(coordinator.url, change))
  const refused = { code: 3, stderr: /Cannot reach the coordinator at .*connection refused.*box up/ }
  for (const change of [{ pid: 2 ** 22 }, { startTicks: 1 }, { bootId: 'of an earlier boot' }]) {
    await write(change)
    const sent = coordinator.requests.length
    t.match(await runBox(null, ['ls'], { env }), refused)
    t.match(await runBox(null, ['ls'], { env: { ...env, BOXWOOD_API_KEY: coordinator.key } }), refused)
    t.match(await runBox(null, ['exec', 'fig', 'true'], { env }), { ...refused, code: 125 })
    t.match(await runBox(null, ['ls'], { env: { ...env, BOXWOOD_URL: coordinator.url } }), { code: 3 })
    await runBox(null, ['login'], { env })
    t.same(
      coordinator.requests
        .slice(sent)
        .filter(({ line, headers }) => headers.authorization !== undefined || line.includes('owner')),
      [],
      'no request has a secret',
    )
  }
  await write({})
  t.match(await runBox(null, ['ls'], { env }), { code: 0 })
})

t.test('a sign-out sends the session of this machine only to a coordinator that runs', async (t) => {
  const root = t.testdir({ data: {} })
  const dataDir = join(root, 'data')
  const env = { BOXWOOD_DATA: dataDir, XDG_CONFIG_HOME: root }
  const profilePath = getProfilePath(env)
  const url = `${coordinator.url}/api/v1`
  for (const [change, sent] of [
    [{ startTicks: 1 }, []],
    [{ url: 'http://127.0.0.1:1' }, []],
    [{}, ['DELETE /api/v1/session']],
  ] as const) {
    await writeFile(join(dataDir, 'coordinator.json'), createCoordinatorRecord(coordinator.url, change))
    writeProfiles(profilePath, { selected: null, profiles: [{ name: 'local', url, session: 'bws_secret' }] })
    const { length } = coordinator.requests
    const { stderr } = await runBox(null, ['logout', 'local'], { env })
    t.same(
      coordinator.requests.slice(length).map(({ line }) => line),
      sent,
    )
    t.match(stderr, /The profile local was removed/)
    if (sent.length === 0) t.match(stderr, /warning: the session may still be valid/)
  }
})
