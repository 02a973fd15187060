// Detached processes as reports: told while they run, across agents, and piled up by nobody.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { DetachedProcess } from '../../../../agent/exec/detached/types.ts'
import { createDetachedRecorder } from '../../../../agent/exec/history/detached-recorder.ts'
import type { Spool } from '../../../../agent/reports/spool.ts'
import { silent, waitUntil } from '../../../support/tunnel.ts'
import { bytesOf, createFakeProcess, drain, folderOf, idOf, reportsOf, spoolIn } from './support.ts'

const MiB = 1024 * 1024

function follow(t: Test, spool: Spool, processes: DetachedProcess[], bootId = 'boot') {
  const each = (callback: (process: DetachedProcess) => void) => {
    for (const process of processes) callback(process)
    return () => undefined
  }
  const recorder = createDetachedRecorder({
    processes: { subscribe: each },
    spool,
    log: silent,
    bootId,
    intervalMs: 1,
  })
  t.teardown(() => recorder.close())
  return recorder
}
const has =
  (spool: Spool, type: string, number = 1) =>
  async () =>
    (await reportsOf(spool)).some((report) => report.type === type && report.commandId === idOf(number))

t.test('its start, its output while it runs, and last its end', async (t) => {
  const spool = await spoolIn(t, folderOf(t))
  const { process, stdout, stderr, exit } = createFakeProcess(folderOf(t), 1)
  follow(t, spool, [process])
  await waitUntil('it began', has(spool, 'command.started'))
  stdout.write('one ')
  await waitUntil('output', async () => bytesOf(await reportsOf(spool), 'stdout').length === 4)
  stderr.write('problem')
  stdout.write('two')
  exit({ status: 'killed', exitCode: null, signal: 'TERM' })
  await waitUntil('it ended', has(spool, 'command.finished'))
  const reports = await reportsOf(spool)
  t.match(reports[0], { type: 'command.started', command: 'make', cwd: '~', pid: 101, claimsToken: 'signed' })
  t.match(reports.at(-1), {
    type: 'command.finished',
    status: 'killed',
    signal: 'TERM',
    finishedAt: 2,
    stdoutBytes: 7,
    stderrBytes: 7,
  })
  t.equal(bytesOf(reports, 'stdout').toString(), 'one two')
  t.equal(bytesOf(reports, 'stderr').toString(), 'problem')
  await waitUntil('nobody watches it any more', () => stdout.watchers.size + stderr.watchers.size === 0)
})

t.test('the next agent goes on where this one stopped, and tells nothing twice', async (t) => {
  const [state, folder] = [folderOf(t), folderOf(t)]
  const spool = await spoolIn(t, state)
  const { process, stdout, exit } = createFakeProcess(folder, 1)
  const first = follow(t, spool, [process])
  stdout.write('before ')
  await waitUntil('told', async () => bytesOf(await reportsOf(spool), 'stdout').length === 7)
  await first.close()
  stdout.write('between ')
  exit()
  const second = follow(t, spool, [process])
  await waitUntil('it ended', has(spool, 'command.finished'))
  await second.close()
  await follow(t, spool, [process]).close()
  const reports = await reportsOf(spool)
  t.same(
    reports.map(({ type }) => type),
    ['command.started', 'command.output', 'command.output', 'command.finished'],
  )
  t.equal(bytesOf(reports, 'stdout').toString(), 'before between ')

  await t.test('a spool that was lost or a torn cursor: all of it again', async (t) => {
    const anew = await spoolIn(t, folderOf(t))
    follow(t, anew, [process])
    await waitUntil('all again', has(anew, 'command.finished'))
    t.equal(bytesOf(await reportsOf(anew), 'stdout').toString(), 'before between ')
    await drain(anew)
    writeFileSync(join(folder, 'history.json'), '{"epo')
    follow(t, anew, [process])
    await waitUntil('all again', has(anew, 'command.finished'))
  })
})

t.test('after a reboot, which may have been a power cut, what had not ended is told anew', async (t) => {
  const spool = await spoolIn(t, folderOf(t))
  const [ended, lost] = [createFakeProcess(folderOf(t), 1), createFakeProcess(folderOf(t), 2)]
  ended.exit()
  const before = follow(t, spool, [ended.process, lost.process])
  await waitUntil('one ended', has(spool, 'command.finished', 1))
  await waitUntil('one runs', has(spool, 'command.started', 2))
  await before.close()
  await drain(spool)
  lost.exit({ status: 'lost', exitCode: null, finishedAt: null })
  follow(t, spool, [ended.process, lost.process], 'another boot')
  await waitUntil('it is lost', has(spool, 'command.finished', 2))
  const told = (await reportsOf(spool)).map(({ type, commandId }) => `${type} ${commandId.at(-1)}`)
  t.same(told, ['command.started 2', 'command.finished 2'])
})

t.test('while nobody takes reports the logs keep the output, not the spool', async (t) => {
  const spool = await spoolIn(t, folderOf(t), 2 * MiB)
  const all = Array.from({ length: 8 }, (_, number) => createFakeProcess(folderOf(t), number))
  follow(
    t,
    spool,
    all.map(({ process }) => process),
  )
  const text = (number: number) => Buffer.alloc(5 * MiB, `${number} and so on `)
  for (const [number, { stdout, exit }] of all.entries()) {
    stdout.write(text(number))
    exit()
  }
  await waitUntil('it is as full as it may', () => spool.pendingBytes() > spool.highWaterMark)
  await new Promise((resolve) => setTimeout(resolve, 50))
  t.ok(spool.pendingBytes() < 2 * MiB, `${spool.pendingBytes()}`)

  const taken = new Map<string, Awaited<ReturnType<typeof drain>>>()
  await waitUntil('all of it came once somebody took it', async () => {
    for (const report of await drain(spool)) {
      const reports = taken.get(report.commandId) ?? []
      taken.set(report.commandId, reports)
      reports.push(report)
    }
    return [...taken.values()].filter((reports) => reports.at(-1)?.type === 'command.finished').length === 8
  })
  for (let number = 0; number < 8; number++) {
    const told = bytesOf(taken.get(idOf(number)) ?? [], 'stdout')
    t.ok(told.subarray(-MiB).equals(text(number).subarray(-MiB)), `the last MiB of ${number}`)
  }
})

t.test('what the log has given up is passed over, at its offset', async (t) => {
  const spool = await spoolIn(t, folderOf(t))
  const { process, stdout, exit } = createFakeProcess(folderOf(t), 1)
  stdout.write('given up, kept')
  stdout.discardHead(10)
  exit()
  follow(t, spool, [process])
  await waitUntil('it ended', has(spool, 'command.finished'))
  t.equal(bytesOf(await reportsOf(spool), 'stdout').toString(), '          kept')
})

t.test('under zero data retention no output leaves the box', async (t) => {
  const spool = await spoolIn(t, folderOf(t))
  const { process, stdout, exit } = createFakeProcess(folderOf(t), 1, false)
  follow(t, spool, [process])
  stdout.write('secret')
  exit()
  await waitUntil('it ended', has(spool, 'command.finished'))
  t.match(await reportsOf(spool), [
    { command: null, cwd: null },
    { type: 'command.finished', stdoutBytes: 6 },
  ])
})
