// Runs a short command with a time limit and bounded output: login shells, `--version` and npm.

import { newId } from '../../../shared/ids.ts'
import { createOutputTail } from '../../exec/output-tail.ts'
import type { Spawner } from '../../exec/spawner.ts'
import { terminateTree } from '../../exec/terminate-tree.ts'
import { PROCESS_ID_VARIABLE } from '../../process-table.ts'
import { type StartTimer, startWallTimer } from '../../running-clock.ts'

export type ProbeOptions = {
  cwd: string
  env: Record<string, string>
  timeoutMs: number
  /** The most bytes of each stream in the result. The start of a longer stream is discarded. */
  maxBytes: number
}

export type ProbeResult = {
  /** null: the command was ended by a signal, the time limit or close(). */
  exitCode: number | null
  timedOut: boolean
  stdout: string
  stderr: string
}

export type Prober = {
  /**
   * Runs `sh -c command` with /dev/null as standard input. Does not wait for background processes that keep the output
   * open, and does not terminate them, unless the time limit has passed.
   * @throws the system error when the command cannot be started
   */
  run(command: string, options: ProbeOptions): Promise<ProbeResult>
  /** Terminates the running commands and waits for them. */
  close(): Promise<void>
}

/** The time between SIGTERM and SIGKILL. */
const GRACE_MS = 500

/** @param startTimer starts the timer of the time limit */
export function createProber(spawner: Spawner, startTimer: StartTimer = startWallTimer): Prober {
  const closing = new AbortController()
  const running = new Set<Promise<unknown>>()

  async function run(command: string, options: ProbeOptions): Promise<ProbeResult> {
    const { cwd, env, timeoutMs, maxBytes } = options
    const processId = newId('process')
    const stdout = createOutputTail(maxBytes)
    const stderr = createOutputTail(maxBytes)
    const child = await spawner.start(command, {
      cwd,
      env: { ...env, [PROCESS_ID_VARIABLE]: processId },
      onStdout: stdout.push,
      onStderr: stderr.push,
    })
    const stopped = Promise.withResolvers<null>()
    let timedOut = false
    const terminate = () => {
      terminateTree({ pid: child.pid, processId }, GRACE_MS).then(() => stopped.resolve(null), stopped.reject)
    }
    const stopTimer = startTimer(() => {
      // The command may have exited, with the exit event still queued.
      if (!child.isRunning()) return
      timedOut = true
      terminate()
    }, timeoutMs)
    closing.signal.addEventListener('abort', terminate)
    if (closing.signal.aborted) terminate()
    try {
      const exit = await Promise.race([child.exit, stopped.promise])
      return {
        exitCode: timedOut || closing.signal.aborted ? null : (exit?.exitCode ?? null),
        timedOut,
        stdout: stdout.text(),
        stderr: stderr.text(),
      }
    } finally {
      stopTimer()
      closing.signal.removeEventListener('abort', terminate)
    }
  }

  return {
    run(command, options) {
      const result = run(command, options)
      const settled = result.then(
        () => undefined,
        () => undefined,
      )
      running.add(settled)
      void settled.then(() => running.delete(settled))
      return result
    },
    async close() {
      closing.abort()
      await Promise.all(running)
      spawner.close()
    },
  }
}
