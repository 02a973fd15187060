// Deletes exited processes beyond the limits; keeps running ones and those whose output a client still reads.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { ExitedProcesses } from '../../../../agent/exec/detached/exited-processes.ts'
import type { ProcessMonitor } from '../../../../agent/exec/detached/process-monitor.ts'
import { writeDetachedMarker } from '../../../../agent/exec/detached/record.ts'
import type { DetachedProcess } from '../../../../agent/exec/detached/types.ts'
import { createTempDir } from '../../../support/temp-dir.ts'

const EXITED = { status: 'exited', exitCode: 0, signal: null } as const
const ATTACHED = { stdin: false, disconnectTimeoutMs: 1000 }

function createProcesses(t: Test, retention: { count?: number; totalLogBytes?: number }) {
  const dir = createTempDir(t, 'exited')
  const processes: DetachedProcess[] = []
  const removed: string[] = []
  const find = (id: string) => processes.findIndex(({ processId }) => processId === id)
  const exited = new ExitedProcesses({
    dir,
    tracked: {
      list: () => [...processes],
      get(id) {
        const detachedProcess = processes[find(id)]
        return detachedProcess && ({ detachedProcess } as ProcessMonitor)
      },
      delete: (id) => void processes.splice(find(id), 1),
    },
    remover: { remove: async (path) => void removed.push(path) },
    clock: { now: () => 1000 },
    retention: { count: Infinity, ageMs: Infinity, totalLogBytes: Infinity, ...retention },
  })
  return {
    exited,
    list: () => processes.map(({ processId }) => processId),
    takeRemoved: () => removed.splice(0).map((path) => path.slice(dir.length + 1)),
    add(processId: string, finishedAt: number | null, fields: Partial<DetachedProcess> = {}) {
      const processDir = join(dir, processId)
      mkdirSync(processDir)
      const toLog = (name: string) => ({ path: join(processDir, name) })
      processes.push({
        processId,
        dir: processDir,
        startedAt: 0,
        attached: null,
        exit: finishedAt === null ? null : { ...EXITED, finishedAt },
        logs: { stdout: toLog('stdout'), stderr: toLog('stderr') },
        ...fields,
      } as DetachedProcess)
      return processDir
    },
  }
}

t.test('deletes the oldest exited processes beyond the count', async (t) => {
  const { exited, add, list, takeRemoved } = createProcesses(t, { count: 1 })
  add('running', null)
  add('old', 1)
  add('new', 2)
  exited.prune()
  t.same(takeRemoved(), ['old'])
  t.same(list(), ['running', 'new'])
  exited.prune()
  t.same(takeRemoved(), [])
})

t.test('measures both logs and their time indexes, once for each process', async (t) => {
  const { exited, add, takeRemoved } = createProcesses(t, { totalLogBytes: 20_000 })
  const dir = add('old', 1)
  for (const name of ['stdout', 'stdout.times', 'stderr', 'stderr.times'])
    writeFileSync(join(dir, name), Buffer.alloc(4096, 1))
  exited.prune()
  t.same(takeRemoved(), [], '16 KiB are within the limit')
  writeFileSync(join(dir, 'stdout'), Buffer.alloc(100_000, 1))
  exited.prune()
  t.same(takeRemoved(), [], 'the logs of an exited process do not change')
  writeFileSync(join(add('new', 2), 'stderr'), Buffer.alloc(8192, 1))
  exited.prune()
  t.same(takeRemoved(), ['old'], '24 KiB are beyond the limit')
})

t.test('keeps the output of an attached command until its client has detached', async (t) => {
  const { exited, add, takeRemoved } = createProcesses(t, { count: 0 })
  const dir = add('attached', 1, { attached: ATTACHED })
  exited.prune()
  t.same(takeRemoved(), [])
  writeDetachedMarker(dir)
  exited.prune()
  t.same(takeRemoved(), ['attached'])
})

t.test('remove() deletes an exited process, and has no effect for a running or unknown one', async (t) => {
  const { exited, add, takeRemoved } = createProcesses(t, {})
  add('running', null)
  add('done', 1)
  for (const id of ['running', 'done', 'unknown', 'done']) await exited.remove(id)
  t.same(takeRemoved(), ['done'])
})
