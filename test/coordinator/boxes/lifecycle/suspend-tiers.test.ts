// The tiers of a suspend: a box is frozen, later stopped, later packed into an archive.

import t, { type Test } from 'tap'
import { enqueueSleep, enqueueStop } from '../../../../coordinator/boxes/lifecycle/enqueue-jobs.ts'
import type { LifecycleOptions } from '../../../../coordinator/boxes/lifecycle/lifecycle.ts'
import { lockBox } from '../../../../coordinator/db/lock-box.ts'
import type { Db } from '../../../../coordinator/db/open.ts'
import { transaction } from '../../../../coordinator/db/transaction.ts'
import { PermanentProviderError } from '../../../../coordinator/providers/provider.ts'
import { onEachDatabase } from '../../../support/db.ts'
import { createFailingFault, createHangingFault } from '../../../support/fake-infrastructure.ts'
import { createRestartableLifecycle } from '../../../support/restartable-lifecycle.ts'
import { sqliteForTest } from '../../../support/sqlite.ts'

const FROZEN_REASON = /; its processes are frozen and keep their memory$/
const STOPPED_REASON = /; its processes were terminated$/

/** A lifecycle with one running box whose machine can be frozen. */
async function createRunningBox(t: Test, db: Db, options: Partial<LifecycleOptions> = {}) {
  const lifecycle = await createRestartableLifecycle(t, db)
  const { infra, owner, boxes, startLifecycle, waitForState, waitFor, getDetail } = lifecycle
  infra.canFreeze = true
  const service = await startLifecycle(options)
  const { id } = await boxes.create(owner, {})
  await waitForState(id, 'running')
  const machine = infra.machines.get(id)
  if (machine === undefined) throw new Error('The box has no machine.')
  machine.files = 'precious'
  let current = service
  return {
    ...lifecycle,
    ...{ id, service },
    machineState: () => infra.machines.get(id)?.state ?? 'absent',
    async restart(restartOptions: Partial<LifecycleOptions> = {}) {
      current = await startLifecycle({ ...options, ...restartOptions })
      return current
    },
    async suspend() {
      await boxes.suspend(owner, id)
      return waitForState(id, 'suspended')
    },
    async wake() {
      await boxes.wake(owner, id)
      return waitForState(id, 'running')
    },
    /** Requests the job of a schedule. */
    async request(enqueue: typeof enqueueStop, reason: string): Promise<boolean> {
      const isEnqueued = await transaction(db, async (trx) => {
        const box = await lockBox(trx, id)
        return box !== undefined && enqueue(trx, box, { reason, now: Date.now() })
      })
      current.schedule(id)
      return isEnqueued
    },
    waitForSuspendedAs: (suspendedAs: string) =>
      waitFor(`the box to be ${suspendedAs}`, async () => {
        const { box, job } = await getDetail(id)
        return box.suspendedAs === suspendedAs && job === null
      }),
  }
}

onEachDatabase(t, async (t, newDb) => {
  t.test('a suspend freezes the box, and a wake continues it', async (t) => {
    const { suspend, wake, machineState, infra } = await createRunningBox(t, await newDb(t))
    t.match(await suspend(), {
      box: { suspendedAs: 'frozen' },
      events: [{ fromState: 'suspending', toState: 'suspended', reason: FROZEN_REASON }],
    })
    t.equal(machineState(), 'frozen')
    t.match(await wake(), { box: { suspendedAs: null }, pausesSurvived: 1 })
    t.equal(machineState(), 'running')
    t.equal(infra.countCalls('stop'), 0)
  })

  t.test('a suspend with stop terminates the processes, also of a frozen box', async (t) => {
    const box = await createRunningBox(t, await newDb(t))
    const { infra, boxes, owner, id, waitForState, suspend, wake, machineState, waitForSuspendedAs } = box
    const stop = () => boxes.suspend(owner, id, { stop: true })
    await stop()
    t.match(await waitForState(id, 'suspended'), { box: { suspendedAs: 'stopped' } })
    t.same([machineState(), infra.countCalls('freeze')], ['stopped', 0])

    await wake()
    await suspend()
    t.equal(machineState(), 'frozen')
    await stop()
    await waitForSuspendedAs('stopped')
    t.equal(machineState(), 'stopped')
    const { events } = await box.getDetail(id)
    await stop()
    t.same((await box.getDetail(id)).events, events, 'no effect on a stopped box')
    t.match(await wake(), { pausesSurvived: 0 })
    t.equal(infra.machines.get(id)?.files, 'precious')
  })

  t.test('a frozen box is stopped after a while, and stays suspended', async (t) => {
    const box = await createRunningBox(t, await newDb(t))
    await box.suspend()
    t.equal(await box.request(enqueueStop, 'stopped: frozen for 60 minutes'), true)
    await box.waitForSuspendedAs('stopped')
    t.match(await box.getDetail(box.id), {
      box: { observedState: 'suspended', desiredState: 'suspended' },
      events: [
        {
          fromState: 'suspended',
          toState: 'suspended',
          reason: 'stopped: frozen for 60 minutes; its processes were terminated',
          actor: 'system',
        },
      ],
    })
    t.equal(box.machineState(), 'stopped')
    t.equal(await box.request(enqueueStop, 'stopped again'), false)
    t.match(await box.wake(), { pausesSurvived: 0 })
  })

  t.test('deep sleep replaces the machine by an archive, and a wake brings its files back', async (t) => {
    const box = await createRunningBox(t, await newDb(t))
    t.equal(await box.request(enqueueSleep, 'asleep'), false, 'a running box is not packed')
    await box.suspend()
    t.equal(await box.request(enqueueSleep, 'packed into an archive: suspended for 14 days'), true)
    t.match(await box.waitForState(box.id, 'deep_sleep'), {
      box: { suspendedAs: null },
      events: [
        {
          fromState: 'suspended',
          toState: 'deep_sleep',
          reason: 'packed into an archive: suspended for 14 days',
        },
      ],
    })
    t.equal(box.machineState(), 'absent')
    t.same([...box.infra.archives.values()], ['precious'])
    t.match(await box.wake(), { pausesSurvived: 0 })
    t.equal(box.infra.machines.get(box.id)?.files, 'precious')
    await box.waitFor('the removal of the archive', () => box.infra.archives.size === 0)
  })
})

t.test('a failed deep sleep leaves the box suspended, and is tried again a day later', async (t) => {
  const DAY_MS = 24 * 60 * 60_000
  const problem = 'A path is longer than 4095 bytes. Shorten it'
  for (const [name, attempts, fault] of [
    ['permanent', 1, () => Promise.reject(new PermanentProviderError(`${problem}.`))],
    ['repeated', 5, () => Promise.reject(new Error(`${problem}.`))],
  ] as const) {
    const box = await createRunningBox(t, await sqliteForTest(t))
    await box.suspend()
    const startedAt = Date.now()
    box.infra.before.capture = fault
    t.equal(await box.request(enqueueSleep, 'packed'), true)
    await box.waitFor('the failure', async () => (await box.getDetail(box.id)).job === null)
    t.match(
      await box.getDetail(box.id),
      {
        box: { observedState: 'suspended', desiredState: 'suspended', suspendedAs: 'stopped' },
        events: [
          {
            toState: 'suspended',
            reason: `packing the box into an archive failed: ${problem}; the box stays suspended; its processes were terminated`,
          },
        ],
      },
      name,
    )
    t.equal(box.infra.countCalls('capture'), attempts)
    const schedules = box.db.selectFrom('schedules').selectAll().where('target_id', '=', box.id)
    const { due_at: dueAt } = await schedules.where('kind', '=', 'deep_sleep').executeTakeFirstOrThrow()
    t.ok(dueAt >= startedAt + DAY_MS, `${name}: ${dueAt - startedAt} ms later`)

    delete box.infra.before.capture
    t.equal(await box.request(enqueueSleep, 'packed'), true, 'a second attempt')
    await box.waitForState(box.id, 'deep_sleep')
    await box.wake()
    t.equal(box.infra.machines.get(box.id)?.files, 'precious')
  }
})

t.test('a deep sleep whose archive is complete is retried until the machine is removed', async (t) => {
  const box = await createRunningBox(t, await sqliteForTest(t))
  await box.suspend()
  box.infra.before.destroy = createFailingFault(8)
  await box.request(enqueueSleep, 'packed')
  await box.waitForState(box.id, 'deep_sleep')
  t.equal(box.infra.countCalls('destroy'), 9)
  await box.wake()
  t.equal(box.infra.machines.get(box.id)?.files, 'precious')
})

t.test('a box is stopped where freezing is turned off, or its agent is not connected', async (t) => {
  const turnedOff = await createRunningBox(t, await sqliteForTest(t), { freezesBoxes: false })
  t.match(await turnedOff.suspend(), {
    box: { suspendedAs: 'stopped' },
    events: [{ reason: STOPPED_REASON }],
  })
  const disconnected = await createRunningBox(t, await sqliteForTest(t))
  disconnected.infra.flushFails = true
  disconnected.infra.dropTunnel(disconnected.id)
  t.match(await disconnected.suspend(), { box: { suspendedAs: 'stopped' } })
})

t.test('a frozen box whose agent does not return is restarted after three attempts', async (t) => {
  const box = await createRunningBox(t, await sqliteForTest(t), { connectTimeoutMs: 10 })
  await box.suspend()
  box.infra.agentsConnect = false
  await box.boxes.wake(box.owner, box.id)
  await box.waitFor('a restart', () => box.infra.countCalls('stop') > 0)
  t.equal(box.infra.countCalls('start') >= 4, true, 'started once, and continued three times')
  box.infra.agentsConnect = true
  t.match(await box.waitForState(box.id, 'running'), { pausesSurvived: 0 })
})

t.test('a suspend with stop during the freeze of the box leaves a stopped box', async (t) => {
  const box = await createRunningBox(t, await sqliteForTest(t))
  const freezing = Promise.withResolvers<void>()
  const released = Promise.withResolvers<void>()
  box.infra.before.freeze = () => {
    freezing.resolve()
    return released.promise
  }
  await box.boxes.suspend(box.owner, box.id)
  await freezing.promise
  await box.boxes.suspend(box.owner, box.id, { stop: true })
  released.resolve()
  t.match(await box.waitForState(box.id, 'suspended'), { box: { suspendedAs: 'stopped' } })
  t.same([box.machineState(), box.infra.countCalls('freeze')], ['stopped', 1])
})

t.test('a wake cancels the stop of a frozen box that has not started', async (t) => {
  const box = await createRunningBox(t, await sqliteForTest(t))
  await box.suspend()
  await box.service.close()
  await box.request(enqueueStop, 'stopped: frozen for 60 minutes')
  await box.boxes.wake(box.owner, box.id)
  await box.restart()
  t.match(await box.waitForState(box.id, 'running'), { pausesSurvived: 1 })
  t.equal(box.infra.countCalls('stop'), 0)
})

t.test('a wake interrupts the archiving of a box', async (t) => {
  const box = await createRunningBox(t, await sqliteForTest(t))
  await box.suspend()
  const { fault, triggered } = createHangingFault()
  box.infra.before.capture = fault
  await box.request(enqueueSleep, 'packed')
  await triggered
  delete box.infra.before.capture
  await box.boxes.wake(box.owner, box.id)
  await box.restart()
  await box.waitForState(box.id, 'running')
  t.equal(box.infra.machines.get(box.id)?.files, 'precious')
  await box.waitFor('the removal of the archive', () => box.infra.archives.size === 0)
})

t.test('a frozen box that is packed into an archive has no processes and ports any more', async (t) => {
  const box = await createRunningBox(t, await sqliteForTest(t))
  await box.suspend()
  const boxes = box.db.updateTable('boxes').where('id', '=', box.id)
  await boxes.set({ listening_ports: '[]' }).execute()
  await box.request(enqueueSleep, 'packed')
  await box.waitForState(box.id, 'deep_sleep')
  const row = await box.db.selectFrom('boxes').selectAll().where('id', '=', box.id).executeTakeFirst()
  t.equal(row?.listening_ports, null)
})

t.test('other boxes start while a box is packed into an archive', async (t) => {
  const box = await createRunningBox(t, await sqliteForTest(t), { maxConcurrentMachines: 1 })
  await box.suspend()
  const { fault } = createHangingFault()
  box.infra.before.capture = fault
  await box.request(enqueueSleep, 'packed')
  await box.waitFor('the capture', () => box.infra.countCalls('capture') === 1)
  const { id } = await box.boxes.create(box.owner, {})
  await box.waitForState(id, 'running')
})

t.test('Ctrl-C stops a frozen box too, and the next start does not wake it', async (t) => {
  const box = await createRunningBox(t, await sqliteForTest(t))
  const { hostname } = (await box.suspend()).box
  t.same(await box.service.suspendLocalBoxes('the coordinator was stopped'), {
    suspended: [],
    stopped: [hostname],
    failed: [],
    left: [],
  })
  t.equal(box.machineState(), 'stopped')
  await box.restart()
  t.match(await box.getDetail(box.id), {
    box: { observedState: 'suspended', suspendedAs: 'stopped' },
    events: [{ reason: 'the coordinator was stopped; its processes were terminated' }],
    job: null,
  })
})

t.test('a frozen box is stopped after a reboot of its machine', async (t) => {
  const box = await createRunningBox(t, await sqliteForTest(t))
  await box.suspend()
  await box.service.close()
  box.infra.powerOff(box.id)
  await box.restart()
  await box.waitForSuspendedAs('stopped')
  t.match((await box.getDetail(box.id)).events[0]?.reason, /machine was restarted/)
  t.match(await box.wake(), { pausesSurvived: 0 })
})

t.test('a box whose machine is frozen while it should run continues', async (t) => {
  const box = await createRunningBox(t, await sqliteForTest(t))
  const machine = box.infra.machines.get(box.id)
  if (machine) machine.state = 'frozen'
  box.infra.dropTunnel(box.id)
  await box.waitFor('the recovery', () => machine?.state === 'running')
  await box.waitForState(box.id, 'running')
  t.equal(box.infra.countCalls('stop'), 0)
})

t.test('what a wake leaves is removed later, and a deletion removes it too', async (t) => {
  const box = await createRunningBox(t, await sqliteForTest(t), { backoff: () => 1 })
  await box.suspend()
  await box.request(enqueueSleep, 'packed')
  await box.waitForState(box.id, 'deep_sleep')
  box.infra.before.removeArchive = createFailingFault(2)
  await box.wake()
  t.equal(box.infra.archives.size, 0, 'retried until it succeeds')
  await box.suspend()
  await box.request(enqueueSleep, 'packed')
  await box.waitForState(box.id, 'deep_sleep')
  await box.boxes.remove(box.owner, box.id)
  await box.waitForState(box.id, 'terminated')
  t.equal(box.infra.archives.size, 0)
  t.equal(box.infra.machines.size, 0)
})
