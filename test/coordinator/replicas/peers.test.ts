// Calls between coordinators, and the proof that a request comes from another one.

import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { z } from 'zod'
import { SecretValue } from '../../../coordinator/base/sealing/secret-value.ts'
import type { Db } from '../../../coordinator/db/open.ts'
import { hashBody, PEER_HEADER, signClaim, verifyClaim } from '../../../coordinator/replicas/peer-header.ts'
import { createPeers, PEER_PATH } from '../../../coordinator/replicas/peers.ts'
import { renewReplica } from '../../../coordinator/replicas/store.ts'
import { ApiError } from '../../../shared/errors.ts'
import { createFakeReplica, TEST_HOST } from '../../support/replica.ts'
import { sqliteForTest } from '../../support/sqlite.ts'
import { DEADLINE_MS } from '../../support/wait-until.ts'

const KEY = new SecretValue('ab'.repeat(32))
const OTHER_KEY = new SecretValue('cd'.repeat(32))
const HOUR_MS = 60 * 60_000

const createRequest = (method: string, url: string, header?: string | string[]) =>
  ({
    method,
    url,
    headers: header === undefined ? {} : { [PEER_HEADER]: header },
  }) as unknown as IncomingMessage

/** A coordinator that serves calls on a port. */
async function startPeer(t: Test, db: Db, id: string, key = KEY) {
  const errors: unknown[] = []
  const peers = createPeers({
    db,
    replica: createFakeReplica(id),
    openKey: async () => key,
    log: { error: (fields: unknown) => void errors.push(fields) } as never,
  })
  await peers.open()
  const server = createServer((request, response) => peers.serve(request, response))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const row = { id, host: TEST_HOST, version: '1.0.0', name: id, url, settings: '{}' }
  await renewReplica(db, row, HOUR_MS)
  t.teardown(() => {
    peers.close()
    server.close()
    server.closeAllConnections()
  })
  return { peers, url, server, errors }
}

t.test('a claim is accepted for its request and its coordinator only', async (t) => {
  const line = { method: 'POST', url: '/v1/box/fig/exec' }
  const claim = { from: 'rep_a', to: 'rep_b', client: '192.0.2.1' }
  const header = signClaim(KEY, line, claim)
  const verify = (method: string, url: string, value: string | string[] | undefined, to = 'rep_b') =>
    verifyClaim(KEY, createRequest(method, url, value), to)
  t.same(verify('POST', line.url, header), claim)
  t.equal(verify('POST', line.url, header, 'rep_c'), null, 'another coordinator')
  t.equal(verify('GET', line.url, header), null, 'another method')
  t.equal(verify('POST', '/v1/box/kiwi/exec', header), null, 'another path')
  t.equal(verify('POST', line.url, undefined), null)
  t.equal(verify('POST', line.url, [header, header]), null)
  t.equal(verify('POST', line.url, signClaim(OTHER_KEY, line, claim)), null, 'another key')
  const [text = '', mac = ''] = header.split('.')
  const forged = Buffer.from(JSON.stringify({ ...claim, client: '198.51.100.1' })).toString('base64url')
  for (const value of [
    `${forged}.${mac}`,
    text,
    `${text}.`,
    `${header}.x`,
    '.',
    '',
    `${text}.${mac.slice(1)}`,
  ])
    t.equal(verify('POST', line.url, value), null, value)
})

t.test('calls an operation of another coordinator', async (t) => {
  const db = await sqliteForTest(t)
  const [first, second] = [await startPeer(t, db, 'rep_first'), await startPeer(t, db, 'rep_second')]
  second.peers.handle('add', z.object({ a: z.number(), b: z.number() }), async ({ a, b }) => a + b)
  second.peers.handle('refuse', z.object({}), async () => {
    throw new ApiError('box_unreachable', 'The agent does not respond.')
  })
  second.peers.handle('fail', z.object({}), async () => {
    throw new Error('the text of an internal error')
  })
  const call = (operation: string, input: unknown, to = 'rep_second') =>
    first.peers.call(to, operation, input, {
      schema: z.number(), // A remaining time is not an integer.
      timeoutMs: DEADLINE_MS + 0.5,
    })
  t.equal(await call('add', { a: 1, b: 2 }), 3)
  await t.rejects(call('refuse', {}), { code: 'box_unreachable', message: 'The agent does not respond.' })
  await t.rejects(call('fail', {}), { code: 'control_plane_unavailable' })
  await t.rejects(call('unknown', {}), { code: 'not_found' })
  await t.rejects(call('add', { a: 'x' }), { code: 'control_plane_unavailable' }, 'an invalid input')
  t.equal(second.errors.length, 2, 'the errors that are no refusals are in the log')
  await t.rejects(call('add', {}, 'rep_unknown'), { message: /does not run any more/ })
  t.same(
    await first.peers.callAll('add', { a: 1, b: 2 }, { schema: z.number(), timeoutMs: DEADLINE_MS }),
    [{ status: 'fulfilled', value: 3 }],
    'of all others',
  )
})

t.test('a call that ends early is unknown, not refused', async (t) => {
  const db = await sqliteForTest(t)
  const [first, second] = [await startPeer(t, db, 'rep_first'), await startPeer(t, db, 'rep_second')]
  const begun = Promise.withResolvers<void>()
  const aborted = Promise.withResolvers<void>()
  second.peers.handle('wait', z.object({}), async (_input, signal) => {
    begun.resolve()
    await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
    aborted.resolve()
  })
  const controller = new AbortController()
  const options = { schema: z.null(), timeoutMs: DEADLINE_MS, signal: controller.signal }
  const called = first.peers.call('rep_second', 'wait', {}, options)
  await begun.promise
  const reason = new Error('the client disconnected')
  controller.abort(reason)
  await t.rejects(called, reason)
  await aborted.promise
  t.pass('the operation ends too')
  second.server.close()
  second.server.closeAllConnections()
  await t.rejects(first.peers.call('rep_second', 'wait', {}, { schema: z.null(), timeoutMs: DEADLINE_MS }), {
    message: /does not respond/,
  })
})

t.test('refuses calls of others', async (t) => {
  const db = await sqliteForTest(t)
  const { url, peers } = await startPeer(t, db, 'rep_a')
  let calls = 0
  peers.handle('count', z.object({}), async () => ++calls)
  const body = JSON.stringify({ operation: 'count', input: {} })
  const line = { method: 'POST', url: PEER_PATH }
  const post = async (claim: object | null, { key = KEY, text = body } = {}) => {
    const headers: Record<string, string> = { 'content-type': 'application/json' }
    if (claim !== null) headers[PEER_HEADER] = signClaim(key, line, claim as never)
    return (await fetch(url + PEER_PATH, { method: 'POST', headers, body: text })).status
  }
  const claim = { from: 'rep_b', to: 'rep_a', digest: hashBody(body) }
  t.equal(await post(claim), 200)
  t.equal(await post(null), 401)
  t.equal(await post(claim, { key: OTHER_KEY }), 401)
  t.equal(await post({ ...claim, to: 'rep_c' }), 401)
  t.equal(await post({ from: 'rep_b', to: 'rep_a', client: null }), 401, 'the claim of a forwarded request')
  t.equal(await post(claim, { text: body.replace('count', 'other') }), 401, 'another body')
  t.equal(calls, 1)
})
