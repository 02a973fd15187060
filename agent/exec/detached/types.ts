// Types of detached processes: the process, its two output logs, and how it exited.
import type { AgentStartRequest } from '../../../shared/api/processes.ts'
import type { OutputTimes } from './output-times.ts'
import type { AttachedOptions } from './record.ts'

export const OUTPUT_STREAMS = ['stdout', 'stderr'] as const
export type StreamName = (typeof OUTPUT_STREAMS)[number]

export type ProcessExit = {
  /**
   * killed: by a signal or by DELETE /exec. timed_out: by its time limit. lost: the exit status is unknown, because the
   * box stopped or the runner was killed.
   */
  status: 'exited' | 'killed' | 'timed_out' | 'lost'
  /** null when a signal terminated the process, or when unknown. */
  exitCode: number | null
  /**
   * Name without SIG, such as TERM; the number of a real-time signal. null when the process exited by itself, or when
   * unknown.
   */
  signal: string | null
  /** Milliseconds since the epoch; null when unknown. */
  finishedAt: number | null
}

export type LogChunk = {
  /** Offset of the first byte. */
  offset: number
  bytes: Buffer
}

/** One output stream of a process as a file. Offsets count bytes from the first byte ever written and never shift. */
export type OutputLog = {
  readonly path: string
  /** The offset after the last byte. */
  size(): Promise<number>
  /**
   * Returns up to `max` bytes from `from`, or from the first retained byte if that is later. Returns no bytes at the
   * current end of the log. Never returns bytes that were discarded during the read.
   */
  read(from: number, max: number): Promise<LogChunk>
  /** The times of the output so far. null for a process that was started by an earlier version. */
  openTimes(): OutputTimes | null
  /** Calls back soon after a write, and sometimes without one. Returns the unsubscribe function. */
  watch(onChange: () => void): () => void
}

export type DetachedProcess = {
  readonly processId: string
  /** Pid of the command's shell, in the pid namespace of the box. */
  readonly pid: number
  readonly command: string
  /** Working directory as given in the request; ~ when the request has none. */
  readonly cwd: string
  /** Milliseconds since the epoch. */
  readonly startedAt: number
  /** How to record the command in the history: `record` of the start request. null: not recorded. */
  readonly record: AgentStartRequest['record'] | null
  /** The options of an attached command, also after the client has detached; null for a detached one. */
  readonly attached: AttachedOptions | null
  /**
   * The process directory. Deleted with all its files when the process exceeds the retention limits. Other modules may
   * store small files in the directory.
   */
  readonly dir: string
  readonly logs: Readonly<Record<StreamName, OutputLog>>
  /** null while the process runs. Once set, the value never changes and both logs are complete. */
  readonly exit: ProcessExit | null
  /** Calls back once when the process exits; never if the process has exited already. Returns the unsubscribe function. */
  onExit(callback: () => void): () => void
}

export type DetachedProcesses = {
  /**
   * Starts the command. Idempotent by processId.
   * @throws ApiError as runCommand does; invalid_request when the processId was used for a different command
   */
  start(request: AgentStartRequest): Promise<DetachedProcess>
  /** Running and retained exited processes, newest first. */
  list(): DetachedProcess[]
  get(processId: string): DetachedProcess | undefined
  /**
   * Terminates the whole process tree: TERM, then KILL. Idempotent. `signal` is the strongest signal that was needed; null
   * when the command had exited already.
   * @throws ApiError not_found
   */
  kill(processId: string): Promise<{ wasRunning: boolean; signal: 'TERM' | 'KILL' | null }>
  /**
   * Sends a signal to the process group of the command. False when the command has exited. The process counts as running
   * until its exit is recorded: a signal is no termination request.
   */
  signal(processId: string, name: NodeJS.Signals): boolean
  /** Deletes an exited process and its output. */
  remove(processId: string): Promise<void>
  /** Calls back for every known process and for each one started later. Returns the unsubscribe function. */
  subscribe(callback: (detachedProcess: DetachedProcess) => void): () => void
  /** Stops tracking; the processes keep running. */
  close(): Promise<void>
}
