// Runs in memory, whose coding agents the test ends. They survive a restart of the agent.
import { toRun } from '../../../agent/prompts/runs/run-fields.ts'
import type { RunState, Runs, StartRunOptions } from '../../../agent/prompts/types.ts'
import type { PromptEvent } from '../../../shared/api/prompts.ts'
import { toTimestamp } from '../../../shared/clock.ts'
import { ApiError } from '../../../shared/errors.ts'
import { newId } from '../../../shared/ids.ts'
import { waitUntil } from '../../support/wait-until.ts'

export function createFakeRuns() {
  const states = new Map<string, RunState>()
  const events = new Map<string, PromptEvent[]>()
  const subscribers = new Set<(run: RunState) => void>()
  const started: StartRunOptions[] = []
  let now = Date.parse('2030-01-01T00:00:00Z')
  /** Called before each start. */
  let beforeStart = async (_options: Pick<StartRunOptions, 'id' | 'prompt'>): Promise<void> => undefined
  let beforeRecordFailure = async (): Promise<void> => undefined

  const getState = (id: string): RunState => {
    const state = states.get(id)
    if (state === undefined) throw new ApiError('not_found', `Run ${id} not found.`)
    return state
  }
  const update = (id: string, change: Partial<RunState>): RunState => {
    const state = { ...getState(id), ...change }
    states.set(id, state)
    for (const callback of [...subscribers]) callback(state)
    return state
  }
  const create = (options: Omit<StartRunOptions, 'boxEnv'>, change: Partial<RunState>): RunState => {
    const { prompt, ...fields } = options
    now += 1000
    const state: RunState = {
      ...fields,
      startedAt: now,
      sequence: states.size + 1,
      promptPreview: prompt.slice(0, 100),
      status: 'running',
      error: null,
      exitCode: null,
      pid: 1,
      finishedAt: null,
      sessionId: null,
      eventCount: 0,
      ...change,
    }
    states.set(options.id, state)
    return update(options.id, {})
  }
  const end = (id: string, status: RunState['status'] = 'done', error: string | null = null) => {
    now += 1000
    return update(id, { status, error, finishedAt: now })
  }

  const emitEvents = (id: string, added: (Pick<PromptEvent, 'type' | 'text'> & Partial<PromptEvent>)[]) => {
    const all = events.get(id) ?? []
    for (const event of added)
      all.push({ seq: all.length + 1, at: toTimestamp(now), tool: null, raw: null, ...event })
    events.set(id, all)
    return update(id, { eventCount: all.length })
  }

  const runs: Runs = {
    async start(options, signal) {
      const known = states.get(options.id)
      if (known !== undefined) return known
      const cancelled = Promise.withResolvers<never>()
      signal?.addEventListener('abort', () => cancelled.reject(signal.reason))
      if (signal?.aborted) throw signal.reason
      await Promise.race([beforeStart(options), cancelled.promise])
      const { boxEnv: _, ...fields } = options
      started.push(options)
      return create(fields, {})
    },
    async recordUnstarted(options, result) {
      await beforeRecordFailure()
      const state = create(options, { ...result, pid: null })
      return update(options.id, { finishedAt: state.startedAt })
    },
    get: (id) => states.get(id),
    list: () => [...states.values()].reverse(),
    sequence: () => Math.max(0, ...Array.from(states.values(), ({ sequence }) => sequence)),
    async readStatus(id) {
      const run = toRun(getState(id))
      return { ok: true, type: 'prompt.status', run, stderr: '', stderrTruncated: false, logPath: '/log' }
    },
    async readEvents(id, { after, limit, waitMs, signal }) {
      const page = () => (events.get(id) ?? []).filter(({ seq }) => seq > after).slice(0, limit)
      const hasEnded = () => getState(id).status !== 'running'
      if (waitMs > 0)
        await waitUntil('an event', () => page().length > 0 || hasEnded() || signal.aborted, waitMs).catch(
          () => undefined,
        )
      const found = page()
      const next = found.at(-1)?.seq ?? after
      const finished = hasEnded() && next >= getState(id).eventCount
      return { ok: true, type: 'prompt.events', run: toRun(getState(id)), events: found, next, finished }
    },
    async interrupt(id) {
      const wasRunning = getState(id).status === 'running'
      if (wasRunning) end(id, 'interrupted', 'The run was interrupted by a request.')
      return { wasRunning, signal: wasRunning ? 'INT' : null }
    },
    async remove(id) {
      if (states.get(id)?.status !== 'running') states.delete(id)
    },
    subscribe(callback) {
      subscribers.add(callback)
      return () => void subscribers.delete(callback)
    },
    expectStop: () => undefined,
    close: () => Promise.resolve(),
  }
  return {
    runs,
    /** In order of their starts, without failed ones. */
    started,
    end,
    /** The time of the fake, for the clock of the prompts. */
    clock: { now: () => now },
    setSession: (id: string, sessionId: string) => update(id, { sessionId }),
    /** Adds events. Default: without a tool and a line of the coding agent. */
    emitEvents,
    /** Adds events of the type text. */
    emit: (id: string, texts: string[]) =>
      emitEvents(
        id,
        texts.map((text) => ({ type: 'text', text })),
      ),
    /** A run of an earlier agent that the conversations do not have. */
    addRun: (options: Partial<StartRunOptions>, change: Partial<RunState> = {}) =>
      create(
        {
          id: newId('run'),
          conversationId: newId('conversation'),
          provider: 'claude',
          model: null,
          reasoningEffort: null,
          auto: false,
          cwd: '~',
          resumedFrom: null,
          parent: null,
          prompt: 'Hello',
          ...options,
        },
        change,
      ),
    failStarts: (callback: typeof beforeStart) => {
      beforeStart = callback
    },
    failRecords: (callback: typeof beforeRecordFailure) => {
      beforeRecordFailure = callback
    },
  }
}
export type FakeRuns = ReturnType<typeof createFakeRuns>
