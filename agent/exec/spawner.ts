// Starts commands and reads their output. The only module that knows how processes are created.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Readable } from 'node:stream'
import { setImmediate } from 'node:timers/promises'
import { type Exit, loadNativeSpawn, type NativeSpawn, type SpawnedProcess } from './native-spawn.ts'
import { type OutputReader, readPipe, readStream } from './output-reader.ts'
import { SHELL, shellArguments } from './shell.ts'

export type StartOptions = {
  cwd: string
  /** The complete environment: nothing of the agent's own is added. */
  env: Record<string, string>
  /** Called with each chunk of output. The chunk's memory is reused after the call. */
  onStdout(chunk: Buffer): void
  onStderr(chunk: Buffer): void
}

export type RunningCommand = Omit<SpawnedProcess, 'exit'> & {
  /** Settles when the shell has exited and all output written until then has been delivered. */
  exit: Promise<Exit>
}

/** native: posix_spawn. node: child_process, which copies the agent's page tables on each start. */
export const SPAWNER_KINDS = ['native', 'node'] as const
export type SpawnerKind = (typeof SPAWNER_KINDS)[number]

export type Spawner = {
  readonly kind: SpawnerKind
  /**
   * Runs `sh -c command` with /dev/null as standard input, in its own session and process group.
   * @throws the system error (ENOENT, EACCES, EMFILE, E2BIG, …)
   */
  start(command: string, options: StartOptions): Promise<RunningCommand>
  /** Closes the outputs of running commands. */
  close(): void
}

/**
 * Both kinds behave alike, with four exceptions: Node reports death by a real-time signal as exit code 0, passes on
 * descriptors that the agent inherited, and connects the outputs by sockets. Opening a socket through /dev/stderr fails
 * with ENXIO, so that `echo oops >/dev/stderr` needs the native kind. When the agent reaches its limit of descriptors
 * while Node starts a command, Node may not close the two sockets.
 * @param kind null: native where available. @throws Error when native is required and not available
 */
export function createSpawner(kind: SpawnerKind | null = null): Spawner {
  const native = kind === 'node' ? null : loadNativeSpawn()
  if (kind === 'native' && native === null)
    throw new Error(
      'The native spawner was not compiled, or does not run on this system. Unset BOXWOOD_SPAWNER to use child_process.',
    )
  const startShell = native === null ? startWithNode : startNatively(native)
  const readers = new Set<OutputReader>()

  const read = (output: number | Readable, onChunk: (chunk: Buffer) => void) => {
    const onClosed = () => readers.delete(reader)
    const reader =
      typeof output === 'number' ? readPipe(output, onChunk, onClosed) : readStream(output, onChunk, onClosed)
    readers.add(reader)
    return reader
  }

  return {
    kind: native === null ? 'node' : 'native',
    async start(command, { cwd, env, onStdout, onStderr }) {
      const { pid, isRunning, ...shell } = await startShell(command, cwd, env)
      const stdout = read(shell.stdout, onStdout)
      const stderr = read(shell.stderr, onStderr)
      const exit = shell.exit.finally(() => {
        stdout.finish()
        stderr.finish()
      })
      return { pid, isRunning, exit }
    },
    close() {
      for (const reader of readers) reader.close()
    },
  }
}

/** The outputs are descriptors of pipes, or streams. */
type StartShell = (
  command: string,
  cwd: string,
  env: Record<string, string>,
) => Promise<SpawnedProcess & { stdout: number | Readable; stderr: number | Readable }>

const startNatively =
  (native: NativeSpawn): StartShell =>
  async (command, cwd, env) =>
    native(SHELL, ['sh', ...shellArguments(command)], { cwd, env, output: 'pipe' })

const startWithNode: StartShell = async (command, cwd, env) => {
  const child = spawn(SHELL, shellArguments(command), {
    argv0: 'sh',
    cwd,
    env,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const { pid, stdout, stderr } = child
  if (pid === undefined) {
    const [error] = await once(child, 'error')
    throw error
  }
  return {
    pid,
    isRunning: () => child.exitCode === null && child.signalCode === null,
    exit: new Promise<Exit>((resolve) => {
      child.once('exit', async (exitCode, signal) => {
        // The first setImmediate() is in this turn of the event loop. The next turn reads all output written until now.
        await setImmediate()
        await setImmediate()
        resolve({ exitCode, signal: signal === null ? null : signal.slice('SIG'.length) })
      })
    }),
    stdout,
    stderr,
  }
}
