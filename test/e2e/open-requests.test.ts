// Open streams, terminals, commands and transfers end when their credential may no longer use them (spec §5.4).

import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import t, { type Test } from 'tap'
import { newUuid } from '../../shared/ids.ts'
import { connectAttachClient } from '../support/attach-client.ts'
import { limitsEnv } from '../support/limits-env.ts'
import { createTestSession } from '../support/session.ts'
import { waitUntil } from '../support/wait-until.ts'
import { HIGH_EDGE_LIMITS, startCoordinatorWithBox } from './coordinator-with-box.ts'
import { openStream } from './edge-stream-reader.ts'

/** The time of the stopped clock of the coordinator; null: its clock runs. */
let stoppedAt: number | null = null

const coordinator = await startCoordinatorWithBox(t, {
  clock: { now: () => stoppedAt ?? Date.now() },
  env: limitsEnv({ ...HIGH_EDGE_LIMITS, edgeStreams: 100 }),
})
const { url, api, box, boxRequest, exec } = coordinator
const { db, openRequests, edge, clock } = coordinator.instance.context
const owner = await createTestSession(coordinator)
const { processId } = await exec('while [ ! -e stop ]; do echo line; sleep 0.05; done', { detached: true })
const boxUrl = `${url}/v1/box/${box.hostname}`
const bearer = (secret: string) => ({ authorization: `Bearer ${secret}` })

async function createKey(fields: object = {}, session = owner): Promise<{ id: string; secret: string }> {
  const { status, json } = await api('POST', '/keys', { name: 'test', ...fields }, session)
  if (status !== 201) throw new Error(`responded with ${status}: ${JSON.stringify(json)}`)
  return { id: json.key.id, secret: json.secret }
}

async function openEvents(t: Test, secret: string) {
  const stream = await openStream(`${boxUrl}/exec/${processId}/stream`, bearer(secret))
  t.teardown(stream.disconnect)
  await waitUntil('the stream is attached', () => stream.events.length > 0)
  return stream
}

async function openTerminal(t: Test, secret: string) {
  const client = await connectAttachClient(`${boxUrl}/terminal`, bearer(secret))
  t.teardown(async () => {
    client.cut()
    await client.closed
  })
  const closed = once(client.ws, 'close').then(([code, reason]) => [code, String(reason)])
  await client.waitFor('attached')
  return { ...client, closed }
}

/** Opens a stream and a terminal, and returns how they ended. */
async function openBoth(t: Test, secret: string) {
  const [stream, terminal] = await Promise.all([openEvents(t, secret), openTerminal(t, secret)])
  return {
    stream,
    terminal,
    ended: async () => ({
      event: (await stream.ended).at(-1),
      message: (await terminal.closed) && terminal.messages.at(-1),
      close: await terminal.closed,
    }),
  }
}

const endedWith = (code: string, closeCode: number) => ({
  event: { event: 'error', data: { code, message: String } },
  message: { type: 'error', code, message: String },
  close: [closeCode, code],
})

const unaffected = await openBoth(t, coordinator.key)

/** The streams of another key continue. */
async function assertOthersContinue(t: Test) {
  const { stream, terminal } = unaffected
  const { length } = stream.events
  await waitUntil('further output arrives', () => stream.events.length > length + 1)
  t.equal(terminal.closeCode(), null)
}

t.test('a revoked key: everything that is open ends', async (t) => {
  const { id, secret } = await createKey()
  const both = await openBoth(t, secret)
  await exec('truncate -s 256M large; echo old > uploaded')
  const running = boxRequest('POST', '/exec', { command: 'echo $$ > pid; exec sleep 600' }, { key: secret })
  await waitUntil('the command runs', async () => (await exec('cat pid')).exitCode === 0)
  const { json } = await boxRequest(
    'POST',
    '/exec',
    { command: 'sleep 600', attached: true },
    { key: secret },
  )
  const attached = await connectAttachClient(`${boxUrl}/exec/${json.processId}/attach`, bearer(secret))
  await attached.waitFor('attached')

  const download = request(`${boxUrl}/download?path=large`, { headers: bearer(secret), agent: false }).end()
  const [downloaded]: [IncomingMessage] = (await once(download, 'response')) as never
  downloaded.once('data', () => downloaded.pause())
  await once(downloaded, 'data')
  const upload = request(`${boxUrl}/upload?path=uploaded`, {
    method: 'PUT',
    headers: { ...bearer(secret), 'transfer-encoding': 'chunked' },
    agent: false,
  })
  upload.on('error', () => undefined)
  upload.write(Buffer.alloc(1_000_000))
  const uploadResponse = once(upload, 'response')
  await waitUntil('all requests are registered', () => openRequests.size === 8)

  t.equal((await api('DELETE', `/keys/${id}`, undefined, owner)).status, 204)
  t.match(await both.ended(), endedWith('unauthorized', 3000))
  t.equal(await attached.closed, 3000)
  t.match(await running, { status: 401, json: { error: { code: 'unauthorized', message: /was revoked/ } } })
  t.equal(((await uploadResponse)[0] as IncomingMessage).statusCode, 401)
  upload.destroy()
  await t.rejects(downloaded.resume().toArray(), 'the download is incomplete')

  await waitUntil('the command is terminated', async () => (await exec('kill -0 $(cat pid)')).exitCode !== 0)
  t.match(await exec('cat uploaded'), { stdout: 'old\n' }, 'the file is unchanged')
  await waitUntil(
    'the agent has disconnected the client of the terminal',
    async () => (await boxRequest('GET', '/terminal/sessions')).json.sessions[0].clients === 0,
  )
  await assertOthersContinue(t)
})

t.test('a rotated key', async (t) => {
  const { id, secret } = await createKey()
  const both = await openBoth(t, secret)
  await api('POST', `/keys/${id}/rotate`, undefined, owner)
  t.match(await both.ended(), endedWith('unauthorized', 3000))
  await assertOthersContinue(t)
})

t.test('a key that becomes read-only keeps its stream, and loses its terminal', async (t) => {
  const { id, secret } = await createKey()
  const { stream, terminal } = await openBoth(t, secret)
  await api('PATCH', `/keys/${id}`, { access: 'read' }, owner)
  t.same(await terminal.closed, [3003, 'key_access_denied'])
  t.match(terminal.messages.at(-1), { code: 'key_access_denied', message: /lacks run access to boxes/ })
  const { length } = stream.events
  await waitUntil('further output arrives', () => stream.events.length > length + 1)
})

t.test('a key that is limited to another box', async (t) => {
  const { id, secret } = await createKey()
  const row = await db.selectFrom('boxes').selectAll().where('id', '=', box.id).executeTakeFirstOrThrow()
  const other = { ...row, id: newUuid(), hostname: 'plum', desired_state: 'suspended' as const }
  await db
    .insertInto('boxes')
    .values({ ...other, observed_state: 'suspended', agent_token_hash: null })
    .execute()
  t.teardown(() => db.deleteFrom('boxes').where('id', '=', other.id).execute())
  const both = await openBoth(t, secret)
  t.equal((await api('PATCH', `/keys/${id}`, { boxIds: [other.id] }, owner)).status, 200)
  t.match(await both.ended(), endedWith('not_found', 3003))
  await assertOthersContinue(t)
})

t.test('a key that expires, and one whose expiry has moved', async (t) => {
  const [expiring, moved] = await Promise.all([createKey(), createKey()])
  // The requests are opened, and the expiry is moved, before the keys expire: also on a busy machine.
  stoppedAt = Date.now()
  t.teardown(() => {
    stoppedAt = null
  })
  const setExpiry = async ({ id }: { id: string }, ms: number) => {
    await db
      .updateTable('api_keys')
      .set({ expires_at: clock.now() + ms })
      .where('id', '=', id)
      .execute()
  }
  await Promise.all([setExpiry(expiring, 500), setExpiry(moved, 500)])
  const [first, second] = await Promise.all([openBoth(t, expiring.secret), openBoth(t, moved.secret)])
  await setExpiry(moved, 60_000)
  stoppedAt += 500
  t.match(await first.ended(), endedWith('token_expired', 3000))
  const { length } = second.stream.events
  await waitUntil('further output arrives', () => second.stream.events.length > length + 12)
  t.equal(second.terminal.closeCode(), null)
})

t.test('a ticket whose session ends', async (t) => {
  const createTicket = async () => {
    const session = await createTestSession(coordinator, 'member')
    const { json } = await api('POST', `/boxes/${box.id}/tickets`, {}, session)
    return { session, secret: json.secret }
  }
  const [ended, other] = await Promise.all([createTicket(), createTicket()])
  const [first, second] = await Promise.all([openBoth(t, ended.secret), openBoth(t, other.secret)])
  const { sessionId } = ended.session
  t.equal((await api('DELETE', `/sessions/${sessionId}`, undefined, ended.session)).status, 204)
  t.match(await first.ended(), endedWith('unauthorized', 3000))
  const { length } = second.stream.events
  await waitUntil('further output arrives', () => second.stream.events.length > length + 1)
  t.equal(second.terminal.closeCode(), null)
})

t.test('a user who becomes a contractor or is removed', async (t) => {
  for (const [method, body, expected] of [
    ['PATCH', { role: 'contractor' }, endedWith('not_found', 3003)],
    ['DELETE', undefined, endedWith('unauthorized', 3000)],
  ] as const) {
    const member = await createTestSession(coordinator, 'member')
    const { secret } = await createKey({}, member)
    const both = await openBoth(t, secret)
    const { status } = await api(method, `/members/${member.userId}`, body, owner)
    t.ok(status === 200 || status === 204)
    t.match(await both.ended(), expected)
  }
  await assertOthersContinue(t)
})

t.test('closed requests leave nothing registered', async (t) => {
  unaffected.stream.disconnect()
  unaffected.terminal.cut()
  await waitUntil('all requests are closed', () => openRequests.size === 0)
  t.equal(edge.limiter.acquiredCount(), 0)
})
