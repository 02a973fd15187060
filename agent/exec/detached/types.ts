// What a detached process is to the rest of the agent: its record, its two logs, and how it ended.
import type { AgentStartRequest } from '../../../shared/api/processes.ts'

export const STREAMS = ['stdout', 'stderr'] as const
export type StreamName = (typeof STREAMS)[number]

export type ProcessEnd = {
  /** killed: by a signal, or because DELETE /exec asked for it. timed_out: by its time limit. lost: nobody saw it end. */
  status: 'exited' | 'killed' | 'timed_out' | 'lost'
  /** null when a signal ended it, or when it is not known. */
  exitCode: number | null
  /** without SIG, such as TERM */
  signal: string | null
  /** Milliseconds since the epoch; null when it is not known. */
  finishedAt: number | null
}

export type LogBytes = { offset: number; bytes: Buffer }

/** One stream of a process as a file. Offsets count bytes from the first that was ever written and never move. */
export type OutputLog = {
  readonly path: string
  /** The first offset that is still kept: what was before it has been given up. */
  head(): number
  /** The offset after the last byte. */
  size(): Promise<number>
  /**
   * Up to `max` bytes from `from`, or from the head where that is later: `offset` says from where. Empty at the end of
   * what was written so far. Never answers with bytes that were given up while it read.
   */
  read(from: number, max: number): Promise<LogBytes>
  /**
   * The same without waiting, for who watches the log and stands near its end; null when the disk may have to be asked.
   * The bytes are to be used at once: the next call, for whatever log, overwrites them.
   */
  readNow(from: number, max: number): LogBytes | null
  /** Calls back when there may be more to read, soon after it was written. Returns what ends that. */
  watch(onChange: () => void): () => void
}

export type DetachedProcess = {
  readonly processId: string
  readonly pid: number
  readonly command: string
  /** The one sent, or ~. */
  readonly cwd: string
  /** Milliseconds since the epoch. */
  readonly startedAt: number
  /** As it came with the start (see agentExecRequest); null: the run is not recorded. */
  readonly record: AgentStartRequest['record'] | null
  /** Its own folder, where others may keep small files about it: they go when the record goes. */
  readonly folder: string
  readonly logs: Readonly<Record<StreamName, OutputLog>>
  /** null while it runs. Once set, it never changes, and both logs hold every byte it wrote. */
  readonly end: ProcessEnd | null
  /** Resolves with `end`. Never rejects. */
  readonly ended: Promise<ProcessEnd>
}

export type DetachedProcesses = {
  /**
   * Starts the command, once for a processId however often it is asked.
   * @throws ApiError as runCommand does; invalid_request for an id that started something else
   */
  start(request: AgentStartRequest): Promise<DetachedProcess>
  /** Newest first; those that ended are kept for a while. */
  list(): DetachedProcess[]
  get(processId: string): DetachedProcess | undefined
  /** Ends the whole tree: TERM, then KILL. Idempotent. @throws ApiError not_found */
  kill(processId: string): Promise<{ wasRunning: boolean; signal: 'TERM' | 'KILL' | null }>
  /** Every process there is, and each one that starts later. Returns what ends that. */
  each(callback: (process: DetachedProcess) => void): () => void
  /** Lets go of them; they go on running. */
  close(): Promise<void>
}
