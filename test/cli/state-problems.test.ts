// box ls and box show say why a box does not reach its state, and what to check.
import t from 'tap'
import { startCliCoordinator } from './coordinator.ts'
import { runBox } from './run-box.ts'

const coordinator = await startCliCoordinator(t, ['fig'])
const box = (...args: string[]) => runBox(coordinator, args)
const { api, infra } = coordinator

const { promise: release, resolve } = Promise.withResolvers<void>()
t.teardown(resolve)
infra.before.create = () => release
await api('POST', '/boxes', { name: 'plum' })

const REASON = 'The agent did not connect.\u202e'
const job = { op: 'create', step: 'connect', attempt: 4, lastError: REASON, nextRetryAt: null }

t.test('the list has the attempts, and the reason below', async (t) => {
  coordinator.changeDetailNext({}, { job })
  const { code, stdout, stderr } = await box('ls')
  t.equal(code, 0)
  t.match(stdout, /^plum +provisioning, attempt 4 failed +/m)
  t.match(stdout, /^fig +running +/m)
  t.equal(stderr, 'box: plum is provisioning: The agent did not connect.\ufffd. `box show plum` says more.\n')
})

t.test('a box whose first attempt is in progress, and JSON, have no reason', async (t) => {
  coordinator.changeDetailNext({}, { job: { ...job, attempt: 0, lastError: null } })
  t.match(await box('ls'), { stdout: /^plum +provisioning {2}/m, stderr: '' })
  const { stdout, stderr } = await box('ls', '--json')
  t.equal(stderr, '')
  t.notOk(stdout.includes('attempt'))
})

t.test('a list without the details of a box is complete', async (t) => {
  coordinator.respondNext('GET /api/v1/boxes/', 404, { error: 'not_found', message: 'No such box.' })
  t.match(await box('ls'), { code: 0, stdout: /^plum +provisioning {2}/m, stderr: '' })
})

t.test('show says what to check', async (t) => {
  const look = async (fields: object) => {
    coordinator.changeDetailNext(fields, { job })
    const { stdout } = await box('show', 'plum')
    t.match(stdout, /^last error +The agent did not connect\./m)
    return /^check +(.*)$/m.exec(stdout)?.[1]
  }
  const { id } = await coordinator.findBox('plum')
  t.equal(
    await look({}),
    `on the machine of the coordinator: \`box doctor\`, and its log; the log of the agent is boxes/${id}/log in the data directory`,
  )
  t.match(await look({ region: 'us-east-1' }), `is regions/us-east-1/boxes/${id}/log in`)
  t.equal(
    await look({ isolation: { level: 'container', limits: [], network: 'own' } }),
    'on the machine of the coordinator: `box doctor`, and its log',
  )
  t.match(await look({ kind: 'machine' }), 'that the machine runs')
  t.notMatch((await box('show', 'fig')).stdout, /^check/m)
})

t.test('a box that could not be created has the reason of its last event', async (t) => {
  const { json } = await api('GET', `/boxes/${(await coordinator.findBox('plum')).id}`)
  const [event] = json.events
  const events = [{ ...event, toState: 'provision_failed', reason: 'There is no image.' }]
  coordinator.changeDetailNext({ observedState: 'provision_failed' }, { job: null, events })
  t.match(await box('ls'), { stderr: /There is no image\. `box show plum` says more\./ })
})
