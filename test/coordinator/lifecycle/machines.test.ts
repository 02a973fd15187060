// The lifecycle of enrolled machines on each database: jobs that wait for an agent are never due by themselves.
import t from 'tap'
import { insertMachine } from '../../../coordinator/boxes/insert-machine.ts'
import type { Db } from '../../../coordinator/db/open.ts'
import { transaction } from '../../../coordinator/db/transaction.ts'
import type { Actor } from '../../../coordinator/http/actor.ts'
import { createLeases } from '../../../coordinator/lifecycle/leases.ts'
import { forgetDeletedMachines, isDeletedMachine } from '../../../coordinator/lifecycle/machine-store.ts'
import { systemClock } from '../../../shared/clock.ts'
import { onEachDatabase } from '../../support/db.ts'
import { createRestartableLifecycle } from '../../support/restartable-lifecycle.ts'

const YEAR_MS = 365 * 24 * 60 * 60_000

async function addMachine(db: Db, actor: Actor, name: string): Promise<string> {
  const box = await transaction(db, (trx) =>
    insertMachine(trx, {
      ...{ actor, name, preferredName: null, tier: 'nano', region: 'us-west-2', restricted: false },
      ...{ envVars: '[]', agentTokenHash: `hash of ${name}`, now: systemClock.now() },
    }),
  )
  return box.id
}

onEachDatabase(t, async (t, newDb) => {
  await t.test('a job that waits for an agent is never due, over restarts', async (t) => {
    const box = await createRestartableLifecycle(t, await newDb(t))
    const { db, infra, owner } = box
    const id = await addMachine(db, owner, 'fig')
    const leases = createLeases(db, 'jobs')
    const assertWaiting = async (op: string) => {
      const { job } = await box.getDetail(id)
      t.match(job, { op, step: 'connect', attempt: 0, nextRetryAt: null })
      const later = systemClock.now() + YEAR_MS
      t.same(await leases.listDueIds(later), [])
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
    t.ok(await isDeletedMachine(db, connected, 'hash of fig'))
    t.ok(await isDeletedMachine(db, waiting, 'hash of plum'))
    t.notOk(await isDeletedMachine(db, connected, 'hash of plum'))
    t.equal(infra.tunnels.current(connected), undefined)
    // Its token was checked before the deletion.
    infra.connectAgent(connected)
    await box.waitFor('the agent to be disconnected', () => infra.tunnels.current(connected) === undefined)

    const forget = (before: number) => transaction(db, (trx) => forgetDeletedMachines(trx, before, 1))
    t.equal(await forget(0), 0)
    t.equal(await forget(systemClock.now() + 1), 1, 'in batches')
    t.equal(await forget(systemClock.now() + 1), 1)
    t.notOk(await isDeletedMachine(db, connected, 'hash of fig'))
  })
})
