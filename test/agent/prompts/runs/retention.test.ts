// Ended runs are deleted beyond the limits, except the newest run of each conversation.
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { RunRecord } from '../../../../agent/prompts/runs/run-record.ts'
import { toProcessId } from '../../../../agent/prompts/runs/run-record.ts'
import { findExpiredRuns } from '../../../../agent/prompts/runs/run-retention.ts'
import { waitUntil } from '../../../support/wait-until.ts'
import { createTestRuns, reopen } from './support.ts'

const KEEP = { count: 100, ageMs: 1000, totalLogBytes: 1000 }

const record = (id: string, conversationId: string, finishedAt: number | null, logBytes = 0): RunRecord => ({
  id,
  conversationId,
  provider: 'claude',
  model: null,
  reasoningEffort: null,
  auto: false,
  cwd: '~',
  startedAt: 0,
  sequence: 0,
  resumedFrom: null,
  parent: null,
  promptPreview: '',
  minutes: 1,
  interrupt: null,
  conclusion: null,
  result:
    finishedAt === null
      ? null
      : {
          status: 'done',
          error: null,
          exitCode: 0,
          pid: 1,
          finishedAt,
          sessionId: null,
          eventCount: 0,
          logEnd: 0,
          logBytes,
        },
})

t.test('the oldest runs beyond the count', async (t) => {
  const records = [1, 2, 3, 4].map((time) => record(`run_${time}`, 'cv_1', time))
  t.same(findExpiredRuns(records, 4, { ...KEEP, count: 2 }).sort(), ['run_1', 'run_2'])
})

t.test('runs beyond the age', async (t) => {
  const records = [1, 2, 3].map((time) => record(`run_${time}`, 'cv_1', time))
  t.same(findExpiredRuns(records, 1002, KEEP), ['run_1'])
})

t.test('the oldest runs beyond the size of the output', async (t) => {
  const records = [1, 2, 3].map((time) => record(`run_${time}`, 'cv_1', time, 400))
  t.same(findExpiredRuns(records, 4, KEEP), ['run_1'])
})

t.test('never a run in progress, nor the newest run of a conversation', async (t) => {
  const records = [
    record('run_1', 'cv_1', 1),
    record('run_2', 'cv_2', 2),
    record('run_3', 'cv_1', 3),
    record('run_4', 'cv_2', null),
  ]
  t.same(findExpiredRuns(records, 1_000_000, KEEP), ['run_2', 'run_1'])
})

t.test('deleted runs leave nothing, in memory and on disk', async (t) => {
  const agent = await createTestRuns(t, { retention: { count: 1 } })
  const conversationId = 'cv_0123456789abcdef01234567'
  const first = await agent.start('normal.sh', { conversationId })
  await agent.waitForEnd(first.id)
  const second = await agent.start('normal.sh', { conversationId })
  await agent.waitForEnd(second.id)
  t.equal(agent.runs.get(first.id), undefined)
  const processDir = join(agent.dir, 'processes', toProcessId(first.id))
  await waitUntil('the process is deleted', () => !existsSync(processDir))
  t.same(readdirSync(join(agent.dir, 'runs')), [second.id])
  await t.rejects(agent.readPage(first.id), { code: 'not_found' })
})

t.test('remove() deletes an ended run, but not one in progress', async (t) => {
  const first = await createTestRuns(t)
  const ended = await first.start('normal.sh')
  await first.waitForEnd(ended.id)
  const active = await first.start('wait.sh')
  for (const { id } of [ended, active]) await first.runs.remove(id)
  await first.runs.remove('run_0123456789abcdef01234567')
  t.same(
    first.runs.list().map(({ id }) => id),
    [active.id],
  )
  const second = await reopen(t, first)
  t.same(
    second.runs.list().map(({ id }) => id),
    [active.id],
  )
  t.equal(second.processes.list().length, 1)
})

t.test('an output without a run is deleted', async (t) => {
  const first = await createTestRuns(t)
  await first.processes.start({
    command: 'exec sleep 600',
    detached: true,
    processId: 'p_0123456789abcdef01234567',
  })
  const second = await reopen(t, first)
  t.same(second.processes.list(), [])
})
