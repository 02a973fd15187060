// Waiting for a box that wakes, as exec does.
import t from 'tap'
import { newUuid } from '../../../shared/ids.ts'
import { setUp } from '../../support/coordinators.ts'
import { sqliteForTest } from '../../support/db.ts'

t.test('waiting for a box', async (t) => {
  const { world, owner, boxes, newLife, until, wait } = await setUp(t, await sqliteForTest(t))
  const life = await newLife({ connectMs: 10 })
  const { id } = await boxes.create(owner, {})
  t.match(await life.waitUntilRunning(id, 10_000), { boxId: id }, 'a new one')
  t.match(await life.waitUntilRunning(id, 10_000), { boxId: id }, 'one that runs')
  await boxes.suspend(owner, id)
  await until(id, 'suspended')
  await boxes.wake(owner, id)
  t.match(await life.waitUntilRunning(id, 10_000), { boxId: id }, 'one that wakes')

  await boxes.suspend(owner, id)
  await until(id, 'suspended')
  await t.rejects(life.waitUntilRunning(id, 20), { code: 'box_unreachable' }, 'one that does not')
  const controller = new AbortController()
  const waiting = life.waitUntilRunning(id, 10_000, controller.signal)
  controller.abort(new Error('the client left'))
  await t.rejects(waiting, { message: 'the client left' })
  await t.rejects(life.waitUntilRunning(newUuid(), 10_000), { code: 'not_found' })

  world.agentsConnect = false
  const hopeless = await boxes.create(owner, {})
  await t.rejects(life.waitUntilRunning(hopeless.id, 10_000), { code: 'box_failed' })
  await boxes.remove(owner, hopeless.id)
  await t.rejects(life.waitUntilRunning(hopeless.id, 10_000), { code: 'not_found' })
  await wait('it is gone', () => !world.machines.has(hopeless.id))
})
