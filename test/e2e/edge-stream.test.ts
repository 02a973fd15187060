// Spec §4.14, the stream: what a detached command prints, over real HTTP from a real box.
import t from 'tap'
import type { Session } from '../../coordinator/tunnel/session.ts'
import { edgeBox } from './edge-box.ts'
import { bytesOf, openStream, type StreamEvent, textOf } from './edge-stream-reader.ts'

const offsetsOf = ({ id }: StreamEvent) => id.split(':').map(Number)

t.test('a command followed from its start to its end', async (t) => {
  const box = await edgeBox(t)
  const { ask, url, key } = box
  const authorization = `Bearer ${key}`
  const start = async (command: string): Promise<string> =>
    (await ask('POST', '/exec', { command, detached: true })).json.processId
  const at = (id: string, query = '') => `${url}/v1/box/${box.box.hostname}/exec/${id}/stream${query}`
  const open = (id: string, query = '', headers = {}) =>
    openStream(at(id, query), { authorization, ...headers })
  const follow = async (id: string, query = '', headers = {}) => (await open(id, query, headers)).ended

  await t.test('while it runs: attached first, output as it comes, exit last', async (t) => {
    const id = await start('mkfifo go; echo one; echo err >&2; cat go; exit 3')
    const reader = await open(id)
    t.match(reader.response.headers, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' })
    await until(
      () => textOf(reader.events, 'stdout') === 'one\n' && textOf(reader.events, 'stderr') === 'err\n',
    )
    t.match(reader.events[0], {
      event: 'attached',
      id: '0:0',
      data: { processId: id, stdoutOffset: 0, stderrOffset: 0 },
    })
    await ask('POST', '/exec', { command: 'echo two > go' })
    const events = await reader.ended
    t.equal(textOf(events, 'stdout'), 'one\ntwo\n')
    t.same(events.at(-1), {
      event: 'exit',
      id: '8:4',
      data: { status: 'exited', exitCode: 3, signal: null, stdoutOffset: 8, stderrOffset: 4 },
    })
    for (const event of events) {
      const [stdout, stderr] = offsetsOf(event)
      if (event.event === 'stdout') t.equal(event.data.nextOffset, stdout)
      if (event.event === 'stderr') t.equal(event.data.nextOffset, stderr)
    }
  })

  await t.test('base64 is exact, and every event goes on where the one before ended', async (t) => {
    const id = await start(`head -c 3000000 /dev/urandom | tee copy; printf '\\377\\000' >&2`)
    const events = await follow(id, '?encoding=base64')
    const bytes = bytesOf(events, 'stdout')
    t.equal(bytes.length, 3_000_000)
    t.ok(
      bytes.equals(
        Buffer.from(
          await (
            await fetch(`${url}/v1/box/${box.box.hostname}/download?path=copy`, {
              headers: { authorization },
            })
          ).arrayBuffer(),
        ),
      ),
    )
    t.same(bytesOf(events, 'stderr'), Buffer.of(0xff, 0))
    let at = 0
    for (const { event, data } of events) {
      if (event !== 'stdout') continue
      if (data.offset !== at) t.fail(`goes on at ${data.offset}, not ${at}`)
      at = data.nextOffset
    }
  })

  await t.test('utf8 halves no character, and bad bytes become U+FFFD', async (t) => {
    const id = await start(`printf 'a\\360\\237'; sleep 0.3; printf '\\246\\200\\377b'`)
    const events = await follow(id)
    t.equal(textOf(events, 'stdout'), 'a\u{1f980}\ufffdb')
    t.equal(events.at(-1)?.id, '7:0', 'offsets count bytes')
  })

  await t.test('offsets, Last-Event-ID, which wins, and streams', async (t) => {
    const id = await start('printf 0123456789; printf abcdefghij >&2')
    await follow(id)
    const from = await follow(id, '?stdoutOffset=4&stderrOffset=7')
    t.match(from[0], { event: 'attached', id: '4:7', data: { stdoutOffset: 4, stderrOffset: 7 } })
    t.equal(textOf(from, 'stdout') + textOf(from, 'stderr'), '456789hij')
    const back = await follow(id, '?stdoutOffset=1', { 'last-event-id': '9:10' })
    t.same(
      back.map(({ event, id }) => [event, id]),
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
      const events = await follow(id, `?streams=${streams}`)
      t.same([textOf(events, 'stdout'), textOf(events, 'stderr')], [stdout, stderr], streams)
    }
  })

  await t.test('how it ended', async (t) => {
    t.match((await follow(await start('kill -9 $$'))).at(-1), {
      event: 'exit',
      data: { status: 'killed', exitCode: null, signal: 'KILL' },
    })
    const running = await open(await start('sleep 65'))
    await until(() => running.events.length > 0)
    await ask('DELETE', `/exec/${running.events[0]?.data.processId}`)
    t.match((await running.ended).at(-1), { event: 'exit', data: { status: 'killed', signal: 'TERM' } })
  })

  await t.test('each kind of bad request has its code, before a stream begins', async (t) => {
    const id = await start('true')
    for (const [query, headers] of [
      ['?stdoutOffset=-1', {}],
      ['?stderrOffset=x', {}],
      ['?streams=stdin', {}],
      ['?encoding=latin1', {}],
      ['', { 'last-event-id': '5' }],
    ] as const)
      t.match(await box.send('GET', at(id, query).slice(url.length), undefined, { headers }), {
        status: 400,
        json: { ok: false, error: { code: 'invalid_request' } },
      })
    t.match(await box.send('GET', at('p_000000000000000000000000').slice(url.length)), {
      status: 404,
      json: { ok: false, error: { code: 'not_found' } },
    })
    t.match(await box.send('POST', at(id).slice(url.length), {}), {
      status: 405,
      json: { error: { code: 'method_not_allowed' } },
    })
    t.match(await box.send('GET', at(id).slice(url.length), undefined, { key: null }), {
      status: 401,
      json: { error: { code: 'unauthorized' } },
    })
  })

  await t.test('a client that vanishes frees its slot', async (t) => {
    const { limiter } = box.coordinator.context.edge
    const reader = await open(await start('sleep 66'))
    t.equal(limiter.acquiredCount(), 1)
    reader.response.socket.destroy()
    await until(() => limiter.acquiredCount() === 0)
  })

  await t.test('a tunnel that has to be dialed again leaves the stream alone', async (t) => {
    const { hub } = box.coordinator.context
    const id = await start('mkfifo on; echo here; cat on')
    const reader = await open(id)
    await until(() => textOf(reader.events, 'stdout') === 'here\n')
    const cut = hub.current(box.box.id) as Session
    cut.destroy('the test cut it')
    await cut.closed
    await hub.wait(box.box.id, 20_000)
    await ask('POST', '/exec', { command: 'echo there > on' })
    t.match(await reader.ended, [
      { event: 'attached' },
      { event: 'stdout', data: { data: 'here\n' } },
      { event: 'stdout', id: '11:0', data: { data: 'there\n' } },
      { event: 'exit', id: '11:0', data: { status: 'exited', exitCode: 0 } },
    ])
  })

  await t.test('a box that is cut off ends the stream with an error, from whose id it goes on', async (t) => {
    const id = await start('mkfifo more; echo here; cat more')
    const reader = await open(id)
    await until(() => textOf(reader.events, 'stdout') === 'here\n')
    box.coordinator.context.hub.disconnect(box.box.id, 'the test cut it')
    const last = (await reader.ended).at(-1)
    t.match(last, { event: 'error', id: '5:0', data: { code: 'box_unreachable' } })
    const again = await open(id, '', { 'last-event-id': last?.id })
    await ask('POST', '/exec', { command: 'echo there > more' })
    t.match(await again.ended, [
      { event: 'attached', id: '5:0' },
      { event: 'stdout', id: '11:0', data: { data: 'there\n', offset: 5 } },
      { event: 'exit', id: '11:0', data: { status: 'exited', exitCode: 0 } },
    ])
  })
})

async function until(condition: () => boolean) {
  const deadline = performance.now() + 20_000
  while (!condition()) {
    if (performance.now() > deadline) throw new Error('not within 20 s')
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}
