// Starts a program of the desktop in a session of its own, so that it outlives the agent.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, ftruncateSync } from 'node:fs'
import { toStartError } from '../exec/start-error.ts'
import { readProcess } from '../process-table.ts'
import { openStateFile } from '../state-file.ts'
import type { Leader } from './session-record.ts'

export type ProgramOptions = {
  cwd: string
  env: Record<string, string>
  /** The file that gets its stderr. Default: /dev/null, because the output of a desktop program has no limit. */
  logPath?: string
  /** Opens descriptor 3 as a pipe. Default: false. */
  hasPipe?: boolean
}

export type StartedProgram = Leader & { child: ChildProcess }

/** @throws ApiError exec_failed */
export async function startProgram(
  file: string,
  args: readonly string[],
  { cwd, env, logPath, hasPipe = false }: ProgramOptions,
): Promise<StartedProgram> {
  const log = logPath === undefined ? null : openStateFile(logPath)
  try {
    if (log !== null) ftruncateSync(log)
    const child = spawn(file, args, {
      cwd,
      env,
      detached: true,
      stdio: ['ignore', 'ignore', log ?? 'ignore', ...(hasPipe ? (['pipe'] as const) : [])],
    })
    await once(child, 'spawn')
    child.unref()
    const pid = child.pid ?? 0
    return { child, pid, startTime: readProcess(pid)?.startTime ?? 0 }
  } catch (error) {
    throw toStartError(error)
  } finally {
    if (log !== null) closeSync(log)
  }
}

export const hasExited = ({ exitCode, signalCode }: ChildProcess): boolean =>
  exitCode !== null || signalCode !== null
