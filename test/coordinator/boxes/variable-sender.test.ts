// The agent of a box gets the variables of the box when it connects and after each change, the newest ones last.
import { EventEmitter } from 'node:events'
import t, { type Test } from 'tap'
import type { Tunnel, TunnelCall, TunnelEvents } from '../../../coordinator/agents/tunnel/types.ts'
import { recordVariableChange } from '../../../coordinator/boxes/variable-changes.ts'
import { createVariableSender } from '../../../coordinator/boxes/variable-sender.ts'
import { transaction } from '../../../coordinator/db/transaction.ts'
import { ApiError } from '../../../shared/errors.ts'
import { sqliteForTest } from '../../support/sqlite.ts'
import { silentLog } from '../../support/tunnel.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { createOwner, createTestBoxService, createTestClock } from '../../support/workspace.ts'

async function setUp(t: Test, env: Record<string, string>) {
  const db = await sqliteForTest(t)
  const events = new EventEmitter<TunnelEvents>()
  let current: Tunnel | undefined
  const sent: unknown[] = []
  const brokers: unknown[] = []
  let broker: { certificate: string; hosts: string[] } | null = null
  let respond = async () => 204
  let responseText = ''
  const sender = createVariableSender({
    ...{ db, log: silentLog, clock: createTestClock(Date.UTC(2030, 0, 1)) },
    findBroker: async () => broker,
    tunnels: {
      local: () => current,
      on: (event, listener) => void events.on(event, listener as never),
      off: (event, listener) => void events.off(event, listener as never),
    },
  })
  const boxes = createTestBoxService(db)
  const owner = await createOwner(db)
  const { id } = await boxes.create(owner, { name: 'plum', env })
  const call = async ({ method, path, body }: TunnelCall) => {
    const content = JSON.parse(String(body))
    sent.push([`${method} ${path}`, content.env])
    brokers.push(content.broker)
    return { status: await respond(), body: Buffer.from(responseText) }
  }
  return {
    ...{ sent, events, sender, id, brokers },
    setBroker(settings: typeof broker, text: string) {
      broker = settings
      responseText = text
    },
    connect() {
      current = {
        ...{
          boxId: id,
          generation: 1,
          instanceId: 'i',
          agentVersion: '1',
          protocolVersion: 1,
          platform: null,
          failedBuild: null,
        },
        call,
      }
      events.emit('connected', current)
    },
    disconnect() {
      current = undefined
    },
    recordChange: () => transaction(db, async (trx) => recordVariableChange(trx, id)),
    setEnv: (variables: Record<string, string>) => boxes.patch(owner, id, { env: variables }),
    setResponse(callback: typeof respond) {
      respond = callback
    },
    waitForLast: (variables: object) =>
      waitUntil('the variables arrive', () =>
        JSON.stringify(sent.at(-1) ?? null).endsWith(`,${JSON.stringify(variables)}]`),
      ),
  }
}

t.test('when the agent connects, and after each change', async (t) => {
  const { connect, disconnect, setEnv, waitForLast, sent, sender, events } = await setUp(t, { KEY: 'a' })
  connect()
  await waitForLast({ KEY: 'a' })
  await setEnv({ KEY: 'b', OTHER: 'c' })
  await waitForLast({ KEY: 'b', OTHER: 'c' })
  disconnect()
  await setEnv({})
  connect()
  await waitForLast({})
  t.same(sent, [
    ['PUT /environment', { KEY: 'a' }],
    ['PUT /environment', { KEY: 'b', OTHER: 'c' }],
    ['PUT /environment', {}],
  ])
  sender.close()
  t.equal(events.listenerCount('connected'), 0)
})

t.test('a box without variables', async (t) => {
  const { connect, waitForLast } = await setUp(t, {})
  connect()
  await waitForLast({})
})

t.test('changes during a request, and a request that fails', async (t) => {
  const { connect, setEnv, setResponse, waitForLast, sent } = await setUp(t, { KEY: 'a' })
  const response = Promise.withResolvers<number>()
  setResponse(() => response.promise)
  connect()
  await waitForLast({ KEY: 'a' })
  await setEnv({ KEY: 'b' })
  await setEnv({ KEY: 'c' })
  t.equal(sent.length, 1, 'one request at a time')
  setResponse(async () => 204)
  response.reject(new ApiError('box_unreachable'))
  await waitForLast({ KEY: 'c' })
  t.equal(sent.length, 2)

  setResponse(() => Promise.reject(new ApiError('box_unreachable')))
  await setEnv({})
  await waitForLast({})
  setResponse(async () => 204)
  const { length } = sent
  connect()
  await waitUntil('the variables are sent again', () => sent.length > length)
  await waitForLast({})
})

t.test('what the agent needs for secrets, and the result of its test', async (t) => {
  const { connect, disconnect, setBroker, setResponse, sender, events, id, brokers, recordChange } =
    await setUp(t, {})
  const settings = { certificate: 'pem', hosts: ['api.example.com'] }
  const UNKNOWN = { state: 'unknown', message: null, checkedAt: null }
  const change = async () => {
    await recordChange()
    await sender.whenSent(id)
    return sender.getBrokerTest(id)
  }
  const ready = '{"broker":{"state":"ready","message":null}}'
  t.same(await change(), UNKNOWN, 'no agent is connected')
  setBroker(settings, ready)
  connect()
  await sender.whenSent(id)
  t.same(brokers, [settings])
  t.same(sender.getBrokerTest(id), { state: 'ready', message: null, checkedAt: '2030-01-01T00:00:00.000Z' })
  setBroker(settings, '{"broker":{"state":"failed","message":"no route"}}')
  t.match(await change(), { state: 'failed', message: 'no route' })
  for (const text of ['', 'text', '{}', '{"broker":null}', '{"broker":{"state":"other","message":null}}']) {
    setBroker(settings, text)
    t.same(await change(), UNKNOWN, text)
  }
  setBroker(settings, ready)
  t.match(await change(), { state: 'ready' })
  setResponse(async () => 404)
  t.same(await change(), UNKNOWN, 'the agent has refused them')
  setResponse(async () => 204)
  t.match(await change(), { state: 'ready' })
  setResponse(() => Promise.reject(new ApiError('box_unreachable')))
  t.same(await change(), UNKNOWN, 'the request has failed')
  setResponse(async () => 204)
  t.match(await change(), { state: 'ready' })
  disconnect()
  events.emit('disconnected', id, 'closed')
  t.same(sender.getBrokerTest(id), UNKNOWN)
  setBroker(null, ready)
  connect()
  await sender.whenSent(id)
  t.same([brokers.at(-1), sender.getBrokerTest(id)], [null, UNKNOWN], 'no secret is mounted')
})
