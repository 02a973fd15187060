// A coding agent that misbehaves costs a bounded amount, and its run has a true status.
import t, { type Test } from 'tap'
import { measureReferencedBytes } from '../../../support/heap.ts'
import { isNativeRunner } from '../../exec/detached/support.ts'
import { isAlive } from '../../exec/support.ts'
import { createTestRuns } from './support.ts'

const MiB = 1024 * 1024

t.test('the last final event counts', async (t) => {
  const { start, waitForEnd, readAll } = await createTestRuns(t)
  const { id } = await start('forged.sh')
  t.match(await waitForEnd(id), { status: 'failed', error: 'out of credit', exitCode: 0 })
  t.match(await readAll(id), [{}, { type: 'done' }, {}, { type: 'error', text: 'out of credit' }])
})

t.test('exit status 0 without output is a failure', async (t) => {
  const { start, waitForEnd } = await createTestRuns(t)
  const { id } = await start('silent.sh')
  t.match(await waitForEnd(id), {
    status: 'failed',
    error: 'The coding agent ended without a result.',
    exitCode: 0,
    eventCount: 0,
  })
})

t.test('output that is cut off before the final event is a failure', async (t) => {
  const { start, waitForEnd, readAll } = await createTestRuns(t)
  const { id } = await start('cut-off.sh')
  t.match(await waitForEnd(id), {
    status: 'failed',
    error: 'The coding agent ended without a result.',
    exitCode: 0,
  })
  t.match(await readAll(id), [{ text: 'half' }, { type: 'notice', text: '{"done":"yy' }])
})

t.test('the end of the standard error output explains a failure', async (t) => {
  const { start, waitForEnd, runs } = await createTestRuns(t)
  const { id } = await start('complaint.sh')
  t.match(await waitForEnd(id), { status: 'failed', error: /line 1999 ü$/, exitCode: 3 })
  const { stderr, stderrTruncated } = await runs.readStatus(id)
  t.ok(stderr.endsWith('line 1999 ü\n') && Buffer.byteLength(stderr) <= 4096)
  t.equal(stderrTruncated, true)
})

t.test('a line beyond the limit costs one notice', async (t) => {
  const { start, readAll, waitForEnd } = await createTestRuns(t)
  const { id } = await start('endless-line.sh')
  t.match(await readAll(id), [
    { text: 'before' },
    { type: 'notice', text: 'A line of 3145729 bytes was omitted.', raw: null },
    { text: 'after' },
    { type: 'done' },
  ])
  t.match(await waitForEnd(id), { status: 'done' })
})

t.test('a line larger than the log', async (t) => {
  const { start, readAll, waitForEnd } = await createTestRuns(t, { maxLogBytes: 64 * 1024 })
  const { id } = await start('endless-line.sh')
  t.match(await waitForEnd(id), { status: 'done' })
  const events = await readAll(id)
  t.match(events.slice(-3), [
    { type: 'notice', text: / bytes( of output were discarded| was omitted)\.$/ },
    { text: 'after' },
    { type: 'done' },
  ])
})

t.test('invalid UTF-8 and lines that are not JSON', async (t) => {
  const { start, readAll, waitForEnd } = await createTestRuns(t)
  const { id } = await start('invalid-text.sh')
  t.match(await waitForEnd(id), { status: 'done' })
  t.match(await readAll(id), [
    { type: 'text', text: 'caf\uFFFD' },
    { type: 'notice', text: '\uFFFD\uFFFD' },
    { type: 'notice', text: 'Warning: this is not JSON' },
    { type: 'text', text: 'after' },
    { type: 'done' },
  ])
})

/** Less than half of the 50 MB of the flood. */
const MAX_GROWTH_BYTES = 24 * MiB

/** Measures the CPU time of this thread per turn of the event loop, which does not include the time of other processes. */
function measureTurns(t: Test) {
  let maxMs = 0
  let previous = process.threadCpuUsage()
  const timer = setInterval(() => {
    const { user, system } = process.threadCpuUsage(previous)
    maxMs = Math.max(maxMs, (user + system) / 1000)
    previous = process.threadCpuUsage()
  }, 5)
  t.teardown(() => clearInterval(timer))
  return {
    /** Returns the longest turn in milliseconds. */
    stop() {
      clearInterval(timer)
      return maxMs
    },
  }
}

t.test('a flood of events neither blocks the agent nor fills its memory', async (t) => {
  const { start, waitForEnd, readPage, get } = await createTestRuns(t, {
    maxLogBytes: 8 * MiB,
    checkpointBytes: 64 * 1024,
  })
  const memoryBefore = await measureReferencedBytes()
  const turns = measureTurns(t)
  const { id } = await start('flood.sh')
  let first = await readPage(id, 0, 1000, 15_000)
  // A page is empty when the log was discarded up to the last event that has a number.
  while (first.events.length === 0 && !first.finished) first = await readPage(id, first.next, 1000, 15_000)
  t.ok(first.events.length > 0, 'readers are served meanwhile')
  const growthMeanwhile = (await measureReferencedBytes()) - memoryBefore
  t.ok(growthMeanwhile < MAX_GROWTH_BYTES, `grew by ${growthMeanwhile} bytes during the flood`)
  t.match(await waitForEnd(id), { status: 'done' })
  t.ok(turns.stop() < 500, `a turn of the event loop used ${turns.stop()} ms of CPU time`)
  const growth = (await measureReferencedBytes()) - memoryBefore
  t.ok(growth < MAX_GROWTH_BYTES, `grew by ${growth} bytes`)
  const { eventCount } = get(id)
  const last = await readPage(id, eventCount - 1)
  t.match(last, { events: [{ seq: eventCount, type: 'done' }], finished: true })
  const retained = await readPage(id, 0)
  t.ok((retained.events[0]?.seq ?? 0) > 1, 'the first retained event keeps its number')
})

t.test('a run at its time limit has failed', async (t) => {
  const { start, waitForEnd } = await createTestRuns(t, { minutes: 1 / 60 })
  const { id, pid } = await start('wait.sh')
  t.match(await waitForEnd(id), { status: 'failed', error: /time limit/, sessionId: 's-1' })
  t.notOk(isAlive(pid ?? 0))
})

t.test('a coding agent that is killed from outside has failed', async (t) => {
  const { start, waitForEnd, readPage } = await createTestRuns(t)
  const { id, pid } = await start('wait.sh')
  await readPage(id, 1, 1000, 15_000)
  process.kill(pid ?? 0, 'SIGKILL')
  t.match(await waitForEnd(id), {
    status: 'failed',
    ...(isNativeRunner ? { error: /terminated by signal KILL/, exitCode: null } : { exitCode: 137 }),
  })
})
