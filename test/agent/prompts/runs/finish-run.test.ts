// The end of a run: remaining processes are terminated where that is right, and the result has the final position.
import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { ProcessExit } from '../../../../agent/exec/detached/types.ts'
import { LOG_START } from '../../../../agent/prompts/events/event-decoder.ts'
import { type ExitedRun, finishRun } from '../../../../agent/prompts/runs/finish-run.ts'
import { createRunRecord, getTmpDir } from '../../../../agent/prompts/runs/run-record.ts'
import { createTempDir } from '../../../support/temp-dir.ts'
import { silentLog } from '../../../support/tunnel.ts'
import { createFakeProcess } from '../events/fake-process.ts'
import { createRequest } from './support.ts'

const EXIT: ProcessExit = { status: 'exited', exitCode: 0, signal: null, finishedAt: 5000 }
const { signal } = new AbortController()

function createExitedRun(t: Test, fields: Partial<ExitedRun> = {}) {
  const runDir = createTempDir(t, 'run')
  mkdirSync(getTmpDir(runDir))
  const killed: string[] = []
  const record = createRunRecord(createRequest('normal.sh'), { minutes: 1, startedAt: 1000, sequence: 1 })
  const run: ExitedRun = {
    record,
    runDir,
    detachedProcess: createFakeProcess(1024).detachedProcess,
    exit: EXIT,
    position: { ...LOG_START, offset: 40, seq: 3, state: { ...LOG_START.state, sessionId: 's-1' } },
    processes: {
      async kill(processId) {
        killed.push(processId)
        return { wasRunning: false, signal: null }
      },
    },
    provider: { resolveUnfinished: () => ({ status: 'done' }) },
    getStopRequestedAt: () => null,
    clock: { now: () => 6000 },
    log: silentLog,
    ...fields,
  }
  return { run, killed, record }
}

t.test('the result has the position of the output, and temporary files are deleted', async (t) => {
  const { run, killed } = createExitedRun(t)
  t.match(await finishRun(run, signal), {
    status: 'done',
    error: null,
    exitCode: 0,
    pid: 1,
    finishedAt: 5000,
    sessionId: 's-1',
    eventCount: 3,
    logEnd: 40,
  })
  t.notOk(existsSync(join(run.runDir, 'tmp')))
  t.same(killed, [], 'processes in the background outlive a run that has ended by itself')
})

t.test(
  'remaining processes are terminated after an interrupt, and after the runner was killed',
  async (t) => {
    const { record } = createExitedRun(t)
    const interrupted = createExitedRun(t, {
      record: { ...record, interrupt: { requestedAt: 4000, cause: 'by a request' } },
    })
    t.match(await finishRun(interrupted.run, signal), { status: 'interrupted', error: 'by a request' })
    t.equal(interrupted.killed.length, 1)
    const late = createExitedRun(t, {
      record: { ...record, interrupt: { requestedAt: 5001, cause: 'by a request' } },
    })
    t.match(await finishRun(late.run, signal), { status: 'done' })
    t.equal(late.killed.length, 0, 'the coding agent had exited before the request')
    const lost = createExitedRun(t, {
      exit: { status: 'lost', exitCode: null, signal: null, finishedAt: null },
      provider: { resolveUnfinished: () => null },
    })
    t.match(await finishRun(lost.run, signal), { status: 'failed', finishedAt: 6000 })
    t.equal(lost.killed.length, 1)
    const lingering = createExitedRun(t, {
      record: { ...record, conclusion: { status: 'failed', message: 'no credit' } },
      exit: { ...EXIT, exitCode: null, signal: 'TERM' },
      clock: { now: () => 5000 },
    })
    t.match(await finishRun(lingering.run, signal), { status: 'failed', error: 'no credit' })
    t.equal(lingering.killed.length, 1)
  },
)

t.test('a stop of the box that the agent notices after the exit', async (t) => {
  let polls = 0
  const { run } = createExitedRun(t, {
    exit: { ...EXIT, exitCode: null, signal: 'TERM' },
    provider: { resolveUnfinished: () => null },
    clock: { now: () => 5000 },
    getStopRequestedAt: () => (polls++ > 2 ? 5100 : null),
  })
  t.match(await finishRun(run, signal), { status: 'interrupted', error: 'The box stopped during the run.' })
})

t.test('no result when the agent stops: the next agent computes it', async (t) => {
  const { run } = createExitedRun(t)
  t.equal(await finishRun(run, AbortSignal.abort()), null)
  t.ok(existsSync(getTmpDir(run.runDir)))
})
