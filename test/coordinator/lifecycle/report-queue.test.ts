// Reports of many boxes are committed together, and one box's trouble stays its own.
import t from 'tap'
import type { ReportedCommands } from '../../../coordinator/commands/commands.ts'
import { createReportQueue } from '../../../coordinator/lifecycle/report-queue.ts'
import type { CommandReport } from '../../../shared/api/reports.ts'
import { newId } from '../../../shared/ids.ts'
import { onEachDatabase } from '../../support/db.ts'
import { boxesOf, ownerOf } from '../../support/workspace.ts'

const finished = (): CommandReport => ({
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
  const owner = await ownerOf(db)
  const boxes = boxesOf(db)
  const ids = await Promise.all(Array.from({ length: 40 }, async () => (await boxes.create(owner, {})).id))
  const bad = ids[7]
  const transactions = new Set<unknown>()
  let broken = true
  const commands: ReportedCommands = {
    load: async () => undefined,
    async apply(trx, _onCommit, boxId) {
      transactions.add(trx)
      if (broken && boxId === bad) throw new Error('no luck')
    },
  }
  const queue = createReportQueue(db, commands)
  const send = (boxId: string) =>
    queue.apply({ boxId, epoch: 'e', reports: [{ seq: 1, report: finished() }] })
  const appliedTo = async () =>
    (await db.selectFrom('boxes').select('id').where('report_seq', '=', 1).execute())
      .map(({ id }) => id)
      .sort()

  const results = await Promise.allSettled(ids.map(send))
  t.same(
    results.map(({ status }) => status),
    ids.map((id) => (id === bad ? 'rejected' : 'fulfilled')),
  )
  t.same(await appliedTo(), ids.filter((id) => id !== bad).sort(), 'what was said to be committed is')

  broken = false
  transactions.clear()
  await Promise.all(ids.slice(0, 20).map(send))
  t.same(await appliedTo(), [...ids].sort())
  t.ok(transactions.size <= 1, 'one transaction for all')
  await queue.close()
  await t.rejects(send(ids[0] ?? ''))
})
