// Reports detached processes to the command history. The logs are the buffer while the coordinator is unreachable.
import { setMaxListeners } from 'node:events'
import pLimit from 'p-limit'
import type { Logger } from 'pino'
import { LIMITS } from '../../../shared/limits.ts'
import { OUTPUT_CHUNK_BYTES } from '../../../shared/report-limits.ts'
import type { Spool } from '../../reports/spool.ts'
import { type DetachedProcess, type DetachedProcesses, OUTPUT_STREAMS } from '../detached/types.ts'
import { createOutputWatcher } from '../output-watcher.ts'
import { type CommandReporter, createCommandReporter, outputReports } from './command-reporter.ts'
import { type HistoryCursor, readCursor, writeCursor } from './cursor.ts'
import { createReportThrottle } from './report-throttle.ts'
import { startedReport } from './started-report.ts'

export type DetachedRecorderOptions = {
  processes: Pick<DetachedProcesses, 'subscribe'>
  spool: Spool
  log: Logger
  bootId: string
  /** The shortest time between two output reports of a process, see report-throttle.ts. Default: 3 s. */
  intervalMs?: number
}

export type DetachedRecorder = {
  /** Reports what is not reported yet, without the throttle. Resolves when the spool has these reports. */
  flush(): Promise<void>
  /** Resolves when the spool has the exit of the process, or after close(). Immediately for a process that is not recorded. */
  waitUntilRecorded(processId: string): Promise<void>
  /** Resolves when the spool has the exits of all processes started so far, or after close(). */
  waitUntilIdle(): Promise<void>
  /** The next agent continues from the stored cursors. */
  close(): Promise<void>
}

type Recording = {
  detachedProcess: DetachedProcess
  cursor: HistoryCursor
  spool: Spool
  reporter: CommandReporter
  signal: AbortSignal
}

export function createDetachedRecorder(options: DetachedRecorderOptions): DetachedRecorder {
  const { processes, spool, log, bootId, intervalMs = 3_000 } = options
  const session = { epoch: spool.epoch, bootId }
  const reporter = createCommandReporter(spool, log)
  const closeController = new AbortController()
  const { signal } = closeController
  setMaxListeners(0, signal)
  const active = new Map<string, { reportChanges: () => Promise<unknown>; done: Promise<void> }>()

  const unsubscribe = processes.subscribe((detachedProcess) => {
    if (!detachedProcess.record || signal.aborted) return
    const open = async () => ({
      detachedProcess,
      spool,
      reporter,
      signal,
      cursor: readCursor(detachedProcess.dir, session),
    })
    const opening = open()
    const limit = pLimit(1)
    const reportChanges = () => limit(async () => reportNewChanges(await opening))
    const done = opening
      .then((recording) => record(recording, reportChanges))
      .catch((err: unknown) => {
        if (!signal.aborted)
          log.error({ err, processId: detachedProcess.processId }, 'failed to record a detached process')
      })
    const entry = { reportChanges, done }
    active.set(detachedProcess.processId, entry)
    void done.then(() => active.delete(detachedProcess.processId))
  })

  async function record(recording: Recording, reportChanges: () => Promise<number>): Promise<void> {
    const { detachedProcess, cursor } = recording
    if (cursor.finished) return
    const watcher = createOutputWatcher(
      detachedProcess,
      detachedProcess.record?.keepOutput ? OUTPUT_STREAMS : [],
    )
    const close = () => watcher.close()
    signal.addEventListener('abort', close, { once: true })
    const throttle = createReportThrottle(intervalMs)
    try {
      while (!signal.aborted) {
        const sentBytes = await reportChanges()
        if (cursor.finished) return
        const nextReportAt = performance.now() + throttle.delayMs(sentBytes)
        do await watcher.waitForChange()
        while (detachedProcess.exit === null && !signal.aborted && !(await hasUnreportedOutput(recording)))
        const remainingMs = nextReportAt - performance.now()
        throttle.onOutput(remainingMs)
        await waitForExit(detachedProcess, remainingMs, signal)
      }
    } finally {
      signal.removeEventListener('abort', close)
      watcher.close()
    }
  }

  const waitUntilIdle = async () => {
    await Promise.all([...active.values()].map(({ done }) => done))
  }

  return {
    async flush() {
      // A failure is logged by record().
      await Promise.allSettled([...active.values()].map(({ reportChanges }) => reportChanges()))
    },
    waitUntilRecorded: async (processId) => active.get(processId)?.done,
    waitUntilIdle,
    async close() {
      unsubscribe()
      closeController.abort()
      await waitUntilIdle()
    },
  }
}

/** Resolves when the process exits, after `ms`, or when the signal aborts. */
async function waitForExit(detachedProcess: DetachedProcess, ms: number, signal: AbortSignal): Promise<void> {
  if (detachedProcess.exit !== null || signal.aborted || ms <= 0) return
  const { promise, resolve } = Promise.withResolvers<void>()
  const unsubscribe = detachedProcess.onExit(resolve)
  const onAbort = () => resolve()
  signal.addEventListener('abort', onAbort, { once: true })
  const timer = setTimeout(resolve, ms)
  await promise
  clearTimeout(timer)
  signal.removeEventListener('abort', onAbort)
  unsubscribe()
}

async function hasUnreportedOutput({ detachedProcess, cursor }: Recording): Promise<boolean> {
  if (!detachedProcess.record?.keepOutput) return false
  const sizes = await Promise.all(OUTPUT_STREAMS.map((stream) => detachedProcess.logs[stream].size()))
  return OUTPUT_STREAMS.some((stream, index) => (sizes[index] ?? 0) > cursor[stream])
}

/** Returns the number of reported bytes of output. Calls for one recording must not overlap. */
async function reportNewChanges(recording: Recording): Promise<number> {
  const { detachedProcess, cursor, signal } = recording
  if (cursor.finished || signal.aborted || !(await reportStart(recording))) return 0
  // Read the exit before the logs: the logs of an exited process are complete.
  const { exit } = detachedProcess
  const sentBytes = await reportOutput(recording)
  if (exit !== null) await reportExit(recording)
  return sentBytes
}

async function reportStart({ detachedProcess, cursor, reporter, signal }: Recording): Promise<boolean> {
  const { record, command, cwd, pid, startedAt } = detachedProcess
  if (cursor.started || !record) return cursor.started
  if (!(await reporter.report(startedReport({ record, command, cwd, pid, startedAt }), signal))) return false
  cursor.started = true
  writeCursor(detachedProcess.dir, cursor)
  return true
}

/** Reports new output within the last 1 MiB of each stream. Returns the number of reported bytes. */
async function reportOutput({
  detachedProcess,
  cursor,
  spool,
  reporter,
  signal,
}: Recording): Promise<number> {
  const { processId, record, logs, dir } = detachedProcess
  if (!record?.keepOutput) return 0
  let sentBytes = 0
  for (const stream of OUTPUT_STREAMS) {
    const size = await logs[stream].size()
    cursor[stream] = Math.max(cursor[stream], size - LIMITS.commandOutputBytes)
    while (cursor[stream] < size) {
      // Wait before reading: the log buffers the output, not memory.
      await spool.waitForSpace(signal)
      const { offset, bytes } = await logs[stream].read(cursor[stream], OUTPUT_CHUNK_BYTES)
      if (bytes.length === 0) break
      for (const report of outputReports(processId, stream, offset, bytes)) {
        if (!(await reporter.report(report, signal))) return sentBytes
      }
      cursor[stream] = offset + bytes.length
      sentBytes += bytes.length
    }
  }
  if (sentBytes > 0) writeCursor(dir, cursor)
  return sentBytes
}

async function reportExit({ detachedProcess, cursor, reporter, signal }: Recording): Promise<void> {
  const { processId, exit, logs, dir } = detachedProcess
  if (exit === null) return
  const report = {
    type: 'command.finished',
    commandId: processId,
    ...exit,
    stdoutBytes: await logs.stdout.size(),
    stderrBytes: await logs.stderr.size(),
  } as const
  if (!(await reporter.reportDurably(report, signal))) return
  cursor.finished = true
  writeCursor(dir, cursor)
}
