// The requests of the dashboard to a box: the ticket is shared, renewed before it expires, and renewed once when it is refused.

import { mock } from 'node:test'
import t from 'tap'
import { type BoxwoodError, createError } from '../../../client/http/errors.ts'
import type { Transport } from '../../../client/http/transport.ts'
import { createBoxClient } from '../../../dashboard/api/box-client.ts'
import { createClient } from '../../../dashboard/api/client.ts'
import { createFiles } from '../../../dashboard/api/files.ts'

const MINUTE = 60_000

const createTransport = (send: Transport['send']): Transport => ({
  send,
  connect: () => Promise.reject(new Error('no WebSocket')),
})

function createFixture(refused: readonly string[] = []) {
  let time = 0
  let tickets = 0
  const requests: { url: string; authorization: string | null }[] = []
  const client = createBoxClient({
    base: 'http://localhost/prefix/',
    boxId: 'a/b',
    getTime: () => time,
    async createTicket() {
      tickets += 1
      const ticket = { id: 't', boxId: 'a/b', expiresAt: new Date(time + 60 * MINUTE).toISOString() }
      return { ticket, secret: `dct_${tickets}` }
    },
    transport: createTransport(async ({ url, headers }) => {
      const { authorization = null } = headers
      requests.push({ url, authorization })
      const isRefused = refused.some((secret) => authorization === `Bearer ${secret}`)
      const body = isRefused ? { ok: false, error: { code: 'unauthorized', message: 'No.' } } : { ok: true }
      return new Response(JSON.stringify(body), { status: isRefused ? 401 : 200 })
    }),
  })
  const advance = (ms: number) => {
    time += ms
  }
  return { client, requests, advance, countTickets: () => tickets }
}

t.test('requests at the same time share a ticket, which is renewed a minute before it expires', async (t) => {
  const { client, requests, advance, countTickets } = createFixture()
  await Promise.all([client.send('GET', 'files'), client.send('GET', 'exec')])
  t.equal(countTickets(), 1)
  t.same(
    requests.map(({ url }) => url),
    ['http://localhost/prefix/v1/box/a%2Fb/files', 'http://localhost/prefix/v1/box/a%2Fb/exec'],
  )
  advance(58 * MINUTE)
  t.equal(await client.getTicket(), 'dct_1')
  advance(2 * MINUTE)
  t.equal(await client.getTicket(), 'dct_2')
})

t.test('a refused ticket is renewed once', async (t) => {
  const once = createFixture(['dct_1'])
  t.same(await once.client.send('GET', 'files'), { ok: true })
  t.equal(once.requests.length, 2)
  const always = createFixture(['dct_1', 'dct_2'])
  await t.rejects(
    always.client.open('download'),
    createError({ code: 'unauthorized', message: 'No.', status: 401 }),
  )
  t.equal(always.requests.length, 2)
})

t.test('a request that gets no response ends', async (t) => {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => mock.timers.reset())
  const { createTicket, loadBox, wakeBox } = createClient({
    base: 'http://localhost/',
    transport: createTransport(
      ({ signal }) =>
        new Promise((_, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason), { once: true })
          if (signal.aborted) reject(signal.reason)
        }),
    ),
  })
  const results = [createTicket('a'), loadBox('a')].map((request) =>
    request.catch(({ code }: BoxwoodError) => code),
  )
  let hasFailed = false
  void wakeBox('a').then(
    () => undefined,
    () => {
      hasFailed = true
    },
  )
  mock.timers.tick(60_000)
  t.same(await Promise.all(results), ['timeout', 'timeout'])
  t.notOk(hasFailed, 'what changes something may take longer')
})

t.test('a refused ticket is discarded, but not the one that has replaced it', async (t) => {
  const { client, countTickets } = createFixture(['dct_1'])
  await Promise.all([client.send('GET', 'files'), client.send('GET', 'exec')])
  t.equal(countTickets(), 2)
  t.equal(await client.getTicket(), 'dct_2')
})

t.test('an upload whose ticket is refused is sent once more with another ticket', async (t) => {
  const sent: (string | undefined)[] = []
  class FakeRequest {
    readonly upload = {}
    readonly #headers: Record<string, string> = {}
    status = 0
    responseText = ''
    onload = () => undefined
    open(): void {}
    setRequestHeader(name: string, value: string): void {
      this.#headers[name] = value
    }
    getResponseHeader = () => null
    send(): void {
      const { authorization } = this.#headers
      sent.push(authorization)
      const isRefused = authorization === 'Bearer dct_1'
      this.status = isRefused ? 401 : 200
      this.responseText = JSON.stringify(isRefused ? { error: { code: 'unauthorized' } } : { ok: true })
      this.onload()
    }
  }
  t.intercept(globalThis, 'XMLHttpRequest' as keyof typeof globalThis, { value: FakeRequest })
  const files = createFiles(createFixture().client)
  const options = { signal: new AbortController().signal, onProgress: () => undefined }
  t.match(await files.upload('a.txt', new File(['a'], 'a.txt'), options), { ok: true })
  t.same(sent, ['Bearer dct_1', 'Bearer dct_2'])
})
