// Starts the CLI of a run as a detached process.
import { rm } from 'node:fs/promises'
import type { AgentStartRequest } from '../../shared/api/processes.ts'
import type { DetachedProcess, DetachedProcesses } from '../exec/detached/types.ts'
import type { Provider } from './providers/types.ts'
import { createRunFiles, getTmpDir, type RunRecord, toProcessId } from './run-record.ts'
import { selectModel } from './select-model.ts'
import type { ProviderDetector, StartRunOptions } from './types.ts'

export type StartDeps = {
  processes: DetachedProcesses
  provider: Provider
  detector: ProviderDetector
}

/** Resolves when the CLI runs. The record is durable before it starts, and is removed when the start fails. */
export async function startRunProcess(
  { processes, provider, detector }: StartDeps,
  runDir: string,
  options: StartRunOptions,
  createRecord: () => RunRecord,
): Promise<{ record: RunRecord; detachedProcess: DetachedProcess }> {
  const { prompt, boxEnv, cwd } = options
  const resolved = await detector.resolve(options.provider, { model: options.model, boxEnv })
  const { args, env } = provider.buildCommand({
    model: selectModel(options.model),
    ...{ effort: options.reasoningEffort, auto: options.auto, sessionId: options.resumedFrom },
    ...{ env: resolved.env, tmpDir: getTmpDir(runDir), isRoot: process.getuid?.() === 0 },
    version: resolved.version,
  })
  const record = createRecord()
  try {
    const stdinPath = await createRunFiles(runDir, { record, prompt, stdin: provider.encodePrompt(prompt) })
    const request: AgentStartRequest = {
      ...{ detached: true, processId: toProcessId(options.id), cwd },
      command: buildShellCommand([resolved.path, ...args], stdinPath),
      timeoutSeconds: record.minutes * 60,
      env: { ...resolved.env, ...env },
    }
    return { record, detachedProcess: await processes.start(request) }
  } catch (error) {
    await rm(runDir, { recursive: true, force: true })
    throw error
  }
}

/** With exec, so that the pid of the process is that of the CLI, and the CLI gets the signals. */
export const buildShellCommand = (words: readonly string[], stdinPath: string): string =>
  `exec ${words.map(quote).join(' ')} <${quote(stdinPath)}`

const quote = (word: string): string => `'${word.replaceAll("'", `'\\''`)}'`
