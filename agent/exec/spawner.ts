// Starts commands and reads their output. The only module that knows how processes are created.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync } from 'node:fs'
import { type Exit, loadNativeSpawn, type NativeSpawn, type SpawnedProcess } from './native-spawn.ts'
import { type OutputReader, readOutput } from './output-reader.ts'
import { createPipePool, discardPipe, type Pipe } from './pipes.ts'
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
  close(): Promise<void>
}

/**
 * Both kinds behave alike, except that Node reports death by a real-time signal as exit code 0 and passes on descriptors
 * that the agent inherited.
 * @param kind null: native where available. @throws Error when native is required and not available
 */
export function createSpawner(kind: SpawnerKind | null = null): Spawner {
  const native = kind === 'node' ? null : loadNativeSpawn()
  if (kind === 'native' && native === null)
    throw new Error(
      'The native spawner was not compiled, or does not run on this system. Unset BOXWOOD_SPAWNER to use child_process.',
    )
  const startShell = native === null ? startWithNode : startNatively(native)
  const pool = createPipePool()
  const readers = new Set<OutputReader>()

  const read = (pipe: Pipe, onChunk: (chunk: Buffer) => void) => {
    const reader = readOutput(pipe.readFd, onChunk, () => {
      readers.delete(reader)
      pipe.release()
    })
    readers.add(reader)
    return reader
  }

  return {
    kind: native === null ? 'node' : 'native',
    async start(command, { cwd, env, onStdout, onStderr }) {
      const [out, err] = await pool.acquirePair()
      const shell = await startShell(command, cwd, env, out.writeFd, err.writeFd).catch((error) => {
        discardPipe(out)
        discardPipe(err)
        throw error
      })
      // The child process has its own copies of the write ends.
      closeSync(out.writeFd)
      closeSync(err.writeFd)
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
) => Promise<SpawnedProcess>

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
    exit: new Promise<Exit>((resolve) => {
      child.once('exit', (exitCode, signal) =>
        resolve({ exitCode, signal: signal === null ? null : signal.slice('SIG'.length) }),
      )
    }),
  }
}
