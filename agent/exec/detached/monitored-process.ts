// The state of one detached process, as its readers see it.
import { EventEmitter } from 'node:events'
import { openOutputLog } from './output-log.ts'
import type { ExitRecord, ProcessMetadata } from './record.ts'
import type { DetachedProcess, OutputLog, ProcessExit, StreamName } from './types.ts'

export class MonitoredProcess implements DetachedProcess {
  readonly processId: string
  readonly pid: number
  readonly command: string
  readonly cwd: string
  readonly startedAt: number
  readonly record: DetachedProcess['record']
  readonly attached: DetachedProcess['attached']
  readonly dir: string
  readonly logs: DetachedProcess['logs']
  readonly #events = new EventEmitter<{ exit: [] }>().setMaxListeners(0)
  #exit: ProcessExit | null = null
  #finalSizes: ExitRecord['sizes'] = null

  /** @param dir the process directory @param pid of the command */
  constructor(dir: string, meta: ProcessMetadata, pid: number) {
    this.processId = meta.processId
    this.pid = pid
    this.command = meta.command
    this.cwd = meta.cwd
    this.startedAt = meta.startedAt
    this.record = meta.record
    this.attached = meta.attached
    this.dir = dir
    const openLog = (name: StreamName): OutputLog =>
      openOutputLog({
        path: `${dir}/${name}`,
        maxBytes: meta.maxLogBytes,
        finalSize: () => this.#finalSizes?.[name] ?? null,
      })
    this.logs = { stdout: openLog('stdout'), stderr: openLog('stderr') }
  }

  get exit(): ProcessExit | null {
    return this.#exit
  }

  onExit(callback: () => void): () => void {
    const listener = () => callback()
    this.#events.once('exit', listener)
    return () => this.#events.off('exit', listener)
  }

  /** To be called once. @param finalSizes the sizes of the logs; null: their sizes in the file system */
  setExit(exit: ProcessExit, finalSizes: ExitRecord['sizes']): void {
    this.#finalSizes = finalSizes
    this.#exit = exit
    this.#events.emit('exit')
  }
}
