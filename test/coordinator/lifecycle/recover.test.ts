// Boxes that are cut off: left alone while their machine runs, started again when it does not.
import t from 'tap'
import { setUp } from '../../support/coordinators.ts'
import { sqliteForTest } from '../../support/db.ts'

t.test('a machine that stopped by itself is started again', async (t) => {
  const { world, owner, boxes, newLife, until, states, wait } = await setUp(t, await sqliteForTest(t))
  await newLife()
  const { id } = await boxes.create(owner, {})
  await until(id, 'running')
  world.powerOff(id)
  await wait('a second start', () => world.count('start') === 2)
  t.match(await until(id, 'running'), { pausesSurvived: 0 })
  t.same((await states(id)).slice(-3), ['running', 'degraded', 'running'])
})

t.test('a machine that runs without its connection is degraded, and never restarted', async (t) => {
  const { world, owner, boxes, newLife, until, detail, wait } = await setUp(t, await sqliteForTest(t))
  await newLife()
  const { id } = await boxes.create(owner, {})
  await until(id, 'running')
  world.cut(id)
  await wait('some looks', () => world.count('inspect') > 3)
  t.match(await detail(id), {
    box: { observedState: 'degraded' },
    job: { op: 'recover', step: 'inspect', lastError: 'The machine runs, but its agent does not connect.' },
  })
  world.connect(id)
  await until(id, 'running')
  t.equal(world.count('stop'), 0)
  t.equal(world.count('start'), 1)
})

t.test('it need not wait for the next look when it is there again', async (t) => {
  const { world, owner, boxes, newLife, until, detail, wait } = await setUp(t, await sqliteForTest(t))
  await newLife({ backoff: () => 1_000_000 })
  const { id } = await boxes.create(owner, {})
  await until(id, 'running')
  world.cut(id)
  await wait('the wait for the next look', async () => (await detail(id)).job?.nextRetryAt != null)
  world.connect(id)
  await until(id, 'running')
})

t.test('a short cut is nothing', async (t) => {
  const { world, owner, boxes, newLife, until, states } = await setUp(t, await sqliteForTest(t))
  const life = await newLife({ lostMs: 60_000 })
  const { id } = await boxes.create(owner, {})
  await until(id, 'running')
  world.cut(id)
  world.connect(id)
  await life.close()
  t.equal(world.count('inspect'), 0)
  t.same((await states(id)).at(-1), 'running')
})

t.test('after a reboot of the host, the next start finds out and starts the machines', async (t) => {
  const { world, owner, boxes, newLife, until, wait } = await setUp(t, await sqliteForTest(t))
  const first = await newLife()
  const [gone, alive] = [await boxes.create(owner, {}), await boxes.create(owner, {})]
  await until(gone.id, 'running')
  await until(alive.id, 'running')
  await first.close()
  world.powerOff(gone.id)
  world.cut(alive.id)
  await newLife({ lostMs: 60_000 })
  await wait('a second start', () => world.count('start', gone.id) === 2)
  await until(gone.id, 'running')
  t.equal(world.count('start', alive.id), 1, 'the other one is given time to come back')
})

t.test('a box that is cut off can be suspended and deleted', async (t) => {
  const { world, owner, boxes, newLife, until, detail, wait } = await setUp(t, await sqliteForTest(t))
  await newLife()
  const { id } = await boxes.create(owner, {})
  await until(id, 'running')
  world.cut(id)
  await wait('degraded', async () => (await detail(id)).box.observedState === 'degraded')
  await boxes.suspend(owner, id)
  await until(id, 'suspended')
  await boxes.remove(owner, id)
  await until(id, 'terminated')
})
