// Waiting for a running box, as an exec request does.
import t from 'tap'
import { newUuid } from '../../../../shared/ids.ts'
import { createRestartableLifecycle } from '../../../support/restartable-lifecycle.ts'
import { sqliteForTest } from '../../../support/sqlite.ts'
import { DEADLINE_MS } from '../../../support/wait-until.ts'

t.test('waits until a box is running, times out, aborts, and rejects failed or deleted boxes', async (t) => {
  const lifecycle = await createRestartableLifecycle(t, await sqliteForTest(t))
  const { infra, owner, boxes, startLifecycle, waitForState, waitFor, getDetail } = lifecycle
  const { waitUntilRunning } = await startLifecycle({ connectTimeoutMs: 10 })
  const { id } = await boxes.create(owner, {})
  t.match(await waitUntilRunning(id, DEADLINE_MS), { boxId: id }, 'resolves for a new box')
  t.match(await waitUntilRunning(id, DEADLINE_MS), { boxId: id }, 'resolves for a running box')
  await boxes.suspend(owner, id)
  await waitForState(id, 'suspended')
  await boxes.wake(owner, id)
  t.match(await waitUntilRunning(id, DEADLINE_MS), { boxId: id }, 'resolves for a waking box')

  await boxes.suspend(owner, id)
  await waitForState(id, 'suspended')
  await t.rejects(waitUntilRunning(id, 20), { code: 'box_unreachable' }, 'times out for a suspended box')
  const controller = new AbortController()
  const waiting = waitUntilRunning(id, DEADLINE_MS, controller.signal)
  controller.abort(new Error('the client disconnected'))
  const abortedAt = performance.now()
  await t.rejects(waiting, { message: 'the client disconnected' })
  t.ok(performance.now() - abortedAt < DEADLINE_MS, 'long before the timeout')
  await t.rejects(waitUntilRunning(newUuid(), DEADLINE_MS), { code: 'not_found' })

  infra.before.start = () => Promise.reject(new Error('The archive is damaged.'))
  await boxes.wake(owner, id)
  await waitFor('a failed attempt', async () => (await getDetail(id)).job?.lastError != null)
  const timeout = 'The box did not start in time. The last attempt failed: The archive is damaged.'
  await t.rejects(waitUntilRunning(id, 20), { code: 'box_unreachable', message: timeout })
  delete infra.before.start

  infra.agentsConnect = false
  const unconnected = await boxes.create(owner, {})
  await t.rejects(waitUntilRunning(unconnected.id, DEADLINE_MS), { code: 'box_failed' })
  await boxes.remove(owner, unconnected.id)
  await t.rejects(waitUntilRunning(unconnected.id, DEADLINE_MS), { code: 'not_found' })
  await waitFor('the removal of the machine', () => !infra.machines.has(unconnected.id))
})
