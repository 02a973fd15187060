// The time index of the output of detached processes: exactness, the ring buffer, damage, and crashes of the runner.
import { existsSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import {
  getTimesPath,
  MAX_TIME_RECORDS,
  openOutputTimes,
  readSortedRecords,
  TIME_INTERVAL_MS,
  type TimeRecord,
} from '../../../../agent/exec/detached/output-times.ts'
import { readStartRecord } from '../../../../agent/exec/detached/record.ts'
import { createTempDir } from '../../../support/temp-dir.ts'
import { waitUntil } from '../../../support/wait-until.ts'
import { createAgent, createHome, isNativeRunner, openAgent } from './support.ts'

const logPath = join(createTempDir(t, 'times'), 'stdout')
const timesPath = getTimesPath(logPath)

function writeRecords(records: readonly TimeRecord[]): void {
  const buffer = Buffer.alloc(records.length * 16)
  for (const [index, { at, offset }] of records.entries()) {
    buffer.writeBigInt64LE(BigInt(at), index * 16)
    buffer.writeBigInt64LE(BigInt(offset), index * 16 + 8)
  }
  writeFileSync(timesPath, buffer)
}

function required<T>(value: T | null | undefined): T {
  if (value === null || value === undefined) throw new Error('The value is missing.')
  return value
}
const read = () => required(openOutputTimes(logPath))
const records = [
  { at: 1000, offset: 0 },
  { at: 2000, offset: 10 },
  { at: 3000, offset: 50 },
]

t.test('finds the time of each byte, and splits chunks where the time changes', async (t) => {
  writeRecords(records)
  const times = read()
  t.same(times.limitChunk(0, 100, 'base64'), { length: 10, at: 1000 })
  t.same(times.limitChunk(9, 100, 'base64'), { length: 1, at: 1000 })
  t.same(times.limitChunk(10, 5, 'base64'), { length: 5, at: 2000 })
  t.same(times.limitChunk(60, 100, 'base64'), { length: 100, at: 3000 })
  t.same(times.limitChunk(9, 100, 'utf8'), { length: 4, at: 1000 }, 'a whole character')
  t.equal(times.limitRead(3, 100, 'base64'), 7)
  t.equal(times.limitRead(50, 100, 'base64'), 100)
})

t.test('finds the first output since a time', async (t) => {
  writeRecords(records)
  const times = read()
  t.equal(times.getOffsetSince(0), 0)
  t.equal(times.getOffsetSince(1099), 0, 'a record stands for 100 ms')
  t.equal(times.getOffsetSince(1100), 10)
  t.equal(times.getOffsetSince(2500), 50)
  t.equal(times.getOffsetSince(3100), Number.POSITIVE_INFINITY)
})

t.test('finds records that are written later, also after the buffer has wrapped', async (t) => {
  const all = Array.from({ length: MAX_TIME_RECORDS + 100 }, (_, index) => ({
    at: 1_000_000 + index * 100,
    offset: index * 10,
  }))
  const inSlots = (count: number) => {
    const slots: TimeRecord[] = []
    for (const [index, record] of all.slice(0, count).entries()) slots[index % MAX_TIME_RECORDS] = record
    return slots
  }
  writeRecords(inSlots(10))
  const times = read()
  writeRecords(inSlots(MAX_TIME_RECORDS - 5))
  t.same(times.limitChunk(1005, 100, 'base64'), { length: 5, at: 1_000_000 + 100 * 100 })
  writeRecords(inSlots(all.length))
  const last = required(all.at(-1))
  t.same(times.limitChunk(last.offset + 1, 100, 'base64'), { length: 100, at: last.at })
  const wrapped = read()
  t.same(wrapped.limitChunk(last.offset + 1, 100, 'base64'), { length: 100, at: last.at })
  t.same(wrapped.limitChunk(990, 100, 'base64'), { length: 10, at: null }, 'discarded times are unknown')
  t.same(wrapped.limitChunk(1000, 100, 'base64'), { length: 10, at: 1_000_000 + 100 * 100 })
  t.equal(wrapped.getOffsetSince(1_000_000), 0, 'output of unknown time is included')
})

t.test('damage makes times unknown, never wrong', async (t) => {
  writeRecords([...records.slice(0, 1), { at: 0, offset: 0 }, { at: 3000, offset: 50 }])
  t.same(read().limitChunk(5, 100, 'base64'), { length: 45, at: null })
  t.same(read().limitChunk(50, 100, 'base64'), { length: 100, at: 3000 })
  writeRecords(records)
  truncateSync(timesPath, 45)
  t.same(read().limitChunk(60, 100, 'base64'), { length: 100, at: 2000 }, 'a partial record')
  writeFileSync(timesPath, Buffer.alloc(160, 0xff))
  t.same(read().limitChunk(5, 100, 'base64'), { length: 100, at: null })
  rmSync(timesPath)
  t.equal(openOutputTimes(logPath), null)
})

t.test('the runner records when output was written', async (t) => {
  const { start, home, getProcess, waitForExit } = await createAgent(t)
  const before = Date.now()
  const { processId } = await start('echo 1; until [ -e next ]; do sleep 0.1; done; echo 2; echo error >&2')
  const { stdout, stderr } = getProcess(processId).logs
  const readTimes = ({ path }: { path: string }) => readSortedRecords(getTimesPath(path))?.records ?? []
  await waitUntil('the first record', () => readTimes(stdout).length === 1)
  const firstAt = required(readTimes(stdout)[0]).at
  await waitUntil('a new interval', () => Date.now() > firstAt + 2 * TIME_INTERVAL_MS)
  const next = Date.now()
  writeFileSync(join(home, 'next'), '')
  await waitForExit(processId)
  const [first, second] = readTimes(stdout)
  t.match([first, second, ...readTimes(stderr)], [{ offset: 0 }, { offset: 2 }, { offset: 0 }])
  t.ok(required(first).at >= before && required(first).at <= next, `${before} ${first?.at} ${next}`)
  t.ok(required(second).at >= next && required(second).at <= Date.now(), `${next} ${second?.at}`)
})

t.test(
  'the index of a fast writer is sparse, and readable after the runner was killed',
  { skip: !isNativeRunner && 'needs the native runner' },
  async (t) => {
    const { start, getProcess } = await createAgent(t)
    const startedAt = performance.now()
    const { processId } = await start('while :; do echo line; done')
    const { logs, dir } = getProcess(processId)
    const path = getTimesPath(logs.stdout.path)
    const readRecords = () => readSortedRecords(path)?.records ?? []
    await waitUntil('five records', () => readRecords().length >= 5)
    process.kill(required(readStartRecord(dir)).runner.pid, 'SIGKILL')
    await waitUntil('the process is lost', () => getProcess(processId).exit)
    const found = readRecords()
    t.equal(readFileSync(path).length, found.length * 16)
    for (const [index, { at, offset }] of found.entries()) {
      const previous = found[index - 1] ?? { at: 0, offset: -1 }
      t.ok(at >= previous.at && offset > previous.offset)
    }
    // The runner measures the interval with a monotonic clock and records the wall clock.
    t.ok(found.length <= (performance.now() - startedAt) / TIME_INTERVAL_MS + 1, `${found.length} records`)
    t.ok((found.at(-1)?.offset ?? 0) <= (await logs.stdout.size()))
  },
)

t.test('the index of a process under the shell runner continues after a restart of the agent', async (t) => {
  const home = createHome(t)
  const agent = await openAgent(t, home, { runnerKind: 'sh' })
  const { processId } = await agent.start('echo 1; until [ -e next ]; do sleep 0.1; done; echo 2')
  const path = getTimesPath(agent.getProcess(processId).logs.stdout.path)
  const readRecords = () => readSortedRecords(path)?.records ?? []
  await waitUntil('the first record', () => readRecords().length === 1)
  await agent.close()
  const next = await openAgent(t, home, { runnerKind: 'sh' })
  writeFileSync(join(home, 'next'), '')
  await next.waitForExit(processId)
  t.match(readRecords(), [{ offset: 0 }, { offset: 2 }])
})

t.test('output that the agent notices late is not later than the exit', async (t) => {
  const home = createHome(t)
  const agent = await openAgent(t, home, { runnerKind: 'sh' })
  const { processId } = await agent.start('until [ -e next ]; do sleep 0.1; done; echo 1')
  const { dir, logs } = agent.getProcess(processId)
  await agent.close()
  writeFileSync(join(home, 'next'), '')
  await waitUntil('the exit', () => existsSync(join(dir, 'exit')))
  const clock = { now: () => Date.now() + 60_000 }
  const next = await openAgent(t, home, { runnerKind: 'sh', clock })
  const { exit } = next.getProcess(processId)
  t.match(readSortedRecords(getTimesPath(logs.stdout.path))?.records, [{ offset: 0, at: exit?.finishedAt }])
})
