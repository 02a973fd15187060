// Open edge requests are checked again after changes of access, and when their credential expires.
import { EventEmitter } from 'node:events'
import type { ServerResponse } from 'node:http'
import t from 'tap'
import { assertAccess, byKey } from '../../../coordinator/http/access.ts'
import type { Actor, Credential } from '../../../coordinator/http/actor.ts'
import { authenticate, type CredentialLookup } from '../../../coordinator/http/auth.ts'
import { createOpenRequests } from '../../../coordinator/http/open-requests.ts'
import { systemClock } from '../../../shared/clock.ts'
import { ApiError } from '../../../shared/errors.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { actor as owner } from './test-server.ts'

const CHANGE = { workspaceId: 'ws_1', credentialId: 'key_1' }
const key = (expiresAt: number | null = null): Credential => ({
  ...{ type: 'key', id: 'key_1', kind: 'api', isUnverified: false },
  expiresAt,
})
const actorOf = (credential: Credential): Actor => ({ ...owner, credential })

class FakeResponse extends EventEmitter {
  closed = false
  destroyed = false
  writableFinished = false
  destroy() {
    this.destroyed = true
    this.close()
  }
  close() {
    this.closed = true
    this.emit('close')
  }
}

/** @param lookups the results of the lookups, in their order; the last one repeats */
function createRegistry(...lookups: (CredentialLookup | Error | Promise<CredentialLookup>)[]) {
  let count = 0
  const find = async () => {
    const result = await (lookups[count++] ?? lookups.at(-1))
    if (result === undefined || result instanceof Error) throw result ?? new Error('unexpected lookup')
    return result
  }
  const finders = { findKey: find, findSession: find, findTicket: find }
  const registry = createOpenRequests({ clock: systemClock, graceMs: 10 })
  function add(credential: Credential, changesBefore = registry.changeCount) {
    const response = new FakeResponse()
    const open = registry.add({
      ...{ actor: actorOf(credential), changesBefore },
      async authenticate() {
        const authorization = credential.type === 'ticket' ? 'Bearer dct_0' : 'Bearer dcp_test'
        const actor = await authenticate({ authorization }, finders)
        assertAccess(actor, byKey('boxes', 'read', { acceptsTickets: true }), 'edge')
        return actor
      },
      response: response as unknown as ServerResponse,
    })
    return { ...open, response }
  }
  return { registry, add, lookups: () => count }
}

const codeOf = ({ signal }: { signal: AbortSignal }) =>
  signal.reason instanceof ApiError ? signal.reason.code : signal.reason

const waitForEnd = (open: { signal: AbortSignal }) => waitUntil('it ends', () => open.signal.aborted)

t.test(
  'a change concerns a workspace, a user or a credential; the end of a session its tickets',
  async (t) => {
    const { registry, add, lookups } = createRegistry({ rejected: 'revoked' })
    const open = add(key())
    const ticket = add({ type: 'ticket', id: 'tkt_1', expiresAt: systemClock.now() + 60_000 })
    registry.onAccessChange({ workspaceId: 'ws_2' })
    registry.onAccessChange({ workspaceId: 'ws_1', userId: 'usr_2' })
    t.equal(lookups(), 0)
    registry.onAccessChange({ workspaceId: 'ws_1', credentialId: 'ses_1' })
    await waitForEnd(ticket)
    t.equal(lookups(), 1)
    t.notOk(open.signal.aborted)
    registry.onAccessChange({ workspaceId: 'ws_1', userId: 'usr_1' })
    await waitForEnd(open)
    t.equal(codeOf(open), 'unauthorized')
  },
)

t.test('the expiry is read again when it is due, because it moves with use', async (t) => {
  const now = systemClock.now()
  const { add, lookups, registry } = createRegistry(
    { actor: actorOf(key(now + 60_000)) },
    { rejected: 'expired', expiresAt: now },
  )
  const DAY_MS = 86_400_000
  const later = add(key(now + 90 * DAY_MS))
  const open = add(key(now + 5))
  await waitUntil('the expiry is read', () => lookups() === 1)
  await new Promise(setImmediate)
  t.notOk(open.signal.aborted)
  t.notOk(later.signal.aborted)
  registry.onAccessChange(CHANGE)
  await Promise.all([open, later].map(waitForEnd))
  t.equal(codeOf(open), 'token_expired')
  t.equal(codeOf(later), 'token_expired')
})

t.test('a request whose access cannot be checked ends', async (t) => {
  const { registry, add } = createRegistry(new Error('no database'))
  const open = add(key())
  registry.onAccessChange(CHANGE)
  await waitForEnd(open)
  t.equal(codeOf(open), 'control_plane_unavailable')
})

t.test('a change during the authentication, and one before the box is known', async (t) => {
  const { registry, add, lookups } = createRegistry({ actor: actorOf(key()) })
  registry.onAccessChange(CHANGE)
  const open = add(key(), 0)
  await waitUntil('it is checked', () => lookups() === 1)
  const checked: Actor[] = []
  await open.addCheck(async (actor) => checked.push(actor))
  t.ok(checked.length > 0, 'the access to the box is checked with the new permissions')
  const { length } = checked
  registry.onAccessChange(CHANGE)
  await waitUntil('it is checked after each change', () => checked.length > length)
  await t.rejects(
    open.addCheck(async () => {
      throw new ApiError('not_found')
    }),
    { code: 'not_found' },
  )
  const unchanged = add(key())
  await unchanged.addCheck(async () => t.fail('nothing has changed'))
})

t.test('an older check does not replace the result of a newer one', async (t) => {
  const older = Promise.withResolvers<CredentialLookup>()
  const expiresAt = systemClock.now() + 50
  const { registry, add, lookups } = createRegistry(
    older.promise,
    { actor: actorOf(key(expiresAt)) },
    { rejected: 'expired', expiresAt },
  )
  const open = add(key())
  registry.onAccessChange(CHANGE)
  registry.onAccessChange(CHANGE)
  await waitUntil('both are started', () => lookups() === 2)
  older.resolve({ actor: actorOf(key()) })
  await waitForEnd(open)
  t.equal(codeOf(open), 'token_expired')
})

t.test('a confirmation has the rights of now, also when a newer check runs', async (t) => {
  const member: Actor = { ...actorOf(key()), role: 'member' }
  const [confirmed, newer] = [
    Promise.withResolvers<CredentialLookup>(),
    Promise.withResolvers<CredentialLookup>(),
  ]
  const { registry, add, lookups } = createRegistry({ actor: member }, confirmed.promise, newer.promise)
  const open = add(key())
  registry.onAccessChange(CHANGE)
  const confirmation = open.confirm()
  registry.onAccessChange(CHANGE)
  await waitUntil('three checks are started', () => lookups() === 3)
  confirmed.resolve({ actor: member })
  t.match(await confirmation, { role: 'member' })
  newer.resolve({ actor: member })
})

t.test('a connection that does not end by itself is destroyed', async (t) => {
  const { registry, add } = createRegistry({ rejected: 'revoked' })
  const open = add(key())
  registry.onAccessChange(CHANGE)
  await waitUntil('it is destroyed', () => open.response.destroyed)
  t.equal(codeOf(open), 'unauthorized', 'the first reason stays')
  t.equal(registry.size, 0)
})

t.test('a closed request is not registered', async (t) => {
  const { registry, add, lookups } = createRegistry({ rejected: 'revoked' })
  const [finished, disconnected] = [add(key(systemClock.now() + 5)), add(key())]
  t.equal(registry.size, 2)
  finished.response.writableFinished = true
  finished.response.close()
  disconnected.response.close()
  t.equal(registry.size, 0)
  t.notOk(finished.signal.aborted)
  t.equal(disconnected.signal.reason?.name, 'AbortError')
  registry.onAccessChange(CHANGE)
  t.equal(lookups(), 0)
})
