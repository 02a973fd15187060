// The commands that make, show and move boxes: what a person reads, what a script gets, how they exit.
import t from 'tap'
import { CLI_VERSION_HEADER } from '../../shared/protocol.ts'
import { startFakeCoordinator } from './fake-coordinator.ts'
import { runBox } from './run-box.ts'

const fake = await startFakeCoordinator(t)
const box = (...args: string[]) => runBox(fake.url, args)
const COMMANDS = 'create ls show exec ps logs kill history output cp suspend wake rm me'.split(' ')
const json = async (...args: string[]) => JSON.parse((await box(...args, '--json')).stdout)

t.test('create waits until it runs: the name on stdout, what happens on stderr', async (t) => {
  t.same(await box('create', '--name', 'fig', '--tier', 'pro'), {
    code: 0,
    stdout: 'fig\n',
    stderr: 'fig: requested\nfig: running\n',
  })
  t.match(await box('create', '--name', 'fig'), { code: 1, stderr: /exists already\. \(name_taken\)/ })
})

t.test('create passes on every field', async (t) => {
  let sent = ''
  fake.answerNext('POST /api/v1/boxes', async (response, request) => {
    for await (const chunk of request) sent += chunk
    response.writeHead(202).end(JSON.stringify({ box: { ...fake.boxes[0], hostname: 'lime' } }))
  })
  const fields = '--region us-east-1 --env A=1 --env B=2=3 --ttl 60 --auto-pause 30 --restricted --no-wait'
  t.match(await box('create', ...fields.split(' ')), { code: 0, stdout: 'lime\n' })
  t.same(JSON.parse(sent), {
    region: 'us-east-1',
    env: { A: '1', B: '2=3' },
    ttlMinutes: 60,
    autoPauseMin: 30,
    restricted: true,
  })
})

t.test('create that cannot be made says why', async (t) => {
  fake.answerNext('GET /api/v1/boxes/', (response) => {
    const failed = { ...fake.boxes[0], hostname: 'kiwi', observedState: 'provision_failed' }
    const job = { op: 'create', step: 'make', attempt: 3, lastError: 'the disk is full', nextRetryAt: null }
    response.end(JSON.stringify({ box: failed, job, events: [] }))
  })
  t.match(await box('create', '--name', 'kiwi'), {
    code: 1,
    stderr: /could not be made: the disk is full.*box rm/,
  })
  await box('rm', 'kiwi')
})

t.test('ls', async (t) => {
  const { code, stdout } = await box('ls')
  const [head, row] = stdout.split('\n')
  t.equal(code, 0)
  t.match(head, /^NAME +STATE +ISOLATION +TIER +REGION +AGE$/)
  t.match(row, /^fig +running +bubblewrap +pro +us-west-2 +0s$/)
  t.match(await json('ls'), { boxes: [{ hostname: 'fig' }] })
  t.match(await json('ls', '--all'), { boxes: [{ hostname: 'kiwi', observedState: 'terminated' }, {}] })
})

t.test('show tells names of variables, not their values, and no control characters', async (t) => {
  const { code, stdout } = await box('show', 'fig')
  t.equal(code, 0)
  t.match(stdout, /^variables +TOKEN$/m)
  t.match(stdout, /provisioning → running/)
  t.notMatch(stdout, /hush/)
  t.notOk(stdout.includes('\u001b'))
  t.match(await json('show', fake.boxes.at(-1)?.id ?? ''), { box: { hostname: 'fig' }, events: [{}] })
})

t.test('suspend and wake wait for the state', async (t) => {
  t.match(await box('suspend', 'fig'), { code: 0, stdout: '', stderr: /fig: suspended\n$/ })
  t.match(await json('wake', 'fig'), { hostname: 'fig', observedState: 'running' })
})

t.test('a suspended box and files', async (t) => {
  fake.answerNext('GET /v1/box/fig/download', (response) => {
    response.writeHead(409).end('{"ok":false,"error":{"code":"box_not_running","message":"It is not."}}')
  })
  t.match(await box('cp', 'fig:x', '.'), { code: 1, stderr: /box wake fig/ })
})

t.test('rm waits for the operation', async (t) => {
  t.match(await json('rm', 'fig'), { box: { hostname: 'fig' }, operation: { status: 'completed' } })
  t.match(await box('rm', 'fig'), { code: 5, stderr: /no box fig.*box ls/ })
  t.same(await box('rm', '-f', 'fig'), { code: 0, stdout: '', stderr: '' })
})

t.test('me', async (t) => {
  t.match(await box('whoami'), { code: 0, stdout: /^user +owner \(owner\)$/m })
  t.match(await json('me'), { edge: { url: fake.url } })
})

t.test('every request names the version of the command', async (t) => {
  t.ok(fake.requests.every(({ headers }) => /^\d+\.\d+\.\d+$/.test(String(headers[CLI_VERSION_HEADER]))))
})

t.test('a 429 is waited out, but not forever', async (t) => {
  const busy = () =>
    fake.answerNext('GET /api/v1/me', (response) => {
      response.writeHead(429, { 'retry-after': '0' }).end('{"error":"rate_limited","message":"Too many."}')
    })
  busy()
  t.match(await box('me'), { code: 0 })
  for (let count = 0; count < 5; count++) busy()
  t.match(await box('me'), { code: 1, stderr: /Too many\. \(rate_limited\)/ })
})

t.test('usage', async (t) => {
  t.match(await box('paint'), { code: 2, stderr: /unknown command/ })
  t.match(await box('create', '--ttl', 'long'), { code: 2, stderr: /whole number/ })
  t.match(await box(), { code: 2, stderr: /Usage: box/ })
  for (const command of COMMANDS) {
    const { code, stdout } = await box(command, '--help')
    t.equal(code, 0)
    t.match(stdout, /Examples?:\n +\S*box /i, `${command} --help teaches by example`)
  }
})
