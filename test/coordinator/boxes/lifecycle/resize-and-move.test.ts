// Resizing and moving boxes: each region has its own machines and archives.

import t, { type Test } from 'tap'
import { enqueueSleep } from '../../../../coordinator/boxes/lifecycle/enqueue-jobs.ts'
import type { Lifecycle, LifecycleOptions } from '../../../../coordinator/boxes/lifecycle/lifecycle.ts'
import { createMoveBox } from '../../../../coordinator/boxes/move.ts'
import { createResizes } from '../../../../coordinator/boxes/resize.ts'
import { lockBox } from '../../../../coordinator/db/lock-box.ts'
import { transaction } from '../../../../coordinator/db/transaction.ts'
import { PermanentProviderError, type Provider } from '../../../../coordinator/providers/provider.ts'
import { createProviders } from '../../../../coordinator/providers/regions.ts'
import { systemClock } from '../../../../shared/clock.ts'
import { ApiError } from '../../../../shared/errors.ts'
import type { Region } from '../../../../shared/tiers.ts'
import { createTestAdmit } from '../../../support/admit.ts'
import { FakeImages, withImages } from '../../../support/fake-images.ts'
import {
  createFailingFault,
  createHangingFault,
  FakeInfrastructure,
} from '../../../support/fake-infrastructure.ts'
import { TEST_HOST } from '../../../support/replica.ts'
import { createRestartableLifecycle } from '../../../support/restartable-lifecycle.ts'
import { sqliteForTest } from '../../../support/sqlite.ts'
import { createTestBoxService } from '../../../support/workspace.ts'

const TARGET: Region = 'eu-central-1'

/** A running box with files, in a lifecycle with two regions. */
async function createTwoRegions(t: Test) {
  const lifecycle = await createRestartableLifecycle(t, await sqliteForTest(t))
  const { db, infra: source, owner, boxes, startLifecycle, waitForState, waitFor, getDetail } = lifecycle
  const target = new FakeInfrastructure(source)
  source.canFreeze = true
  target.canFreeze = true
  const providers = createProviders(
    new Map([
      ['us-west-2', source.provider],
      [TARGET, target.provider],
    ] as const),
  )
  let current: Lifecycle | undefined
  const schedule = (id: string) => current?.schedule(id)
  const start = async (options: Partial<LifecycleOptions> = {}) => {
    current = await startLifecycle({ providers, ...options })
    return current
  }
  await start()
  const { id } = await boxes.create(owner, {})
  await waitForState(id, 'running')
  const machine = source.machines.get(id)
  if (machine) machine.files = 'precious'
  const options = { db, clock: systemClock, boxes, admit: createTestAdmit(), schedule }
  const moveBox = createMoveBox({ ...options, regions: providers })
  const resizes = createResizes({ ...options, host: TEST_HOST, providers })
  return {
    ...{ ...lifecycle, source, target, id, start, moveBox, resizes },
    move: (region: Region = TARGET) => moveBox(owner, id, region),
    resize: (tier: 'nano' | 'pro') => resizes.resize(owner, id, tier, null),
    async suspend() {
      await boxes.suspend(owner, id)
      return waitForState(id, 'suspended')
    },
    async sleep() {
      await transaction(db, async (trx) => {
        const box = await lockBox(trx, id)
        if (box) await enqueueSleep(trx, box, { reason: 'packed', now: Date.now() })
      })
      schedule(id)
      return waitForState(id, 'deep_sleep')
    },
    /** Waits until the box is in the region and nothing is left in the other one. */
    waitForRegion: (region: Region, left: FakeInfrastructure) =>
      waitFor(`the box to be in ${region} only`, async () => {
        const { box, job } = await getDetail(id)
        const isLanded = box.region === region && box.desiredRegion === null && job === null
        return isLanded && left.machines.size + left.archives.size === 0
      }),
  }
}

t.test('a resize restarts a running box with the new tier', async (t) => {
  const box = await createTwoRegions(t)
  t.match(await box.resize('pro'), { tier: 'pro', desiredState: 'running' })
  await box.waitFor('the restart', () => box.source.countCalls('start') === 2)
  t.match(await box.waitForState(box.id, 'running'), {
    box: { tier: 'pro' },
    events: [
      { fromState: 'resizing', toState: 'running', reason: 'resized from lite to pro' },
      { fromState: 'running', toState: 'resizing' },
    ],
  })
  t.equal(box.source.machines.get(box.id)?.files, 'precious')
})

t.test('a running box keeps its processes where its machine can be resized', async (t) => {
  const box = await createTwoRegions(t)
  let canResize = true
  const restarted: string[] = []
  const provider = box.source.createResizableProvider(() => canResize)
  await box.start({
    providers: createProviders(new Map([['us-west-2', provider]])),
    async restartAgent(boxId) {
      restarted.push(boxId)
      throw new ApiError('box_unreachable')
    },
  })
  box.source.before.resize = createFailingFault(1)
  await box.resize('pro')
  t.match(await box.waitForState(box.id, 'running'), {
    box: { tier: 'pro' },
    events: [
      { fromState: 'resizing', toState: 'running', reason: 'resized from lite to pro' },
      { fromState: 'running', toState: 'resizing' },
    ],
  })
  t.equal(box.source.countCalls('resize'), 2, 'the failed call was repeated')
  t.equal(box.source.countCalls('start'), 1)
  t.same(restarted, [box.id])

  canResize = false
  await box.resize('nano')
  await box.waitFor('the restart', () => box.source.countCalls('start') === 2)
  await box.waitForState(box.id, 'running')
  t.same(restarted, [box.id])
})

t.test('a box moves only between providers that keep its files in the same form', async (t) => {
  const { db, owner, boxes } = await createTwoRegions(t)
  const infra = new FakeInfrastructure()
  const oci = withImages(infra.provider, new FakeImages(), 'docker')
  const byRegion = new Map<Region, Provider>([
    ['us-west-2', infra.provider],
    ['us-west-1', infra.provider],
    ['us-east-1', oci],
    ['us-east-2', { ...oci, name: 'podman' }],
    ['eu-central-1', { ...oci, name: 'incus', archiveFormat: 'incus' }],
  ])
  const regions = createProviders(byRegion)
  const options = { db, clock: systemClock, boxes, admit: createTestAdmit(), schedule: () => undefined }
  const move = createMoveBox({ ...options, regions })
  const others: Record<string, Region[]> = {
    'us-west-2': ['us-west-1'],
    'us-east-1': ['us-east-2'],
    'eu-central-1': [],
  }
  for (const [from, allowed] of Object.entries(others))
    for (const to of byRegion.keys()) {
      if (to === from) continue
      const { id } = await createTestBoxService(db, { regions }).create(owner, { region: from as Region })
      await db.updateTable('boxes').set({ observed_state: 'running' }).where('id', '=', id).execute()
      await db.deleteFrom('jobs').where('box_id', '=', id).execute()
      await db.deleteFrom('box_moves').execute()
      const advice = allowed.length > 0 ? `It can move to: ${allowed.join(', ')}.` : 'No other region'
      const moving = move(owner, id, to)
      if (allowed.includes(to)) t.match(await moving, { desiredRegion: to })
      else await t.rejects(moving, { code: 'move_rejected', message: new RegExp(advice) }, `${from} to ${to}`)
    }
})

t.test('a moved box has the provider of its new region', async (t) => {
  const box = await createTwoRegions(t)
  const providers = createProviders(
    new Map<Region, Provider>([
      ['us-west-2', box.source.provider],
      [TARGET, { ...box.target.provider, name: 'other' }],
    ]),
  )
  await box.start({ providers })
  const readProvider = async () =>
    (await box.db.selectFrom('boxes').select('provider').executeTakeFirstOrThrow()).provider
  t.equal(await readProvider(), 'fake')
  await box.move()
  await box.waitForRegion(TARGET, box.source)
  t.equal(await readProvider(), 'other')
})

t.test('a suspended box is resized at once; a frozen one is stopped', async (t) => {
  const box = await createTwoRegions(t)
  t.match(await box.suspend(), { box: { suspendedAs: 'frozen' } })
  await box.resize('pro')
  await box.waitFor('the stop', async () => (await box.getDetail(box.id)).box.suspendedAs === 'stopped')
  t.match(await box.waitForState(box.id, 'suspended'), {
    events: [{ reason: 'resized from lite to pro; its processes were terminated' }],
  })
  t.match(await box.resize('nano'), { tier: 'nano' })
  t.equal((await box.getDetail(box.id)).job, null)
})

t.test('a suspend during a resize leaves a suspended box with the new tier', async (t) => {
  const box = await createTwoRegions(t)
  box.source.agentsConnect = false
  await box.resize('pro')
  await box.waitFor('the connect step', async () => (await box.getDetail(box.id)).job?.step === 'connect')
  box.source.flushFails = true
  box.source.connectAgent(box.id)
  await box.boxes.suspend(box.owner, box.id)
  t.match(await box.waitForState(box.id, 'suspended'), { box: { tier: 'pro' } })
})

t.test('a running box runs in the new region after a move, with its files', async (t) => {
  const box = await createTwoRegions(t)
  t.match(await box.move(), { region: 'us-west-2', desiredRegion: TARGET })
  await box.waitForRegion(TARGET, box.source)
  t.match(await box.waitForState(box.id, 'running'), {
    events: [{ fromState: 'migrating', toState: 'running', reason: `moved from us-west-2 to ${TARGET}` }],
  })
  t.match(box.target.machines.get(box.id), { state: 'running', files: 'precious' })
  t.equal(box.target.archives.size, 0)
})

t.test('a box moves without a copy where both regions have one disk', async (t) => {
  const running = await createTwoRegions(t)
  running.target.onSameDisk = new Map([['us-west-2', running.source]])
  await running.move()
  await running.waitForRegion(TARGET, running.source)
  t.match(await running.waitForState(running.id, 'running'), {
    events: [
      { fromState: 'migrating', toState: 'running', reason: /to eu-central-1, on the same disk: no files/ },
      { fromState: 'running', toState: 'migrating' },
    ],
  })
  t.match(running.target.machines.get(running.id), { state: 'running', files: 'precious' })
  t.equal(running.source.countCalls('capture') + running.target.countCalls('create'), 0)

  const suspended = await createTwoRegions(t)
  suspended.target.onSameDisk = new Map([['us-west-2', suspended.source]])
  await suspended.suspend()
  await suspended.move()
  await suspended.waitForRegion(TARGET, suspended.source)
  t.match(await suspended.waitForState(suspended.id, 'suspended'), { box: { suspendedAs: 'stopped' } })
  t.equal(suspended.target.countCalls('start'), 0)
  await suspended.boxes.wake(suspended.owner, suspended.id)
  await suspended.waitForState(suspended.id, 'running')
  t.equal(suspended.target.machines.get(suspended.id)?.files, 'precious')
})

t.test('a box that was taken over stays in the new region when it does not start', async (t) => {
  const box = await createTwoRegions(t)
  box.target.onSameDisk = new Map([['us-west-2', box.source]])
  // More failures than a move has attempts: the outcome of the call is unknown each time.
  box.target.after.takeOver = createFailingFault(7)
  box.target.before.start = createFailingFault(9, new Error('no space left'))
  await box.move()
  await box.waitForRegion(TARGET, box.source)
  const { events } = await box.waitForState(box.id, 'running')
  t.ok(
    events.some(({ reason }) =>
      reason?.startsWith(`the box was moved to ${TARGET}, and could not be started: no space left`),
    ),
  )
  t.match(box.target.machines.get(box.id), { state: 'running', files: 'precious' })
})

t.test('a move continues after a kill while the machine is taken over', async (t) => {
  for (const moment of ['before', 'after'] as const) {
    const box = await createTwoRegions(t)
    box.target.onSameDisk = new Map([['us-west-2', box.source]])
    const { fault, triggered } = createHangingFault()
    box.target[moment].takeOver = fault
    await box.move()
    await triggered
    delete box.target[moment].takeOver
    await box.start()
    await box.waitForRegion(TARGET, box.source)
    await box.waitForState(box.id, 'running')
    t.match(box.target.machines.get(box.id), { state: 'running', files: 'precious' }, moment)
  }
})

t.test('a suspended box stays suspended, and a packed one stays packed', async (t) => {
  const suspended = await createTwoRegions(t)
  await suspended.suspend()
  await suspended.move()
  await suspended.waitForRegion(TARGET, suspended.source)
  t.match(await suspended.waitForState(suspended.id, 'suspended'), { box: { suspendedAs: 'stopped' } })
  t.equal(suspended.target.countCalls('start'), 0)
  t.equal(suspended.target.machines.get(suspended.id)?.files, 'precious')

  const packed = await createTwoRegions(t)
  await packed.suspend()
  await packed.sleep()
  await packed.move()
  await packed.waitForRegion(TARGET, packed.source)
  t.match(await packed.getDetail(packed.id), { box: { observedState: 'deep_sleep' } })
  t.equal(packed.target.machines.size, 0)
  await packed.boxes.wake(packed.owner, packed.id)
  await packed.waitForState(packed.id, 'running')
  t.equal(packed.target.machines.get(packed.id)?.files, 'precious')
})

t.test('a box returns to its region when the new one fails', async (t) => {
  const failures = { writeArchive: 9, create: 9, start: 9 } as const
  for (const method of Object.keys(failures) as (keyof typeof failures)[]) {
    const box = await createTwoRegions(t)
    box.target.before[method] = createFailingFault(9, new Error('no space left'))
    await box.move()
    await box.waitForRegion('us-west-2', box.target)
    const { events } = await box.waitForState(box.id, 'running')
    t.match(
      events.find(({ fromState }) => fromState === 'migrating')?.reason,
      `the move to ${TARGET} failed: no space left; the box stays in us-west-2`,
    )
    t.match(box.source.machines.get(box.id), { state: 'running', files: 'precious' })
    t.equal(box.source.archives.size, 0)
    await box.move()
    await box.waitForRegion(TARGET, box.source)
  }
})

t.test('a move that cannot succeed is rolled back at once', async (t) => {
  const box = await createTwoRegions(t)
  await box.suspend()
  await box.sleep()
  box.target.before.writeArchive = createFailingFault(1, new PermanentProviderError('the archive is damaged'))
  await box.move()
  await box.waitForRegion('us-west-2', box.target)
  t.match(await box.getDetail(box.id), {
    box: { observedState: 'deep_sleep' },
    events: [{ reason: /archive is damaged; the box stays in us-west-2$/ }],
  })
  t.equal(box.source.archives.size, 1)
})

for (const region of ['source', 'target'] as const)
  for (const call of [
    'stop',
    'capture',
    'writeArchive',
    'create',
    'start',
    'destroy',
    'removeArchive',
  ] as const)
    t.test(`a move continues after a kill at the ${call} of the ${region}`, async (t) => {
      const box = await createTwoRegions(t)
      const { fault, triggered } = createHangingFault()
      box[region].after[call] = fault
      await box.move()
      const landed = box.waitForRegion(TARGET, box.source)
      await Promise.race([triggered, landed])
      delete box[region].after[call]
      await box.start()
      await landed
      await box.waitForState(box.id, 'running')
      t.match(box.target.machines.get(box.id), { state: 'running', files: 'precious' })
      t.equal(box.target.archives.size, 0)
    })

t.test('a box can be deleted during a move', async (t) => {
  const box = await createTwoRegions(t)
  box.target.before.writeArchive = createFailingFault(2)
  box.target.after.start = createFailingFault(1)
  await box.move()
  await box.waitFor(
    'the migration',
    async () => (await box.getDetail(box.id)).box.observedState === 'migrating',
  )
  await box.boxes.remove(box.owner, box.id)
  t.match(await box.waitForState(box.id, 'terminated'), { box: { desiredRegion: null } })
  for (const { machines, archives } of [box.source, box.target]) t.equal(machines.size + archives.size, 0)
})

t.test('a box that changes now is not resized or moved', async (t) => {
  const box = await createTwoRegions(t)
  box.source.agentsConnect = false
  const { id } = await box.boxes.create(box.owner, {})
  const rejections = [box.moveBox(box.owner, id, TARGET), box.resizes.resize(box.owner, id, 'pro', null)]
  await t.rejects(rejections[0] as Promise<unknown>, {
    code: 'move_rejected',
    message: /requested|provisioning|bootstrapping/,
  })
  await t.rejects(rejections[1] as Promise<unknown>, { code: 'resize_rejected' })
  await box.move()
  await t.rejects(box.resize('pro'), { code: 'resize_rejected' })
  t.match(await box.move(), { desiredRegion: TARGET }, 'the same move again')
  await t.rejects(box.move('us-east-1'), { code: 'move_rejected' })
  await box.boxes.remove(box.owner, box.id)
  await t.rejects(box.resize('pro'), { code: 'not_found' })
  await t.rejects(box.move(), { code: 'not_found' })
})
