// box secrets, mount, unmount and mounts.
import t from 'tap'
import { runBoxInPty } from './box-in-pty.ts'
import { startFakeCoordinator } from './fake-coordinator.ts'
import { addFakeSecrets } from './fake-secrets.ts'
import { type BoxOptions, runBox } from './run-box.ts'

const fake = await startFakeCoordinator(t)
const fig = await fake.addBox('fig')
const plum = await fake.addBox('plum')
const state = addFakeSecrets(fake)
const VALUE = 'sk-ant-value-of-the-test'
const box = (args: string[], options?: BoxOptions) => runBox(fake.url, args, options)
const run = async (...args: string[]) => {
  const { code, stdout, stderr } = await box(args)
  t.equal(code, 0, `box ${args.join(' ')}: ${stderr}`)
  return stdout + stderr
}
const set = (...args: string[]) => box(['secrets', 'set', ...args], { stdin: `${VALUE}\n` })
const findSecret = (name: string) => state.secrets.find((secret) => secret.name === name)

t.beforeEach(() => {
  state.secrets = []
  state.mounts = []
  state.values.clear()
})

t.test('set creates a secret; a well-known name has its hosts', async (t) => {
  const { code, stdout, stderr } = await set('ANTHROPIC_API_KEY')
  t.match({ code, stdout }, { code: 0, stdout: '' })
  t.match(
    stderr,
    /created; used in requests to api\.anthropic\.com, which box knows.*box mount NAME ANTHROPIC_API_KEY/,
  )
  t.equal(state.values.get('ANTHROPIC_API_KEY'), VALUE, 'without the newline at the end')

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
  t.match(findSecret('TOKEN'), {
    hosts: ['*.example.com', 'example.org'],
    grants: [{ boxId: fig.id }, { email: 'ada@example.com' }],
  })
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
  t.equal(state.values.get('FROM_ENV'), 'from-env')
})

t.test('set changes an existing secret, and rotate its value', async (t) => {
  await set('TOKEN', '--host', 'a.example.com')
  const changed = await box(['secrets', 'set', 'TOKEN', '--host', 'b.example.com'], { stdin: 'two' })
  t.match(changed, {
    code: 0,
    stderr: /the value is replaced for new requests; used in requests to b\.example\.com/,
  })
  t.match(await box(['secrets', 'set', 'TOKEN', '--keep-value', '--description', 'why']), { code: 0 })
  t.match(findSecret('TOKEN'), { hosts: ['b.example.com'], description: 'why' })
  t.equal(state.values.get('TOKEN'), 'two')
  t.match(await box(['secrets', 'rotate', 'TOKEN'], { stdin: 'three\r\n' }), {
    code: 0,
    stderr: /placeholder is the same/,
  })
  t.equal(state.values.get('TOKEN'), 'three')
})

t.test('--in sets the parts of requests in which the value is used', async (t) => {
  t.match(await set('TOKEN', '--host', 'a.example.com', '--in', 'query, path'), {
    code: 0,
    stderr: /created; used in query, path of requests to a\.example\.com/,
  })
  t.same(findSecret('TOKEN')?.in, ['query', 'path'])
  t.match(await run('secrets'), /IN +HOSTS[\s\S]*query, path +a\.example\.com/)
  t.match(await run('secrets', 'show', 'TOKEN'), /in +query, path/)
  await run('secrets', 'set', 'TOKEN', '--keep-value', '--in', 'header,body')
  t.same(findSecret('TOKEN')?.in, ['header', 'body'])
  t.equal(state.values.get('TOKEN'), VALUE)
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
  t.equal(state.values.get('KEY'), key)
  const inBody = await create('BODY_KEY', '--in', 'body')
  t.equal(inBody.code, 0)
  t.notMatch(inBody.stderr, /several lines/)
  await box(['secrets', 'rotate', 'BODY_KEY'], { stdin: `${key}\n\n` })
  t.equal(state.values.get('BODY_KEY'), `${key}\n`)
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
  t.same(state.secrets, [])
})

t.test('on a terminal, the prompt does not show the value', async (t) => {
  const terminal = runBoxInPty(t, fake.url, 'box secrets set TOKEN --host example.com; echo exit=$?')
  await terminal.waitFor('Value of TOKEN: ')
  terminal.type(`${VALUE}\r`)
  await terminal.waitFor('exit=0')
  t.equal(state.values.get('TOKEN'), VALUE)
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
  t.match(findSecret('TOKEN'), { scope: 'granted', grants: [] })
  t.match(await run('secrets', 'show', 'TOKEN'), /boxes +none/)
  t.match(await box(['secrets', 'open', 'TOKEN']), { code: 1, stderr: /every box.*Add --yes/ })

  const terminal = runBoxInPty(t, fake.url, 'box secrets open TOKEN; echo exit=$?')
  await terminal.waitFor('Remove them? [y/N]')
  terminal.type('n\r')
  await terminal.waitFor('exit=1')
  t.match(findSecret('TOKEN'), { scope: 'granted' })
  t.match(
    await run('secrets', 'open', 'TOKEN', '--yes'),
    /all boxes of the workspace that are not restricted/,
  )
  t.match(findSecret('TOKEN'), { scope: 'workspace' })
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
  state.broker = { state: 'failed', message: 'curl cannot reach the proxy', checkedAt: null }
  t.match(await run('mounts', 'fig'), /secrets do not work on fig: curl cannot reach the proxy/)
  t.match(await run('show', 'fig'), /^secrets +TOKEN, OTHER, GH_TOKEN; they do not work \(.*mounts fig\)$/m)
  t.match(JSON.parse(await run('mounts', 'fig', '--json')), {
    broker: { state: 'failed' },
    mounts: { length: 3 },
  })

  t.match(await run('unmount', 'fig', 'GH_TOKEN'), /fig: GH_TOKEN is unmounted/)
  await run('unmount', 'fig', 'TOKEN', 'OTHER')
  t.same(state.mounts, [])
  t.match(await box(['unmount', 'fig', 'TOKEN']), { code: 5, stderr: /not mounted on fig/ })
})

t.test('show, usage and rm', async (t) => {
  await set('TOKEN', '--host', 'example.com', '--grant', 'plum')
  t.match(await run('secret', 'show', 'TOKEN'), /^boxes +plum$/m)
  t.match(await run('secrets', 'usage', 'TOKEN'), /No request has used the secret/)
  const at = new Date().toISOString()
  state.uses = [{ boxId: plum.id, hostname: 'plum', host: 'example.com', firstAt: at, lastAt: at, count: 3 }]
  t.match(await run('secrets', 'usage', 'TOKEN'), /^plum +example\.com +3 /m)
  t.match(await box(['secrets', 'rm', 'TOKEN', 'NONE']), {
    code: 5,
    stderr: /No such secret: 'NONE'.*TOKEN: deleted/s,
  })
  t.same(state.secrets, [])
})
