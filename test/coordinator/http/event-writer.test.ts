// Server-sent events to clients that are slow, silent or gone.
import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import t from 'tap'
import {
  type EventStreamOptions,
  type EventWriter,
  formatEvent,
  serveEvents,
} from '../../../coordinator/http/event-writer.ts'
import { ApiError } from '../../../shared/errors.ts'
import { waitUntil } from '../../support/wait-until.ts'

function serve(
  produce: (writer: EventWriter) => Promise<string>,
  options: Partial<EventStreamOptions> = {},
  client = new PassThrough({ highWaterMark: 1000 }),
) {
  const closing = new AbortController()
  const access = new AbortController()
  const errors: unknown[] = []
  client.on('error', () => undefined)
  const served = serveEvents(
    client,
    {
      log: { error: (fields: unknown) => void errors.push(fields) },
      closing: closing.signal,
      signal: access.signal,
      getPosition: () => '7',
      ...options,
    },
    produce,
  )
  return { client, served, closing, access, errors }
}

const waitForAbort = (signal: AbortSignal) =>
  new Promise<never>((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)))

t.test('writes events and the final one', async (t) => {
  const { client, served } = serve(async (writer) => {
    await writer.write(formatEvent('prompt', '1', '{}'))
    return formatEvent('done', '1', '{}')
  })
  t.equal(await text(client), 'event: prompt\nid: 1\ndata: {}\n\nevent: done\nid: 1\ndata: {}\n\n')
  await served
})

t.test('a comment is sent while no event is', async (t) => {
  const { client, served, access } = serve(({ signal }) => waitForAbort(signal), { keepAliveMs: 5 })
  let received = ''
  client.on('data', (chunk) => {
    received += chunk
  })
  await waitUntil('three comments arrive', () => received.startsWith(': keep-alive\n\n'.repeat(3)))
  access.abort()
  await served
  t.notMatch(received, 'event')
})

t.test('little is buffered, and no comments, for a client that does not read', async (t) => {
  let writes = 0
  const { client, served } = serve(
    async (writer) => {
      for (; writes < 20; writes++) await writer.write('x'.repeat(5000))
      return 'end'
    },
    { keepAliveMs: 1 },
  )
  let controlText = ''
  // A stream to a client that reads gets a comment in the meantime, then all texts.
  const control = serve(
    async (writer) => {
      await waitUntil('a comment is sent', () => controlText.startsWith(': keep-alive\n\n'))
      for (let i = 0; i < 20; i++) await writer.write('x'.repeat(5000))
      return 'end'
    },
    { keepAliveMs: 1 },
  )
  control.client.on('data', (chunk) => {
    controlText += chunk
  })
  await control.served
  await waitUntil('the other client has everything', () => controlText.endsWith('xend'))
  // The client buffers one text in each direction.
  t.ok(writes <= 1, `${writes} texts were accepted`)
  t.equal((client.readableLength + client.writableLength) % 5000, 0)
  t.equal((await text(client)).replaceAll(': keep-alive\n\n', ''), `${'x'.repeat(100_000)}end`)
  await served
})

t.test('a client that accepts nothing for a long time is disconnected', async (t) => {
  const { client, served } = serve(
    async (writer) => {
      for (;;) await writer.write('x'.repeat(5000))
    },
    { stalledMs: 20 },
  )
  await served
  t.ok(client.destroyed)
})

t.test('reasons to end', async (t) => {
  for (const [end, expected] of [
    [
      ({ closing }: ReturnType<typeof serve>) => closing.abort(),
      /event: error\nid: 7\n.*control_plane_unavailable/,
    ],
    [({ access }: ReturnType<typeof serve>) => access.abort(new ApiError('unauthorized')), /"unauthorized"/],
    [({ access }: ReturnType<typeof serve>) => access.abort(), /^$/],
    [({ client }: ReturnType<typeof serve>) => void client.destroy(), /^$/],
  ] as const) {
    for (const isWriting of [false, true]) {
      const stream = serve(async ({ signal, write }) => {
        if (isWriting) await write('x'.repeat(5000))
        return waitForAbort(signal)
      })
      const received = isWriting ? undefined : text(stream.client).catch(() => '')
      end(stream)
      await stream.served
      if (!isWriting) {
        if (/\^\$/.test(String(expected))) stream.client.destroy()
        t.match(await received, expected)
      }
      // Otherwise a client that has not read the final event keeps the process for 30 s.
      stream.client.destroy()
      t.same(stream.errors, [])
    }
  }
})

t.test('a signal that aborted before, and an error of the producer', async (t) => {
  const closing = AbortSignal.abort()
  const stopped = serve(({ write }) => write('x').then(() => 'end'), { closing })
  t.match(await text(stopped.client), /control_plane_unavailable/)
  for (const [error, code, logged] of [
    [new ApiError('box_unreachable', 'away'), 'box_unreachable', 0],
    [new TypeError('a secret'), 'internal_error', 1],
  ] as const) {
    const { client, served, errors } = serve(() => Promise.reject(error))
    const received = await text(client)
    t.match(received, `"code":"${code}"`)
    t.notMatch(received, 'secret')
    await served
    t.equal(errors.length, logged)
  }
})

t.test('a client that does not read the final event is disconnected', async () => {
  const { client, served } = serve(async () => 'x'.repeat(5000), { lingerMs: 10 })
  await served
  await waitUntil('the client is disconnected', () => client.destroyed)
})
