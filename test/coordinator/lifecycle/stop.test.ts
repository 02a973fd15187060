// A coordinator that stops: with the boxes (Ctrl-C), or leaving them running.
import t from 'tap'
import { setUp } from '../../support/coordinators.ts'
import { sqliteForTest } from '../../support/db.ts'
import { failing } from '../../support/fake-provider.ts'

t.test('Ctrl-C suspends every box, and the next start wakes them', async (t) => {
  const { world, owner, boxes, newLife, until, detail, wait } = await setUp(t, await sqliteForTest(t))
  const life = await newLife()
  const running = await boxes.create(owner, { name: 'running' })
  const paused = await boxes.create(owner, { name: 'paused' })
  await until(running.id, 'running')
  await until(paused.id, 'running')
  await boxes.suspend(owner, paused.id)
  await until(paused.id, 'suspended')
  world.agentsConnect = false
  const young = await boxes.create(owner, { name: 'young' })
  await wait('young started', () => world.count('start', young.id) === 1)

  t.same(await life.suspendAllLocal('the coordinator was stopped'), ['running'])
  t.same(
    [...world.machines.values()].map((machine) => machine.state),
    ['stopped', 'stopped', 'stopped'],
  )
  t.match(await detail(running.id), {
    box: { desiredState: 'running', observedState: 'suspended' },
    job: null,
    events: [{ toState: 'suspended', reason: 'the coordinator was stopped', actor: 'system' }],
  })
  world.agentsConnect = true
  await newLife()
  t.match(await until(running.id, 'running'), { pausesSurvived: 1 })
  await until(young.id, 'running')
  t.match(await detail(paused.id), { box: { observedState: 'suspended' } })
})

t.test('a box whose machine would not stop is finished by the next start', async (t) => {
  const { world, owner, boxes, newLife, until, detail } = await setUp(t, await sqliteForTest(t))
  const life = await newLife()
  const { id } = await boxes.create(owner, {})
  await until(id, 'running')
  world.before.stop = failing(1)
  t.same(await life.suspendAllLocal('stopped'), [])
  t.match(await detail(id), { box: { observedState: 'suspending' } })
  await newLife()
  await until(id, 'running')
})

t.test('closing leaves running boxes alone', async (t) => {
  const { world, owner, boxes, newLife, until } = await setUp(t, await sqliteForTest(t))
  const life = await newLife()
  const { id } = await boxes.create(owner, {})
  await until(id, 'running')
  await life.close()
  t.equal(world.count('stop'), 0)
  await newLife()
  await until(id, 'running')
  t.equal(world.count('start'), 1)
})
