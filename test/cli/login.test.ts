// box login, open, profile, whoami and logout, at a coordinator in this process.
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { getProfilePath, type Profile, readProfiles } from '../../cli/connection/profile-file.ts'
import { newApiKey } from '../../shared/api-key.ts'
import { startSignInCoordinator, WRONG_CODE } from '../coordinator/identity/sessions/support.ts'
import { createTempDir } from '../support/temp-dir.ts'
import { waitUntil } from '../support/wait-until.ts'
import { runBox } from './run-box.ts'

const { url, key, dataDir, api, printed, addMember, readAudit, close } = await startSignInCoordinator(t)
await addMember('ann@example.com')
const env = { XDG_CONFIG_HOME: createTempDir(t, 'config'), BOXWOOD_DATA: dataDir }
const path = getProfilePath(env)
const box = (...args: string[]) => runBox(null, args, { env })

function getProfile(name: string): Profile {
  const profile = readProfiles(path).profiles.find((candidate) => candidate.name === name)
  if (profile === undefined) throw new Error(`no profile ${name}`)
  return profile
}

/** Types a code when it has been sent; default: the right one. */
async function login(args: string[], code?: string) {
  const count = printed.length
  return runBox(null, ['login', ...args], {
    env,
    stdin: null,
    onSpawn: async ({ stdin }) => {
      await waitUntil('the code is printed', () => printed.length > count)
      stdin?.end(`${code ?? printed.at(-1)?.split(': ').at(-1)}\n`)
    },
  })
}

t.test('on the machine of the coordinator, box login signs in the owner', async (t) => {
  t.match(await box('login'), {
    code: 0,
    stdout: '',
    stderr: /^Signed in to http:\S+ as owner, workspace Boxwood\. .* profile local /i,
  })
  const { session, ...profile } = getProfile('local')
  t.match(session, /^bws_/)
  t.match(profile, { url: `${url}/api/v1`, key: undefined }, 'the data directory has the key')
  t.equal(readProfiles(path).selected, null)
  const { stdout } = await box('whoami')
  t.match(stdout, /^coordinator +http:\S+ from \S+coordinator\.json$/m)
  t.match(stdout, /^key +key_\S+ from \S+owner\.key, never expires$/m)
  t.match(stdout, /^profile +local$/m)
  t.match(stdout, /^session +expires 20/m)
  t.match(await readAudit('session.sign_in'), [{ detail: { method: 'owner' } }])
})

t.test('box open prints a link that signs the owner in', async (t) => {
  const directory = createTempDir(t, 'open')
  const opened = join(directory, 'opened')
  writeFileSync(join(directory, 'xdg-open'), `#!/bin/sh\necho "$1" >'${opened}'\n`, { mode: 0o755 })
  const display = { DISPLAY: ':9', PATH: `${directory}:${process.env.PATH}` }
  const { stdout } = await runBox(null, ['open'], { env: { ...env, ...display } })
  const link = new RegExp(`^${url}/sign-in#(bwl_[\\w-]+)\n$`)
  t.match(stdout, link)
  const file = join(dataDir, 'sign-in.html')
  t.equal(readFileSync(opened, 'utf8'), `file://${file}\n`, 'the arguments of the browser have no secret')
  t.equal(statSync(file).mode & 0o777, 0o600)
  t.match(readFileSync(file, 'utf8'), `url=${stdout.trim()}"`)
  const signIn = (secret?: string) => api('POST', '/sign-in/owner', { secret }, { key: null })
  t.equal((await signIn(link.exec(stdout)?.[1])).status, 200)

  t.match((await runBox(null, ['open'], { env: { ...env, DISPLAY: '' } })).stdout, link)
  t.match(JSON.parse((await box('open', '--json')).stdout), {
    url: `${url}/`,
    signInUrl: /\/sign-in#bwl_/,
    signInExpiresAt: /^20/,
  })
  const remote = { BOXWOOD_URL: url, BOXWOOD_API_KEY: key, BOXWOOD_DATA: '' }
  t.equal((await runBox(null, ['open'], { env: { ...env, ...remote } })).stdout, `${url}/\n`)
})

t.test('box profile gives the owner an email address', async (t) => {
  t.match(await box('profile'), { code: 0, stdout: /^email +none: .box profile --email ADDRESS. sets one$/m })
  const count = printed.length
  t.match(
    await runBox(null, ['profile', '--name', 'Olga', '--email', 'Olga@example.com'], {
      env,
      stdin: null,
      onSpawn: async ({ stdin }) => {
        await waitUntil('the code is printed', () => printed.length > count)
        stdin?.end(`${printed.at(-1)?.split(': ').at(-1)}\n`)
      },
    }),
    {
      code: 0,
      stdout: '',
      stderr: /has been sent to Olga@example\.com.*\nYou are Olga, olga@example\.com\.\n$/,
    },
  )
  t.match(await box('profile'), { stdout: /^name +Olga\nemail +olga@example\.com\nrole +owner\n/ })
  t.match(await box('login'), { code: 0, stderr: / as olga@example\.com, / }, 'the file signs in still')
  t.match(await box('login'), { code: 0, stderr: / as olga@example\.com, / })
  t.match(JSON.parse((await box('open', '--json')).stdout), { signInUrl: /bwl_/ })
})

t.test('with a URL and an email, a member signs in with the code', async (t) => {
  const args = [url, '--email', 'Ann@example.com', '--profile', 'work']
  t.match(await login(args, WRONG_CODE), { code: 1, stderr: /\(invalid_code\)/ })
  t.match(await login(args), {
    code: 0,
    stderr: /If Ann@example\.com is a member, .*\nSigned in to \S+ as ann@example\.com, .* the profile work /,
  })
  const profile = getProfile('work')
  t.match(profile, { user: 'ann@example.com', key: /^dcp_/, keyId: /^key_/, session: /^bws_/ })
  t.equal(readProfiles(path).selected, 'work')
  t.match(await runBox(null, ['whoami', '--json'], { env: { ...env, BOXWOOD_DATA: '' } }), {
    code: 0,
    stdout: /"kind": "machine".*"profile": "work"/s,
  })
  const me = await api('GET', '/me', undefined, { key: profile.key ?? '' })
  t.match(me.json, { user: { email: 'ann@example.com' }, key: { id: profile.keyId, kind: 'machine' } })

  t.match(await box('login', url, '--email', 'bob@example.com', '--profile', 'work'), {
    code: 1,
    stderr: /profile work exists, for ann@example\.com/,
  })
  t.match(await login(['--profile', 'work']), { code: 0 }, 'the profile has the URL and the email')
  const renewed = getProfile('work')
  t.not(renewed.keyId, profile.keyId)
  t.equal(
    (await api('GET', '/me', undefined, { key: profile.key ?? '' })).status,
    401,
    'the earlier key is revoked',
  )
  t.equal((await api('GET', '/me', undefined, { key: renewed.key ?? '' })).status, 200)
})

t.test('a wrong URL fails before anything is typed', async (t) => {
  for (const args of [[], ['--email', 'ann@example.com'], ['--with-key']]) {
    // The standard input stays open: the command must not read it.
    const result = await runBox(null, ['login', 'http://127.0.0.1:1', ...args], { env, stdin: null })
    t.match(result, { code: 3, stdout: '', stderr: /Cannot reach .* \(connection refused\)\. Check the URL/ })
    t.notMatch(result.stderr, /Email|API key/)
  }
})

t.test('box logout revokes the key, ends the session and removes the profile', async (t) => {
  const { key: machineKey = '', session } = getProfile('work')
  t.match(await box('logout', 'work'), { code: 0, stderr: /^Signed out of .*profile work was removed\.\n$/ })
  t.equal((await api('GET', '/me', undefined, { key: machineKey })).status, 401)
  t.notMatch(readFileSync(path, 'utf8'), session)
  t.equal(readProfiles(path).selected, null)
  t.match(await box('logout', 'work'), { code: 5, stderr: /No such profile/ })
})

t.test('when owner.key is not valid any more, box login creates a key for this machine', async (t) => {
  const file = join(dataDir, 'owner.key')
  const ownerKey = readFileSync(file, 'utf8')
  writeFileSync(file, newApiKey())
  t.match(await box('ls'), { code: 4, stderr: /owner\.key was rejected .* Sign in with `box login`\./ })
  t.match(await box('login'), { code: 0 })
  t.match(getProfile('local').key, /^dcp_/)
  t.match(await box('ls'), { code: 0 })

  writeFileSync(file, ownerKey)
  t.match(await box('login'), { code: 0 })
  t.equal(getProfile('local').key, undefined)
})

t.test('a session that was ended, and an API key, do not replace a sign-in', async (t) => {
  const { session } = getProfile('local')
  await api('DELETE', '/session', undefined, {
    key: null,
    headers: { cookie: `__Host-boxwood_session=${session}` },
  })
  t.match(await box('whoami'), {
    code: 0,
    stdout: /^session +The sign-in at .* Sign in again with `\S*box login`/m,
  })
  t.match(await runBox(url, ['logout', 'local'], { env: { ...env, BOXWOOD_API_KEY: key } }), {
    code: 1,
    stderr: /warning: the session may still be valid.*The profile local was removed/s,
  })
  await close()
  t.match(await box('login', 'http://127.0.0.1:1', '--email', 'a@b.example'), { code: 3 })
  t.same(readProfiles(path).profiles, [])
})
