// Runs with a fake coding agent, for tests that restart the agent within one process. The model of a run is the file name
// of its program in test/fixtures/coding-agents.
import { join } from 'node:path'
import pino from 'pino'
import type { Test } from 'tap'
import { createActivityTracker } from '../../../../agent/activity-tracker.ts'
import { type DetachedOptions, openDetachedProcesses } from '../../../../agent/exec/detached/processes.ts'
import { baseEnvironment, createEnvironmentFactory } from '../../../../agent/exec/environment.ts'
import { isJsonObject } from '../../../../agent/prompts/providers/json-fields.ts'
import {
  createEvent,
  createToolEvent,
  withDone,
  withFailure,
  withTurn,
} from '../../../../agent/prompts/providers/mapped-events.ts'
import type { MappedLine, MapperState, Provider } from '../../../../agent/prompts/providers/types.ts'
import { createRuns, type RunsOptions } from '../../../../agent/prompts/runs/runs.ts'
import type { ProviderDetector, RunState, StartRunOptions } from '../../../../agent/prompts/types.ts'
import { type PromptEvent, promptEventsSchema } from '../../../../shared/api/prompts.ts'
import { systemClock } from '../../../../shared/clock.ts'
import { newId } from '../../../../shared/ids.ts'
import { waitUntil } from '../../../support/wait-until.ts'
import { createHome, runnerKind } from '../../exec/detached/support.ts'

const silentLog = pino({ level: process.env.TEST_LOG ?? 'silent' })
const FIXTURES = join(import.meta.dirname, '../../../fixtures/coding-agents')

/** Maps lines such as {"text":"Hi"}, {"texts":["a","b"]}, {"tool":{…}}, {"session":"s-1"}, {"turn":true}, {"done":true},
 * {"error":"…"}. */
export function mapFakeLine(line: Record<string, unknown>, state: MapperState): MappedLine {
  const { session, text, texts, tool, turn, done, error } = line
  if (typeof session === 'string')
    return { events: [createEvent('session', session)], state: { ...state, sessionId: session } }
  if (error !== undefined)
    return { events: [createEvent('error', String(error))], state: withFailure(state, String(error)) }
  if (turn !== undefined) return { events: [], state: withTurn(state) }
  if (done !== undefined) return { events: [createEvent('done')], state: withDone(state) }
  if (isJsonObject(tool)) {
    const event = createToolEvent('tool', String(tool.name), { text: String(text), input: tool.input })
    return { events: [event], state: { ...state, hasContent: true } }
  }
  const all = [...(Array.isArray(texts) ? texts : []), ...(text === undefined ? [] : [text])]
  if (all.length === 0) return { events: [], state }
  return {
    events: all.map((item) => createEvent('text', String(item))),
    state: { ...state, hasContent: true },
  }
}

export const fakeProvider: Provider = {
  name: 'claude',
  program: 'fake',
  installPackage: null,
  interruptSignal: 'INT',
  defaultAuto: false,
  buildCommand: ({ model, sessionId, tmpDir }) => ({
    args: [join(FIXTURES, model?.full ?? 'normal.sh'), sessionId ?? '-'],
    env: { TMPDIR: tmpDir },
  }),
  encodePrompt: (prompt) => (prompt.startsWith('/') ? ` ${prompt}` : prompt),
  mapLine: mapFakeLine,
  resolveUnfinished: () => null,
  credentialFiles: () => [],
  isSignedIn: () => Promise.resolve(true),
  credentialVariables: async () => ({}),
  signInHint: () => '',
}
export const fakeProviders = {
  claude: fakeProvider,
  codex: { ...fakeProvider, name: 'codex', interruptSignal: 'TERM' },
  opencode: { ...fakeProvider, name: 'opencode', interruptSignal: 'TERM' },
  pi: { ...fakeProvider, name: 'pi', interruptSignal: 'TERM' },
} as const

export const fakeDetector: ProviderDetector = {
  resolve: async (_provider, { model, boxEnv }) => ({
    path: model?.endsWith('.ts') ? process.execPath : '/bin/sh',
    version: '1.0.0',
    env: boxEnv,
  }),
  setBoxVariables: () => undefined,
  readiness: () => ({ claude: 'ready', codex: 'ready', opencode: 'ready', pi: 'ready' }),
  close: () => Promise.resolve(),
}

export type TestRunsOptions = Partial<RunsOptions> & Pick<DetachedOptions, 'maxLogBytes' | 'bootId'>

/** Opens the state directory in `home`. To restart the agent, close it and open it again. */
export async function openRuns(t: Pick<Test, 'teardown'>, home: string, options: TestRunsOptions = {}) {
  const { maxLogBytes = 64 * 1024 * 1024, bootId, ...runsOptions } = options
  const dir = join(home, '.state/prompts')
  const processes = await openDetachedProcesses({
    dir: join(dir, 'processes'),
    home,
    createEnv: createEnvironmentFactory(baseEnvironment(home, process.env)),
    clock: systemClock,
    log: silentLog,
    activity: createActivityTracker(systemClock),
    runnerKind,
    maxLogBytes,
    ...(bootId !== undefined && { bootId }),
    retention: {
      count: Number.POSITIVE_INFINITY,
      ageMs: Number.POSITIVE_INFINITY,
      totalLogBytes: Number.POSITIVE_INFINITY,
    },
  })
  const runs = await createRuns({
    dir,
    processes,
    providers: fakeProviders,
    detector: fakeDetector,
    clock: systemClock,
    log: silentLog,
    minutes: 60,
    ...runsOptions,
  })
  let closed = false
  const close = async () => {
    if (closed) return
    closed = true
    await runs.close()
    await processes.close()
  }
  t.teardown(close)
  const { signal } = new AbortController()
  const get = (id: string): RunState => {
    const state = runs.get(id)
    if (state === undefined) throw new Error(`${id} does not exist`)
    return state
  }
  const readPage = async (id: string, after = 0, limit = 1000, waitMs = 0) => {
    const page = await runs.readEvents(id, { after, limit, waitMs, signal })
    return { ...promptEventsSchema.parse(JSON.parse(JSON.stringify(page))), run: page.run }
  }
  return {
    runs,
    processes,
    dir,
    home,
    close,
    get,
    readPage,
    /** @param model the program */
    start: (model: string, fields: Partial<StartRunOptions> = {}): Promise<RunState> =>
      runs.start({ ...createRequest(model), ...fields }),
    async waitForEnd(id: string): Promise<RunState> {
      await waitUntil(`${id} has ended`, () => get(id).status !== 'running')
      return get(id)
    },
    /** Reads pages up to the end of the run. */
    async readAll(id: string, limit = 1000): Promise<PromptEvent[]> {
      const events: PromptEvent[] = []
      for (let after = 0; ; ) {
        const page = await readPage(id, after, limit, 15_000)
        events.push(...page.events)
        after = page.next
        if (page.finished) return events
      }
    },
  }
}
export type TestRuns = Awaited<ReturnType<typeof openRuns>>

/** Opens the runs of a new home directory. */
export const createTestRuns = (t: Test, options: TestRunsOptions = {}): Promise<TestRuns> =>
  openRuns(t, createHome(t), options)

export async function reopen(t: Test, previous: TestRuns, options: TestRunsOptions = {}): Promise<TestRuns> {
  await previous.close()
  return openRuns(t, previous.home, options)
}

export const createRequest = (model: string): StartRunOptions => ({
  id: newId('run'),
  conversationId: newId('conversation'),
  provider: 'claude',
  model,
  reasoningEffort: null,
  auto: false,
  cwd: '~',
  resumedFrom: null,
  parent: null,
  prompt: 'Hello',
  boxEnv: {},
})
