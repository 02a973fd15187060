// Streams of prompts (spec §4.16) whose box is deleted, suspended or woken, or whose key may no longer read the box.
import t from 'tap'
import { createTestSession } from '../support/session.ts'
import { waitUntil } from '../support/wait-until.ts'
import { namesOf, startBoxWithPrompts } from './prompt-stream-support.ts'

t.test('a box that is deleted', async (t) => {
  const { agent, api, box, follow, followAll, waitForPolls, acquiredSlots } = await startBoxWithPrompts(t)
  const run = agent.addRun()
  agent.addEvents(run)
  const readers = [await follow(run.run.id), await followAll()]
  await waitForPolls(2)
  t.equal((await api('DELETE', `/boxes/${box.id}`)).status, 202)
  for (const reader of readers)
    t.match((await reader.ended).at(-1), {
      event: 'error',
      data: { code: 'not_found', message: /has been deleted/ },
    })
  await waitUntil('the slots are released', () => acquiredSlots() === 0)
})

t.test('a client that reconnects after a suspend and a wake gets each event once', async (t) => {
  const { agent, api, box, follow, followAll, waitForPolls, suspend, waitForState } =
    await startBoxWithPrompts(t)
  const run = agent.addRun()
  agent.addEvents(run, 2)
  const readers = [await follow(run.run.id), await followAll()] as const
  await waitForPolls(2)
  await suspend()
  const [one, all] = await Promise.all(readers.map(async ({ ended }) => (await ended).at(-1)))
  t.match([one, all], [{ data: { code: 'box_not_running' } }, { data: { code: 'box_not_running' } }])
  await t.rejects(follow(run.run.id), /409: .*box_not_running/)
  await t.rejects(followAll(), /409: .*box_not_running/)

  await api('POST', `/boxes/${box.id}/wake`)
  await waitForState(box.id, 'running')
  agent.addEvents(run)
  agent.finish(run)
  const headersOf = (event: { id: string } | undefined) => ({ 'last-event-id': event?.id ?? '' })
  const rest = await follow(run.run.id, '', headersOf(one))
  await rest.ended
  t.same(namesOf(rest), ['prompt 3', 'done'])
  const restOfAll = await followAll('', headersOf(all))
  await restOfAll.ended
  t.same(namesOf(restOfAll), ['run', 'prompt 3', 'run.done', 'done'])
})

t.test('a key that is limited to another box meanwhile', async (t) => {
  const coordinator = await startBoxWithPrompts(t)
  const { agent, api, follow, followAll, waitForPolls, send } = coordinator
  const session = await createTestSession(coordinator)
  const { json } = await api('POST', '/keys', { name: 'test' }, session)
  const { json: created } = await api('POST', '/boxes', { name: 'plum' })
  const headers = { authorization: `Bearer ${json.secret}` }
  const run = agent.addRun()
  const readers = [await follow(run.run.id, '', headers), await followAll('', headers)]
  await waitForPolls(2)
  await api('PATCH', `/keys/${json.key.id}`, { boxIds: [created.box.id] }, session)
  for (const reader of readers)
    t.match((await reader.ended).at(-1), { event: 'error', data: { code: 'not_found' } })
  for (const path of ['/prompts', '/prompts/conversations', `/prompts/${run.run.id}`])
    t.match(await send('GET', path, undefined, headers), {
      status: 404,
      json: { ok: false, error: { code: 'not_found' } },
    })
})
