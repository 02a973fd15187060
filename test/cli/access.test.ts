// box keys, members, policies, audit and workspace, by the sign-in of the owner.
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { readProfiles } from '../../cli/connection/profile-file.ts'
import { newId } from '../../shared/ids.ts'
import { startTestCoordinator } from '../support/coordinator.ts'
import { createTempDir } from '../support/temp-dir.ts'
import { waitUntil } from '../support/wait-until.ts'
import { runBoxInPty } from './box-in-pty.ts'
import { runBox } from './run-box.ts'

const { url, key, dataDir, api, instance } = await startTestCoordinator(t)
const configHome = createTempDir(t, 'config')
const env = { XDG_CONFIG_HOME: configHome, BOXWOOD_DATA: dataDir }
const box = (...args: string[]) => runBox(null, args, { env })

async function run(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await box(...args)
  t.equal(code, 0, `box ${args.join(' ')}: ${stderr}`)
  return stdout
}

await api('POST', '/boxes', { name: 'fig' })

t.test('keys need a sign-in, and BOXWOOD_API_KEY is not one', async (t) => {
  t.match(await box('keys'), { code: 4, stderr: /needs a sign-in .* Run `\S*box login`/ })
  await run('login')
  t.match(await runBox(url, ['keys'], { env: { ...env, BOXWOOD_API_KEY: key } }), {
    code: 4,
    stderr: /Unset it, and sign in/,
  })
})

t.test('box keys creates, lists, limits, rotates and revokes', async (t) => {
  const created = await box('keys', 'create', 'ci', '--expires', '30d', '--box', 'fig', '--read-only')
  t.match(created, {
    code: 0,
    stderr:
      /^Key ci \(key_\S+; access boxes=read,workspace=read,history=read on fig; expires in 30d\) created/,
  })
  for (const [args, warns] of [
    [['--box', 'fig'], true],
    [['--box', 'fig', '--access', 'boxes=write'], true],
    [['--box', 'fig', '--access', 'boxes=run'], false],
    [[], false],
  ] as const) {
    const { stderr, code } = await box('keys', 'create', 'other', ...args)
    t.equal(code, 0)
    t.equal(/may also delete.* --access boxes=run/.test(stderr), warns, args.join(' '))
    await box('keys', 'rm', 'other', '--yes')
  }
  const secret = created.stdout.trim()
  t.match(secret, /^dcp_\w+$/, 'stdout is the secret')
  t.match((await api('GET', '/me', undefined, { key: secret })).json, { access: { boxes: 'read' } })
  t.match(
    await run('key', 'ls'),
    /^ci +key_\S+ +api +\S+ +boxes=read,workspace=read,history=read on fig +in \d+d +(never|\d+s ago)$/m,
  )
  t.match(await box('keys', 'rotate', 'ci', '-q'), { code: 0, stdout: /^dcp_\w+\n$/, stderr: /^$/ })
  t.equal((await api('GET', '/me', undefined, { key: secret })).status, 401)
  t.match(await box('keys', 'set', 'ci', '--expires', 'never', '--access', 'all', '--all-boxes'), {
    code: 0,
    stderr: /access all; never expires/,
  })
  t.match(await box('keys', 'rm', 'ci', '-y'), { code: 0, stderr: 'ci: revoked\n' })
})

t.test('box give gives a box to a member, by email, name or id', async (t) => {
  const { db } = instance.context
  const addMember = async (name: string, role: 'member' | 'contractor') => {
    const id = newId('user')
    await db
      .insertInto('users')
      .values({
        ...{ id, email: `${name.toLowerCase()}@example.com`, name, role },
        ...{ workspace_id: instance.owner?.workspaceId ?? '', created_at: 0, joined_at: 0 },
      })
      .execute()
    return id
  }
  const grace = await addMember('Grace', 'member')
  await addMember('Cy', 'contractor')
  const { json } = await api('GET', '/boxes?box=fig')
  const [{ id, ownerUserId }] = json.boxes
  const grants = [{ userId: ownerUserId }]
  const secret = await api('POST', '/secrets', {
    name: 'TOKEN',
    value: 'a',
    hosts: ['a.example.com'],
    grants,
  })
  await api('POST', `/boxes/${id}/secrets`, { secretId: secret.json.secret.id, envName: 'TOKEN' })

  t.match(await box('give', 'fig', 'nobody@example.com'), { code: 5, stderr: /No such member: 'nobody/ })
  t.same(await box('give', 'fig', 'grace'), {
    code: 0,
    stdout: '',
    stderr:
      'fig: given to grace@example.com\nbox: no grant allows grace@example.com on fig, so unmounted: TOKEN.\n',
  })
  t.match(await box('give', 'fig', grace), { code: 0, stderr: 'fig: belongs to grace@example.com already\n' })

  const pty = runBoxInPty(
    t,
    { url, key },
    'unset BOXWOOD_API_KEY; box give fig cy@example.com; echo code=$?',
    {
      env,
      cols: 200,
    },
  )
  await pty.waitFor('stays restricted. Give fig to cy@example.com? [y/N]')
  pty.type('n\r')
  await pty.waitFor('code=1')
  t.match(await box('give', 'fig', 'cy@example.com', '--yes', '--json'), {
    code: 0,
    stdout: /"restricted": ?true/,
  })

  const withKey = { env: { ...env, BOXWOOD_API_KEY: key } }
  t.match(await runBox(url, ['give', 'fig', 'Grace'], withKey), { code: 4 }, 'a name needs a sign-in')
  t.match(await runBox(url, ['give', 'fig', 'grace@example.com'], withKey), {
    code: 0,
    stderr: 'fig: given to grace@example.com\n',
  })
  t.match(await box('audit', '--kind', 'box.give'), { code: 0, stdout: /box\.give/ })
})

t.test('box members invites, changes and removes', async (t) => {
  t.match(await box('members', 'invite', 'Ada@example.com', '--role', 'member'), {
    code: 0,
    stderr:
      /^ada@example\.com is invited as member\.\nbox: .*box login http:\S+` .* prints their code in its log, .*coordinator\.log .*\nbox: http:\S+ is an address of this machine only/,
  })
  await run('members', 'set', 'ada@example.com', '--role', 'contractor')
  t.equal(await run('__complete', '--', 'members', 'rm', 'ada@'), 'ada@example.com\tada, contractor\n')
  t.match(await run('members'), /^ada@example\.com +ada +contractor +invited +-$/m)
  t.match(await box('members', 'rm', 'ada@example.com'), { code: 0, stderr: 'ada@example.com: removed\n' })
})

t.test('box policies shows and changes', async (t) => {
  t.match(await box('policies', 'set', 'quiet-hours', 'mon-fri', '22:00-07:00', 'Europe/Berlin'), {
    code: 0,
    stderr: 'quietHours: mon-fri 22:00-07:00 Europe/Berlin\n',
  })
  t.match(await box('policies'), {
    stdout: /^quietHours +mon-fri 22:00-07:00 Europe\/Berlin$.*^auditRetentionDays +90 days$/ms,
    stderr: /^Changed at \S+ by \S+\.$/m,
  })
  const { db } = instance.context
  const { policy } = await db.selectFrom('policies').select('policy').executeTakeFirstOrThrow()
  const stored = policy.replace('Europe/Berlin', 'Europe/Old')
  await db.updateTable('policies').set({ policy: stored }).execute()
  t.match(await box('policies'), { stderr: /^The coordinator does not know the time zone Europe\/Old, / })
})

t.test('box audit lists, filters, follows and writes CSV', async (t) => {
  const list = await run('audit', '--since', '1h', '--kind', 'key.create,policy.update')
  t.match(list, /^ID .*\n\d+ +\S+ \S+ +key\.create +\S+ +- .*\n(.*\n)*\d+ +\S+ \S+ +policy\.update .*\n$/)
  t.match(await run('audit', '--box', 'fig'), /box\.create +\S+ +fig /)
  const file = join(configHome, 'audit.csv')
  await run('audit', '--csv', file)
  t.match(readFileSync(file, 'utf8'), /^id,at,kind,.*key\.create/s)
  t.equal(statSync(file).mode & 0o777, 0o600)
  let output = ''
  const follow = runBox(
    null,
    ['audit', '-f', '-n', '1', '--no-header', '--kind', 'audit.export,key.create'],
    {
      env,
      async onSpawn(child) {
        child.stdout?.on('data', (chunk) => (output += chunk))
        await waitUntil('the last event', () => output.includes('audit.export'))
        await api('GET', '/audit?format=csv')
        await waitUntil('a further event', () => output.split('\n').length > 2)
        child.kill('SIGTERM')
      },
    },
  )
  t.match(await follow, { code: 143, stdout: /^\d+ .* audit\.export .*\n\d+ .* audit\.export .*\n$/ })
})

t.test('box audit prints details with names, and without fields that have no value', async (t) => {
  await run('keys', 'create', 'limited', '-q', '--box', 'fig', '--access', 'boxes=run', '--expires', '30d')
  const details = await run('audit', '--kind', 'key.create', '--no-header', '-n', '100')
  t.match(details, / name=limited kind=api user=Owner expiresAt=\S+ \d\d:\d\d:\d\d boxes=fig access=\S+$/m)
  t.notMatch(details, /null|usr_| keyId=/)
  const [event] = JSON.parse(await run('audit', '--kind', 'key.create', '-n', '1', '--json')).events
  t.match(event.detail, { keyId: /^key_/, userId: /^usr_/ }, 'JSON has all')
})

t.test('box audit --actor accepts what the column ACTOR shows', async (t) => {
  const actors = async (...args: string[]) => {
    const rows = (await run('audit', '-n', '100', '--no-header', ...args)).trimEnd().split('\n')
    return [...new Set(rows.map((row) => row.split(/ {2,}/)[3]))]
  }
  const userId = instance.owner?.userId ?? ''
  for (const typed of ['Owner', 'owner', userId, userId.slice(0, 12)])
    t.same(await actors('--actor', typed), ['Owner'], typed)
  await box('keys', 'create', 'robot', '--no-user', '-q').then(({ stdout }) =>
    api('POST', '/boxes', { name: 'kaki' }, { key: stdout.trim() }),
  )
  const [robot = ''] = await actors('--box', 'kaki', '--kind', 'box.create')
  t.match(robot, /^key_\w{8}$/)
  t.same(await actors('--actor', robot), [robot])
  t.match(await box('audit', '--actor', 'system'), { code: 0 })
  t.match(await box('audit', '--actor', robot, '--csv', '-'), { code: 2, stderr: /--csv needs a user/ })
  t.match(await box('audit', '--actor', 'Eve'), { code: 5, stderr: /No such member: 'Eve'/ })
  const readOnly = (await run('keys', 'create', 'reader', '-q', '--read-only')).trim()
  t.match(await runBox(url, ['audit', '--actor', 'Owner'], { env: { BOXWOOD_API_KEY: readOnly } }), {
    code: 0,
    stdout: / Owner /,
  })
})

t.test('box audit names the kinds, and where the commands are', async (t) => {
  t.match(await box('audit', '--kind', 'box.explode'), {
    code: 2,
    stderr: /there is no kind 'box\.explode'\. The guide audit \(`box docs audit`\) lists all kinds/,
  })
  t.match(await box('audit', '--kind', 'delete'), {
    code: 2,
    stderr: /Did you mean box\.delete, .*secret\.delete/,
  })
  t.match(await box('audit', '--kind', 'exec'), {
    code: 0,
    stderr: /only when a client reports them: .*history`/,
  })
})

t.test('box events, show and machine ls name the user', async (t) => {
  t.match(await run('events', 'fig', '--no-header'), / requested +Owner /)
  t.match(await run('show', 'fig'), / requested .* Owner$/m)
})

t.test('box audit verify finds a change', async (t) => {
  const { stdout } = await box('audit', 'verify')
  const [, head = ''] = /^Head: (\d+:[0-9a-f]{64})$/m.exec(stdout) ?? []
  t.match(stdout, /^\d+ events are intact\.$/m)
  t.match(await box('audit', 'verify', '--head', head), { code: 0, stdout: /part of the chain/ })
  const { db } = instance.context
  await db.updateTable('audit_log').set({ kind: 'box.delete' }).where('no', '=', 2).execute()
  t.match(await box('audit', 'verify'), { code: 1, stdout: /broken at event 2: / })
})

t.test('box workspace creates, and switches the session and the key', async (t) => {
  // Identifies the person in the new workspace.
  await instance.context.db
    .updateTable('users')
    .set({ email: 'owner@example.com' })
    .where('id', '=', instance.owner?.userId ?? '')
    .execute()
  const id = (await run('workspaces', 'create', 'research', '-q')).trim()
  t.match(await box('workspace', 'use', 'research'), { code: 0, stderr: /profile local uses .* research/ })
  t.match(JSON.parse(await run('whoami', '--json')), {
    workspace: { id },
    key: { kind: 'machine' },
    client: { profile: 'local' },
  })
  t.match(await box('workspace', 'close', 'research', '-y'), { code: 0, stderr: /workspace reopen/ })
  t.match(await run('workspaces'), /^\* +research +owner +ws_\S+$/m)
  await run('logout')
  t.same(readProfiles(join(configHome, 'boxwood/profiles.json')).profiles, [])
})
