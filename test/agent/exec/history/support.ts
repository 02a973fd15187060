// A report spool in a temporary directory, and fake detached processes.
import { join } from 'node:path'
import type { Test } from 'tap'
import type { DetachedProcess, OutputLog, ProcessExit } from '../../../../agent/exec/detached/types.ts'
import { openSpool, type Spool, START_CURSOR } from '../../../../agent/reports/spool.ts'
import { openState } from '../../../../agent/state.ts'
import type { CommandReport } from '../../../../shared/api/reports.ts'
import { createTempDir } from '../../../support/temp-dir.ts'
import { silentLog } from '../../../support/tunnel.ts'

export const createDir = (t: Test): string => createTempDir(t, 'history')

export async function openTestSpool(t: Test, stateDir: string, maxBytes?: number): Promise<Spool> {
  const state = await openState(stateDir, silentLog)
  const options = maxBytes === undefined ? {} : { maxBytes, segmentBytes: maxBytes / 8 }
  const spool = await openSpool({
    dir: join(stateDir, 'reports'),
    stateFile: state,
    log: silentLog,
    ...options,
  })
  t.teardown(() => spool.close())
  return spool
}

type Line = { seq: number; report: CommandReport }

async function readLines(spool: Spool): Promise<Line[]> {
  const lines: Line[] = []
  for (let cursor = START_CURSOR; ; ) {
    const found = await spool.read(cursor)
    if (found === null) return lines
    cursor = found.next
    for (const line of found.lines.toString().trimEnd().split('\n')) lines.push(JSON.parse(line))
  }
}
export const readReports = async (spool: Spool) => (await readLines(spool)).map(({ report }) => report)

/** Reads all reports and acknowledges them, as the coordinator does after a reconnect. */
export async function drainSpool(spool: Spool): Promise<CommandReport[]> {
  const lines = await readLines(spool)
  const last = lines.at(-1)
  if (last !== undefined) await spool.acknowledge({ epoch: spool.epoch, seq: last.seq })
  return lines.map(({ report }) => report)
}

/** The bytes of one stream. Missing bytes become spaces. */
export function joinOutput(reports: readonly CommandReport[], stream: 'stdout' | 'stderr'): Buffer {
  const bytes: Buffer[] = []
  let end = 0
  for (const report of reports) {
    if (report.type !== 'command.output' || report.stream !== stream) continue
    const data = Buffer.from(report.data, 'base64')
    if (report.offset > end) bytes.push(Buffer.alloc(report.offset - end, ' '))
    bytes.push(data.subarray(Math.max(0, end - report.offset)))
    end = Math.max(end, report.offset + data.length)
  }
  return Buffer.concat(bytes)
}

export const createRecord = (commandId: string, keepOutput = true) => ({
  commandId,
  claimsToken: 'signed',
  keepOutput,
})
export const formatProcessId = (number: number) => `p_${String(number).padStart(24, '0')}`

function createFakeLog() {
  let bytes = Buffer.alloc(0)
  let head = 0
  const watchers = new Set<() => void>()
  const log: OutputLog = {
    path: '/nonexistent',
    size: async () => bytes.length,
    async read(from, max) {
      const offset = Math.max(from, head)
      return { offset, bytes: bytes.subarray(offset, offset + max) }
    },
    openTimes: () => null,
    watch(onChange) {
      const watcher = () => onChange()
      watchers.add(watcher)
      return () => void watchers.delete(watcher)
    },
  }
  return {
    log,
    watchers,
    write(text: string | Buffer) {
      bytes = Buffer.concat([bytes, Buffer.from(text)])
      for (const watcher of [...watchers]) watcher()
    },
    discardHead(to: number) {
      head = to
    },
  }
}

export function createFakeProcess(dir: string, number: number, keepOutput = true) {
  const [stdout, stderr] = [createFakeLog(), createFakeLog()]
  const listeners = new Set<() => void>()
  let exit: ProcessExit | null = null
  const processId = formatProcessId(number)
  const process: DetachedProcess = {
    processId,
    pid: 100 + number,
    command: 'make',
    cwd: '~',
    startedAt: 1,
    record: createRecord(processId, keepOutput),
    dir,
    attached: null,
    logs: { stdout: stdout.log, stderr: stderr.log },
    get exit() {
      return exit
    },
    onExit(callback) {
      const listener = () => callback()
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
  return {
    process,
    stdout,
    stderr,
    exit(result: Partial<ProcessExit> = {}) {
      exit = { status: 'exited', exitCode: 0, signal: null, finishedAt: 2, ...result }
      for (const listener of [...listeners]) listener()
    },
  }
}
