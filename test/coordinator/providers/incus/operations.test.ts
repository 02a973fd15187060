// Waiting for operations, without a server.
import t from 'tap'
import type { Operation } from '../../../../coordinator/providers/incus/api.ts'
import { IncusOperations } from '../../../../coordinator/providers/incus/operations.ts'

const createOperation = (id: string, fields: Partial<Operation> = {}): Operation => ({
  id,
  created_at: '2026-01-01T00:00:00Z',
  status_code: 103,
  resources: { instances: ['/1.0/instances/box'] },
  metadata: null,
  err: '',
  ...fields,
})

/** @param server the operations that the server has */
function createOperations(server: Map<string, Operation>) {
  const operations = new IncusOperations({
    load: async (id) => server.get(id) ?? null,
    loadRunning: async () => [...server.values()].filter(({ status_code }) => status_code < 200),
  })
  t.teardown(() => operations.close())
  return operations
}

const running = createOperation('op')
const success = createOperation('op', { status_code: 200 })

t.test('an end that arrives before the response is not missed', async (t) => {
  const operations = createOperations(new Map())
  operations.update(success)
  t.equal(await operations.wait(running), success)
})

t.test('progress and the end are reported', async (t) => {
  const operations = createOperations(new Map())
  const progress: unknown[] = []
  const ended = operations.wait(running, undefined, ({ metadata }) => progress.push(metadata))
  operations.update(createOperation('op', { metadata: { percent: '50' } }))
  operations.update(createOperation('other', { status_code: 200 }))
  operations.update(success)
  t.equal(await ended, success)
  t.same(progress, [{ percent: '50' }])
})

t.test('an operation that ended while the connection was lost', async (t) => {
  const server = new Map([['op', success]])
  const operations = createOperations(server)
  const ended = operations.wait(running)
  await operations.resume()
  t.equal(await ended, success)
  const lost = operations.wait(createOperation('lost'))
  await Promise.all([t.rejects(lost, { message: /restarted while it worked/ }), operations.resume()])
})

t.test('a server that cannot be reached ends the waiting calls', async (t) => {
  const operations = createOperations(new Map())
  const failure = new Error('down')
  const calls = [operations.wait(running), operations.wait(createOperation('other'))]
  operations.fail(failure)
  for (const call of calls) await t.rejects(call, failure)
})

t.test('an aborted call leaves its operation, for which the next call waits', async (t) => {
  const server = new Map([['op', running]])
  const operations = createOperations(server)
  const abort = new AbortController()
  const call = operations.wait(running, abort.signal)
  abort.abort(new Error('aborted'))
  await t.rejects(call, { message: 'aborted' })
  t.ok(operations.hasOrphan('box'))
  t.notOk(operations.hasOrphan('other'))
  let isSettled = false
  const settled = operations.settle('box').then(() => {
    isSettled = true
  })
  await new Promise(setImmediate)
  t.notOk(isSettled)
  operations.update(success)
  await settled
  t.notOk(operations.hasOrphan('box'))
})

t.test('operations of an earlier process are found by their instance', async (t) => {
  const server = new Map([['op', running]])
  const operations = createOperations(server)
  await operations.resume()
  t.ok(operations.hasOrphan('box'))
  server.set('op', success)
  await operations.settle('box')
  t.notOk(operations.hasOrphan('box'))
})
