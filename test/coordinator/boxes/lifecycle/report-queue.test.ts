// Group commit of the reports of many boxes.
import { setImmediate } from 'node:timers/promises'
import t, { type Test } from 'tap'
import type { BoxReports } from '../../../../coordinator/boxes/lifecycle/apply-reports.ts'
import { createReportQueue } from '../../../../coordinator/boxes/lifecycle/report-queue.ts'
import type { Db } from '../../../../coordinator/db/open.ts'
import type { CommandReportHandler } from '../../../../coordinator/history/commands/commands.ts'
import type { CommandReport } from '../../../../shared/api/reports.ts'
import { newId } from '../../../../shared/ids.ts'
import { onEachDatabase } from '../../../support/db.ts'
import { noReportHandlers } from '../../../support/report-handlers.ts'
import { sqliteForTest } from '../../../support/sqlite.ts'
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
  await t.test('commits the reports of many boxes together', async (t) => testGroupCommit(t, await newDb(t)))
  await t.test('commits the reports of many commands in slices', async (t) => testSlices(t, await newDb(t)))
})

async function testGroupCommit(t: Test, db: Db): Promise<void> {
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
}

/** The exit code is the sequence number. */
const reportsOfCommands = (count: number) =>
  Array.from({ length: count }, (_, index) => ({
    seq: index + 1,
    report: { ...commandFinished(), exitCode: index + 1 } as CommandReport,
  }))

/** A queue that records its commits. */
async function createRecordingQueue(db: Db) {
  const { id: boxId } = await createTestBoxService(db).create(await createOwner(db), {})
  const events: string[] = []
  const failing = { exitCode: 0 }
  const commands: CommandReportHandler = {
    loadKey: async () => undefined,
    async apply(_trx, onCommit, _box, reports) {
      if (
        reports.some((report) => report.type === 'command.finished' && report.exitCode === failing.exitCode)
      )
        throw new Error('simulated failure')
      onCommit(() => void events.push(`commit of ${reports.length}`))
    },
  }
  const queue = createReportQueue(db, { ...noReportHandlers, commands })
  return {
    queue,
    events,
    failing,
    apply: (reports: BoxReports['reports']) => queue.apply({ boxId, epoch: 'e', reports }),
    async readSeq() {
      const query = db.selectFrom('boxes').select('report_seq').where('id', '=', boxId)
      return (await query.executeTakeFirstOrThrow()).report_seq
    },
  }
}

async function testSlices(t: Test, db: Db): Promise<void> {
  const { queue, events, failing, apply, readSeq } = await createRecordingQueue(db)
  const reports = reportsOfCommands(100)
  failing.exitCode = 50
  await t.rejects(apply(reports), { message: 'simulated failure' })
  t.equal(await readSeq(), 48, 'what follows a failed slice is not stored')
  failing.exitCode = 0
  await apply(reports)
  t.equal(await readSeq(), 100)
  t.same(
    events.splice(0),
    [16, 16, 16, 16, 16, 16, 4].map((count) => `commit of ${count}`),
  )

  const output = {
    type: 'command.output',
    commandId: newId('process'),
    stream: 'stdout',
    data: 'YQ==',
  } as const
  await apply(
    Array.from({ length: 100 }, (_, index) => ({ seq: 101 + index, report: { ...output, offset: index } })),
  )
  t.same(events, ['commit of 100'], 'the output of one command is committed together')
  await queue.close()
}

t.test('on SQLite a request is served between two commits', async (t) => {
  const db = await sqliteForTest(t)
  const { queue, events, apply } = await createRecordingQueue(db)
  let isApplying = true
  async function sendRequests(): Promise<void> {
    while (isApplying) {
      await setImmediate()
      await db.selectFrom('workspaces').select('id').execute()
      events.push('request')
    }
  }
  const requests = sendRequests()
  await apply(reportsOfCommands(100))
  isApplying = false
  await requests
  const text = events.join(', ')
  t.equal(text.match(/commit/g)?.length, 7)
  t.notMatch(text, /commit of \d+, commit/)
  await queue.close()
})
