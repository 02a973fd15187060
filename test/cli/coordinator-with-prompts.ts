// A coordinator whose box fig has the conversations and the queue of a real agent, in this process. The coding agents of its
// runs are in memory: the test adds their events and ends them.
import type { Test } from 'tap'
import { promptRoutes } from '../../agent/prompts/routes.ts'
import type { RunState, Runs } from '../../agent/prompts/types.ts'
import { createJsonRouter } from '../../agent/requests/json-routes.ts'
import type {
  AgentPromptRequest,
  PromptEvent,
  PromptList,
  PromptRequest,
  RunStatus,
} from '../../shared/api/prompts.ts'
import { createFakeRuns } from '../agent/prompts/fake-runs.ts'
import { createPromptRequest, openPrompts } from '../agent/prompts/prompts-support.ts'
import { callRoute } from '../support/agent-routes.ts'
import { type AgentHandler, createFakeAgents } from '../support/box-with-fake-agent.ts'
import { startCliCoordinator } from './coordinator.ts'

export type TestRun = {
  readonly id: string
  readonly status: RunStatus
  emit(type: string, text?: string | null, tool?: PromptEvent['tool']): void
  end(status: Exclude<RunStatus, 'running'>, error?: string | null): void
}

export type Hooks = {
  /** Called before a prompt is accepted. An error refuses the prompt. */
  beforeSubmit(): Promise<void>
  /** Called for each run that starts. */
  onStart(run: TestRun): void
  /** Called by an interrupt of a run in progress. Default: the run is interrupted by a request. */
  onInterrupt: ((run: TestRun) => void) | null
}

const DEFAULT_HOOKS: Hooks = {
  beforeSubmit: async () => undefined,
  onStart: (run) => run.end('done'),
  onInterrupt: null,
}

export async function startPromptCoordinator(t: Test, defaultHooks: Partial<Hooks> = {}) {
  const fake = createFakeRuns()
  const hooks: Hooks = { ...DEFAULT_HOOKS, ...defaultHooks }
  const lines = new Map<string, number>()
  const getRun = (id: string): TestRun => ({
    id,
    get status() {
      return fake.runs.get(id)?.status ?? 'failed'
    },
    emit(type, text = null, tool = null) {
      const line = (lines.get(id) ?? 0) + 1
      lines.set(id, line)
      fake.emitEvents(id, [{ type, text, tool, raw: { line } }])
    },
    end: (status, error) => void fake.end(id, status, error),
  })
  const runs: Runs = {
    ...fake.runs,
    async start(options, signal): Promise<RunState> {
      const state = await fake.runs.start(options, signal)
      hooks.onStart(getRun(state.id))
      return state
    },
    async interrupt(id, cause) {
      if (hooks.onInterrupt === null || fake.runs.get(id)?.status !== 'running')
        return fake.runs.interrupt(id, cause)
      hooks.onInterrupt(getRun(id))
      return { wasRunning: true, signal: 'INT' }
    },
  }
  const { prompts } = await openPrompts(t, { fake, runs })

  /** The prompts that clients have sent. */
  const submitted: PromptRequest[] = []
  const router = createJsonRouter()
  promptRoutes(router, {
    prompts: {
      ...prompts,
      async submit(request) {
        const { runId: _, newConversationId: __, boxEnv: ___, ...sent } = request
        submitted.push(sent)
        await hooks.beforeSubmit()
        return prompts.submit(request)
      },
    },
    activity: { touch: () => undefined },
    stopping: new AbortController().signal,
  })
  const handler: AgentHandler = async ({ method, path, body, signal }) => {
    const { status, text } = await callRoute(router, {
      method,
      path,
      ...(body !== undefined && { body: JSON.parse(body) }),
      ...(signal !== undefined && { signal }),
    })
    return { status, body: Buffer.from(text) }
  }
  const coordinator = await startCliCoordinator(t, ['fig'], createFakeAgents(handler))

  return {
    ...coordinator,
    hooks,
    submitted,
    /** Sends a prompt as another client. Returns the id of its run. */
    async submit(fields: Partial<AgentPromptRequest> = {}): Promise<string> {
      const request = createPromptRequest(fields)
      await prompts.submit(request)
      return request.runId
    },
    getRun,
    /** Newest first. */
    listRuns: (): TestRun[] => fake.runs.list().map(({ id }) => getRun(id)),
    setSession: fake.setSession,
    listPrompts: (): PromptList => prompts.list(undefined),
    /** Most recently active first. */
    listConversations: () => prompts.listConversations().conversations,
    /** Afterwards no run is in progress, the queue is empty, and the hooks are those of the start. */
    async reset(): Promise<void> {
      await prompts.interruptAll(undefined)
      for (const { id, status } of fake.runs.list()) if (status === 'running') fake.end(id)
      submitted.length = 0
      coordinator.clearFaults()
      Object.assign(hooks, DEFAULT_HOOKS, defaultHooks)
    },
  }
}
export type PromptCoordinator = Awaited<ReturnType<typeof startPromptCoordinator>>
