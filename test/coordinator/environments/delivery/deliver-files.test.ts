// The secret files of an environment reach a box once per version, also after failures of the agent and of the coordinator.
import t, { type Test } from 'tap'
import { createFileDelivery } from '../../../../coordinator/environments/delivery/deliver-files.ts'
import { ApiError } from '../../../../shared/errors.ts'
import { silentLog } from '../../../support/tunnel.ts'
import { createTestClock } from '../../../support/workspace.ts'
import { createBoxWithEnvironment } from './support.ts'

const { signal } = new AbortController()
const base64 = (text: string) => Buffer.from(text).toString('base64')
const file = (path: string, content: string) => ({ path, mode: '0600', contentBase64: base64(content) })

async function setUp(t: Test) {
  const box = await createBoxWithEnvironment(t)
  const deliver = createFileDelivery({ ...box, clock: createTestClock(), log: silentLog })
  return { ...box, deliver: () => deliver(box.id, signal) }
}

t.test('writes the files of each version once, and removes those that are gone', async (t) => {
  const { pin, connect, deliver, calls, readBox, listReasons } = await setUp(t)
  connect()
  await deliver()
  t.same(calls, [], 'a box without an environment')
  await pin(1, { '~/a': '1', '~/b': '1' })
  await Promise.all([deliver(), deliver()])
  t.same(calls, [
    { path: 'PUT /environment-files', body: { write: [file('~/a', '1'), file('~/b', '1')], remove: [] } },
  ])
  t.equal((await readBox()).applied_version_no, 1)
  await pin(2, { '~/b': '2' })
  await deliver()
  t.same(calls[1]?.body, { write: [file('~/b', '2')], remove: ['~/a'] })
  await pin(3, {})
  await deliver()
  t.same(calls[2]?.body, { write: [], remove: ['~/b'] })
  await pin(4, {})
  await deliver()
  t.equal(calls.length, 3, 'a version without files needs no request')
  t.equal((await readBox()).applied_version_no, 4)
  t.same(await listReasons(), [])
})

t.test('a version that is pinned during a delivery is written too', async (t) => {
  const { pin, connect, deliver, calls, setResponse, readBox } = await setUp(t)
  connect()
  await pin(1, { '~/a': '1' })
  setResponse(async () => {
    if (calls.length === 1) await pin(2, { '~/b': '2' })
    return { status: 200, body: { failed: [] } }
  })
  await deliver()
  t.same(calls[1]?.body, { write: [file('~/b', '2')], remove: ['~/a'] })
  t.equal((await readBox()).applied_version_no, 2)
})

t.test('a restricted box gets no files, and loses those that it has', async (t) => {
  const { pin, connect, deliver, calls, setResponse, change, readBox } = await setUp(t)
  connect()
  await pin(1, { '~/a': '1' })
  await change({ restricted: 1 })
  await deliver()
  t.same(calls[0]?.body, { write: [], remove: ['~/a'] }, 'they may be in its snapshot')

  await change({ restricted: 0, applied_version_no: null })
  setResponse(async () => {
    // The box becomes restricted while the files are written.
    if (calls.length === 2) await change({ restricted: 1, applied_version_no: null })
    return { status: 200, body: { failed: [] } }
  })
  await deliver()
  t.same(
    calls.slice(1).map(({ body }) => body),
    [
      { write: [file('~/a', '1')], remove: [] },
      { write: [], remove: ['~/a'] },
    ],
  )
  t.equal((await readBox()).applied_version_no, 1)
})

t.test('a copy of a box loses the files of another environment', async (t) => {
  const { pin, connect, deliver, calls, change, readBox } = await setUp(t)
  connect()
  await change({ stale_files: '["~/a","~/b"]' })
  await deliver()
  t.same(calls[0]?.body, { write: [], remove: ['~/a', '~/b'] }, 'the box has no environment')
  await deliver()
  await change({ stale_files: '["~/a","~/b"]' })
  await pin(1, { '~/b': '1' })
  await deliver()
  t.same(calls[1]?.body, { write: [file('~/b', '1')], remove: ['~/a'] })
  await change({ stale_files: '["~/a"]', restricted: 1, applied_version_no: null })
  await deliver()
  t.same(calls[2]?.body, { write: [], remove: ['~/a', '~/b'] })
  t.match(await readBox(), { stale_files: '[]', applied_version_no: 1 })
  t.equal(calls.length, 3)
})

t.test('an agent that does not respond gets the files later', async (t) => {
  const { pin, connect, deliver, calls, setResponse, readBox, listReasons } = await setUp(t)
  await pin(1, { '~/a': '1' })
  await t.rejects(deliver(), { code: 'box_unreachable' })
  connect()
  setResponse(() => Promise.reject(new ApiError('box_unreachable')))
  await t.rejects(deliver(), { code: 'box_unreachable' })
  t.equal((await readBox()).applied_version_no, null)
  setResponse(async () => ({ status: 200, body: { failed: [] } }))
  await deliver()
  t.equal(calls.length, 2)
  t.equal((await readBox()).applied_version_no, 1)
  t.same(await listReasons(), [])
})

t.test('an event says which files could not be written', async (t) => {
  const { pin, connect, deliver, setResponse, readBox, listReasons, environments } = await setUp(t)
  connect()
  const failures: [response: { status: number; body?: unknown }, reason: RegExp][] = [
    [
      { status: 200, body: { failed: [{ path: '~/a', message: '~/a: permission denied.' }] } },
      /^a file of the environment could not be written or removed: ~\/a: permission denied$/,
    ],
    [{ status: 500 }, /^a file .*: ~\/a: the agent has responded with 500$/],
    [{ status: 200, body: { failed: 'many' } }, /^a file .*: ~\/a: the agent has responded with 200$/],
    [
      { status: 200, body: { failed: Array(64).fill({ path: '~/a', message: 'x\u001b[31m\n' }) } },
      /^64 files .{400,}…$/,
    ],
  ]
  let version = 0
  for (const [response, reason] of failures) {
    setResponse(async () => response)
    await pin(++version, { '~/a': String(version) })
    await deliver()
    const reasons = await listReasons()
    t.equal(reasons.length, version)
    t.match(reasons.at(-1), reason)
    t.notMatch(reasons.at(-1), /\p{Cc}/u)
    t.equal((await readBox()).applied_version_no, version, 'the box is not stopped by it')
  }
  environments.openFiles = () => Promise.reject(new Error('The master key is missing.'))
  await pin(++version, { '~/a': 'x' })
  await deliver()
  t.match((await listReasons()).at(-1), /could not be decrypted/)
})
