// kill -9 of the coordinator at each point of a box's life: the next one goes on, and nothing is lost.
import t from 'tap'
import { createOperationService } from '../../../coordinator/operations/service.ts'
import { systemClock as clock } from '../../../shared/clock.ts'
import { type Setting, setUp } from '../../support/coordinators.ts'
import { sqliteForTest } from '../../support/db.ts'
import { dying } from '../../support/fake-provider.ts'

const CALLS = {
  create: ['create', 'start'],
  suspend: ['stop'],
  wake: ['start'],
  delete: ['destroy'],
} as const

/** Brings a new box to where the operation begins, asks for it, and says how it must end. */
async function ask(op: keyof typeof CALLS, { owner, boxes, until }: Setting, armed: () => void) {
  if (op === 'create') {
    armed()
    return { id: (await boxes.create(owner, {})).id, end: 'running' as const }
  }
  const { id } = await boxes.create(owner, {})
  await until(id, 'running')
  if (op === 'wake') {
    await boxes.suspend(owner, id)
    await until(id, 'suspended')
  }
  armed()
  if (op === 'suspend') await boxes.suspend(owner, id)
  if (op === 'wake') await boxes.wake(owner, id)
  if (op === 'delete') await boxes.remove(owner, id)
  return { id, end: ({ suspend: 'suspended', wake: 'running', delete: 'terminated' } as const)[op] }
}

for (const [op, calls] of Object.entries(CALLS) as [
  keyof typeof CALLS,
  readonly ('create' | 'start' | 'stop' | 'destroy')[],
][]) {
  for (const call of calls) {
    for (const moment of ['before', 'after'] as const) {
      t.test(`${op}: killed ${moment} the machine's ${call}`, async (t) => {
        const setting = await setUp(t, await sqliteForTest(t))
        const { world, newLife, until, detail } = setting
        await newLife()
        const { fault, reached } = dying()
        const { id, end } = await ask(op, setting, () => {
          world[moment][call] = fault
        })
        await reached
        delete world[moment][call]
        t.equal((await detail(id)).job?.op, op)
        await newLife()
        await until(id, end)
        t.match(
          world.machines.get(id)?.state,
          end === 'terminated' ? undefined : end === 'running' ? 'running' : 'stopped',
        )
      })
    }
  }
}

t.test('killed while an agent is awaited: it may come to the next coordinator', async (t) => {
  const { world, owner, boxes, newLife, until, detail, wait } = await setUp(t, await sqliteForTest(t))
  world.agentsConnect = false
  const first = await newLife()
  const { id } = await boxes.create(owner, {})
  await wait('awaiting the agent', async () => (await detail(id)).job?.step === 'connect')
  await first.close()
  t.equal((await detail(id)).job?.step, 'connect', 'closing leaves the job as it is')
  world.powerOff(id)
  await newLife()
  await wait('a second start', () => world.count('start') === 2)
  world.connect(id)
  await until(id, 'running')
  t.equal(world.count('create'), 1)
})

t.test('killed before it began: what was answered is done', async (t) => {
  const { db, world, owner, boxes, newLife, until } = await setUp(t, await sqliteForTest(t))
  const { id } = await boxes.create(owner, {})
  const dropped = await boxes.create(owner, {})
  const { operation } = await boxes.remove(owner, dropped.id)
  await newLife()
  await until(id, 'running')
  await until(dropped.id, 'terminated')
  t.match(await createOperationService({ db, clock }).get(owner, operation.id), { status: 'completed' })
  t.equal(world.count('create', dropped.id), 0)
})
