// POST /boxes/{id}/owner: a box is given to another member, with its snapshots, its costs and what its owner decides.
import t from 'tap'
import type { Box } from '../../shared/api/boxes.ts'
import { type RequestOptions, startTestCoordinator } from '../support/coordinator.ts'
import { connectFeed } from '../support/feed-client.ts'
import { createLimitedKey } from '../support/limited-key.ts'
import { createTestSession } from '../support/session.ts'
import { waitUntil } from '../support/wait-until.ts'
import { createCredentials } from './access/credentials.ts'
import { createRunningBox, takeSnapshot } from './snapshots-support.ts'

const coordinator = await startTestCoordinator(t)
const { api, url } = coordinator
const { db } = coordinator.instance.context
const credentials = createCredentials(coordinator)
const owner = await createTestSession(coordinator)
const ada = await createTestSession(coordinator, 'member')
const bob = await createTestSession(coordinator, 'member')
const cy = await createTestSession(coordinator, 'contractor')
const nameUser = (id: string, name: string, email: string) =>
  db.updateTable('users').set({ name, email }).where('id', '=', id).execute()
await nameUser(ada.userId, 'Ada', 'ada@example.com')

const give = (boxId: string, body: object, by: RequestOptions = owner) =>
  api('POST', `/boxes/${boxId}/owner`, body, by)
const giveOk = async (boxId: string, body: object, by: RequestOptions = owner): Promise<Box> => {
  const response = await give(boxId, body, by)
  t.equal(response.status, 200, response.text)
  return response.json.box
}
const getBox = async (id: string): Promise<Box> => (await api('GET', `/boxes/${id}`)).json.box
const listEvents = async (query: string) =>
  (await api('GET', `/audit?${query}`, undefined, owner)).json.events

t.test('an owner and the owner of the box give it, by id or email address', async (t) => {
  const id = await createRunningBox(coordinator, { name: 'fig' })
  const snapshot = await takeSnapshot(coordinator, id)
  t.match(await giveOk(id, { email: 'Ada@example.com' }), {
    ownerUserId: ada.userId,
    observedState: 'running',
  })
  const rows = await db.selectFrom('snapshots').select('owner_user_id').where('id', '=', snapshot).execute()
  t.same(rows, [{ owner_user_id: ada.userId }])
  t.match((await api('GET', `/boxes/${id}`)).json.events[0], {
    reason: 'given to Ada',
    toState: 'running',
    actor: /^(user|key):/,
  })
  const kind = `kind=box.give&boxId=${id}`
  t.match(await listEvents(kind), [
    { detail: { name: 'fig', from: owner.userId, to: ada.userId, email: 'ada@example.com' } },
  ])

  await giveOk(id, { ownerUserId: ada.userId })
  t.equal((await listEvents(kind)).length, 1, 'again, without effect')

  const refused = await give(id, { ownerUserId: bob.userId }, bob)
  t.match(refused, { status: 403, json: { error: 'not_owner', message: /^Box fig belongs to another/ } })
  t.match(await giveOk(id, { ownerUserId: bob.userId }, ada), { ownerUserId: bob.userId })
  const again = await give(id, { ownerUserId: ada.userId }, ada)
  t.match(again, { status: 403, json: { error: 'not_owner' } }, 'who has given it away cannot take it back')
  const ofBox = await createLimitedKey(coordinator, { boxIds: [id] })
  await giveOk(id, { ownerUserId: ada.userId }, { key: ofBox })
})

t.test('a wrong member is refused, and nothing is written', async (t) => {
  const id = await createRunningBox(coordinator, { name: 'plum' })
  const before = await getBox(id)
  const invited = await api('POST', '/members', { email: 'new@example.com', role: 'member' }, owner)
  const removed = await createTestSession(coordinator, 'member')
  await api('DELETE', `/members/${removed.userId}`, undefined, owner)
  const foreign = await credentials.addUser(await credentials.addWorkspace('foreign'), 'owner')
  for (const body of [
    { ownerUserId: invited.json.member.id },
    { ownerUserId: removed.userId },
    { ownerUserId: foreign.id },
    { ownerUserId: 'ada' },
    { email: foreign.email },
  ])
    t.match(await give(id, body), { status: 404, json: { error: 'member_not_found' } }, JSON.stringify(body))
  const { json } = await give(id, { ownerUserId: invited.json.member.id })
  t.match(json.message, /^new has not accepted the invitation/)
  for (const body of [{}, { ownerUserId: ada.userId, email: 'ada@example.com' }, { ownerUserId: null }])
    t.match(await give(id, body), { status: 400, json: { error: 'bad_request' } }, JSON.stringify(body))
  t.match(await give(id, { ownerUserId: ada.userId }, cy), { status: 403, json: { error: 'not_allowed' } })
  t.same(await getBox(id), before)
})

t.test('the limit of boxes is that of the member who gets the box', async (t) => {
  const dan = await createTestSession(coordinator, 'member')
  await nameUser(dan.userId, 'Dan', 'dan@example.com')
  const [first, second] = [await createRunningBox(coordinator), await createRunningBox(coordinator)]
  await api('PATCH', '/workspace/policies', { memberBoxLimit: 1 }, owner)
  await giveOk(first, { ownerUserId: dan.userId })
  t.match(await give(second, { ownerUserId: dan.userId }), {
    status: 403,
    json: {
      error: 'policy_denied',
      rule: 'memberBoxLimit',
      message: /^Dan has 1 box, .* Delete a box of this member/,
    },
  })
  t.match(await getBox(second), { ownerUserId: owner.userId })
  await api('PATCH', '/workspace/policies', { memberBoxLimit: null }, owner)
})

t.test('secrets are unmounted that no grant allows the new owner', async (t) => {
  const id = await createRunningBox(coordinator, { name: 'lime' })
  await giveOk(id, { ownerUserId: ada.userId })
  const mount = async (name: string, grants: object[]) => {
    const body = { name, value: 'a', hosts: ['a.example.com'], grants }
    const { json } = await api('POST', '/secrets', body, owner)
    const mounted = await api('POST', `/boxes/${id}/secrets`, { secretId: json.secret.id, envName: name })
    t.equal(mounted.status, 201, mounted.text)
  }
  await mount('OF_ALL', [])
  await mount('OF_ADA', [{ userId: ada.userId }])
  await mount('OF_BOTH', [{ userId: ada.userId }, { userId: bob.userId }])
  await mount('OF_BOX', [{ boxId: id }])
  const listNames = async () =>
    (await api('GET', `/boxes/${id}/secrets`)).json.mounts.map(({ envName }: { envName: string }) => envName)
  await giveOk(id, { ownerUserId: bob.userId })
  t.same(await listNames(), ['OF_ALL', 'OF_BOTH', 'OF_BOX'])
  t.match(await listEvents(`kind=secret.unmount&boxId=${id}`), [
    { detail: { name: 'OF_ADA', reason: 'the box was given to another member' } },
  ])
  t.match(await giveOk(id, { ownerUserId: cy.userId }), { restricted: true, ownerUserId: cy.userId })
  t.same(await listNames(), [], 'the box of a contractor is restricted')
  t.match(await giveOk(id, { ownerUserId: ada.userId }), { restricted: true }, 'and stays so')
})

t.test('a contractor loses the box, also in lists that are open', async (t) => {
  const id = await createRunningBox(coordinator, { name: 'cherry' })
  await giveOk(id, { ownerUserId: cy.userId })
  const get = () => api('GET', `/boxes/${id}`, undefined, cy)
  t.equal((await get()).status, 200)
  const headers = { cookie: cy.headers?.cookie ?? '' }
  const feed = await connectFeed(t, url, headers)
  await feed.ready()
  t.ok(feed.get('boxes', id))
  await giveOk(id, { ownerUserId: ada.userId })
  t.match(await get(), { status: 404, json: { error: 'not_found' } })
  t.match(await feed.closed, { code: 1012 }, 'the client begins again')
  const next = await connectFeed(t, url, headers)
  await next.ready()
  t.notOk(next.get('boxes', id))
  await giveOk(id, { ownerUserId: cy.userId })
  await waitUntil('the feed has the box', () => next.get('boxes', id) !== undefined)
})

t.test('a box that is being deleted is not given', async (t) => {
  const id = await createRunningBox(coordinator)
  await api('DELETE', `/boxes/${id}`)
  t.match(await give(id, { ownerUserId: ada.userId }), { status: 404, json: { error: 'not_found' } })
})
