// Records of detached processes: each is followed by cursors over its logs, which are the buffer while nobody listens.
import { setMaxListeners } from 'node:events'
import type { Logger } from 'pino'
import { OUTPUT_CHUNK_BYTES } from '../../../shared/api/reports.ts'
import { LIMITS } from '../../../shared/limits.ts'
import type { Spool } from '../../reports/spool.ts'
import { type DetachedProcess, type DetachedProcesses, STREAMS } from '../detached/types.ts'
import { createBell } from './bell.ts'
import { type HistoryCursor, readCursor, writeCursor } from './cursor.ts'
import { createNotes, type Notes, outputReports } from './notes.ts'
import { createPace } from './pace.ts'
import { startedReport } from './started.ts'

export type DetachedRecorderOptions = {
  processes: Pick<DetachedProcesses, 'each'>
  spool: Spool
  log: Logger
  bootId: string
  /** At least this long between two looks at what a process wrote; 3 s unless told. See pace.ts. */
  intervalMs?: number
}

export type DetachedRecorder = {
  /** The next agent goes on where this one stopped. */
  close(): Promise<void>
}

type Follower = {
  process: DetachedProcess
  cursor: HistoryCursor
  spool: Spool
  notes: Notes
  signal: AbortSignal
}

export function recordDetached(options: DetachedRecorderOptions): DetachedRecorder {
  const { processes, spool, log, bootId, intervalMs = 3_000 } = options
  const session = { epoch: spool.epoch, bootId }
  const notes = createNotes(spool, log)
  const closing = new AbortController()
  setMaxListeners(0, closing.signal)
  const following = new Set<Promise<void>>()

  const stop = processes.each((process) => {
    if (!process.record || closing.signal.aborted) return
    const done = follow(process).catch((err: unknown) => {
      if (!closing.signal.aborted) {
        log.error({ err, processId: process.processId }, 'the record of a process was given up')
      }
    })
    following.add(done)
    void done.then(() => following.delete(done))
  })

  async function follow(process: DetachedProcess): Promise<void> {
    const cursor = await readCursor(process.folder, session)
    if (cursor.finished) return
    const follower = { process, cursor, spool, notes, signal: closing.signal }
    const bell = createBell(process, closing.signal)
    const pace = createPace(intervalMs)
    try {
      if (!(await tellStart(follower))) return
      while (!closing.signal.aborted) {
        // Looked at first: the logs of a process that has ended hold everything it wrote.
        const { end } = process
        const sent = await tellOutput(follower)
        if (end !== null) return await tellEnd(follower)
        const next = performance.now() + pace.pauseMs(sent)
        await bell.rung(cursor)
        const leftMs = next - performance.now()
        pace.wrote(leftMs)
        await bell.pause(leftMs)
      }
    } finally {
      bell.close()
    }
  }

  return {
    async close() {
      stop()
      closing.abort()
      await Promise.all(following)
    },
  }
}

async function tellStart({ process, cursor, notes, signal }: Follower): Promise<boolean> {
  const { record, command, cwd, pid, startedAt } = process
  if (cursor.started || !record) return cursor.started
  const report = startedReport({ record, command, cwd, pid, startedAt })
  if (!(await notes.noteAtLast(report, signal))) return false
  cursor.started = true
  writeCursor(process.folder, cursor)
  return true
}

/** What is new in the logs and among the last 1 MiB. Returns how many bytes that was. */
async function tellOutput({ process, cursor, spool, notes, signal }: Follower): Promise<number> {
  const { processId, record, logs, folder } = process
  if (!record?.keepOutput) return 0
  let sent = 0
  for (const stream of STREAMS) {
    const size = await logs[stream].size()
    cursor[stream] = Math.max(cursor[stream], size - LIMITS.commandOutputBytes)
    while (cursor[stream] < size) {
      // Waiting here, not in memory: the log keeps it.
      await spool.room(signal)
      const { offset, bytes } = await logs[stream].read(cursor[stream], OUTPUT_CHUNK_BYTES)
      if (bytes.length === 0) break
      for (const report of outputReports(processId, stream, offset, bytes)) {
        if (!(await notes.noteAtLast(report, signal))) return sent
      }
      cursor[stream] = offset + bytes.length
      sent += bytes.length
    }
  }
  if (sent > 0) writeCursor(folder, cursor)
  return sent
}

async function tellEnd({ process, cursor, notes, signal }: Follower): Promise<void> {
  const { processId, end, logs, folder } = process
  if (end === null) return
  const report = {
    type: 'command.finished',
    commandId: processId,
    ...end,
    stdoutBytes: await logs.stdout.size(),
    stderrBytes: await logs.stderr.size(),
  } as const
  if (!(await notes.appendAtLast(report, signal))) return
  cursor.finished = true
  writeCursor(folder, cursor)
}
