// Reporting synchronous commands to the command history: few and small reports, in the spool before the response.
import t from 'tap'
import { createSyncRecorder } from '../../../../agent/exec/history/sync-recorder.ts'
import { createOutputTail } from '../../../../agent/exec/output-tail.ts'
import { silentLog } from '../../../support/tunnel.ts'
import {
  createDir,
  createRecord,
  formatProcessId,
  joinOutput,
  openTestSpool,
  readReports,
} from './support.ts'

const MiB = 1024 * 1024
const exited = { status: 'exited', exitCode: 0, signal: null, finishedAt: 2 } as const

function createTail(output: string | Buffer = '') {
  const tail = createOutputTail(MiB)
  tail.push(Buffer.from(output))
  return tail
}

t.test('a short command results in two reports, the second with the output', async (t) => {
  const spool = await openTestSpool(t, createDir(t))
  const recorder = createSyncRecorder(spool, silentLog)
  const recording = recorder.start(
    { command: 'echo hi', cwd: '/tmp', record: createRecord(formatProcessId(1)) },
    7,
    1,
  )
  t.equal(recording?.commandId, formatProcessId(1))
  t.same(await readReports(spool), [
    {
      type: 'command.started',
      commandId: formatProcessId(1),
      claimsToken: 'signed',
      command: 'echo hi',
      commandTruncated: false,
      cwd: '/tmp',
      pid: 7,
      startedAt: 1,
    },
  ])
  recording?.finish(exited, { stdout: createTail('hi\n'), stderr: createTail() })
  t.same((await readReports(spool)).slice(1), [
    {
      type: 'command.finished',
      commandId: formatProcessId(1),
      ...exited,
      stdoutBytes: 3,
      stderrBytes: 0,
      stdout: 'aGkK',
    },
  ])
})

t.test('reports the last 1 MiB of long output, byte for byte, with its offset', async (t) => {
  const spool = await openTestSpool(t, createDir(t))
  const recorder = createSyncRecorder(spool, silentLog)
  const whole = Buffer.from(Array.from({ length: 2 * MiB + 17 }, (_, i) => (i * 31) & 0xff))
  const recording = recorder.start({ command: 'cat', record: createRecord(formatProcessId(1)) }, 7, 1)
  recording?.finish(exited, { stdout: createTail(whole), stderr: createTail('x'.repeat(70_000)) })
  const reports = await readReports(spool)
  t.ok(joinOutput(reports, 'stdout').subarray(-MiB).equals(whole.subarray(-MiB)))
  t.equal(joinOutput(reports, 'stdout').length, whole.length)
  t.equal(joinOutput(reports, 'stderr').toString(), 'x'.repeat(70_000))
  t.match(reports.at(-1), { stdoutBytes: whole.length, stderrBytes: 70_000 })
})

t.test('truncates a long command between characters, and omits it with zero data retention', async (t) => {
  const spool = await openTestSpool(t, createDir(t))
  const recorder = createSyncRecorder(spool, silentLog)
  const long = `${'x'.repeat(8191)}😀 and more`
  recorder.start({ command: long, record: createRecord(formatProcessId(1)) }, 7, 1)
  const secret = recorder.start(
    { command: 'secret', cwd: 'secret', record: createRecord(formatProcessId(2), false) },
    7,
    1,
  )
  secret?.finish(exited, { stdout: createTail('secret'), stderr: createTail('secret'.repeat(20_000)) })
  const reports = await readReports(spool)
  t.match(reports[0], { command: 'x'.repeat(8191), commandTruncated: true, cwd: '~' })
  t.match(reports[1], { command: null, commandTruncated: false, cwd: null })
  t.match(reports[2], { stdoutBytes: 6, stderrBytes: 120_000 })
  t.equal(reports.length, 3)
  t.notMatch(JSON.stringify(reports), /secret|c2VjcmV0/)
})

t.test('returns null when no record is requested or the start report cannot be stored', async (t) => {
  const spool = await openTestSpool(t, createDir(t))
  const recorder = createSyncRecorder(spool, silentLog)
  t.equal(recorder.start({ command: 'true' }, 7, 1), null)
  t.same(await readReports(spool), [])
  await spool.close()
  t.equal(recorder.start({ command: 'true', record: createRecord(formatProcessId(1)) }, 7, 1), null)
})

t.test('finish() returns whether the spool has the exit', async (t) => {
  const spool = await openTestSpool(t, createDir(t))
  const recorder = createSyncRecorder(spool, silentLog)
  const start = (n: number) =>
    recorder.start({ command: 'true', record: createRecord(formatProcessId(n)) }, 7, 1)
  const [first, second] = [start(1), start(2)]
  const tails = { stdout: createTail(), stderr: createTail() }
  t.equal(await first?.finish(exited, tails), true)
  await spool.close()
  const stored = second?.finish(exited, tails)
  recorder.close()
  t.equal(await stored, false)
})

t.test('while reports are not acknowledged, keeps every exit and discards output', async (t) => {
  const spool = await openTestSpool(t, createDir(t), 4 * MiB)
  const recorder = createSyncRecorder(spool, silentLog)
  for (let run = 1; run <= 30; run++) {
    const recording = recorder.start({ command: 'cat', record: createRecord(formatProcessId(run)) }, 7, 1)
    recording?.finish(exited, { stdout: createTail(Buffer.alloc(300_000, 'x')), stderr: createTail() })
  }
  const reports = await readReports(spool)
  for (const type of ['command.started', 'command.finished'])
    t.equal(reports.filter((report) => report.type === type).length, 30, `every ${type}`)
  t.ok(spool.pendingBytes() < 4 * MiB)
  t.ok(joinOutput(reports, 'stdout').length >= 300_000)
  recorder.close()
})
