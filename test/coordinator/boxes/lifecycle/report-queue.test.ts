// Group commit of the reports of many boxes.
import t from 'tap'
import { createReportQueue } from '../../../../coordinator/boxes/lifecycle/report-queue.ts'
import type { CommandReportHandler } from '../../../../coordinator/history/commands/commands.ts'
import type { CommandReport } from '../../../../shared/api/reports.ts'
import { newId } from '../../../../shared/ids.ts'
import { onEachDatabase } from '../../../support/db.ts'
import { noReportHandlers } from '../../../support/report-handlers.ts'
import { createOwner, createTestBoxService } from '../../../support/workspace.ts'

const commandFinished = (): CommandReport => ({
  type: 'command.finished',
  commandId: newId('process'),
  status: 'exited',
  exitCode: 0,
  signal: null,
  finishedAt: null,
  stdoutBytes: 0,
  stderrBytes: 0,
})

onEachDatabase(t, async (t, newDb) => {
  const db = await newDb(t)
  const owner = await createOwner(db)
  const boxes = createTestBoxService(db)
  const ids = await Promise.all(Array.from({ length: 40 }, async () => (await boxes.create(owner, {})).id))
  const failingId = ids[7]
  const transactions = new Set<unknown>()
  let isFailing = true
  const commands: CommandReportHandler = {
    loadKey: async () => undefined,
    async apply(trx, _onCommit, { id: boxId }) {
      transactions.add(trx)
      if (isFailing && boxId === failingId) throw new Error('simulated failure')
    },
  }
  const queue = createReportQueue(db, { ...noReportHandlers, commands })
  const applyReport = (boxId: string) =>
    queue.apply({ boxId, epoch: 'e', reports: [{ seq: 1, report: commandFinished() }] })
  const listAppliedIds = async () =>
    (await db.selectFrom('boxes').select('id').where('report_seq', '=', 1).execute())
      .map(({ id }) => id)
      .sort()

  const results = await Promise.allSettled(ids.map(applyReport))
  t.same(
    results.map(({ status }) => status),
    ids.map((id) => (id === failingId ? 'rejected' : 'fulfilled')),
    "one box's failure does not affect the other boxes",
  )
  t.same(
    await listAppliedIds(),
    ids.filter((id) => id !== failingId).sort(),
    'reports reported as committed are stored',
  )

  isFailing = false
  transactions.clear()
  await Promise.all(ids.slice(0, 20).map(applyReport))
  t.same(await listAppliedIds(), [...ids].sort())
  t.ok(transactions.size <= 1, 'the boxes share one transaction')
  await queue.close()
  await t.rejects(applyReport(ids[0] ?? ''))
})
