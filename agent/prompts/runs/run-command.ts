// Starts the CLI of a run as a detached process.
import { rm } from 'node:fs/promises'
import type { AgentStartRequest } from '../../../shared/api/processes.ts'
import type { DetachedProcess, DetachedProcesses } from '../../exec/detached/types.ts'
import { toStartError } from '../../exec/start-error.ts'
import { boundedWait } from '../bounded-wait.ts'
import { selectModel } from '../providers/select-model.ts'
import type { Provider } from '../providers/types.ts'
import type { ProviderDetector, StartRunOptions } from '../types.ts'
import { createRunFiles, getTmpDir, type RunRecord, syncRunFiles, toProcessId } from './run-record.ts'

export type PreparedCommand = { words: string[]; env: Record<string, string>; stdin: string }

/**
 * Finds the CLI, which may install it, and builds its command line. Changes nothing else on disk.
 * @param deps.signals do not stop an installation @throws the reason of a signal that aborts
 */
export async function prepareCommand(
  deps: { provider: Provider; detector: ProviderDetector; signals: readonly AbortSignal[] },
  runDir: string,
  options: StartRunOptions,
): Promise<PreparedCommand> {
  const { model, boxEnv } = options
  const { provider, detector, signals } = deps
  const resolving = detector.resolve(options.provider, { model, boxEnv })
  await boundedWait(
    resolving.catch(() => undefined),
    null,
    signals,
  )
  for (const signal of signals) signal.throwIfAborted()
  const { path, version, env } = await resolving
  const command = provider.buildCommand({
    model: selectModel(model),
    effort: options.reasoningEffort,
    auto: options.auto,
    sessionId: options.resumedFrom,
    version,
    env,
    tmpDir: getTmpDir(runDir),
    isRoot: process.getuid?.() === 0,
  })
  return {
    words: [path, ...command.args],
    env: { ...env, ...command.env },
    stdin: provider.encodePrompt(options.prompt),
  }
}

/**
 * Resolves when the CLI runs and its record is durable. The record exists before the CLI starts, and is removed when the
 * start fails.
 * @throws ApiError as DetachedProcesses.start()
 */
export async function startCommand(
  processes: DetachedProcesses,
  runDir: string,
  { record, prompt, command }: { record: RunRecord; prompt: string; command: PreparedCommand },
): Promise<DetachedProcess> {
  const { words, env, stdin } = command
  const processId = toProcessId(record.id)
  try {
    const stdinPath = await createRunFiles(runDir, { record, prompt, stdin })
    const request: AgentStartRequest = {
      detached: true,
      processId,
      cwd: record.cwd,
      env,
      command: buildShellCommand(words, stdinPath),
      timeoutSeconds: record.minutes * 60,
    }
    // The files may be synced while the process starts: a power loss also ends the process.
    const [started, synced] = await Promise.allSettled([processes.start(request), syncRunFiles(runDir)])
    if (started.status === 'rejected') throw started.reason
    if (synced.status === 'fulfilled') return started.value
    await processes.kill(processId)
    await processes.remove(processId)
    throw synced.reason
  } catch (error) {
    await rm(runDir, { recursive: true, force: true })
    throw toStartError(error)
  }
}

/** @throws ApiError exec_failed */
export async function writeUnstartedRun(
  runDir: string,
  { record, prompt }: { record: RunRecord; prompt: string },
): Promise<void> {
  try {
    await createRunFiles(runDir, { record, prompt, stdin: prompt })
    await syncRunFiles(runDir)
  } catch (error) {
    await rm(runDir, { recursive: true, force: true })
    throw toStartError(error)
  }
}

/** The command uses exec, so that the pid of the process is that of the CLI, and the CLI gets the signals. */
export const buildShellCommand = (words: readonly string[], stdinPath: string): string =>
  `exec ${words.map(quote).join(' ')} <${quote(stdinPath)}`

const quote = (word: string): string => `'${word.replaceAll("'", `'\\''`)}'`
