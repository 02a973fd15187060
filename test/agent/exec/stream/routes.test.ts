// The stream of real processes, over the agent's own routes.
import { once } from 'node:events'
import { get } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import type { StreamDialer } from '../../../../agent/tunnel/stream-dialer.ts'
import { TRANSFER_HEADER } from '../../../../shared/protocol.ts'
import { agent } from '../detached/support.ts'
import { until } from '../exec-app.ts'
import { countWatches, eventReader, outputOf, parseEvents } from './support.ts'

const EVENTS = 'text/event-stream'

t.test('a process that writes as it goes, from its first byte to its exit', async (t) => {
  const { app, start } = await agent(t)
  const { processId } = await start('for i in 1 2 3 4 5; do echo $i; echo e$i >&2; sleep 0.02; done; exit 7')
  const answer = await app.inject(`/exec/${processId}/stream`)
  t.equal(answer.statusCode, 200)
  t.match(answer.headers['content-type'], EVENTS)
  const events = parseEvents(answer.body)
  t.equal(outputOf(events, 'stdout').text, '1\n2\n3\n4\n5\n')
  t.equal(outputOf(events, 'stderr').text, 'e1\ne2\ne3\ne4\ne5\n')
  t.match(events[0], { event: 'attached', data: { processId } })
  t.match(events.at(-1), {
    id: '10:15',
    event: 'exit',
    data: { status: 'exited', exitCode: 7, signal: null, stdoutOffset: 10, stderrOffset: 15 },
  })
})

t.test('a resume by offsets, and by Last-Event-ID, which wins', async (t) => {
  const { app, start, ended } = await agent(t)
  const { processId } = await start('printf 0123456789; printf abcdef >&2')
  await ended(processId)
  const events = async (query: string, id?: string) =>
    parseEvents(
      (
        await app.inject({
          url: `/exec/${processId}/stream${query}`,
          ...(id === undefined ? {} : { headers: { 'last-event-id': id } }),
        })
      ).body,
    )
  const byQuery = await events('?stdoutOffset=8&stderrOffset=5')
  t.match(byQuery, [
    { event: 'attached' },
    { data: { data: '89' } },
    { data: { data: 'f' } },
    { event: 'exit' },
  ])
  t.match(await events('?stdoutOffset=1', '9:6'), [
    { event: 'attached' },
    { data: { data: '9' } },
    { event: 'exit' },
  ])
  t.match(await events('?streams=stdout&encoding=base64', '7:0'), [
    { id: '7:0' },
    { event: 'stdout', data: { data: Buffer.from('789').toString('base64') } },
    { id: '10:0', event: 'exit' },
  ])
})

t.test('on a connection of its own, when it is offered one', async (t) => {
  const brought: string[] = []
  const whole = Promise.withResolvers<string>()
  const streams: StreamDialer = {
    async bring(id, open) {
      brought.push(id)
      const pushed: Buffer[] = []
      const source = open({
        push: (bytes) => pushed.push(bytes) > 0,
        end() {
          source.stop()
          whole.resolve(Buffer.concat(pushed).toString())
        },
      })
      source.more()
    },
    close: () => undefined,
  }
  const { app, start } = await agent(t, { streams })
  const { processId } = await start('printf 0123456789; exit 7')
  const answer = await app.inject({
    url: `/exec/${processId}/stream?streams=stdout`,
    headers: { [TRANSFER_HEADER]: 'abc', 'last-event-id': '7:0' },
  })
  t.match(answer, { statusCode: 200, body: '', headers: { [TRANSFER_HEADER]: 'abc' } })
  t.match(parseEvents(await whole.promise), [
    { event: 'attached', id: '7:0' },
    { data: { data: '789' } },
    { event: 'exit', id: '10:0' },
  ])

  const refused = await app.inject({
    url: '/exec/p_0123456789abcdef01234567/stream',
    headers: { [TRANSFER_HEADER]: 'def' },
  })
  t.equal(refused.json().error.code, 'not_found')
  t.strictSame(brought, ['abc'], 'a refusal is in the answer')
})

t.test('what is asked wrongly is refused', async (t) => {
  const { app, start } = await agent(t)
  const { processId } = await start('true')
  const code = async (path: string, headers = {}) =>
    (await app.inject({ url: path, headers })).json().error.code
  const stream = `/exec/${processId}/stream`
  for (const query of [
    'stdoutOffset=-1',
    'stdoutOffset=',
    'stderrOffset=1e3',
    'streams=none',
    'encoding=latin1',
  ])
    t.equal(await code(`${stream}?${query}`), 'invalid_request', query)
  for (const id of ['5', '1:', 'a:b', '1:2:3', '1234567890123456:0'])
    t.equal(await code(stream, { 'last-event-id': id }), 'invalid_request', `Last-Event-ID: ${id}`)
  t.equal(await code('/exec/p_0123456789abcdef01234567/stream'), 'not_found')
})

t.test('a reader that leaves ends its stream, and an agent that stops ends all of them', async (t) => {
  const { app, start, close, get: find } = await agent(t)
  const { processId } = await start('sleep 64')
  const watching = countWatches(find(processId).logs.stdout)
  await app.listen({ port: 0, host: '127.0.0.1' })
  const { port } = app.server.address() as AddressInfo
  const open = async () => {
    const request = get({ port, host: '127.0.0.1', path: `/exec/${processId}/stream`, agent: false })
    const [answer] = await once(request, 'response')
    const events = eventReader(answer)
    t.match(await events.next(), { event: 'attached' })
    return { request, events }
  }
  const leaves = await open()
  await until('the stream watches', () => watching() === 1)
  leaves.request.on('error', () => undefined).destroy()
  await until('nobody watches', () => watching() === 0)
  const stays = await open()
  const cut = t.rejects(
    stays.events.next(),
    { code: 'ECONNRESET' },
    'a stream that is cut never looks complete',
  )
  await close()
  await cut
  t.equal(watching(), 0)
})
