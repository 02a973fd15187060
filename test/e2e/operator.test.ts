// Operators add credit, pause workspaces and check the ledger, over HTTP and with the `boxwood` command.
import t, { type Test } from 'tap'
import { createProgram } from '../../coordinator/server/command-line/program.ts'
import { startTestCoordinator, type TestCoordinator } from '../support/coordinator.ts'
import { DEADLINE_MS, waitUntil } from '../support/wait-until.ts'
import { createCredentials } from './access/credentials.ts'

const BILLING = { BOXWOOD_BILLING: 'manual', BOXWOOD_FREE_CREDIT: '5.00' }

/** A coordinator with the workspace of a customer, whose owner has a key. */
async function startWithCustomer(t: Test, env: Record<string, string> = BILLING) {
  const coordinator = await startTestCoordinator(t, { env })
  const credentials = createCredentials(coordinator)
  const id = await credentials.addWorkspace('customer')
  const owner = await credentials.addUser(id, 'owner')
  const { key } = await credentials.addKey(owner)
  const { cookie } = await credentials.addSession(owner)
  const credit = (body: object) => coordinator.api('POST', `/operator/workspaces/${id}/credit`, body)
  const readKinds = async () => {
    const { json } = await coordinator.api(
      'GET',
      '/audit?kind=billing.credit,billing.hold,billing.release',
      undefined,
      {
        key,
      },
    )
    return json.events.map(({ kind }: { kind: string }) => kind).reverse()
  }
  return {
    ...coordinator,
    id,
    owner,
    key,
    customer: { key },
    session: { key: null, headers: { cookie } },
    credit,
    readKinds,
  }
}

t.test('a credit with a cause counts once, and the first payment ends the free credit', async (t) => {
  const { api, id, customer, credit, readKinds } = await startWithCustomer(t)
  const billing = async () => (await api('GET', '/me', undefined, customer)).json.billing
  t.match(await billing(), { balanceMicros: 5_000_000, trial: true })

  t.match((await credit({ amountUsd: 2, free: true })).json, { created: true, workspace: { trial: true } })
  const request = { amountUsd: 25.5, note: 'invoice 7', cause: 'invoice-7' }
  const answers = await Promise.all([credit(request), credit(request), credit(request)])
  t.same(answers.map(({ json }) => json.created).sort(), [false, false, true])
  t.match(await billing(), { balanceMicros: 32_500_000, trial: false })
  t.match((await credit({ ...request, amountUsd: 26 })).json, { error: 'idempotency_key_reused' })
  t.match((await credit({ amountUsd: -0.5 })).json.workspace, { id, balanceMicros: 32_000_000 })
  for (const amountUsd of [0, 1.001, 100_001, '1'])
    t.match((await credit({ amountUsd })).json, { error: 'bad_request' }, String(amountUsd))
  t.same(await readKinds(), ['billing.credit', 'billing.credit', 'billing.credit'])

  const check = await api('GET', '/operator/ledger-check')
  t.same(check.json, { workspaces: 2, differences: [] })
})

t.test('a pause suspends the boxes and refuses new ones, and a payment ends one for CPU', async (t) => {
  const { api, id, customer, credit, readKinds } = await startWithCustomer(t)
  const hold = (reason: string) => api('PUT', `/operator/workspaces/${id}/hold`, { reason })
  const create = (key = customer) => api('POST', '/boxes', { tier: 'nano' }, key)
  const box = (await create()).json.box.id
  const state = async () => (await api('GET', `/boxes/${box}`, undefined, customer)).json.box.observedState
  const wait = (wanted: string) => waitUntil(wanted, async () => (await state()) === wanted || undefined)
  await wait('running')

  t.match((await hold('mining')).json.workspace, { id, hold: 'mining' })
  await wait('suspended')
  t.match((await create()).json, { error: 'workspace_held' })
  t.match((await api('GET', '/me', undefined, customer)).json.billing, { hold: 'mining' })
  t.match((await api('POST', `/boxes/${box}/wake`, undefined, customer)).json, { error: 'workspace_held' })
  t.equal((await credit({ amountUsd: 5 })).json.workspace.hold, 'mining')
  t.equal((await api('DELETE', `/operator/workspaces/${id}/hold`)).status, 204)
  t.equal((await api('DELETE', `/operator/workspaces/${id}/hold`)).status, 204)
  t.equal((await api('POST', `/boxes/${box}/wake`, undefined, customer)).status, 202)
  await wait('running')

  await hold('cpu')
  t.equal((await credit({ amountUsd: 5 })).json.workspace.hold, null)
  t.same(await readKinds(), [
    'billing.hold',
    'billing.credit',
    'billing.release',
    'billing.hold',
    'billing.release',
    'billing.credit',
  ])
})

t.test('only operators may use the routes, and only with billing', async (t) => {
  const requests = (id: string): [method: string, path: string, body?: object][] => [
    ['GET', '/operator/workspaces'],
    ['POST', `/operator/workspaces/${id}/credit`, { amountUsd: 1 }],
    ['PUT', `/operator/workspaces/${id}/hold`, { reason: 'cpu' }],
    ['DELETE', `/operator/workspaces/${id}/hold`],
    ['GET', '/operator/ledger-check'],
  ]
  const { api, id, customer, session } = await startWithCustomer(t)
  for (const [method, path, body] of requests(id)) {
    t.match((await api(method, path, body, customer)).json, { error: 'unauthorized' }, `${method} ${path}`)
    t.match((await api(method, path, body, session)).json, { error: 'not_owner' }, `${method} ${path}`)
  }
  for (const [method, path, body] of requests('ws_000000000000000000000000').slice(1, 4))
    t.match((await api(method, path, body)).json, { error: 'not_found' }, `${method} ${path}`)
  t.match((await api('GET', '/operator/ledger-check?workspace=ws_1')).json, { error: 'not_found' })
  t.match((await api('GET', '/operator/workspaces?before=x')).json, { error: 'invalid_cursor' })
  t.match((await api('PUT', `/operator/workspaces/${id}/hold`, { reason: 'other' })).status, 400)

  const first = (await api('GET', '/operator/workspaces?limit=1')).json
  t.match(first.workspaces, [{ id, name: 'customer', hold: null, flaggedAt: null, trial: true }])
  const second = (await api('GET', `/operator/workspaces?limit=1&before=${first.nextBefore}`)).json
  t.equal(second.workspaces.length, 1)
  t.equal(second.nextBefore, null)

  const off = await startWithCustomer(t, {})
  for (const [method, path, body] of requests(off.id))
    t.match((await off.api(method, path, body)).json, { error: 'bad_request' }, `${method} ${path}`)
})

/** Runs `boxwood` on the data directory, and returns its output. */
async function runBoxwood(t: Test, { dataDir }: Pick<TestCoordinator, 'dataDir'>, ...args: string[]) {
  const { BOXWOOD_DATA } = process.env
  process.env.BOXWOOD_DATA = dataDir
  const output = t.capture(process.stdout, 'write', () => true)
  try {
    await createProgram(AbortSignal.timeout(DEADLINE_MS)).parseAsync(args, { from: 'user' })
  } finally {
    output.restore()
    if (BOXWOOD_DATA === undefined) delete process.env.BOXWOOD_DATA
    else process.env.BOXWOOD_DATA = BOXWOOD_DATA
  }
  return output()
    .map(({ args: [text] }) => String(text))
    .join('')
}

t.test('the boxwood command of the operator', async (t) => {
  const coordinator = await startWithCustomer(t)
  const { id, owner, instance } = coordinator
  const run = (...args: string[]) => runBoxwood(t, coordinator, ...args)
  t.match(
    await run('credit', id, '25.00', '--note', 'paid', '--cause', 'a'),
    'The balance of customer is $30.00.',
  )
  t.match(await run('credit', 'customer', '25', '--cause', 'a'), 'was added before')
  t.match(await run('credit', owner.email, '-1.50', '--free'), '$28.50')
  t.match(await run('hold', 'customer', 'mining'), 'is paused')
  t.match(await run('workspaces'), new RegExp(`${id} +\\$28\\.50 .*customer.*paused for mining`))
  t.match(await run('release', id), 'is not paused any more')
  t.match(await run('ledger', 'check'), 'Checked 2 workspaces: 0 differences.')
  const { db } = instance.context
  await db.updateTable('billing_accounts').set({ balance_micros: 1 }).where('workspace_id', '=', id).execute()
  t.match(await run('ledger', 'check', 'customer'), `${id} balance: stored 1, by the entries 28500000`)
  t.equal(process.exitCode, 1)
  process.exitCode = 0

  await t.rejects(run('credit', 'nobody', '1'), /There is no workspace/)
  await t.rejects(run('credit', id, '1.001'), /amount in dollars/)
  await coordinator.close()
  await t.rejects(run('workspaces'), /No coordinator uses the data directory/)
})
