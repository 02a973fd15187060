// Commands on a box: run to their end, or started and followed.

import type { ExecRequest, ExecStarted, ProcessesGetQuery } from '../generated/types.ts'
import type { CallOptions } from '../http/calls.ts'
import { AttachedProcess, type AttachOptions } from './attached-process.ts'
import type { Context } from './context.ts'
import {
  type Exit,
  type Offsets,
  OUTPUT_END,
  type OutputChunk,
  type OutputStream,
  readOutput,
} from './output.ts'
import { readToEnd } from './read-to-end.ts'
import { requireField } from './require-field.ts'

export type StartOptions = Pick<CallOptions, 'signal' | 'traceparent' | 'idempotencyKey'> & {
  /** A relative or `~/` path resolves under the home directory, the default. */
  cwd?: string
  env?: Record<string, string>
  /** The box terminates the command after this time, in milliseconds. Default: no limit. */
  timeoutMs?: number
}

export type StartAttachedOptions = StartOptions & {
  /** The program writes the standard input. */
  stdin: true
  /** How long the command runs without its client before the box terminates it, in milliseconds. Default: 60 s. */
  disconnectTimeoutMs?: number
}

export type ExecOptions = StartOptions & {
  /** Gets the output as it arrives. The next part is read when a returned promise has resolved. */
  onStdout?: (text: string) => unknown
  onStderr?: (text: string) => unknown
}

export type ExecResult = Exit & {
  /** The whole output as UTF-8; invalid bytes are U+FFFD. */
  stdout: string
  stderr: string
  /** The bytes of the output that the box did not keep long enough, such as during a long interruption. */
  missing: Offsets
}

export type OutputOptions = Pick<CallOptions, 'signal'> & {
  /** Where the output begins. Default: its first byte. */
  from?: Partial<Offsets>
  /** Default: both. */
  stream?: OutputStream
}

/** A detached command. It runs on without the client. */
export class Process {
  readonly id: string
  readonly boxId: string
  readonly #context: Context

  constructor(context: Context, boxId: string, id: string) {
    this.#context = context
    this.boxId = boxId
    this.id = id
  }

  /**
   * Yields the output in the order in which it arrives, from the first byte on, until the command has exited. The generator returns how it ended. Lost connections, and restarts
   * of the coordinator and the agent are resumed: no byte is lost or repeated.
   */
  output({ from, stream, signal }: OutputOptions = {}): AsyncGenerator<OutputChunk, Exit, undefined> {
    const { calls, outageMs, idleMs } = this.#context
    const path = `/v1/box/${encodeURIComponent(this.boxId)}/exec/${encodeURIComponent(this.id)}/stream`
    return readOutput({
      from: { stdout: from?.stdout ?? 0, stderr: from?.stderr ?? 0 },
      signal,
      outageMs,
      idleMs,
      open: ({ stdout, stderr }) =>
        calls.open(
          'GET',
          path,
          {
            query: { stdoutOffset: stdout, stderrOffset: stderr, encoding: 'base64', streams: stream },
            isResumed: true,
          },
          { headers: { accept: 'text/event-stream' }, ...(signal !== undefined && { signal }) },
        ),
    })
  }

  /** Resolves when the command has exited. */
  wait(options: Pick<CallOptions, 'signal'> = {}): Promise<Exit> {
    return readToEnd(this.output({ ...options, from: OUTPUT_END }))
  }

  /** Connects to a command that was started with `stdin`, of which the id is known. */
  attach(options?: AttachOptions): AttachedProcess {
    return new AttachedProcess(this.#context, this.boxId, this.id, options)
  }

  /** Whether it runs, and the end of its output. */
  status(query?: ProcessesGetQuery, options?: CallOptions) {
    return this.#context.routes.processes.get(this.boxId, this.id, query, options)
  }

  /** Terminates the command and its descendants. */
  kill(options?: CallOptions) {
    return this.#context.routes.processes.kill(this.boxId, this.id, options)
  }
}

/** Starts the command once, also when the response is lost and the request is repeated. */
export async function startProcess(
  context: Context,
  boxId: string,
  command: string,
  options?: StartOptions,
): Promise<Process> {
  return new Process(context, boxId, await startOnce(context, boxId, { command, detached: true }, options))
}

/** The same for a command whose standard input the program writes. */
export async function startAttached(
  context: Context,
  boxId: string,
  command: string,
  { disconnectTimeoutMs, stdin, ...options }: StartAttachedOptions,
): Promise<AttachedProcess> {
  const request: ExecRequest = {
    command,
    attached: true,
    stdin,
    ...(disconnectTimeoutMs !== undefined && { disconnectTimeoutSeconds: disconnectTimeoutMs / 1000 }),
  }
  const id = await startOnce(context, boxId, request, options)
  return new AttachedProcess(context, boxId, id, { signal: options.signal })
}

/** Returns the id of the process. */
async function startOnce(
  context: Context,
  boxId: string,
  request: ExecRequest,
  { cwd, env, timeoutMs, ...options }: StartOptions = {},
): Promise<string> {
  const body: ExecRequest = {
    ...request,
    ...(cwd !== undefined && { cwd }),
    ...(env !== undefined && { env }),
    ...(timeoutMs !== undefined && { timeoutSeconds: timeoutMs / 1000 }),
  }
  // Waking a box may take longer than the usual time.
  const input = { body, isIdempotent: true, isSlow: true }
  const path = `/v1/box/${encodeURIComponent(boxId)}/exec`
  return requireField(await context.calls.json<ExecStarted>('POST', path, input, options), 'processId')
}

/** Runs a command to its end. When the signal is aborted, the command is terminated. */
export async function exec(
  context: Context,
  boxId: string,
  command: string,
  { onStdout, onStderr, ...options }: ExecOptions = {},
): Promise<ExecResult> {
  const process = await startProcess(context, boxId, command, options)
  const readers = { stdout: createTextReader(onStdout), stderr: createTextReader(onStderr) }
  const missing = { stdout: 0, stderr: 0 }
  const output = process.output(options.signal === undefined ? {} : { signal: options.signal })
  try {
    for (;;) {
      const next = await output.next()
      if (next.done) {
        const [stdout, stderr] = [await readers.stdout.end(), await readers.stderr.end()]
        return { ...next.value, stdout, stderr, missing }
      }
      const { stream, bytes } = next.value
      missing[stream] += next.value.missing
      await readers[stream].add(bytes)
    }
  } catch (error) {
    // Without a reader, the command would run until its time limit.
    if (options.signal?.aborted) await process.kill().catch(() => undefined)
    throw error
  } finally {
    // A reader that throws leaves the stream open.
    await output.return(undefined as never)
  }
}

/** Decodes bytes, also characters that are cut between two parts. */
function createTextReader(onText: ((text: string) => unknown) | undefined) {
  const decoder = new TextDecoder()
  const parts: string[] = []
  async function push(text: string): Promise<void> {
    if (text === '') return
    parts.push(text)
    await onText?.(text)
  }
  return {
    add: (bytes: Uint8Array<ArrayBuffer>) => push(decoder.decode(bytes, { stream: true })),
    async end(): Promise<string> {
      await push(decoder.decode())
      return parts.join('')
    },
  }
}
