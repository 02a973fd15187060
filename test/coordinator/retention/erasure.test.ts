// Turning zero data retention on erases what is stored, also when the coordinator is killed meanwhile.
import { inflateSync } from 'node:zlib'
import t from 'tap'
import { recordAuditEvent } from '../../../coordinator/audit/service.ts'
import { applyReports } from '../../../coordinator/boxes/lifecycle/apply-reports.ts'
import { listBoxPositions } from '../../../coordinator/boxes/store/box-lists.ts'
import type { Db } from '../../../coordinator/db/open.ts'
import { transaction } from '../../../coordinator/db/transaction.ts'
import { createProcessSnapshots } from '../../../coordinator/history/process-snapshots/process-snapshots.ts'
import { createErasure } from '../../../coordinator/retention/erasure.ts'
import type { ProcessSnapshotReport } from '../../../shared/api/process-snapshots.ts'
import { isIntact, START_HASH } from '../../../shared/audit-chain.ts'
import { onEachDatabase } from '../../support/db.ts'
import { noReportHandlers } from '../../support/report-handlers.ts'
import { createTestBoxService } from '../../support/workspace.ts'
import { finished, output, setUp as setUpCommands } from '../history/commands/support.ts'
import { HOUR, processOf, reportOf, snapshotOf } from '../history/process-snapshots/support.ts'

const NEVER = new AbortController().signal
const SECRET = 's3cret'

async function setUp(db: Db) {
  const setup = await setUpCommands(db)
  const { clock, owner, boxId } = setup
  const boxes = createTestBoxService(db, { clock })
  const log = { warn: () => undefined } as unknown as Parameters<typeof createProcessSnapshots>[0]['log']
  const snapshots = createProcessSnapshots({ db, clock, log, boxes })
  let seq = 0

  return {
    ...setup,
    boxes,
    snapshots,
    erasure: createErasure({ db, listBoxes: (...args) => listBoxPositions(db, ...args) }),
    reportSnapshots: (reports: readonly ProcessSnapshotReport[]) =>
      applyReports(db, { ...noReportHandlers, processSnapshots: snapshots.reportHandler }, [
        { boxId, epoch: 'snapshots', reports: reports.map((report) => ({ seq: ++seq, report })) },
      ]),
    recordEvent: (origin: 'client' | 'server', detail: Record<string, string>) =>
      transaction(db, async (trx) => {
        const kind = origin === 'client' ? 'exec' : 'box.update'
        recordAuditEvent(trx, { kind, actor: owner, boxId, detail, origin, at: clock.now() })
      }),
    switchRetention: (on: boolean) =>
      transaction(db, async (trx) => {
        await trx
          .updateTable('workspaces')
          .set({ zero_data_retention: on ? 1 : 0 })
          .execute()
        // Like PATCH /workspace: the erasure waits for the transactions that record events.
        const event = { kind: 'workspace.update', boxId: null, detail: {}, at: clock.now() } as const
        recordAuditEvent(trx, { ...event, actor: owner })
      }),
    listEvents: () => db.selectFrom('audit_log').selectAll().orderBy('no').execute(),
  }
}

/** Everything that is stored about commands, processes and events, as text. */
async function readStoredText(db: Db): Promise<string> {
  const chunks = await db.selectFrom('process_chunks').select('data').execute()
  const outputs = await db.selectFrom('command_output').select('data').execute()
  return [
    JSON.stringify(await db.selectFrom('commands').selectAll().execute()),
    JSON.stringify(await db.selectFrom('audit_log').selectAll().execute()),
    ...chunks.map(({ data }) => inflateSync(data).toString()),
    ...outputs.map(({ data }) => Buffer.from(data).toString()),
  ].join('\n')
}

const hasSecret = async (db: Db): Promise<boolean> => (await readStoredText(db)).includes(SECRET)

/** Aborted from the read number `reads` on. */
const abortAfter = (reads: number) =>
  ({
    get aborted() {
      reads -= 1
      return reads < 0
    },
  }) as AbortSignal

onEachDatabase(t, async (t, newDb) => {
  t.test('erases text, directories, output, command lines and reported details', async (t) => {
    const setup = await setUp(await newDb(t))
    const { db, clock, owner, boxId, commands, request, run, report, snapshots, erasure } = setup
    const { reportSnapshots, recordEvent, switchRetention, listEvents } = setup
    const ids: string[] = []
    for (let i = 0; i < 45; i += 1) {
      const { id } = await run({ command: `echo ${SECRET}`, cwd: `/${SECRET}` })
      if (i % 9 === 0) await report([output(id, 0, SECRET), finished(id, { stdoutBytes: SECRET.length })])
      ids.push(id)
    }
    const running = await run({ command: SECRET, mode: 'detached' })
    await report([output(running.id, 0, SECRET)])
    const unreported = await request({ command: SECRET })
    const processes = snapshotOf(processOf(1, { name: 'login', command: `login ${SECRET}` }), processOf(2))
    const at = clock.now()
    await reportSnapshots([reportOf(at, processes), reportOf(at - 9 * HOUR, processes)])
    for (let i = 0; i < 3; i += 1) await recordEvent('client', { command: SECRET })
    await recordEvent('server', { hostname: 'fig' })
    t.ok(await hasSecret(db))

    await switchRetention(true)
    const listSizes = () => db.selectFrom('command_output').select('size').execute()
    const sizes = await listSizes()
    await report([output(running.id, 6, 'x'.repeat(100_000))])
    t.same(await listSizes(), sizes, 'no output is stored before the erasure has processed the record')
    // Each run is interrupted after a few transactions, as by a kill, and the next one continues.
    for (let reads = 1; reads < 20; reads += 2) await erasure.run(owner.workspaceId, abortAfter(reads))
    await erasure.run(owner.workspaceId, NEVER)
    t.notOk(await hasSecret(db))
    const record = await commands.history.get(owner, boxId, ids[0] ?? '')
    t.match(record, { command: null, cwd: null, outputKept: false, status: 'exited', stdoutBytes: 6 })
    t.match(await commands.history.getOutput(owner, boxId, record.id, {}), {
      data: '',
      skipped: 6,
      done: true,
    })
    t.equal((await commands.history.list(owner, boxId, { limit: 200 })).commands.length, 46)
    for (const time of [at, at - 9 * HOUR])
      t.match((await snapshots.procsAt.get(owner, boxId, time)).procs, [
        { pid: 1, name: 'login', command: null },
        { pid: 2, name: 'sh', command: null },
      ])
    const details = (await listEvents()).map(({ kind, detail }) => `${kind} ${detail}`)
    t.same(details.slice(-5), [
      ...Array(3).fill('exec null'),
      'box.update {"hostname":"fig"}',
      'workspace.update {}',
    ])

    t.comment('what arrives later is blank')
    await report([
      ...[output(running.id, 6, SECRET), finished(running.id, { stdoutBytes: 12, stdout: btoa(SECRET) })],
      ...[unreported.started, output(unreported.id, 0, SECRET)],
    ])
    const more = snapshotOf(
      ...[...processes.processes.values()].map(({ process }) => process),
      processOf(3, { command: SECRET }),
    )
    await reportSnapshots([reportOf(at + 1, more, { at, snapshot: processes })])
    await recordEvent('client', { command: SECRET })
    t.notOk(await hasSecret(db))
    t.match(await commands.history.get(owner, boxId, running.id), { status: 'exited', stdoutBytes: 12 })
    t.equal((await snapshots.procsAt.get(owner, boxId, at + 1)).procs.length, 3)

    t.comment('turning it off brings nothing back')
    await switchRetention(false)
    await report([output(unreported.id, 6, SECRET), finished(unreported.id, { stdoutBytes: 12 })])
    t.notOk(await hasSecret(db))
    const next = await run({ command: 'echo again' })
    t.match(await commands.history.get(owner, boxId, next.id), { command: 'echo again', outputKept: true })

    let previousHash = START_HASH
    for (const event of await listEvents()) {
      t.ok(isIntact(event, previousHash), `the hash chain has event ${event.no}`)
      previousHash = event.hash
    }
  })

  t.test('erases only the data of the workspace', async (t) => {
    const setup = await setUp(await newDb(t))
    const { db, run, erasure, recordEvent } = setup
    await run({ command: SECRET })
    await recordEvent('client', { command: SECRET })
    await db
      .insertInto('workspaces')
      .values({ id: 'ws_other', name: 'other', zero_data_retention: 1, created_at: 0 })
      .execute()
    const before = await readStoredText(db)
    await erasure.run('ws_other', NEVER)
    await erasure.run('ws_removed', NEVER)
    t.equal(await readStoredText(db), before)
  })
})
