// Types of prompt runs on the agent: a run stands on a detached process, and its events are computed from the log.
import type {
  AgentPromptRequest,
  ConversationList,
  PromptEvents,
  PromptInterrupted,
  PromptList,
  PromptPoll,
  PromptPollRequest,
  PromptQueued,
  PromptStarted,
  PromptStatus,
  PromptsInterrupted,
  ProviderName,
  ProviderReadiness,
  ReasoningEffort,
  Run,
  RunStatus,
} from '../../shared/api/prompts.ts'

/** The state of a run in memory. Instants are milliseconds since the epoch. The prompt is in a file. */
export type RunState = {
  readonly id: string
  readonly conversationId: string
  readonly provider: ProviderName
  readonly model: string | null
  readonly reasoningEffort: ReasoningEffort | null
  readonly auto: boolean
  /** The working directory as given; ~ by default. */
  readonly cwd: string
  readonly startedAt: number
  /** A number that ascends with the starts of runs on the box, and is never used twice. */
  readonly sequence: number
  readonly resumedFrom: string | null
  readonly parent: string | null
  readonly promptPreview: string
  readonly status: RunStatus
  readonly error: string | null
  readonly exitCode: number | null
  readonly pid: number | null
  readonly finishedAt: number | null
  readonly sessionId: string | null
  readonly eventCount: number
}

export type StartRunOptions = Pick<
  RunState,
  | 'id'
  | 'conversationId'
  | 'provider'
  | 'model'
  | 'reasoningEffort'
  | 'auto'
  | 'cwd'
  | 'resumedFrom'
  | 'parent'
> & {
  prompt: string
  boxEnv: Record<string, string>
}

/** Why a run has not been started. */
export type UnstartedResult = { status: 'failed' | 'interrupted'; error: string }

export type ReadEventsOptions = { after: number; limit: number; waitMs: number; signal: AbortSignal }

/** The runs of a box: starting, following, interrupting and reading them (runs/runs.ts). No rules about conversations. */
export type Runs = {
  /**
   * Starts the CLI. Idempotent by id: a run that has started is returned. Resolves when the process runs: a run whose
   * process had not started when the agent was killed is unknown to the next agent, which may start it again.
   * @param signal cancels a start whose CLI is still being found or installed. The installation continues
   * @throws ApiError provider_not_installed, provider_not_signed_in, and those of a detached start: not_found,
   *   permission_denied and invalid_path for the cwd, exec_failed; and the reason of `signal`
   */
  start(options: StartRunOptions, signal?: AbortSignal): Promise<RunState>
  /**
   * Records a run that has not been started: with the error, no pid and no events. Notifies the subscribers. Idempotent by
   * id: an existing run is returned unchanged.
   */
  recordUnstarted(options: Omit<StartRunOptions, 'boxEnv'>, result: UnstartedResult): Promise<RunState>
  get(id: string): RunState | undefined
  /** Newest first. */
  list(): RunState[]
  /** The sequence of the newest run. A run that is added later has a greater one. */
  sequence(): number
  /** @throws ApiError not_found */
  readStatus(id: string): Promise<PromptStatus>
  /** Waits up to `waitMs` for an event after `after`, or the end of the run. @throws ApiError not_found */
  readEvents(id: string, options: ReadEventsOptions): Promise<PromptEvents & { run: Run }>
  /** Resolves when the run has ended. `cause`: why, for `error` of the run. @throws ApiError not_found */
  interrupt(id: string, cause: string): Promise<Pick<PromptInterrupted, 'wasRunning' | 'signal'>>
  /** Deletes an ended run with its output. */
  remove(id: string): Promise<void>
  /**
   * Calls back when a run has started, has new events, has recorded its session, or has ended. Returns the unsubscribe
   * function.
   */
  subscribe(callback: (run: RunState) => void): () => void
  /** Records that the box stops: runs that end from now on, and are not done, are interrupted. */
  expectStop(): void
  /** The CLIs keep running. */
  close(): Promise<void>
}

/** Everything that the routes need (prompts.ts): the rules of spec §4.16 about conversations and the queue. */
export type Prompts = {
  /** Idempotent by runId. @throws ApiError of spec §7.2 */
  submit(request: AgentPromptRequest): Promise<PromptStarted | PromptQueued>
  list(conversationId: string | undefined): PromptList
  listConversations(): ConversationList
  readStatus: Runs['readStatus']
  /** Also waits for a queued prompt to start. While it is in the queue, `run` is null and `next` is `after`. */
  readEvents(id: string, options: ReadEventsOptions): Promise<PromptEvents>
  poll(request: PromptPollRequest, signal: AbortSignal): Promise<PromptPoll>
  interrupt(id: string): Promise<PromptInterrupted>
  interruptAll(conversationId: string | undefined): Promise<PromptsInterrupted>
  /**
   * The box stops: no queued prompt starts any more, and runs that end from now on, and are not done, are interrupted.
   * Resolves when no run is in progress; to be called with a timeout.
   */
  expectStop(): Promise<void>
  close(): Promise<void>
}

/** Finds a CLI and its credentials (detection/). */
export type ProviderDetector = {
  /**
   * Returns the program and the environment for a run, before the provider's own variables are added. Installs OpenCode and
   * pi when they are missing.
   * @throws ApiError provider_not_installed, provider_not_signed_in
   */
  resolve(
    provider: ProviderName,
    options: { model: string | null; boxEnv: Record<string, string> },
  ): Promise<{ path: string; version: string; env: Record<string, string> }>
  /** Sets the variables for readiness(). The variables for a run are those of its request. */
  setBoxVariables(boxEnv: Record<string, string>): void
  /** The result of the last check of the files and PATH. Returns at once. */
  readiness(): Record<ProviderName, ProviderReadiness>
  close(): Promise<void>
}
