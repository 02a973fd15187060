// Reporting detached processes to the command history: while they run, across agent restarts, without filling the spool.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { DetachedProcess } from '../../../../agent/exec/detached/types.ts'
import { createDetachedRecorder } from '../../../../agent/exec/history/detached-recorder.ts'
import type { Spool } from '../../../../agent/reports/spool.ts'
import { silentLog } from '../../../support/tunnel.ts'
import { waitUntil } from '../../../support/wait-until.ts'
import {
  createDir,
  createFakeProcess,
  drainSpool,
  formatProcessId,
  joinOutput,
  openTestSpool,
  readReports,
} from './support.ts'

const MiB = 1024 * 1024

function startRecorder(t: Test, spool: Spool, processes: DetachedProcess[], bootId = 'boot', intervalMs = 1) {
  const subscribe = (callback: (process: DetachedProcess) => void) => {
    for (const process of processes) callback(process)
    return () => undefined
  }
  const recorder = createDetachedRecorder({
    processes: { subscribe },
    spool,
    log: silentLog,
    bootId,
    intervalMs,
  })
  t.teardown(() => recorder.close())
  return recorder
}

/** Waits until the spool has a report of this type about process `number`. */
const waitForReport = (spool: Spool, type: 'command.started' | 'command.finished', number = 1) =>
  waitUntil(`${type} of process ${number} is reported`, async () =>
    (await readReports(spool)).some(
      (report) => report.type === type && report.commandId === formatProcessId(number),
    ),
  )

t.test('reports the start, the output during the run, and last the exit', async (t) => {
  const spool = await openTestSpool(t, createDir(t))
  const { process, stdout, stderr, exit } = createFakeProcess(createDir(t), 1)
  startRecorder(t, spool, [process])
  await waitForReport(spool, 'command.started')
  stdout.write('one ')
  await waitUntil(
    'the output is reported',
    async () => joinOutput(await readReports(spool), 'stdout').length === 4,
  )
  stderr.write('problem')
  stdout.write('two')
  exit({ status: 'killed', exitCode: null, signal: 'TERM' })
  await waitForReport(spool, 'command.finished')
  const reports = await readReports(spool)
  t.match(reports[0], { type: 'command.started', command: 'make', cwd: '~', pid: 101, claimsToken: 'signed' })
  t.match(reports.at(-1), {
    type: 'command.finished',
    status: 'killed',
    signal: 'TERM',
    finishedAt: 2,
    stdoutBytes: 7,
    stderrBytes: 7,
  })
  t.equal(joinOutput(reports, 'stdout').toString(), 'one two')
  t.equal(joinOutput(reports, 'stderr').toString(), 'problem')
  await waitUntil('the logs are no longer watched', () => stdout.watchers.size + stderr.watchers.size === 0)
})

t.test('flush reports everything immediately, and waitUntilIdle waits for the exits', async (t) => {
  const spool = await openTestSpool(t, createDir(t))
  const { process, stdout, exit } = createFakeProcess(createDir(t), 1)
  const recorder = startRecorder(t, spool, [process], 'boot', 1_000_000)
  const readOutput = async () => joinOutput(await readReports(spool), 'stdout').toString()
  await recorder.flush()
  t.match(await readReports(spool), [{ type: 'command.started' }])
  for (const text of ['one ', 'two ', 'three']) {
    stdout.write(text)
    await recorder.flush()
  }
  t.equal(await readOutput(), 'one two three')
  exit()
  await Promise.all([recorder.flush(), recorder.waitUntilIdle()])
  const types = (await readReports(spool)).map(({ type }) => type)
  t.same(types.slice(-2), ['command.output', 'command.finished'])
  t.equal(types.filter((type) => type === 'command.finished').length, 1)
})

t.test('the next agent continues where the previous one stopped, without duplicates', async (t) => {
  const processDir = createDir(t)
  const spool = await openTestSpool(t, createDir(t))
  const { process, stdout, exit } = createFakeProcess(processDir, 1)
  const first = startRecorder(t, spool, [process])
  stdout.write('before ')
  await waitUntil(
    'the output is reported',
    async () => joinOutput(await readReports(spool), 'stdout').length === 7,
  )
  await first.close()
  stdout.write('between ')
  exit()
  const second = startRecorder(t, spool, [process])
  await waitForReport(spool, 'command.finished')
  await second.close()
  await startRecorder(t, spool, [process]).close()
  const reports = await readReports(spool)
  t.same(
    reports.map(({ type }) => type),
    ['command.started', 'command.output', 'command.output', 'command.finished'],
  )
  t.equal(joinOutput(reports, 'stdout').toString(), 'before between ')

  await t.test('reports everything again to a new spool, or after a damaged cursor', async (t) => {
    const newSpool = await openTestSpool(t, createDir(t))
    startRecorder(t, newSpool, [process])
    await waitForReport(newSpool, 'command.finished')
    t.equal(joinOutput(await readReports(newSpool), 'stdout').toString(), 'before between ')
    await drainSpool(newSpool)
    writeFileSync(join(processDir, 'history.json'), '{"epo')
    startRecorder(t, newSpool, [process])
    await waitForReport(newSpool, 'command.finished')
  })
})

t.test(
  'after a reboot, reports unfinished processes again: a power loss may have lost reports',
  async (t) => {
    const spool = await openTestSpool(t, createDir(t))
    const [exited, lost] = [createFakeProcess(createDir(t), 1), createFakeProcess(createDir(t), 2)]
    exited.exit()
    const before = startRecorder(t, spool, [exited.process, lost.process])
    await waitForReport(spool, 'command.finished', 1)
    await waitForReport(spool, 'command.started', 2)
    await before.close()
    await drainSpool(spool)
    lost.exit({ status: 'lost', exitCode: null, finishedAt: null })
    startRecorder(t, spool, [exited.process, lost.process], 'another boot')
    await waitForReport(spool, 'command.finished', 2)
    const reported = (await readReports(spool)).map(({ type, commandId }) => `${type} ${commandId.at(-1)}`)
    t.same(reported, ['command.started 2', 'command.finished 2'])
  },
)

t.test('while reports are not acknowledged, output stays in the logs instead of the spool', async (t) => {
  const spool = await openTestSpool(t, createDir(t), 2 * MiB)
  const processes = Array.from({ length: 8 }, (_, number) => createFakeProcess(createDir(t), number))
  startRecorder(
    t,
    spool,
    processes.map(({ process }) => process),
  )
  const createOutput = (number: number) => Buffer.alloc(5 * MiB, `output of ${number} `)
  for (const [number, { stdout, exit }] of processes.entries()) {
    stdout.write(createOutput(number))
    exit()
  }
  await waitUntil('the spool is full', () => spool.pendingBytes() > spool.highWaterMark)
  await new Promise((resolve) => setTimeout(resolve, 50))
  t.ok(spool.pendingBytes() < 2 * MiB, `${spool.pendingBytes()} bytes are pending`)

  const received = new Map<string, Awaited<ReturnType<typeof drainSpool>>>()
  await waitUntil('everything is reported once reports are acknowledged', async () => {
    for (const report of await drainSpool(spool)) {
      const reports = received.get(report.commandId) ?? []
      received.set(report.commandId, reports)
      reports.push(report)
    }
    const lastTypes = [...received.values()].map((reports) => reports.at(-1)?.type)
    return lastTypes.filter((type) => type === 'command.finished').length === 8
  })
  for (let number = 0; number < 8; number++) {
    const output = joinOutput(received.get(formatProcessId(number)) ?? [], 'stdout')
    t.ok(
      output.subarray(-MiB).equals(createOutput(number).subarray(-MiB)),
      `the last 1 MiB of process ${number}`,
    )
  }
})

t.test('skips discarded output and keeps the offset of the rest', async (t) => {
  const spool = await openTestSpool(t, createDir(t))
  const { process, stdout, exit } = createFakeProcess(createDir(t), 1)
  stdout.write('discarded,rest')
  stdout.discardHead(10)
  exit()
  startRecorder(t, spool, [process])
  await waitForReport(spool, 'command.finished')
  t.equal(joinOutput(await readReports(spool), 'stdout').toString(), '          rest')
})

t.test('with zero data retention, neither command nor output leaves the box', async (t) => {
  const spool = await openTestSpool(t, createDir(t))
  const { process, stdout, exit } = createFakeProcess(createDir(t), 1, false)
  startRecorder(t, spool, [process])
  stdout.write('secret')
  exit()
  await waitForReport(spool, 'command.finished')
  t.match(await readReports(spool), [
    { command: null, cwd: null },
    { type: 'command.finished', stdoutBytes: 6 },
  ])
})
