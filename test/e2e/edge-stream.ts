// Spec §4.14: the output stream of a detached command, over HTTP from a real box.
import t from 'tap'
import type { Session } from '../../coordinator/agents/tunnel/session.ts'
import { isNativeRunner } from '../agent/exec/detached/support.ts'
import { DEADLINE_MS, waitUntil } from '../support/wait-until.ts'
import {
  collectBytes,
  collectText,
  openStream,
  type StreamEvent,
  type StreamReader,
} from './edge-stream-reader.ts'
import { sharedCoordinator } from './shared-coordinator.ts'

const parseOffsets = ({ id }: StreamEvent) => id.split(':').map(Number)
const waitForStdout = (reader: StreamReader, text: string) =>
  waitUntil(`stdout is ${JSON.stringify(text)}`, () => collectText(reader.events, 'stdout') === text)

t.test('follows a detached command', async (t) => {
  const coordinator = sharedCoordinator
  const { box, boxRequest, exec, send, url, key } = coordinator
  const authorization = `Bearer ${key}`
  const start = async (command: string): Promise<string> =>
    (await boxRequest('POST', '/exec', { command, detached: true })).json.processId
  const pathOf = (id: string, query = '') => `/v1/box/${box.hostname}/exec/${id}/stream${query}`
  const open = (id: string, query = '', headers = {}) =>
    openStream(url + pathOf(id, query), { authorization, ...headers })
  const readToEnd = async (id: string, query = '', headers = {}) => (await open(id, query, headers)).ended

  await t.test('sends attached first, output when it is written, and exit last', async (t) => {
    const id = await start('mkfifo go; echo one; echo err >&2; cat go; exit 3')
    const reader = await open(id)
    t.match(reader.response.headers, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' })
    await waitForStdout(reader, 'one\n')
    await waitUntil('stderr has arrived', () => collectText(reader.events, 'stderr') === 'err\n')
    t.match(reader.events[0], {
      event: 'attached',
      id: '0:0',
      data: { processId: id, stdoutOffset: 0, stderrOffset: 0 },
    })
    await exec('echo two > go')
    const events = await reader.ended
    t.equal(collectText(events, 'stdout'), 'one\ntwo\n')
    t.same(events.at(-1), {
      event: 'exit',
      id: '8:4',
      data: {
        status: 'exited',
        exitCode: 3,
        signal: null,
        timedOut: false,
        stdoutOffset: 8,
        stderrOffset: 4,
      },
    })
    for (const event of events) {
      const [stdout, stderr] = parseOffsets(event)
      if (event.event === 'stdout') t.equal(event.data.nextOffset, stdout)
      if (event.event === 'stderr') t.equal(event.data.nextOffset, stderr)
    }
  })

  const skipTimes = !isNativeRunner && 'the shell runner records times once a second'
  await t.test('timestamps=1 and since: when the output was written', { skip: skipTimes }, async (t) => {
    const startedAt = Date.now()
    const id = await start('mkfifo times; echo one; cat times; exit 3')
    const reader = await open(id, '?timestamps=1')
    await waitForStdout(reader, 'one\n')
    const getOutput = () => reader.events.filter(({ event }) => event === 'stdout')
    t.match(reader.events[0], { event: 'attached', data: { hasTimes: true } })
    const firstAt = Date.parse(getOutput()[0]?.data.at)
    t.ok(firstAt >= startedAt && firstAt <= Date.now(), getOutput()[0]?.data.at)
    await waitUntil('the next record', () => Date.now() > firstAt + 200)
    await exec('echo two > times')
    await reader.ended
    const [one, two] = getOutput().map(({ data }) => data)
    t.match([one, two], [{ data: 'one\n' }, { data: 'two\n' }])
    t.ok(Date.parse(two.at) > firstAt + 200, two.at)
    const since = encodeURIComponent(new Date(firstAt + 150).toISOString())
    const events = await readToEnd(id, `?since=${since}`)
    t.match(events[0], { event: 'attached', id: '4:0', data: { hasTimes: true } })
    t.equal(collectText(events, 'stdout'), 'two\n')
    t.notOk(events.some(({ data }) => 'at' in data))
    const resumed = await readToEnd(id, `?since=${since}`, { 'last-event-id': '6:0' })
    t.equal(collectText(resumed, 'stdout'), 'o\n')
    const none = await readToEnd(id, '?since=2100-01-01T00%3A00%3A00Z')
    t.equal(collectText(none, 'stdout'), '')
    await t.rejects(open(id, '?since=yesterday'), /400: .*since/)
  })

  await t.test('base64 is byte-exact, with contiguous offsets', async (t) => {
    const id = await start(`head -c 3000000 /dev/urandom | tee copy; printf '\\377\\000' >&2`)
    const events = await readToEnd(id, '?encoding=base64')
    const bytes = collectBytes(events, 'stdout')
    t.equal(bytes.length, 3_000_000)
    const copy = await fetch(`${url}/v1/box/${box.hostname}/download?path=copy`, {
      headers: { authorization },
    })
    t.ok(bytes.equals(Buffer.from(await copy.arrayBuffer())))
    t.same(collectBytes(events, 'stderr'), Buffer.of(0xff, 0))
    let offset = 0
    for (const { event, data } of events) {
      if (event !== 'stdout') continue
      if (data.offset !== offset) t.fail(`continues at ${data.offset}, not at ${offset}`)
      offset = data.nextOffset
    }
  })

  await t.test('utf8 splits no character, and replaces invalid bytes with U+FFFD', async (t) => {
    const id = await start(`printf 'a\\360\\237'; sleep 0.3; printf '\\246\\200\\377b'`)
    const events = await readToEnd(id)
    t.equal(collectText(events, 'stdout'), 'a\u{1f980}\ufffdb')
    t.equal(events.at(-1)?.id, '7:0', 'offsets count bytes')
  })

  await t.test('starts at the offsets, or at Last-Event-ID, which takes precedence', async (t) => {
    const id = await start('printf 0123456789; printf abcdefghij >&2')
    await readToEnd(id)
    const fromOffsets = await readToEnd(id, '?stdoutOffset=4&stderrOffset=7')
    t.match(fromOffsets[0], {
      event: 'attached',
      id: '4:7',
      data: { stdoutOffset: 4, stderrOffset: 7 },
    })
    t.equal(collectText(fromOffsets, 'stdout') + collectText(fromOffsets, 'stderr'), '456789hij')
    const fromId = await readToEnd(id, '?stdoutOffset=1', { 'last-event-id': '9:10' })
    t.same(
      fromId.map(({ event, id }) => [event, id]),
      [
        ['attached', '9:10'],
        ['stdout', '10:10'],
        ['exit', '10:10'],
      ],
    )
    for (const [streams, stdout, stderr] of [
      ['stdout', '0123456789', ''],
      ['stderr', '', 'abcdefghij'],
      ['both', '0123456789', 'abcdefghij'],
      ['stdout,stderr', '0123456789', 'abcdefghij'],
    ] as const) {
      const events = await readToEnd(id, `?streams=${streams}`)
      t.same([collectText(events, 'stdout'), collectText(events, 'stderr')], [stdout, stderr], streams)
    }
  })

  await t.test('the exit event has the signal', async (t) => {
    t.match((await readToEnd(await start('kill -9 $$'))).at(-1), {
      event: 'exit',
      data: isNativeRunner
        ? { status: 'killed', exitCode: null, signal: 'KILL' }
        : { status: 'exited', exitCode: 128 + 9, signal: null },
    })
    const running = await open(await start('sleep 65'))
    await waitUntil('the stream is attached', () => running.events.length > 0)
    await boxRequest('DELETE', `/exec/${running.events[0]?.data.processId}`)
    t.match((await running.ended).at(-1), { event: 'exit', data: { status: 'killed', signal: 'TERM' } })
  })

  await t.test('rejects each kind of invalid request with its code, before a stream is opened', async (t) => {
    const id = await start('true')
    for (const [query, headers] of [
      ['?stdoutOffset=-1', {}],
      ['?stderrOffset=x', {}],
      ['?streams=stdin', {}],
      ['?encoding=latin1', {}],
      ['', { 'last-event-id': '5' }],
    ] as const)
      t.match(await send('GET', pathOf(id, query), undefined, { headers }), {
        status: 400,
        json: { ok: false, error: { code: 'invalid_request' } },
      })
    t.match(await send('GET', pathOf('p_000000000000000000000000')), {
      status: 404,
      json: { ok: false, error: { code: 'not_found' } },
    })
    t.match(await send('POST', pathOf(id), {}), {
      status: 405,
      json: { error: { code: 'method_not_allowed' } },
    })
    t.match(await send('GET', pathOf(id), undefined, { key: null }), {
      status: 401,
      json: { error: { code: 'unauthorized' } },
    })
  })

  await t.test('a client that disconnects releases its slot', async (t) => {
    const { limiter } = coordinator.instance.context.edge
    const reader = await open(await start('sleep 66'))
    t.equal(limiter.acquiredCount(), 1)
    reader.response.socket.destroy()
    await waitUntil('the slot is released', () => limiter.acquiredCount() === 0)
  })

  await t.test('a stream continues while its tunnel reconnects', async (t) => {
    const { agentConnections } = coordinator.instance.context
    const id = await start('mkfifo continue; echo here; cat continue')
    const reader = await open(id)
    await waitForStdout(reader, 'here\n')
    const session = agentConnections.current(box.id) as Session
    session.destroy('disconnected by the test')
    await session.closed
    await agentConnections.wait(box.id, DEADLINE_MS)
    await exec('echo there > continue')
    t.match(await reader.ended, [
      { event: 'attached' },
      { event: 'stdout', data: { data: 'here\n' } },
      { event: 'stdout', id: '11:0', data: { data: 'there\n' } },
      { event: 'exit', id: '11:0', data: { status: 'exited', exitCode: 0 } },
    ])
  })

  await t.test('a disconnected box ends the stream with an error; its id resumes the stream', async (t) => {
    const id = await start('mkfifo resume; echo here; cat resume')
    const reader = await open(id)
    await waitForStdout(reader, 'here\n')
    coordinator.instance.context.agentConnections.disconnect(box.id, 'disconnected by the test')
    const last = (await reader.ended).at(-1)
    t.match(last, { event: 'error', id: '5:0', data: { code: 'box_unreachable' } })
    const resumed = await open(id, '', { 'last-event-id': last?.id })
    await exec('echo there > resume')
    t.match(await resumed.ended, [
      { event: 'attached', id: '5:0' },
      { event: 'stdout', id: '11:0', data: { data: 'there\n', offset: 5 } },
      { event: 'exit', id: '11:0', data: { status: 'exited', exitCode: 0 } },
    ])
  })
})
