// Makes start requests idempotent: the coordinator repeats a request when its response was lost.
import type { AgentStartRequest } from '../../../shared/api/processes.ts'
import { ApiError } from '../../../shared/errors.ts'
import { digestOf } from './start.ts'
import type { DetachedProcess } from './types.ts'

export type StartRequestsOptions = {
  /** Returns a process that has started. */
  find(processId: string): { digest: string; detachedProcess: DetachedProcess } | undefined
  start(request: AgentStartRequest): Promise<DetachedProcess>
}

export class StartRequests {
  readonly #options: StartRequestsOptions
  readonly #pending = new Map<string, { digest: string; detachedProcess: Promise<DetachedProcess> }>()
  #isClosed = false

  constructor(options: StartRequestsOptions) {
    this.#options = options
  }

  /**
   * Starts the command once for each processId.
   * @throws ApiError idempotency_key_reused when the processId was used for a different command; exec_failed after close()
   */
  async start(request: AgentStartRequest): Promise<DetachedProcess> {
    if (this.#isClosed) throw new ApiError('exec_failed', 'The agent is stopping. Try again.')
    const { processId } = request
    const digest = digestOf(request)
    const earlier = this.#options.find(processId) ?? this.#pending.get(processId)
    if (earlier !== undefined && earlier.digest !== digest) throw new ApiError('idempotency_key_reused')
    if (earlier !== undefined) return earlier.detachedProcess
    const detachedProcess = this.#options.start(request).finally(() => this.#pending.delete(processId))
    this.#pending.set(processId, { digest, detachedProcess })
    return detachedProcess
  }

  /** Resolves when no start of this process is in progress. A failed start is reported to the caller of start(). */
  async waitFor(processId: string): Promise<void> {
    await this.#pending.get(processId)?.detachedProcess.catch(() => undefined)
  }

  /** Resolves when the starts in progress have completed. */
  async close(): Promise<void> {
    this.#isClosed = true
    await Promise.allSettled([...this.#pending.values()].map(({ detachedProcess }) => detachedProcess))
  }
}
