// box secrets, mount, unmount and mounts.
import t from 'tap'
import type { Secret } from '../../shared/api/secrets.ts'
import { createTestSession } from '../support/session.ts'
import { waitUntil } from '../support/wait-until.ts'
import { runBoxInPty } from './box-in-pty.ts'
import { startCliCoordinator } from './coordinator.ts'
import { type BoxOptions, runBox } from './run-box.ts'

const coordinator = await startCliCoordinator(t, ['fig', 'plum'])
const { api, findBox, instance } = coordinator
const [fig, plum] = [await findBox('fig'), await findBox('plum')]
const VALUE = 'sk-ant-value-of-the-test'
const box = (args: string[], options?: BoxOptions) => runBox(coordinator, args, options)
const run = async (...args: string[]) => {
  const { code, stdout, stderr } = await box(args)
  t.equal(code, 0, `box ${args.join(' ')}: ${stderr}`)
  return stdout + stderr
}
const set = (...args: string[]) => box(['secrets', 'set', ...args], { stdin: `${VALUE}\n` })
const listSecrets = async (): Promise<Secret[]> => (await api('GET', '/secrets')).json.secrets
const findSecret = async (name: string) => (await listSecrets()).find((secret) => secret.name === name)
/** The value that a box would send. */
const getValue = async (name: string) => {
  const { db, keyring } = instance.context
  const row = await db
    .selectFrom('secrets')
    .select(['id', 'value', 'workspace_id'])
    .where('name', '=', name)
    .executeTakeFirstOrThrow()
  return keyring.open(row.value, { workspaceId: row.workspace_id, rowId: row.id }).reveal()
}

t.beforeEach(async () => {
  for (const { id } of await listSecrets()) await api('DELETE', `/secrets/${id}`)
})

t.test('set creates a secret; a well-known name has its hosts', async (t) => {
  const { code, stdout, stderr } = await set('ANTHROPIC_API_KEY')
  t.match({ code, stdout }, { code: 0, stdout: '' })
  t.match(
    stderr,
    /created; used in requests to api\.anthropic\.com, which box knows.*box mount NAME ANTHROPIC_API_KEY/,
  )
  t.equal(await getValue('ANTHROPIC_API_KEY'), VALUE, 'without the newline at the end')

  await createTestSession(coordinator, 'member')
  await instance.context.db
    .updateTable('users')
    .set({ email: 'ada@example.com' })
    .where('role', '=', 'member')
    .execute()
  await set(
    'TOKEN',
    '--host',
    '*.example.com',
    '--host',
    'example.org',
    '--grant',
    'fig',
    '--grant',
    'ada@example.com',
  )
  const token = await findSecret('TOKEN')
  t.same(token?.hosts, ['*.example.com', 'example.org'])
  t.same(token?.grants.map(({ hostname, email }) => hostname ?? email).sort(), ['ada@example.com', 'fig'])
  t.match(await set('OTHER'), { code: 0, stderr: /OTHER has no hosts: its value is used nowhere.*--host/s })
  const json = await set('JSON_KEY', '--json', '--host', 'example.com')
  t.match(JSON.parse(json.stdout), { name: 'JSON_KEY', placeholder: /^dcpsec_/ })
  const fromEnv = await box(
    ['secrets', 'set', 'FROM_ENV', '--from-env', 'MY_KEY', '-q', '--host', 'example.com'],
    {
      env: { MY_KEY: 'from-env' },
    },
  )
  t.same(fromEnv, { code: 0, stdout: '', stderr: '' })
  t.equal(await getValue('FROM_ENV'), 'from-env')
})

t.test('set changes an existing secret, and rotate its value', async (t) => {
  await set('TOKEN', '--host', 'a.example.com')
  const changed = await box(['secrets', 'set', 'TOKEN', '--host', 'b.example.com'], { stdin: 'two' })
  t.match(changed, {
    code: 0,
    stderr: /the value is replaced for new requests; used in requests to b\.example\.com/,
  })
  t.match(await box(['secrets', 'set', 'TOKEN', '--keep-value', '--description', 'why']), { code: 0 })
  t.match(await findSecret('TOKEN'), { hosts: ['b.example.com'], description: 'why' })
  t.equal(await getValue('TOKEN'), 'two')
  t.match(await box(['secrets', 'rotate', 'TOKEN'], { stdin: 'three\r\n' }), {
    code: 0,
    stderr: /placeholder is the same/,
  })
  t.equal(await getValue('TOKEN'), 'three')
})

t.test('--in sets the parts of requests in which the value is used', async (t) => {
  t.match(await set('TOKEN', '--host', 'a.example.com', '--in', 'query, path'), {
    code: 0,
    stderr: /created; used in query, path of requests to a\.example\.com/,
  })
  t.same((await findSecret('TOKEN'))?.in, ['query', 'path'])
  t.match(await run('secrets'), /IN +HOSTS[\s\S]*query, path +a\.example\.com/)
  t.match(await run('secrets', 'show', 'TOKEN'), /in +query, path/)
  await run('secrets', 'set', 'TOKEN', '--keep-value', '--in', 'header,body')
  t.same((await findSecret('TOKEN'))?.in, ['header', 'body'])
  t.equal(await getValue('TOKEN'), VALUE)
})

t.test('a value of several lines keeps its line breaks, except the last', async (t) => {
  const key = '-----BEGIN KEY-----\nabc\r\ndef\n-----END KEY-----'
  const create = (name: string, ...args: string[]) =>
    box(['secrets', 'set', name, '--host', 'example.com', ...args], { stdin: `${key}\n` })
  t.match(await create('KEY'), {
    code: 0,
    stderr:
      /KEY has several lines: in headers.*Authorization: Basic.*box secrets set KEY --keep-value --in body/s,
  })
  t.equal(await getValue('KEY'), key)
  const inBody = await create('BODY_KEY', '--in', 'body')
  t.equal(inBody.code, 0)
  t.notMatch(inBody.stderr, /several lines/)
  await box(['secrets', 'rotate', 'BODY_KEY'], { stdin: `${key}\n\n` })
  t.equal(await getValue('BODY_KEY'), `${key}\n`)
})

t.test('a value is never an argument, and no message repeats it', async (t) => {
  const cases: [args: string[], stdin: string, error: RegExp][] = [
    [['set', 'TOKEN', VALUE], '', /never an argument/],
    [['set', `TOKEN=${VALUE}`], '', /never an argument/],
    [['set', 'TOKEN', '--value', VALUE], '', /never an argument/],
    [['set', 'TOKEN'], '', /value of TOKEN is empty/],
    [['set', 'TOKEN'], `${VALUE}\u0001more`, /control characters/],
    [
      ['set', 'TOKEN', '--in', 'header,cookie'],
      VALUE,
      /--in must be one or more of header,query,path,body.*'cookie'/,
    ],
    [['set', 'TOKEN'], VALUE.repeat(1000), /larger than 16 KiB/],
    [['set', 'TOKEN', '--from-env', 'NO_SUCH_VARIABLE'], '', /not set in this environment/],
  ]
  for (const [args, stdin, error] of cases) {
    const { code, stdout, stderr } = await box(['secrets', ...args], { stdin })
    t.match({ code, stderr }, { code: 2, stderr: error })
    t.notMatch(stdout + stderr, VALUE)
  }
  t.same(await listSecrets(), [])
})

t.test('on a terminal, the prompt does not show the value', async (t) => {
  const terminal = runBoxInPty(t, coordinator, 'box secrets set TOKEN --host example.com; echo exit=$?')
  await terminal.waitFor('Value of TOKEN: ')
  terminal.type(`${VALUE}\r`)
  await terminal.waitFor('exit=0')
  t.equal(await getValue('TOKEN'), VALUE)
  t.notMatch(terminal.output, VALUE)
})

t.test('grants limit a secret, and the last one needs a confirmation', async (t) => {
  await set('TOKEN', '--host', 'example.com')
  await run('mount', 'plum', 'TOKEN')
  t.match(
    await run('secrets', 'grant', 'TOKEN', 'fig'),
    /only fig may mount it\. It was unmounted from 1 box/,
  )
  t.match(await run('secrets', 'ls'), /^TOKEN +fig +0 .* example\.com$/m)
  t.match(await run('secrets', '--box', 'plum'), /No secrets/)
  t.match(await box(['mount', 'plum', 'TOKEN']), {
    code: 1,
    stderr: /box secrets grant TOKEN plum` grants it.*\(secret_not_granted\)/,
  })
  t.match(await box(['secrets', 'ungrant', 'TOKEN', 'plum']), { code: 5, stderr: /not granted to 'plum'/ })
  t.match(await run('secrets', 'ungrant', 'TOKEN', 'fig'), /no box may mount it, because it has no grants/)
  t.match(await findSecret('TOKEN'), { scope: 'granted', grants: [] })
  t.match(await run('secrets', 'show', 'TOKEN'), /boxes +none/)
  t.match(await box(['secrets', 'open', 'TOKEN']), { code: 1, stderr: /every box.*Add --yes/ })

  const terminal = runBoxInPty(t, coordinator, 'box secrets open TOKEN; echo exit=$?')
  await terminal.waitFor('Remove them? [y/N]')
  terminal.type('n\r')
  await terminal.waitFor('exit=1')
  t.match(await findSecret('TOKEN'), { scope: 'granted' })
  t.match(
    await run('secrets', 'open', 'TOKEN', '--yes'),
    /all boxes of the workspace that are not restricted/,
  )
  t.match(await findSecret('TOKEN'), { scope: 'workspace' })
})

t.test('mount, mounts and unmount', async (t) => {
  await set('TOKEN', '--host', 'example.com')
  await set('OTHER', '--host', 'other.example.com')
  t.match(
    await run('mount', 'fig', 'TOKEN', 'OTHER'),
    /fig: TOKEN has the placeholder of TOKEN; used in requests to example\.com/,
  )
  await run('mount', 'fig', 'TOKEN', '--as', 'GH_TOKEN')
  t.match(await box(['mount', 'fig', 'TOKEN']), { code: 1, stderr: /--as names another.*env_name_taken/ })
  t.match(await box(['mount', 'fig', 'MISSING']), {
    code: 5,
    stderr: /No such secret: 'MISSING'.*secrets set NAME/,
  })
  t.match(await box(['mount', 'fig', 'TOKEN', 'OTHER', '--as', 'A']), {
    code: 2,
    stderr: /--as names the variable of one/,
  })

  t.match(await run('mounts', 'fig'), /^GH_TOKEN +TOKEN +example\.com$/m)
  const failNext = () =>
    coordinator.changeNext(`GET /api/v1/boxes/${fig.id}/secrets`, (body) => ({
      ...body,
      broker: { state: 'failed', message: 'curl cannot reach the proxy', checkedAt: null },
    }))
  failNext()
  t.match(await run('mounts', 'fig'), /secrets do not work on fig: curl cannot reach the proxy/)
  failNext()
  t.match(await run('show', 'fig'), /^secrets +TOKEN, OTHER, GH_TOKEN; they do not work \(.*mounts fig\)$/m)
  failNext()
  t.match(JSON.parse(await run('mounts', 'fig', '--json')), {
    broker: { state: 'failed' },
    mounts: { length: 3 },
  })

  t.match(await run('unmount', 'fig', 'GH_TOKEN'), /fig: GH_TOKEN is unmounted/)
  await run('unmount', 'fig', 'TOKEN', 'OTHER')
  t.same((await api('GET', `/boxes/${fig.id}/secrets`)).json.mounts, [])
  t.match(await box(['unmount', 'fig', 'TOKEN']), { code: 5, stderr: /not mounted on fig/ })
})

t.test('show, usage and rm', async (t) => {
  await set('TOKEN', '--host', 'example.com', '--grant', 'plum')
  t.match(await run('secret', 'show', 'TOKEN'), /^boxes +plum$/m)
  t.match(await run('secrets', 'usage', 'TOKEN'), /No request has used the secret/)
  const secretId = (await findSecret('TOKEN'))?.id ?? ''
  for (let n = 0; n < 3; n++)
    instance.context.secretBroker.recordUse({ secretId, boxId: plum.id, host: 'example.com' })
  await waitUntil('the uses are written', async () => {
    const { uses } = (await api('GET', `/secrets/${secretId}/usage`)).json
    return uses.length > 0
  })
  t.match(await run('secrets', 'usage', 'TOKEN'), /^plum +example\.com +3 /m)
  t.match(await box(['secrets', 'rm', 'TOKEN', 'NONE']), {
    code: 5,
    stderr: /No such secret: 'NONE'.*TOKEN: deleted/s,
  })
  t.same(await listSecrets(), [])
})
