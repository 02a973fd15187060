// A box's life as its user sees it.
import t from 'tap'
import { PermanentProviderError } from '../../../coordinator/lifecycle/provider.ts'
import { createOperationService } from '../../../coordinator/operations/service.ts'
import { systemClock as clock } from '../../../shared/clock.ts'
import { setUp } from '../../support/coordinators.ts'
import { onEachDatabase } from '../../support/db.ts'
import { dying, failing } from '../../support/fake-provider.ts'

onEachDatabase(t, async (t, newDb) => {
  t.test('create, suspend, wake, delete', async (t) => {
    const { db, world, owner, boxes, newLife, until, states } = await setUp(t, await newDb(t))
    await newLife()
    const { id } = await boxes.create(owner, {})
    t.match(await until(id, 'running'), {
      job: null,
      box: { isolation: { level: 'process' } },
      pausesSurvived: 0,
    })
    await boxes.suspend(owner, id)
    await until(id, 'suspended')
    t.equal(world.machines.get(id)?.state, 'stopped')
    await boxes.wake(owner, id)
    t.match(await until(id, 'running'), { pausesSurvived: 1 })
    const { operation } = await boxes.remove(owner, id)
    const gone = await until(id, 'terminated')
    t.equal(world.machines.size, 0)
    t.match(await createOperationService({ db, clock }).get(owner, operation.id), {
      status: 'completed',
      completedAt: gone.events[0]?.at,
    })
    t.match(await boxes.remove(owner, id), { operation: { id: operation.id, status: 'completed' } })
    t.same(await states(id), [
      ...['requested', 'provisioning', 'bootstrapping', 'running', 'suspending', 'suspended'],
      ...['waking', 'running', 'terminating', 'terminated'],
    ])
  })

  t.test('failures are tried again and told meanwhile', async (t) => {
    const { world, owner, boxes, newLife, until, detail, wait } = await setUp(t, await newDb(t))
    world.before.create = failing(1, new Error('no room'))
    await newLife({ backoff: () => 100_000 })
    const { id } = await boxes.create(owner, {})
    await wait('a failure', async () => (await detail(id)).job?.attempt === 1)
    t.match(await detail(id), {
      box: { observedState: 'provisioning' },
      job: { op: 'create', step: 'provision', lastError: 'no room', nextRetryAt: /^2/ },
    })
    await newLife()
    await boxes.wake(owner, id)
    t.equal(world.count('create'), 1, 'it is not due')
    await boxes.suspend(owner, id)
    await until(id, 'suspended')
    t.equal(world.count('create'), 2, 'something new is wanted: tried at once')
  })

  t.test('a create that never works ends in provision_failed, its machine stopped', async (t) => {
    const { world, owner, boxes, newLife, until } = await setUp(t, await newDb(t))
    world.agentsConnect = false
    await newLife({ connectMs: 1 })
    const { id } = await boxes.create(owner, {})
    t.match(await until(id, 'provision_failed'), { box: { desiredState: 'running' } })
    t.equal(world.count('start'), 5)
    t.equal(world.machines.get(id)?.state, 'stopped')
    await t.rejects(boxes.wake(owner, id), { code: 'box_failed' })
    await boxes.remove(owner, id)
    await until(id, 'terminated')
  })

  t.test('a failure that cannot be mended is not tried again', async (t) => {
    const { world, owner, boxes, newLife, until } = await setUp(t, await newDb(t))
    world.before.create = failing(1, new PermanentProviderError('no such kernel'))
    await newLife()
    const { id } = await boxes.create(owner, {})
    t.match(await until(id, 'provision_failed'), { events: [{ reason: 'no such kernel' }] })
    t.equal(world.count('create'), 1)
  })

  t.test('a delete while the machine is being made waits for that step, then wins', async (t) => {
    const { world, owner, boxes, newLife, until, states } = await setUp(t, await newDb(t))
    const made = Promise.withResolvers<void>()
    const begun = Promise.withResolvers<void>()
    world.before.create = () => {
      begun.resolve()
      return made.promise
    }
    await newLife()
    const { id } = await boxes.create(owner, {})
    await begun.promise
    await boxes.remove(owner, id)
    t.equal(world.count('destroy'), 0)
    made.resolve()
    await until(id, 'terminated')
    t.equal(world.machines.size, 0)
    t.equal(world.count('start'), 0)
    t.same(await states(id), ['requested', 'provisioning', 'terminating', 'terminated'])
  })

  t.test('a delete does not wait for an agent that is awaited', async (t) => {
    const { world, owner, boxes, newLife, until, detail, wait } = await setUp(t, await newDb(t))
    world.agentsConnect = false
    await newLife({ connectMs: 60_000 })
    const { id } = await boxes.create(owner, {})
    await wait('waiting for the agent', async () => (await detail(id)).job?.step === 'connect')
    await boxes.remove(owner, id)
    await until(id, 'terminated')
  })

  t.test('wanting this and that in quick turn ends with the last wish', async (t) => {
    const { world, owner, boxes, newLife, until } = await setUp(t, await newDb(t))
    await newLife()
    const { id } = await boxes.create(owner, {})
    for (let i = 0; i < 10; i++) {
      await boxes.suspend(owner, id)
      await new Promise((resolve) => setTimeout(resolve, i))
      await boxes.wake(owner, id)
    }
    await until(id, 'running')
    t.equal(world.machines.get(id)?.state, 'running')
    for (let i = 0; i < 10; i++) await (i % 2 ? boxes.suspend(owner, id) : boxes.wake(owner, id))
    await until(id, 'suspended')
    t.equal(world.machines.get(id)?.state, 'stopped')
  })

  t.test('a box whose machine does not answer holds up no other', async (t) => {
    const { world, owner, boxes, newLife, until } = await setUp(t, await newDb(t))
    const { fault } = dying()
    const stuck = await boxes.create(owner, { name: 'stuck' })
    world.before.create = (id) => (id === stuck.id ? fault(id) : undefined)
    world.agentsConnect = false
    await newLife({ machines: 2 })
    const waiting = await boxes.create(owner, { name: 'waiting' })
    const third = await boxes.create(owner, { name: 'third' })
    await boxes.remove(owner, third.id)
    await until(third.id, 'terminated')
    world.connect(waiting.id)
    await until(waiting.id, 'running')
    await newLife()
    world.before.create = () => undefined
    world.agentsConnect = true
  })
})
