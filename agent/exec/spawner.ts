// Starts a command and reads what it prints. The one place that knows how a process is made, to be replaced whole.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync } from 'node:fs'
import { type OutputReader, readOutput } from './output-reader.ts'
import { createPipePool, discardPipe, type Pipe } from './pipes.ts'

export type StartOptions = {
  cwd: string
  /** The whole environment: nothing of the agent's own is added. */
  env: Record<string, string>
  /** Bytes as they arrive, in a buffer that is used again after the call. */
  onStdout(chunk: Buffer): void
  onStderr(chunk: Buffer): void
}

export type Exit = {
  /** null when a signal ended it */
  exitCode: number | null
  /** without SIG, such as TERM */
  signal: string | null
}

export type RunningCommand = {
  /** Leads a session and a process group of its own. */
  pid: number
  /** False once the process is reaped, when its pid may belong to someone else. */
  isRunning(): boolean
  /** Settles when the shell itself has ended and every byte written until then was handed over. */
  exit: Promise<Exit>
}

export type Spawner = {
  /** `sh -c command` with /dev/null for input. @throws the system's error (ENOENT, EACCES, EMFILE, E2BIG…) */
  start(command: string, options: StartOptions): Promise<RunningCommand>
  close(): Promise<void>
}

const SHELL = '/bin/sh'

export function createSpawner(): Spawner {
  const pool = createPipePool()
  const readers = new Set<OutputReader>()

  const read = (pipe: Pipe, onChunk: (chunk: Buffer) => void) => {
    const reader = readOutput(pipe.read, onChunk, () => {
      readers.delete(reader)
      pipe.release()
    })
    readers.add(reader)
    return reader
  }

  return {
    async start(command, { cwd, env, onStdout, onStderr }) {
      const [out, err] = await pool.takePair()
      const { child, pid } = await startShell(command, cwd, env, out.write, err.write).catch((error) => {
        discardPipe(out)
        discardPipe(err)
        throw error
      })
      // The child has copies of its own.
      closeSync(out.write)
      closeSync(err.write)
      const stdout = read(out, onStdout)
      const stderr = read(err, onStderr)
      const exit = new Promise<Exit>((settle) => {
        child.once('exit', (exitCode, signal) => {
          stdout.finish()
          stderr.finish()
          settle({ exitCode, signal: signal === null ? null : signal.slice('SIG'.length) })
        })
      })
      return {
        pid,
        isRunning: () => child.exitCode === null && child.signalCode === null,
        exit,
      }
    },
    async close() {
      for (const reader of readers) reader.close()
      await pool.close()
    },
  }
}

async function startShell(
  command: string,
  cwd: string,
  env: Record<string, string>,
  stdout: number,
  stderr: number,
) {
  // A command that begins with - or + would be taken for options of sh.
  const args = /^[-+]/.test(command) ? ['-c', '--', command] : ['-c', command]
  const stdio = ['ignore' as const, stdout, stderr]
  const child = spawn(SHELL, args, { argv0: 'sh', cwd, env, detached: true, stdio })
  const { pid } = child
  if (pid !== undefined) return { child, pid }
  const [error] = await once(child, 'error')
  throw error
}
