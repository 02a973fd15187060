// Runs a command on the files of a box, in a worker thread.
import { type ChildProcessByStdio, spawn } from 'node:child_process'
import type { Readable, Writable } from 'node:stream'
import { SYSTEM_PATH } from '../system-path.ts'
import type { TarCommand } from './tar.ts'

/** tar prints a path of 4,095 bytes with up to four characters for each. */
const MAX_ERROR_LENGTH = 32 * 1024
/** Of a longer message, the middle of the path is omitted: the reason is at the end. */
const MAX_MESSAGE_LENGTH = 1000
const MESSAGE_END_LENGTH = 200
/** The final line of du and the first path of find. */
const MAX_OUTPUT_LENGTH = 16 * 1024

/** The command failed. The message has the first line that it printed to stderr. */
export class TarError extends Error {
  override name = 'TarError'
}

export type TarProcess = {
  stdin: Writable
  stdout: Readable
  /** Rejects with TarError when the exit code is not 0. */
  exited: Promise<void>
}

/** @param signal kills the command. Then `exited` rejects with AbortError when the command has exited. */
export function startTar({ argv, cwd, user }: TarCommand, signal: AbortSignal): TarProcess {
  const [program = '', ...args] = argv
  const child: ChildProcessByStdio<Writable, Readable, Readable> = spawn(program, args, {
    ...user,
    cwd,
    signal,
    killSignal: 'SIGKILL',
    // tar writes names as they are, whatever their encoding.
    env: { PATH: SYSTEM_PATH, LC_ALL: 'C' },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  let output = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    output = (output + text).slice(0, MAX_ERROR_LENGTH)
  })
  // A process that exits early closes the pipe; its exit code and its output describe the failure.
  child.stdin.on('error', () => {})
  let failure: Error | undefined
  const exited = new Promise<void>((resolve, reject) => {
    child.on('error', (error) => {
      failure = error
    })
    child.on('close', (code, signalName) => {
      if (failure !== undefined) reject(failure)
      else if (code === 0) resolve()
      else reject(new TarError(firstProblem(output) ?? `${argv.at(0)} exited with ${signalName ?? code}`))
    })
  })
  exited.catch(() => {})
  return { stdin: child.stdin, stdout: child.stdout, exited }
}

/** Messages about sockets, which tar omits, are not problems. */
function firstProblem(output: string): string | undefined {
  const line = output.split('\n').find((each) => each !== '' && !each.endsWith('socket ignored'))
  if (line === undefined || line.length <= MAX_MESSAGE_LENGTH) return line
  return `${line.slice(0, MAX_MESSAGE_LENGTH - MESSAGE_END_LENGTH)}…${line.slice(-MESSAGE_END_LENGTH)}`
}

/** Returns the end of the output. */
export async function readTarOutput(command: TarCommand, signal: AbortSignal): Promise<string> {
  const { stdin, stdout, exited } = startTar(command, signal)
  stdin.end()
  let output = ''
  stdout.setEncoding('latin1').on('data', (text: string) => {
    output = (output + text).slice(-MAX_OUTPUT_LENGTH)
  })
  await exited
  return output
}
