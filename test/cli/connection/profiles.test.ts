// Profiles: the file, which coordinator and credentials box uses, box use, and box login --with-key.
import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { findCoordinator } from '../../../cli/connection/find-coordinator.ts'
import { readProfiles, updateProfiles, writeProfiles } from '../../../cli/connection/profile-file.ts'
import { selectCoordinator } from '../../../cli/local/select-coordinator.ts'
import { createTempDir } from '../../support/temp-dir.ts'
import { startCliCoordinator } from '../coordinator.ts'
import { createCoordinatorRecord } from '../coordinator-record.ts'
import { runBox } from '../run-box.ts'

const WORK = {
  name: 'work',
  url: 'https://work.example/api/v1',
  key: 'dcp_work',
  session: 'cookie',
  user: 'a@b.example',
}
const HOME = { name: 'home', url: 'https://home.example/api/v1', key: 'dcp_home' }

/** Returns the variables that select a configuration directory with these profiles. */
function configure(selected: string | null, profiles: object[] = [HOME, WORK]) {
  const configHome = createTempDir(t, 'config')
  const path = join(configHome, 'boxwood/profiles.json')
  mkdirSync(join(configHome, 'boxwood'))
  writeFileSync(path, JSON.stringify({ selected, profiles }), { mode: 0o600 })
  return { path, env: { XDG_CONFIG_HOME: configHome } }
}

t.test('the file is only for the user, is replaced at once, and keeps unknown fields', async (t) => {
  const path = join(createTempDir(t, 'config'), 'new/boxwood/profiles.json')
  t.same(readProfiles(path), { selected: null, profiles: [] }, 'no file')
  writeProfiles(path, { selected: null, profiles: [HOME] })
  t.equal(statSync(path).mode & 0o777, 0o600)
  t.equal(statSync(join(path, '..')).mode & 0o777, 0o700)
  const later = { selected: 'home', profiles: [{ ...HOME, region: 'eu' }], version: 2 }
  writeFileSync(path, JSON.stringify(later))
  updateProfiles(path, (file) => file)
  t.same(readProfiles(path), later)
  const inode = statSync(path).ino
  updateProfiles(path, (file) => ({ ...file, selected: null }))
  t.not(statSync(path).ino, inode, 'a new file replaces the old one')
  t.same(readdirSync(join(path, '..')), ['profiles.json'], 'without temporary files')
  t.throws(() => writeProfiles(join(path, 'boxwood/profiles.json'), later), { message: /^Cannot write/ })
})

t.test('a file that others can read, or that is not valid, is refused', async (t) => {
  const { path, env } = configure('work')
  for (const mode of [0o640, 0o604, 0o622]) {
    chmodSync(path, mode)
    t.throws(() => readProfiles(path), { exitCode: 4, message: /chmod 600/ })
  }
  t.match(await runBox(null, ['ls'], { env }), { code: 4, stderr: /Other users can read or change/ })
  t.match(
    findCoordinator({ ...env, BOXWOOD_URL: 'http://x', BOXWOOD_API_KEY: 'dcp_env' }, '/', '/'),
    { key: 'dcp_env' },
    'the variables of a script need no file',
  )
  chmodSync(path, 0o600)
  for (const text of ['', 'null', '{"profiles":[{"name":"x"}]}', '{"profiles":[null]}', '{"profiles":{}}']) {
    writeFileSync(path, text)
    t.throws(() => readProfiles(path), { message: /not a valid file/ }, text)
  }
  t.throws(
    () => readProfiles('/etc/hostname'),
    process.getuid?.() === 0 ? { message: /chmod/ } : { message: /another user/ },
  )
})

t.test('the precedence of the environment, the profiles and the data directories', async (t) => {
  const { env } = configure('work')
  const createDataDir = (url: string, key: string) => ({
    'coordinator.json': createCoordinatorRecord(url),
    'owner.key': key,
  })
  const root = t.testdir({
    data: createDataDir('http://127.0.0.1:7070', 'dcp_owner'),
    here: { '.boxwood': createDataDir('http://127.0.0.1:7071', 'dcp_here') },
  })
  const [dataDir, here] = [join(root, 'data'), join(root, 'here')]
  const find = (variables: Record<string, string>) => {
    const { baseUrl, key, profile } = findCoordinator({ ...env, ...variables }, here, '/')
    return [new URL(baseUrl).host, key, profile?.name]
  }
  t.same(find({}), ['work.example', 'dcp_work', 'work'], 'box use')
  t.same(find({ BOXWOOD_DATA: dataDir }), ['127.0.0.1:7070', 'dcp_owner', undefined])
  t.same(find({ BOXWOOD_DATA: dataDir, BOXWOOD_PROFILE: 'home' }), ['home.example', 'dcp_home', 'home'])
  t.same(find({ BOXWOOD_PROFILE: 'local' }), ['127.0.0.1:7071', 'dcp_here', undefined])
  t.same(find({ BOXWOOD_PROFILE: 'home', BOXWOOD_URL: 'https://x.example', BOXWOOD_API_KEY: 'dcp_env' }), [
    'x.example',
    'dcp_env',
    undefined,
  ])
  t.same(find({ BOXWOOD_URL: 'https://home.example' }), ['home.example', 'dcp_home', 'home'], 'same origin')
  t.same(find({ BOXWOOD_URL: 'http://127.0.0.1:7071' }), ['127.0.0.1:7071', 'dcp_here', undefined])
  t.same(find({ BOXWOOD_API_KEY: 'dcp_env' }), ['work.example', 'dcp_env', undefined], 'without the session')
  t.throws(() => find({ BOXWOOD_URL: 'https://x.example' }), { exitCode: 4, message: /box login/ })
  t.throws(() => find({ BOXWOOD_PROFILE: 'none' }), {
    exitCode: 5,
    message: /No such profile: 'none'. Profiles: home, work/,
  })
  t.match(selectCoordinator({ ...env }, here), { isLocal: false, url: 'https://work.example' })
  t.match(selectCoordinator({ ...env, BOXWOOD_PROFILE: 'local' }, here), { isLocal: true })

  const local = { name: 'local', url: 'http://127.0.0.1:7071', session: 'cookie' }
  t.match(
    findCoordinator(configure(null, [local]).env, here, '/'),
    { key: 'dcp_here', profile: { session: 'cookie' } },
    'the session of the coordinator of the data directory',
  )
})

t.test('box login --with-key, box use and --profile', async (t) => {
  const coordinator = await startCliCoordinator(t, ['fig'])
  const { path, env } = configure(null, [])
  const box = (args: string[], stdin = '') => runBox(null, args, { env, stdin })
  const name = coordinator.url.replace('http://', '').replace(':', '-')
  t.match(await box(['login', '--with-key', coordinator.url], 'dcp_wrong'), {
    code: 4,
    stderr: /was rejected/,
  })
  t.same(readProfiles(path).profiles, [], 'a key that the coordinator rejects is not stored')
  t.match(await box(['login', '--with-key', coordinator.url], `${coordinator.key}\n`), {
    code: 0,
    stdout: '',
    stderr: `Signed in to ${coordinator.url} as Owner, workspace Boxwood. box uses the profile ${name} from now on.\n`,
  })
  t.match(readProfiles(path), {
    selected: name,
    profiles: [{ name, key: coordinator.key, keyId: /^key_/, user: 'Owner' }],
  })
  t.match(await box(['ls']), { code: 0, stdout: /^fig/m })
  t.match(await box(['use']), {
    code: 0,
    stdout: new RegExp(`^\\* +${name} +${coordinator.url} +Owner +Boxwood$`, 'm'),
  })
  const list = await box(['use', '--json'])
  t.match(JSON.parse(list.stdout), { profiles: [{ name: 'local' }, { name, selected: true }] })
  t.notMatch(list.stdout, /dcp_/, 'the key is not printed')
  t.match(await box(['use', 'local']), { code: 0, stderr: /data directory on this machine/ })
  t.equal(readProfiles(path).selected, null)
  for (const args of [
    ['--profile', name, 'ls'],
    ['ls', '--profile', name],
  ])
    t.match(await runBox('http://127.0.0.1:1', args, { env }), { code: 0, stdout: /^fig/m }, args.join(' '))
  t.match(await box(['use', 'none']), { code: 5, stderr: /No such profile/ })
  t.match(await box(['--profile', name, 'down']), { code: 1, stderr: /use --profile local/ })
  t.match(await box(['__complete', '--', '--profile', '']), { stdout: `local\n${name}\n` })
  t.match(readFileSync(path, 'utf8'), coordinator.key)
})
