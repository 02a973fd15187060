// The report spool: numbering, recovery after crashes, acknowledgement, eviction.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFile, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { openSpool, type Spool, START_CURSOR } from '../../../agent/reports/spool.ts'
import { openState } from '../../../agent/state.ts'
import type { DurableReport } from '../../../shared/api/reports.ts'
import { createTempDir } from '../../support/temp-dir.ts'
import { silentLog } from '../../support/tunnel.ts'
import { waitUntil } from '../../support/wait-until.ts'

const createReport = (at: number, padding = 0): DurableReport => ({
  type: 'agent.started',
  at,
  instanceId: 'i'.repeat(padding),
  bootId: 'b',
  agentVersion: 'v',
})

const createStateDir = (t: Test): string => createTempDir(t, 'spool')

async function openSpoolIn(
  stateDir: string,
  options: { maxBytes?: number; segmentBytes?: number; bootId?: string } = {},
): Promise<Spool> {
  const state = await openState(stateDir, silentLog)
  return openSpool({ dir: join(stateDir, 'reports'), stateFile: state, log: silentLog, ...options })
}

type Line = { epoch: string; seq: number; report: { at: number } }

async function readStored(spool: Spool): Promise<Line[]> {
  const lines: Line[] = []
  for (let cursor = START_CURSOR; ; ) {
    const found = await spool.read(cursor)
    if (found === null) return lines
    cursor = found.next
    for (const line of found.lines.toString().trimEnd().split('\n')) lines.push(JSON.parse(line))
  }
}
const readNumbers = async (spool: Spool) => (await readStored(spool)).map(({ seq }) => seq)

t.test('numbers reports, keeps them across restarts and deletes them once acknowledged', async (t) => {
  const stateDir = createStateDir(t)
  let spool = await openSpoolIn(stateDir)
  await Promise.all([1, 2, 3].map((at) => spool.append(createReport(at))))
  t.same(await readNumbers(spool), [1, 2, 3])
  const { epoch } = spool
  await spool.close()

  spool = await openSpoolIn(stateDir)
  t.equal(spool.epoch, epoch)
  await spool.append(createReport(4))
  t.same(
    (await readStored(spool)).map(({ report, seq }) => [seq, report.at]),
    [
      [1, 1],
      [2, 2],
      [3, 3],
      [4, 4],
    ],
  )
  t.ok(await spool.acknowledge({ epoch, seq: 4 }))
  t.same(await readNumbers(spool), [])
  await spool.close()
  t.same(await readdir(join(stateDir, 'reports')), [], 'no file is left')

  spool = await openSpoolIn(stateDir)
  await spool.append(createReport(5))
  t.same(
    await readNumbers(spool),
    [5],
    'numbering continues after all reports were deleted and the agent restarted',
  )
  await spool.close()
})

t.test('keeps using a small file after its reports are acknowledged, and deletes a large one', async (t) => {
  const stateDir = createStateDir(t)
  const files = () => readdir(join(stateDir, 'reports'))
  const spool = await openSpoolIn(stateDir)
  const { epoch } = spool
  const state = await readFile(join(stateDir, 'state.json'), 'utf8')
  for (const seq of [1, 2, 3]) {
    spool.appendUnsynced(createReport(seq))
    t.same(await readNumbers(spool), [seq], 'acknowledged reports are not read again')
    t.ok(await spool.acknowledge({ epoch, seq }))
    t.same([spool.pendingBytes(), (await files()).length], [0, 1])
  }
  t.equal(await readFile(join(stateDir, 'state.json'), 'utf8'), state)

  // Like after a kill: the first spool is not closed.
  const next = await openSpoolIn(stateDir)
  t.same(await readNumbers(next), [1, 2, 3], 'acknowledged reports are read again with the same numbers')
  t.ok(await next.acknowledge({ epoch, seq: 2 }))
  t.same(await readNumbers(next), [1, 2, 3])
  for (let seq = 4; seq <= 403; seq++) next.appendUnsynced(createReport(seq, 200))
  t.ok(await next.acknowledge({ epoch, seq: 402 }))
  t.equal((await readNumbers(next)).at(-1), 403)
  t.ok(await next.acknowledge({ epoch, seq: 403 }))
  t.same([next.pendingBytes(), await files()], [0, []])
  next.appendUnsynced(createReport(404))
  t.same(await readNumbers(next), [404])
  await next.close()
})

t.test('ignores an acknowledgement for another epoch or for a number not yet assigned', async (t) => {
  const spool = await openSpoolIn(createStateDir(t))
  await spool.append(createReport(1))
  t.notOk(await spool.acknowledge({ epoch: 'another', seq: 1 }))
  t.notOk(await spool.acknowledge({ epoch: spool.epoch, seq: 2 }))
  t.same(await readNumbers(spool), [1])
  await spool.close()
})

t.test('truncates a partial last line and reuses its number', async (t) => {
  for (const torn of ['{"type":"report","epo', '\0\0\0\0\0\0\n', '{"epoch":"other","seq":3}\n']) {
    const stateDir = createStateDir(t)
    let spool = await openSpoolIn(stateDir)
    await spool.append(createReport(1))
    await spool.append(createReport(2))
    await spool.close()
    await appendFile(join(stateDir, 'reports', '0000000000000001.ndjson'), torn)
    spool = await openSpoolIn(stateDir)
    await spool.append(createReport(3))
    t.same(
      (await readStored(spool)).map(({ report, seq }) => [seq, report.at]),
      [
        [1, 1],
        [2, 2],
        [3, 3],
      ],
    )
    await spool.close()
  }
})

t.test('discards only the oldest reports when full', async (t) => {
  const spool = await openSpoolIn(createStateDir(t), { maxBytes: 10_000, segmentBytes: 2000 })
  for (let at = 1; at <= 100; at++) await spool.append(createReport(at, 60))
  const remaining = await readNumbers(spool)
  t.equal(remaining.at(-1), 100)
  t.ok(remaining.length > 20 && remaining.length < 100, `${remaining.length} remain`)
  t.same(
    remaining,
    Array.from({ length: remaining.length }, (_, i) => 101 - remaining.length + i),
    'the remaining numbers have no gap',
  )
  await spool.close()
})

t.test('starts a new epoch when the state file is damaged', async (t) => {
  const stateDir = createStateDir(t)
  const first = await openSpoolIn(stateDir)
  await first.append(createReport(1))
  await first.close()
  await writeFile(join(stateDir, 'state.json'), '{"epo')
  const second = await openSpoolIn(stateDir)
  t.not(second.epoch, first.epoch)
  await second.append(createReport(2))
  t.same(
    (await readStored(second)).map(({ epoch, seq }) => [epoch, seq]),
    [[second.epoch, 1]],
  )
  await second.close()
})

t.test('reports whose append resolved survive kill -9', async (t) => {
  const stateDir = createStateDir(t)
  const child = spawn(
    process.execPath,
    [join(import.meta.dirname, '../../fixtures/spool-writer.ts'), stateDir],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  )
  let output = ''
  child.stdout.on('data', (chunk) => {
    output += chunk
  })
  await waitUntil('50 reports are appended', () => output.split('\n').length > 50)
  child.kill('SIGKILL')
  await once(child, 'close')
  const confirmed = output.split('\n').slice(0, -1).map(Number)
  const spool = await openSpoolIn(stateDir)
  const found = (await readStored(spool)).map(({ report }) => report.at)
  t.same(found.slice(0, confirmed.length), confirmed)
  t.ok(found.length <= confirmed.length + 10, 'at most the unconfirmed reports are added')
  t.match(await readFile(join(stateDir, 'state.json'), 'utf8'), spool.epoch)
  await spool.close()
})

t.test(
  'an unsynced report is readable immediately and in order, and readers are notified after a delay',
  async (t) => {
    const stateDir = createStateDir(t)
    const spool = await openSpoolIn(stateDir)
    const never = new AbortController().signal
    const notified = spool.waitForReport(never).then(() => 'notified')
    spool.appendUnsynced(createReport(1))
    t.equal(await Promise.race([notified, Promise.resolve('not yet')]), 'not yet')
    const appended = spool.append(createReport(2))
    spool.appendUnsynced(createReport(3))
    t.equal(await notified, 'notified', 'together with an urgent report')
    await appended
    const notifiedAgain = spool.waitForReport(never)
    spool.appendUnsynced(createReport(4))
    await notifiedAgain
    const other = await openSpoolIn(stateDir)
    t.same(await readNumbers(other), [1, 2, 3, 4], 'without a sync or close')
    await other.close()
    await spool.close()
    t.throws(() => spool.appendUnsynced(createReport(5)), /closed/)
    await t.rejects(spool.append(createReport(5)), /closed/)
  },
)

t.test('after a reboot, skips numbers that a power failure may have lost', async (t) => {
  const stateDir = createStateDir(t)
  const before = await openSpoolIn(stateDir, { bootId: 'one' })
  before.appendUnsynced(createReport(1))
  await before.close()
  const same = await openSpoolIn(stateDir, { bootId: 'one' })
  same.appendUnsynced(createReport(2))
  t.same(await readNumbers(same), [1, 2])
  await same.close()
  const after = await openSpoolIn(stateDir, { bootId: 'two' })
  after.appendUnsynced(createReport(3))
  const [, , last] = await readNumbers(after)
  t.ok(last !== undefined && last > 1_000_000)
  t.ok(
    await after.acknowledge({ epoch: after.epoch, seq: 5 }),
    'the coordinator may have received reports that were lost',
  )
  t.same(
    (await readStored(after)).map(({ report }) => report.at),
    [3],
  )
  await after.close()
})

t.test('waitForSpace resolves below the high-water mark, or after enough acknowledgements', async (t) => {
  const spool = await openSpoolIn(createStateDir(t), { maxBytes: 10_000, segmentBytes: 2000 })
  const signal = new AbortController().signal
  await spool.waitForSpace(signal)
  let seq = 0
  while (spool.pendingBytes() <= spool.highWaterMark) {
    spool.appendUnsynced(createReport(1, 60))
    seq += 1
  }
  let hasSpace = false
  const waiting = spool.waitForSpace(signal).then(() => {
    hasSpace = true
  })
  await spool.acknowledge({ epoch: spool.epoch, seq: 1 })
  t.notOk(hasSpace)
  await spool.acknowledge({ epoch: spool.epoch, seq })
  await waiting
  t.equal(spool.pendingBytes(), 0)
  const controller = new AbortController()
  while (spool.pendingBytes() <= spool.highWaterMark) spool.appendUnsynced(createReport(1, 60))
  const aborted = spool.waitForSpace(controller.signal)
  controller.abort(new Error('aborted'))
  await t.rejects(aborted, /aborted/)
  await spool.close()
})

t.test('opens after a reboot while the state file cannot be written', async (t) => {
  const stateDir = createStateDir(t)
  await (await openSpoolIn(stateDir, { bootId: 'first' })).close()
  const state = await openState(stateDir, silentLog)
  const stateFile = { ...state, update: () => Promise.reject(new Error('no space left on device')) }
  const spool = await openSpool({
    dir: join(stateDir, 'reports'),
    stateFile,
    log: silentLog,
    bootId: 'second',
  })
  await spool.append(createReport(1))
  const [line] = await readStored(spool)
  t.ok(line && line.seq > 1000, 'it skips numbers as after any reboot')
  await spool.close()
})
