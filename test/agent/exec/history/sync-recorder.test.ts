// A synchronous run as reports: few, small and written before its caller is answered.
import t from 'tap'
import { createSyncRecorder } from '../../../../agent/exec/history/sync-recorder.ts'
import { createOutputTail } from '../../../../agent/exec/output-tail.ts'
import { silent } from '../../../support/tunnel.ts'
import { bytesOf, folderOf, idOf, recordOf, reportsOf, spoolIn } from './support.ts'

const MiB = 1024 * 1024
const exited = { status: 'exited', exitCode: 0, signal: null, finishedAt: 2 } as const

function tailOf(...parts: (string | Buffer)[]) {
  const tail = createOutputTail(MiB)
  for (const part of parts) tail.push(Buffer.from(part))
  return tail
}
const NOTHING = { stdout: tailOf(), stderr: tailOf() }

t.test('a short run is two reports, the second with its output', async (t) => {
  const spool = await spoolIn(t, folderOf(t))
  const recorder = createSyncRecorder(spool, silent)
  const recording = recorder.start({ command: 'echo hi', cwd: '/tmp', record: recordOf(idOf(1)) }, 7, 1)
  t.equal(recording?.commandId, idOf(1))
  t.same(await reportsOf(spool), [
    {
      type: 'command.started',
      commandId: idOf(1),
      claimsToken: 'signed',
      command: 'echo hi',
      commandTruncated: false,
      cwd: '/tmp',
      pid: 7,
      startedAt: 1,
    },
  ])
  recording?.finish(exited, { stdout: tailOf('hi\n'), stderr: tailOf() })
  t.same((await reportsOf(spool)).slice(1), [
    {
      type: 'command.finished',
      commandId: idOf(1),
      ...exited,
      stdoutBytes: 3,
      stderrBytes: 0,
      stdout: 'aGkK',
    },
  ])
})

t.test('of a long output the last MiB, byte for byte, at its place', async (t) => {
  const spool = await spoolIn(t, folderOf(t))
  const recorder = createSyncRecorder(spool, silent)
  const whole = Buffer.from(Array.from({ length: 2 * MiB + 17 }, (_, i) => (i * 31) & 0xff))
  const recording = recorder.start({ command: 'cat', record: recordOf(idOf(1)) }, 7, 1)
  recording?.finish(exited, { stdout: tailOf(whole), stderr: tailOf('x'.repeat(70_000)) })
  const reports = await reportsOf(spool)
  t.ok(bytesOf(reports, 'stdout').subarray(-MiB).equals(whole.subarray(-MiB)))
  t.equal(bytesOf(reports, 'stdout').length, whole.length)
  t.equal(bytesOf(reports, 'stderr').toString(), 'x'.repeat(70_000))
  t.match(reports.at(-1), { stdoutBytes: whole.length, stderrBytes: 70_000 })
})

t.test('a command is cut between characters, and under zero data retention left out', async (t) => {
  const spool = await spoolIn(t, folderOf(t))
  const recorder = createSyncRecorder(spool, silent)
  const long = `${'x'.repeat(8191)}😀 and more`
  recorder.start({ command: long, record: recordOf(idOf(1)) }, 7, 1)
  const secret = recorder.start({ command: 'secret', cwd: 'secret', record: recordOf(idOf(2), false) }, 7, 1)
  secret?.finish(exited, { stdout: tailOf('secret'), stderr: tailOf('secret'.repeat(20_000)) })
  const reports = await reportsOf(spool)
  t.match(reports[0], { command: 'x'.repeat(8191), commandTruncated: true, cwd: '~' })
  t.match(reports[1], { command: null, commandTruncated: false, cwd: null })
  t.match(reports[2], { stdoutBytes: 6, stderrBytes: 120_000 })
  t.equal(reports.length, 3)
  t.notMatch(JSON.stringify(reports), /secret|c2VjcmV0/)
})

t.test('no record asked for, none made; one that cannot be kept is not promised', async (t) => {
  const spool = await spoolIn(t, folderOf(t))
  const recorder = createSyncRecorder(spool, silent)
  t.equal(recorder.start({ command: 'true' }, 7, 1), null)
  t.same(await reportsOf(spool), [])
  await spool.close()
  t.equal(recorder.start({ command: 'true', record: recordOf(idOf(1)) }, 7, 1), null)
})

t.test('while nobody takes reports, ends are kept and output gives way', async (t) => {
  const spool = await spoolIn(t, folderOf(t), 4 * MiB)
  const recorder = createSyncRecorder(spool, silent)
  for (let run = 1; run <= 30; run++) {
    const recording = recorder.start({ command: 'cat', record: recordOf(idOf(run)) }, 7, 1)
    recording?.finish(exited, { stdout: tailOf(Buffer.alloc(300_000, 'x')), stderr: NOTHING.stderr })
  }
  const reports = await reportsOf(spool)
  for (const type of ['command.started', 'command.finished'])
    t.equal(reports.filter((report) => report.type === type).length, 30, `every ${type}`)
  t.ok(spool.pendingBytes() < 4 * MiB)
  t.ok(bytesOf(reports, 'stdout').length >= 300_000)
  recorder.close()
})
