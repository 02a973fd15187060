// A command with its output: loads what is stored, and follows a command that is running, until it has exited.
import { type OutputStream, readOutput } from '../../client/boxes/output.ts'
import { BoxwoodError } from '../../client/http/errors.ts'
import type { Command } from '../../shared/api/commands.ts'
import type { ExecList } from '../../shared/api/processes.ts'
import type { BoxClient } from '../api/box-client.ts'
import type { Client } from '../api/client.ts'
import { toBoxwoodError } from '../api/errors.ts'
import { OutputLines } from './output-lines.ts'
import type { AcquireStream } from './stream-slots.ts'

export type CommandOutputOptions = {
  client: Pick<Client, 'loadCommand' | 'loadCommandOutput'>
  boxClient: Pick<BoxClient, 'open' | 'send'>
  boxId: string
  commandId: string
  /** Whether the box can be asked for the output of a command. */
  isBoxRunning(): boolean
  /** The command, its output or the connection have changed. */
  onChange(): void
  acquireStream: AcquireStream
  wait(ms: number, signal: AbortSignal): Promise<void>
}

/** A synchronous command has no stream, and other tabs may have all streams: the output arrives in the history too. */
const POLL_MS = 2_000
/** A new request cannot help. */
const FINAL_STATUSES = [400, 401, 403, 404]

export class CommandOutputLoader {
  readonly #options: CommandOutputOptions
  readonly streams: Record<OutputStream, OutputLines> = {
    stdout: new OutputLines(),
    stderr: new OutputLines(),
  }
  /** Bytes at the start of each stream that are not stored any more. */
  readonly skipped: Record<OutputStream, number> = { stdout: 0, stderr: 0 }
  /** Null until it is loaded. */
  command: Command | null = null
  /** The last request has failed. */
  error: BoxwoodError | null = null
  /** DELETE /exec/{id} terminates the command. */
  canStop = false
  #position: Record<OutputStream, number> = { stdout: 0, stderr: 0 }

  constructor(options: CommandOutputOptions) {
    this.#options = options
  }

  /** The end of what was received, in bytes. */
  get position(): Readonly<Record<OutputStream, number>> {
    return this.#position
  }

  /** Resolves when the command has exited and its output is complete, and when the signal is aborted. Continues after an earlier call. */
  async run(signal: AbortSignal): Promise<void> {
    const { wait, onChange } = this.#options
    while (!signal.aborted) {
      try {
        if (await this.#load(signal)) return
        // The history gets the exit at the same time as the stream.
        if ((await this.#followStream(signal)) && (await this.#load(signal))) return
      } catch (reason) {
        if (signal.aborted) return
        this.error = toBoxwoodError(reason)
        onChange()
        if (FINAL_STATUSES.includes(this.error.status)) return
      }
      await wait(POLL_MS, signal).catch(() => undefined)
    }
  }

  /** Returns whether the command has exited. */
  async #load(signal: AbortSignal): Promise<boolean> {
    const { client, boxId, commandId, onChange } = this.#options
    const { command } = await client.loadCommand(boxId, commandId)
    if (signal.aborted) return false
    for (const stream of ['stdout', 'stderr'] as const) {
      for (;;) {
        const offset = this.#position[stream]
        const page = await client.loadCommandOutput(boxId, commandId, { stream, offset })
        if (signal.aborted) return false
        this.#skip(stream, page.skipped)
        this.#append(stream, page.data)
        this.#position = { ...this.#position, [stream]: page.nextOffset }
        if (page.nextOffset >= page.size || page.nextOffset === offset) break
      }
    }
    this.command = command
    this.error = null
    const hasExited = command.status !== 'running'
    if (hasExited) {
      this.canStop = false
      this.streams.stdout.end()
      this.streams.stderr.end()
    }
    onChange()
    return hasExited
  }

  /** Returns whether the stream has ended with the exit. A stream that the box refuses is no error: the history has the output. */
  async #followStream(signal: AbortSignal): Promise<boolean> {
    try {
      if (!(await this.#isStreamed())) return false
      const release = await this.#options.acquireStream()
      if (release === null) return false
      await this.#follow(signal).finally(release)
      return true
    } catch (error) {
      if (error instanceof BoxwoodError) return false
      throw error
    }
  }

  async #isStreamed(): Promise<boolean> {
    const { boxClient, commandId, isBoxRunning, onChange } = this.#options
    this.canStop = false
    if (this.command?.mode !== 'detached' || !isBoxRunning()) return false
    const { processes } = await boxClient.send<ExecList>('GET', 'exec')
    this.canStop = processes.some(({ processId, running }) => processId === commandId && running)
    onChange()
    return this.canStop
  }

  async #follow(signal: AbortSignal): Promise<void> {
    const { boxClient, commandId, onChange } = this.#options
    const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() }
    const output = readOutput({
      from: { ...this.#position },
      signal,
      outageMs: Number.POSITIVE_INFINITY,
      open: ({ stdout, stderr }) =>
        boxClient.open(
          `exec/${commandId}/stream?stdoutOffset=${stdout}&stderrOffset=${stderr}&encoding=base64`,
          { headers: { accept: 'text/event-stream' }, signal },
        ),
      onConnection: (error) => {
        this.error = error
        onChange()
      },
    })
    for await (const { stream, bytes, offset, missing } of output) {
      this.#skip(stream, missing)
      this.#append(stream, decoders[stream].decode(bytes, { stream: true }))
      this.#position = { ...this.#position, [stream]: offset + bytes.length }
      onChange()
    }
    // A character that is cut at the end of the output.
    for (const stream of ['stdout', 'stderr'] as const) this.#append(stream, decoders[stream].decode())
  }

  #append(stream: OutputStream, text: string): void {
    if (text !== '') this.streams[stream].push(text)
  }

  #skip(stream: OutputStream, bytes: number): void {
    this.skipped[stream] += bytes
  }
}
