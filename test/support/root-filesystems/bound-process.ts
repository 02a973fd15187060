// Child processes that do not outlive a test.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import type { Test } from 'tap'
import { LONG_DEADLINE_MS } from '../wait-until.ts'

export type BoundProcess = {
  pid: number
  /** Rejects with the error output when the process exits before it has written to stdout or to descriptor 3. */
  firstOutput: Promise<void>
  exited: Promise<void>
  /** The error output, when the process has exited. */
  failure(): Promise<string> | undefined
  /** Kills the process and waits for its exit. */
  stop(): Promise<void>
}

/**
 * tap adds NODE_OPTIONS to the environment of each process that a test spawns, and the machine does not have the modules that
 * it names.
 */
const withoutEnvironment = (command: readonly string[]): string[] => [
  '-i',
  'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  'HOME=/root',
  ...command,
]

/** The kernel kills the process when this process exits; at the end of the test, it is stopped. */
export function startBoundProcess(t: Test, command: string[]): BoundProcess {
  const child = spawn('env', withoutEnvironment(['setpriv', '--pdeathsig', 'KILL', ...command]), {
    stdio: ['pipe', 'pipe', 'pipe', 'pipe'],
  })
  const { pid, stdin, stdout, stderr } = child
  if (pid === undefined) throw new Error('env did not start')
  stdin.on('error', () => undefined)
  stdout.resume()
  const errors = text(stderr)
  const exited = once(child, 'exit').then(() => undefined)
  const hasExited = () => child.exitCode !== null || child.signalCode !== null
  const failed = async () => {
    await exited
    throw new Error(`${command.join(' ')} exited: ${await errors}`)
  }
  async function stop(): Promise<void> {
    if (!hasExited()) child.kill('SIGKILL')
    await exited
  }
  t.teardown(stop)
  const outputs = [stdout, child.stdio[3] as Readable].map((stream) => once(stream, 'data'))
  const firstOutput = Promise.race([...outputs, failed()]).then(() => undefined)
  firstOutput.catch(() => undefined)
  return { pid, firstOutput, exited, failure: () => (hasExited() ? errors : undefined), stop }
}

export type Result = { exitCode: number | null; stdout: string; stderr: string }

/** Runs a program. Waits until its output is closed, also by the services that it has started. */
export async function runProgram(
  command: readonly string[],
  { input = '' }: { input?: string } = {},
): Promise<Result> {
  const child = spawn('env', withoutEnvironment(command), {
    stdio: 'pipe',
    timeout: LONG_DEADLINE_MS,
    killSignal: 'SIGKILL',
  })
  const exited = once(child, 'exit')
  child.stdin.on('error', () => undefined).end(input)
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr), exited])
  return { exitCode: child.exitCode, stdout, stderr }
}
