// The report spool: numbering, recovery after crashes, acknowledgement, eviction.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFile, mkdir, readdir, readFile, rm, rmdir, stat, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { openSpool, type Spool, START_CURSOR } from '../../../agent/reports/spool.ts'
import { openState } from '../../../agent/state.ts'
import type { DurableReport } from '../../../shared/api/reports.ts'
import { mountSmallDisk, SKIP_MOUNT } from '../../support/small-disk.ts'
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
  options: { maxBytes?: number; segmentBytes?: number } = {},
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
const readTimes = async (spool: Spool) => (await readStored(spool)).map(({ report }) => report.at)

t.test('a report that is appended while acknowledged reports are deleted is kept', async (t) => {
  const stateDir = createStateDir(t)
  const state = await openState(stateDir, silentLog)
  let onUpdate = () => undefined
  const stateFile: typeof state = {
    ...state,
    async update(change) {
      onUpdate()
      return state.update(change)
    },
  }
  const spool = await openSpool({ dir: join(stateDir, 'reports'), stateFile, log: silentLog })
  t.teardown(() => spool.close())
  // Enough that the last segment is deleted too.
  await spool.append(createReport(1, 100_000))
  onUpdate = () => void spool.appendUnsynced(createReport(2))
  t.ok(await spool.acknowledge({ epoch: spool.epoch, seq: 1 }))
  onUpdate = () => undefined
  t.same(await readTimes(spool), [2])
  t.equal((await readdir(join(stateDir, 'reports'))).length, 1, 'the acknowledged report is deleted')
})

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
  t.same(await readTimes(spool), [1, 2, 3, 4])
  const afterRestart = (await readNumbers(spool)).at(-1) ?? 0
  t.ok(afterRestart > 1_000_000, 'skips the numbers of reports that may be missing')
  t.ok(
    await spool.acknowledge({ epoch, seq: 5 }),
    'the coordinator may have received reports that are missing',
  )
  t.same(await readTimes(spool), [4])
  t.ok(await spool.acknowledge({ epoch, seq: afterRestart }))
  t.same(await readNumbers(spool), [])
  await spool.close()
  t.same(await readdir(join(stateDir, 'reports')), [], 'no file is left')

  spool = await openSpoolIn(stateDir)
  await spool.append(createReport(5))
  const [afterDeletion = 0] = await readNumbers(spool)
  t.ok(afterDeletion > afterRestart, 'numbering continues after all reports were deleted')
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
  for (let at = 4; at <= 403; at++) next.appendUnsynced(createReport(at, 200))
  const last = (await readNumbers(next)).at(-1) ?? 0
  t.ok(await next.acknowledge({ epoch, seq: last - 1 }))
  t.equal((await readNumbers(next)).at(-1), last)
  t.ok(await next.acknowledge({ epoch, seq: last }))
  t.same([next.pendingBytes(), await files()], [0, []])
  next.appendUnsynced(createReport(404))
  t.same(await readNumbers(next), [last + 1])
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

t.test('starts a new epoch when a segment is damaged, and keeps its valid reports', async (t) => {
  const damages: [name: string, change: (file: string) => Promise<void>, kept: number[]][] = [
    ['a partial line', (file) => appendFile(file, '{"type":"report","epo'), [1, 2]],
    ['zeros', (file) => appendFile(file, '\0\0\0\0\0\0\n'), [1, 2]],
    ['a line of another epoch', (file) => appendFile(file, '{"epoch":"other","seq":3}\n'), [1, 2]],
    ['a lost end', async (file) => truncate(file, (await stat(file)).size - 20), [1]],
    ['an empty file', (file) => truncate(file), []],
    ['a file without a valid line', (file) => writeFile(file, 'x\n'), []],
  ]
  for (const [name, change, kept] of damages) {
    const stateDir = createStateDir(t)
    const first = await openSpoolIn(stateDir)
    const { epoch } = first
    await first.append(createReport(1))
    await first.append(createReport(2))
    await first.close()
    await change(join(stateDir, 'reports', '0000000000000001.ndjson'))

    const second = await openSpoolIn(stateDir)
    t.not(second.epoch, epoch, `${name}: a new epoch`)
    await second.append(createReport(3))
    const stored = await readStored(second)
    t.same(
      stored.map(({ epoch, report }) => [epoch, report.at]),
      [...kept.map((at) => [epoch, at]), [second.epoch, 3]],
      name,
    )
    const number = stored.at(-1)?.seq ?? 0
    if (kept.length > 0) {
      t.ok(number > 2, 'no number is used twice')
      t.ok(await second.acknowledge({ epoch, seq: kept.length }), 'the old epoch is acknowledged on its own')
      t.same(await readTimes(second), [3])
    }
    await second.close()

    const third = await openSpoolIn(stateDir)
    t.equal(third.epoch, second.epoch, 'the next start continues the new epoch')
    t.same(await readTimes(third), [3])
    await third.close()
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
    (await readStored(second)).map(({ epoch, report }) => [epoch, report.at]),
    [
      [first.epoch, 1],
      [second.epoch, 2],
    ],
    'reports of the previous epoch are kept',
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

t.test('never uses a number twice, even when the whole spool was deleted', async (t) => {
  const stateDir = createStateDir(t)
  const first = await openSpoolIn(stateDir)
  for (const at of [1, 2, 3]) await first.append(createReport(at))
  // Like after a kill: the first spool is not closed.
  await rm(join(stateDir, 'reports'), { recursive: true })
  const second = await openSpoolIn(stateDir)
  await second.append(createReport(4))
  const [number = 0] = await readNumbers(second)
  t.ok(number > 3 || second.epoch !== first.epoch)
  await second.close()
})

t.test('acknowledges and deletes reports while the state file cannot be written', async (t) => {
  const stateDir = createStateDir(t)
  const spool = await openSpoolIn(stateDir)
  await spool.append(createReport(1, 60_000))
  await spool.append(createReport(2, 60_000))
  // The temporary file of the atomic write.
  await mkdir(join(stateDir, '.state.json.tmp'))
  t.ok(await spool.acknowledge({ epoch: spool.epoch, seq: 2 }))
  t.same([spool.pendingBytes(), await readdir(join(stateDir, 'reports'))], [0, []])
  await spool.append(createReport(3))
  await spool.close()

  await rmdir(join(stateDir, '.state.json.tmp'))
  const next = await openSpoolIn(stateDir)
  await next.append(createReport(4))
  t.ok(((await readNumbers(next)).at(-1) ?? 0) > 3)
  await next.close()
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

t.test('opens after damage while the state file cannot be written', async (t) => {
  const stateDir = createStateDir(t)
  const first = await openSpoolIn(stateDir)
  await first.append(createReport(1))
  await first.close()
  await appendFile(join(stateDir, 'reports', '0000000000000001.ndjson'), 'x')
  const state = await openState(stateDir, silentLog)
  const stateFile = { ...state, update: () => Promise.reject(new Error('no space left on device')) }
  const spool = await openSpool({ dir: join(stateDir, 'reports'), stateFile, log: silentLog })
  await spool.append(createReport(2))
  t.ok(((await readNumbers(spool)).at(-1) ?? 0) > 1000, 'it skips numbers as at any start')
  await spool.close()
})

t.test('stores reports on a full disk in its reserve, again and again', async (t) => {
  const disk = mountSmallDisk(t, 8)
  if (disk === undefined) return t.pass(SKIP_MOUNT, { skip: SKIP_MOUNT })
  const spool = await openSpoolIn(disk.dir)
  const { epoch } = spool
  await spool.append(createReport(0))
  disk.fill()
  let at = 0
  for (let round = 1; round <= 3; round++) {
    const times = Array.from({ length: 200 }, () => ++at)
    for (const time of times) await spool.append(createReport(time, 600))
    const stored = await readStored(spool)
    t.same(
      stored.map(({ report }) => report.at),
      round === 1 ? [0, ...times] : times,
    )
    if (round < 3) t.ok(await spool.acknowledge({ epoch, seq: stored.at(-1)?.seq ?? 0 }))
  }
  t.throws(
    () => {
      for (let i = 0; i < 10_000; i++) spool.appendUnsynced(createReport(-1, 600))
    },
    { code: 'ENOSPC' },
  )

  // Like after a kill: the first spool is not closed.
  const next = await openSpoolIn(disk.dir)
  t.same(
    (await readTimes(next)).slice(0, 200),
    Array.from({ length: 200 }, (_, i) => 401 + i),
  )
  await next.close()
})

t.test('drops optional reports while the spool is half full', async (t) => {
  const spool = await openSpoolIn(createStateDir(t), { maxBytes: 10_000, segmentBytes: 2000 })
  let appended = 0
  while (spool.appendOptional(createReport(++appended, 60)));
  appended -= 1
  t.ok(spool.pendingBytes() > 5000)
  await spool.append(createReport(0))
  t.same(
    await readTimes(spool),
    [...Array.from({ length: appended }, (_, i) => i + 1), 0],
    'others are stored',
  )
  t.ok(await spool.acknowledge({ epoch: spool.epoch, seq: appended }))
  t.ok(spool.appendOptional(createReport(100)), 'stored again after the acknowledgement')
  await spool.close()
  t.throws(() => spool.appendOptional(createReport(1)), /closed/)
})

t.test('on a full disk, drops optional reports and leaves the reserve to the others', async (t) => {
  const disk = mountSmallDisk(t, 8)
  if (disk === undefined) return t.pass(SKIP_MOUNT, { skip: SKIP_MOUNT })
  const spool = await openSpoolIn(disk.dir)
  const { epoch } = spool
  const readSeq = async () => (await readStored(spool)).at(-1)?.seq ?? 0
  disk.fill()
  const dropAll = () => {
    for (let i = 0; i < 3; i++) t.equal(spool.appendOptional(createReport(-1, 600)), false)
  }
  dropAll()
  await spool.append(createReport(1, 600))
  dropAll()
  t.same(await readTimes(spool), [1])
  t.ok(await spool.acknowledge({ epoch, seq: await readSeq() }))
  dropAll()
  await spool.append(createReport(2, 600))
  t.same(await readTimes(spool), [2])
  disk.free()
  t.ok(await spool.acknowledge({ epoch, seq: await readSeq() }))
  t.equal(spool.appendOptional(createReport(3)), true, 'stored again when the disk has space')
  t.same(await readTimes(spool), [3])
  await spool.close()
})
