// The stream route with real processes: frames go to the stream dialer, errors into the response.
import t from 'tap'
import type { StreamDialer } from '../../../../agent/tunnel/stream-dialer.ts'
import { DIAL_BACK_HEADER } from '../../../../shared/protocol.ts'
import type { StreamFrame } from '../../../../shared/stream-frames.ts'
import { waitUntil } from '../../../support/wait-until.ts'
import { createAgent } from '../detached/support.ts'
import { collect, countWatchers, joinOutput } from './support.ts'

/** Collects the frames of each dial-back connection; close() aborts them. */
function createFakeDialer() {
  const connections = new Map<string, Promise<StreamFrame[]>>()
  const closing = new AbortController()
  const dialer: StreamDialer = {
    async send(id, open) {
      const frames = collect(open(closing.signal))
      connections.set(id, frames)
      await frames
    },
    close: () => closing.abort(),
  }
  return { dialer, connections }
}

async function setUp(t: Parameters<typeof createAgent>[0]) {
  const { dialer, connections } = createFakeDialer()
  const opened = await createAgent(t, { streamDialer: dialer })
  let count = 0
  const request = (processId: string, query = '', headers: Record<string, string> = {}) => {
    const id = `connection-${count++}`
    const path = `/exec/${processId}/stream${query}`
    return opened.request({ path, headers: { [DIAL_BACK_HEADER]: id, ...headers } })
  }
  return {
    ...opened,
    dialer,
    connections,
    request,
    requestRoute: opened.request,
    async readFrames(processId: string, query?: string, headers?: Record<string, string>) {
      const response = await request(processId, query, headers)
      t.same(response, { status: 200, text: '' })
      return (await connections.get(`connection-${count - 1}`)) ?? []
    },
  }
}

t.test('streams a process from its first byte to its exit', async (t) => {
  const { start, readFrames } = await setUp(t)
  const { processId } = await start('for i in 1 2 3 4 5; do echo $i; echo e$i >&2; sleep 0.02; done; exit 7')
  const frames = await readFrames(processId)
  t.equal(joinOutput(frames, 'stdout').text, '1\n2\n3\n4\n5\n')
  t.equal(joinOutput(frames, 'stderr').text, 'e1\ne2\ne3\ne4\ne5\n')
  t.match(frames[0], { event: 'attached', processId })
  const position = { stdoutOffset: 10, stderrOffset: 15 }
  t.match(frames.at(-1), { event: 'exit', ...position, status: 'exited', exitCode: 7, signal: null })
})

t.test('resumes by offsets, and by Last-Event-ID, which overrides them', async (t) => {
  const { start, waitForExit, readFrames } = await setUp(t)
  const { processId } = await start('printf 0123456789; printf abcdef >&2')
  await waitForExit(processId)
  t.match(await readFrames(processId, '?stdoutOffset=8&stderrOffset=5'), [
    { event: 'attached', stdoutOffset: 8, stderrOffset: 5 },
    { event: 'stdout', bytes: Buffer.from('89') },
    { event: 'stderr', bytes: Buffer.from('f') },
    { event: 'exit' },
  ])
  t.match(await readFrames(processId, '?stdoutOffset=1', { 'last-event-id': '9:6' }), [
    { event: 'attached', stdoutOffset: 9, stderrOffset: 6 },
    { event: 'stdout', bytes: Buffer.from('9') },
    { event: 'exit' },
  ])
  t.match(await readFrames(processId, '?streams=stdout', { 'last-event-id': '7:0' }), [
    { event: 'attached', stdoutOffset: 7, stderrOffset: 0 },
    { event: 'stdout', bytes: Buffer.from('789') },
    { event: 'exit', stdoutOffset: 10, stderrOffset: 0 },
  ])
})

t.test('rejects invalid requests in the response, without opening a connection', async (t) => {
  const { start, request, requestRoute, connections } = await setUp(t)
  const { processId } = await start('true')
  const getErrorCode = async (response: ReturnType<typeof request>) =>
    JSON.parse((await response).text).error.code
  for (const query of [
    'stdoutOffset=-1',
    'stdoutOffset=',
    'stderrOffset=1e3',
    'streams=none',
    'encoding=latin1',
  ])
    t.equal(await getErrorCode(request(processId, `?${query}`)), 'invalid_request', query)
  for (const id of ['5', '1:', 'a:b', '1:2:3', '1234567890123456:0'])
    t.equal(await getErrorCode(request(processId, '', { 'last-event-id': id })), 'invalid_request', id)
  t.equal(await getErrorCode(request('p_0123456789abcdef01234567')), 'not_found')
  t.equal(
    await getErrorCode(requestRoute({ path: `/exec/${processId}/stream` })),
    'invalid_request',
    'no dial-back id',
  )
  t.equal(connections.size, 0)
})

t.test('a closed connection ends its stream', async (t) => {
  const { start, getProcess, request, dialer, connections } = await setUp(t)
  const { processId } = await start('sleep 64')
  const watchers = countWatchers(getProcess(processId).logs.stdout)
  await request(processId)
  await waitUntil('the stream waits for output', () => watchers() === 1)
  dialer.close()
  t.match(await Promise.all(connections.values()), [[{ event: 'attached' }]])
  t.equal(watchers(), 0)
})
