// Deletes exited processes: on request, and beyond the retention limits.
import { join } from 'node:path'
import type { Clock } from '../../../shared/clock.ts'
import type { DirectoryRemover } from './directory-remover.ts'
import { bytesOnDisk } from './log-bounds.ts'
import { getTimesPath } from './output-times.ts'
import { hasDetachedMarker } from './record.ts'
import { type ExitedProcess, expiredProcessIds, type Retention } from './retention.ts'
import type { TrackedProcesses } from './tracked-processes.ts'
import type { DetachedProcess } from './types.ts'

export type ExitedProcessesOptions = {
  /** State directory of all processes. */
  dir: string
  tracked: Pick<TrackedProcesses, 'list' | 'get' | 'delete'>
  remover: Pick<DirectoryRemover, 'remove'>
  clock: Clock
  retention: Retention
}

export class ExitedProcesses {
  readonly #options: ExitedProcessesOptions
  /** Disk usage by process, which no longer changes. */
  readonly #logBytes = new Map<string, number>()

  constructor(options: ExitedProcessesOptions) {
    this.#options = options
  }

  /** Deletes the processes beyond the retention limits. */
  prune(): void {
    const { tracked, clock, retention } = this.#options
    const exited = tracked.list().flatMap((detachedProcess) => this.#toExited(detachedProcess))
    for (const processId of expiredProcessIds(exited, clock.now(), retention)) void this.#delete(processId)
  }

  /** Deletes a process. No effect while it runs. */
  async remove(processId: string): Promise<void> {
    if (this.#options.tracked.get(processId)?.detachedProcess.exit) await this.#delete(processId)
  }

  /** Empty for a process that retention does not apply to. */
  #toExited({ processId, exit, startedAt, logs, attached, dir }: DetachedProcess): ExitedProcess[] {
    if (exit === null) return []
    // The client of an attached command reads the output, or the attachment deletes it.
    if (attached !== null && !hasDetachedMarker(dir)) return []
    const logBytes = this.#logBytes.get(processId) ?? measure(logs)
    this.#logBytes.set(processId, logBytes)
    return [{ processId, exitedAt: exit.finishedAt ?? startedAt, logBytes }]
  }

  #delete(processId: string): Promise<void> {
    const { dir, tracked, remover } = this.#options
    tracked.delete(processId)
    this.#logBytes.delete(processId)
    return remover.remove(join(dir, processId))
  }
}

const measure = ({ stdout, stderr }: DetachedProcess['logs']): number =>
  [stdout.path, stderr.path]
    .flatMap((path) => [path, getTimesPath(path)])
    .reduce((sum, path) => sum + bytesOnDisk(path), 0)
