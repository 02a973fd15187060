// Starts a command and reads what it prints. The one place that knows how a process is made, to be replaced whole.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync } from 'node:fs'
import { loadNativeSpawn, type NativeProcess, type NativeSpawn } from './native-spawn.ts'
import { type OutputReader, readOutput } from './output-reader.ts'
import { createPipePool, discardPipe, type Pipe } from './pipes.ts'
import { SHELL, shellArguments } from './shell.ts'

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
  /** without SIG, such as TERM; the number of a real-time signal */
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

/** native: posix_spawn. node: Node's child_process, which copies the agent's page tables for each start. */
export const SPAWNER_KINDS = ['native', 'node'] as const
export type SpawnerKind = (typeof SPAWNER_KINDS)[number]

export type Spawner = {
  /** How processes are made here: for the log. */
  readonly kind: SpawnerKind
  /** `sh -c command` with /dev/null for input. @throws the system's error (ENOENT, EACCES, EMFILE, E2BIG…) */
  start(command: string, options: StartOptions): Promise<RunningCommand>
  close(): Promise<void>
}

/**
 * Both kinds behave alike, but for what Node cannot do: it tells an end by a real-time signal as exit code 0, and hands
 * on descriptors that the agent inherited from whoever started it.
 * @param kind null: native where it was compiled. @throws Error when native is asked for and there is none
 */
export function createSpawner(kind: SpawnerKind | null = null): Spawner {
  const native = kind === 'node' ? null : loadNativeSpawn()
  if (kind === 'native' && native === null)
    throw new Error('The native spawner was not built, or not for this system.')
  const startShell = native === null ? startWithNode : startNatively(native)
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
    kind: native === null ? 'node' : 'native',
    async start(command, { cwd, env, onStdout, onStderr }) {
      const [out, err] = await pool.takePair()
      const shell = await startShell(command, cwd, env, out.write, err.write).catch((error) => {
        discardPipe(out)
        discardPipe(err)
        throw error
      })
      // The child has copies of its own.
      closeSync(out.write)
      closeSync(err.write)
      const stdout = read(out, onStdout)
      const stderr = read(err, onStderr)
      const exit = shell.exit.finally(() => {
        stdout.finish()
        stderr.finish()
      })
      return { ...shell, exit }
    },
    async close() {
      for (const reader of readers) reader.close()
      await pool.close()
    },
  }
}

type StartShell = (
  command: string,
  cwd: string,
  env: Record<string, string>,
  stdout: number,
  stderr: number,
) => Promise<NativeProcess>

const startNatively =
  (native: NativeSpawn): StartShell =>
  async (command, cwd, env, stdout, stderr) =>
    native(SHELL, ['sh', ...shellArguments(command)], { cwd, env, stdout, stderr })

const startWithNode: StartShell = async (command, cwd, env, stdout, stderr) => {
  const stdio = ['ignore' as const, stdout, stderr]
  const child = spawn(SHELL, shellArguments(command), { argv0: 'sh', cwd, env, detached: true, stdio })
  const { pid } = child
  if (pid === undefined) {
    const [error] = await once(child, 'error')
    throw error
  }
  return {
    pid,
    isRunning: () => child.exitCode === null && child.signalCode === null,
    exit: new Promise<Exit>((settle) => {
      child.once('exit', (exitCode, signal) =>
        settle({ exitCode, signal: signal === null ? null : signal.slice('SIG'.length) }),
      )
    }),
  }
}
