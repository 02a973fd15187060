// The lifecycle of enrolled machines on each database: jobs that wait for an agent are never due by themselves.
import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import { forgetDeletedMachines } from '../../../../coordinator/boxes/store/deleted-machines.ts'
import { transaction } from '../../../../coordinator/db/transaction.ts'
import { createLeases } from '../../../../coordinator/jobs/leases.ts'
import { createMachineAgents } from '../../../../coordinator/machines/machine-agents.ts'
import { systemClock } from '../../../../shared/clock.ts'
import { addMachine } from '../../../support/add-machine.ts'
import { onEachDatabase } from '../../../support/db.ts'
import { createSeededRandom } from '../../../support/random.ts'
import { createFakeReplica } from '../../../support/replica.ts'
import { createRestartableLifecycle } from '../../../support/restartable-lifecycle.ts'
import { sqliteForTest } from '../../../support/sqlite.ts'

const YEAR_MS = 365 * 24 * 60 * 60_000

await onEachDatabase(t, async (t, newDb) => {
  await t.test('a job that waits for an agent is never due, over restarts', async (t) => {
    const box = await createRestartableLifecycle(t, await newDb(t))
    const { db, infra, owner } = box
    const id = await addMachine(db, owner, 'fig')
    const leases = createLeases(db, 'jobs', createFakeReplica())
    const assertWaiting = async (op: string) => {
      const later = systemClock.now() + YEAR_MS
      // A new job is due until the lifecycle has read it.
      await box.waitFor('the job to wait', async () => (await leases.listDueIds(later)).length === 0)
      const { job } = await box.getDetail(id)
      t.match(job, { op, step: 'connect', attempt: 0, nextRetryAt: null })
      t.equal(await leases.findNextDueTime(systemClock.now()), undefined)
    }
    await assertWaiting('enroll')
    await box.startLifecycle()
    const second = await box.startLifecycle()
    await assertWaiting('enroll')
    // A schedule without a connection changes nothing.
    second.schedule(id)
    infra.connectAgent(id)
    await box.waitForState(id, 'running')
    infra.dropTunnel(id)
    await box.waitFor('the box to be degraded', async () => {
      const { box: current, job } = await box.getDetail(id)
      return current.observedState === 'degraded' && job?.op === 'reconnect'
    })
    await assertWaiting('reconnect')
    await box.startLifecycle()
    await assertWaiting('reconnect')
    infra.connectAgent(id)
    await box.waitForState(id, 'running')
    t.same(await box.listStates(id), ['bootstrapping', 'running', 'degraded', 'running'])
    t.equal(
      infra.calls.filter((call) => !call.startsWith('flushReports')).length,
      0,
      'no provider was called',
    )
  })

  await t.test('a short disconnect has no effect', async (t) => {
    const box = await createRestartableLifecycle(t, await newDb(t))
    const { db, infra, owner } = box
    const id = await addMachine(db, owner, 'fig')
    await box.startLifecycle({ disconnectGraceMs: 600_000 })
    infra.connectAgent(id)
    await box.waitForState(id, 'running')
    infra.dropTunnel(id)
    infra.connectAgent(id)
    const other = await addMachine(db, owner, 'plum')
    infra.connectAgent(other)
    await box.waitForState(other, 'running')
    t.same(await box.listStates(id), ['bootstrapping', 'running'])
  })

  await t.test('a deleted machine is remembered, and its agent is disconnected', async (t) => {
    const box = await createRestartableLifecycle(t, await newDb(t))
    const { db, infra, owner } = box
    const { isDeleted } = createMachineAgents(db)
    const [connected, waiting] = [await addMachine(db, owner, 'fig'), await addMachine(db, owner, 'plum')]
    await box.startLifecycle()
    infra.connectAgent(connected)
    await box.waitForState(connected, 'running')
    for (const id of [connected, waiting]) {
      await box.boxes.remove(owner, id)
      await box.waitForState(id, 'terminated')
    }
    t.ok(infra.calls.includes(`request ${connected} /uninstall`))
    t.notOk(infra.calls.includes(`request ${waiting} /uninstall`))
    t.ok(await isDeleted(connected, 'hash of fig'))
    t.ok(await isDeleted(waiting, 'hash of plum'))
    t.notOk(await isDeleted(connected, 'hash of plum'))
    t.equal(infra.tunnels.current(connected), undefined)
    // Its token was checked before the deletion.
    infra.connectAgent(connected)
    await box.waitFor('the agent to be disconnected', () => infra.tunnels.current(connected) === undefined)

    const forget = (before: number) => transaction(db, (trx) => forgetDeletedMachines(trx, before, 1))
    t.equal(await forget(0), 0)
    t.equal(await forget(systemClock.now() + 1), 1, 'in batches')
    t.equal(await forget(systemClock.now() + 1), 1)
    t.notOk(await isDeleted(connected, 'hash of fig'))
  })
})

t.test('machines reach their states after random connects, disconnects and restarts', async (t) => {
  const seed = Number(process.env.TEST_SEED ?? 21)
  const random = createSeededRandom(seed)
  const box = await createRestartableLifecycle(t, await sqliteForTest(t))
  const { db, infra, owner } = box
  const ids = await Promise.all(Array.from({ length: 20 }, (_, i) => addMachine(db, owner, `fig-${i}`)))
  await box.startLifecycle({ disconnectGraceMs: 1 })
  for (let action = 0; action < 300; action++) {
    const id = ids[Math.floor(random() * ids.length)] ?? ''
    const choice = random()
    if (choice < 0.02) await box.startLifecycle({ disconnectGraceMs: 1 })
    else if (choice < 0.5) infra.connectAgent(id)
    else if (choice < 0.9) infra.dropTunnel(id)
    else await setImmediate()
  }
  for (const id of ids) infra.connectAgent(id)
  for (const id of ids) await box.waitForState(id, 'running')
  for (const [i, id] of ids.entries()) {
    if (random() < 0.5) infra.dropTunnel(id)
    await box.boxes.remove(owner, id)
    if (random() < 0.5) infra.connectAgent(id)
    if (i === 10) await box.startLifecycle()
  }
  for (const id of ids) await box.waitForState(id, 'terminated')
  await box.waitFor('no agent of a deleted machine to be connected', () =>
    ids.every((id) => infra.tunnels.current(id) === undefined),
  )
  const deleted = await db.selectFrom('deleted_machines').select('box_id').execute()
  t.same(deleted.map(({ box_id: id }) => id).sort(), [...ids].sort(), `seed ${seed}`)
  t.equal(infra.calls.filter((call) => !/^(flushReports|request) /.test(call)).length, 0)
})
