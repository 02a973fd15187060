// The reports on the disk of a box are stored once before its machine is removed.
import t, { type Test } from 'tap'
import { applyReports } from '../../../../coordinator/boxes/lifecycle/apply-reports.ts'
import { enqueueSleep } from '../../../../coordinator/boxes/lifecycle/enqueue-jobs.ts'
import { lockBox } from '../../../../coordinator/db/lock-box.ts'
import { transaction } from '../../../../coordinator/db/transaction.ts'
import { createHangingFault } from '../../../support/fake-infrastructure.ts'
import { noReportHandlers } from '../../../support/report-handlers.ts'
import { createRestartableLifecycle } from '../../../support/restartable-lifecycle.ts'
import { sqliteForTest } from '../../../support/sqlite.ts'

/** A sample whose time is `number`. */
const line = (epoch: string, seq: number, number = seq): string =>
  `${JSON.stringify({ type: 'report', epoch, seq, report: { type: 'agent.started', at: number, instanceId: 'i', bootId: 'b', agentVersion: '1' } })}\n`

async function startBox(t: Test, failures = 0) {
  const lifecycle = await createRestartableLifecycle(t, await sqliteForTest(t))
  const { db, infra, owner, boxes, startLifecycle, waitForState } = lifecycle
  /** As `epoch seq`, in the order in which they were stored. */
  const stored: string[] = []
  let remainingFailures = failures
  const ingest = {
    async apply(
      boxId: string,
      epoch: string,
      reports: Parameters<typeof applyReports>[2][number]['reports'],
    ) {
      if (remainingFailures-- > 0) throw new Error('simulated failure')
      const read = () =>
        db
          .selectFrom('boxes')
          .select(['report_epoch', 'report_seq'])
          .where('id', '=', boxId)
          .executeTakeFirstOrThrow()
      const before = await read()
      await applyReports(db, noReportHandlers, [{ boxId, epoch, reports }])
      for (const { seq } of reports)
        if (before.report_epoch !== epoch || seq > before.report_seq) stored.push(`${epoch} ${seq}`)
    },
  }
  const start = () => startLifecycle({ ingest })
  const { schedule } = await start()
  const { id } = await boxes.create(owner, {})
  await waitForState(id, 'running')
  infra.flushFails = true
  return {
    ...lifecycle,
    id,
    stored,
    start,
    schedule,
    ingest,
    async remove() {
      await boxes.remove(owner, id)
      await waitForState(id, 'terminated')
    },
  }
}

const reportsOf = (
  ingest: Awaited<ReturnType<typeof startBox>>['ingest'],
  id: string,
  epoch: string,
  seq: number,
) =>
  ingest.apply(id, epoch, [
    { seq, report: { type: 'agent.started', at: 1, instanceId: 'i', bootId: 'b', agentVersion: '1' } },
  ])

t.test('stores what is not stored yet, after the machine has stopped', async (t) => {
  const { id, infra, ingest, stored, remove } = await startBox(t)
  await reportsOf(ingest, id, 'e1', 2)
  infra.spools.set(id, [line('e1', 1) + line('e1', 2) + line('e1', 5), line('e1', 6)])
  await remove()
  t.same(stored, ['e1 2', 'e1 5', 'e1 6'])
  const calls = infra.calls
    .filter((call) => /^(stop|readSpool|destroy)/.test(call))
    .map((call) => call.split(' ')[0])
  t.same(calls, ['stop', 'readSpool', 'readSpool', 'destroy'])
})

t.test('stores the reports of several epochs once, also when the removal is repeated', async (t) => {
  const { id, infra, ingest, stored, start, waitForState, boxes, owner } = await startBox(t)
  await reportsOf(ingest, id, 'e1', 1)
  infra.spools.set(id, [line('e1', 1) + line('e1', 2), line('e2', 1_000_003)])
  const { fault, triggered } = createHangingFault()
  infra.before.destroy = fault
  await boxes.remove(owner, id)
  await triggered
  delete infra.before.destroy
  // The killed coordinator has removed a part of the spool.
  infra.spools.set(id, [line('e1', 1) + line('e1', 2)])
  await start()
  await waitForState(id, 'terminated')
  t.same(stored, ['e1 1', 'e1 2', 'e2 1000003'])
})

t.test('does not store segments of an earlier epoch again', async (t) => {
  const { id, infra, ingest, stored, remove } = await startBox(t)
  await reportsOf(ingest, id, 'e2', 8)
  infra.spools.set(id, [line('e1', 1), line('e2', 8) + line('e2', 9)])
  await remove()
  t.same(stored, ['e2 8', 'e2 9'])
})

t.test(
  'checks the lines like those of an agent, and ignores the rest of a segment after an invalid one',
  async (t) => {
    const { id, infra, stored, remove } = await startBox(t)
    infra.spools.set(id, [
      // The line of an unknown type is skipped, the zeros are those of an unused reserve.
      `${line('e1', 1)}{"type":"report","epoch":"e1","seq":2,"report":{"type":"unknown"}}\n${line('e1', 3)}${'\0'.repeat(1024 * 1024)}`,
      `not JSON\n${line('e1', 4)}`,
      `${line('e1', 5)}{"type":"report","epoch":"e1","seq":-1,"report":{"type":"x"}}\n${line('e1', 6)}`,
      `${line('e1', 7)}${'x'.repeat(300_000)}\n${line('e1', 8)}`,
      `${line('e1', 9)}${line('e1', 10).slice(0, 50)}`,
      `${'['.repeat(100_000)}\n`,
      '',
    ])
    await remove()
    t.same(stored, ['e1 1', 'e1 3', 'e1 5', 'e1 7', 'e1 9'])
  },
)

t.test('a spool with many reports or epochs does not delay the machines of other boxes', async (t) => {
  const { id, db, infra, ingest, stored, boxes, owner, startLifecycle, waitForState } = await startBox(t)
  const [reading, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const { schedule } = await startLifecycle({
    maxConcurrentMachines: 1,
    ingest: {
      async apply(...args) {
        reading.resolve()
        await released.promise
        await ingest.apply(...args)
      },
    },
  })
  infra.spools.set(id, [line('e1', 1) + line('e2', 2) + line('e1', 3), line('e2', 4) + line('e2', 5)])
  await boxes.remove(owner, id)
  await reading.promise
  const other = await boxes.create(owner, {})
  schedule(other.id)
  await waitForState(other.id, 'running')
  released.resolve()
  await waitForState(id, 'terminated')
  t.same(stored, ['e1 1', 'e2 4', 'e2 5'], 'an agent writes one epoch into a segment')
  t.equal((await db.selectFrom('jobs').selectAll().execute()).length, 0)
})

t.test('tries again after a failure, and deletes the box when the reports cannot be stored', async (t) => {
  const first = await startBox(t, 2)
  first.infra.spools.set(first.id, [line('e1', 1)])
  await first.remove()
  t.same(first.stored, ['e1 1'])

  const second = await startBox(t, Number.POSITIVE_INFINITY)
  second.infra.spools.set(second.id, [line('e1', 1)])
  await second.remove()
  t.same(second.stored, [])
})

t.test(
  'stores the reports of a box before it is in deep sleep, whose archive has the only copy',
  async (t) => {
    const { id, db, infra, owner, boxes, stored, waitForState, schedule } = await startBox(t)
    await boxes.suspend(owner, id, { stop: true })
    await waitForState(id, 'suspended')
    infra.spools.set(id, [line('e1', 1)])
    await transaction(db, async (trx) => {
      const box = await lockBox(trx, id)
      return box !== undefined && (await enqueueSleep(trx, box, { reason: 'packed', now: Date.now() }))
    })
    schedule(id)
    await waitForState(id, 'deep_sleep')
    t.same(stored, ['e1 1'])
  },
)
