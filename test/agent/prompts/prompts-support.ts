// Prompts over fake or real runs, and requests for them.
import { join } from 'node:path'
import type { Test } from 'tap'
import { createPrompts, type PromptsOptions } from '../../../agent/prompts/prompts.ts'
import { providers } from '../../../agent/prompts/providers/providers.ts'
import type { Prompts } from '../../../agent/prompts/types.ts'
import type { AgentPromptRequest, PromptQueued, PromptStarted } from '../../../shared/api/prompts.ts'
import { ApiError } from '../../../shared/errors.ts'
import { newId } from '../../../shared/ids.ts'
import { createTempDir } from '../../support/temp-dir.ts'
import { silentLog } from '../../support/tunnel.ts'
import { createFakeRuns, type FakeRuns } from './fake-runs.ts'

export type TestPrompts = { prompts: Prompts; fake: FakeRuns; dir: string; isActive(): boolean }

type TestOptions = Partial<Omit<PromptsOptions, 'limits'>> & {
  fake?: FakeRuns
  limits?: Partial<PromptsOptions['limits']>
}

/** With `fake` and `dir` of earlier prompts: a restarted agent. */
export async function openPrompts(t: Test, options: TestOptions = {}): Promise<TestPrompts> {
  const { fake = createFakeRuns(), limits, ...rest } = options
  const dir = options.dir ?? join(createTempDir(t, 'prompts'), 'prompts')
  let isActive = () => false
  const prompts = await createPrompts({
    dir,
    home: '/home/box',
    runs: fake.runs,
    providers,
    clock: fake.clock,
    log: silentLog,
    activity: {
      watch(callback) {
        isActive = callback
        return () => undefined
      },
    },
    limits: { runs: 4, conversations: 200, queued: 100, ...limits },
    ...rest,
  })
  t.teardown(() => prompts.close())
  return { prompts, fake, dir, isActive: () => isActive() }
}

export const createPromptRequest = (fields: Partial<AgentPromptRequest> = {}): AgentPromptRequest => ({
  provider: 'claude',
  prompt: 'Hello',
  runId: newId('run'),
  newConversationId: newId('conversation'),
  ...fields,
})

export async function start(prompts: Prompts, fields: Partial<AgentPromptRequest> = {}) {
  const answer = await prompts.submit(createPromptRequest(fields))
  if (answer.type !== 'prompt.started') throw new Error('the prompt was queued')
  return answer.run
}
export async function enqueue(prompts: Prompts, fields: Partial<AgentPromptRequest> = {}) {
  const answer = await prompts.submit(createPromptRequest({ queue: true, ...fields }))
  if (answer.type !== 'prompt.queued') throw new Error('the prompt was started')
  return answer.queued
}

/** What a client sees of an answer: the type, or the error code. */
export const submitAndDescribe = (prompts: Prompts, fields: Partial<AgentPromptRequest>) =>
  prompts.submit(createPromptRequest(fields)).then(
    (answer: PromptStarted | PromptQueued) => answer.type,
    (error: unknown) => (error instanceof ApiError ? error.code : String(error)),
  )
