// A command to whose standard input a program writes.
import type { CallOptions } from '../http/calls.ts'
import { Attached } from './attached.ts'
import type { Context } from './context.ts'
import type { Offsets, OutputChunk, OutputStream } from './output.ts'

export type AttachOptions = {
  /** Closes the connection. */
  signal?: AbortSignal | undefined
  /** Where the output begins. Default: its first byte. */
  from?: Partial<Offsets>
}

/** The box terminates the command when its client does not return for a time. */
export class AttachedProcess extends Attached<OutputChunk> {
  readonly id: string
  readonly boxId: string
  readonly #context: Context

  constructor(context: Context, boxId: string, id: string, { from, signal }: AttachOptions = {}) {
    const { processes } = context.routes
    const start = { stdout: from?.stdout ?? 0, stderr: from?.stderr ?? 0 }
    const position = { ...start }
    const missing = { stdout: 0, stderr: 0 }
    const toChunk = (stream: OutputStream, bytes: Uint8Array<ArrayBuffer>): OutputChunk => {
      const offset = position[stream] + missing[stream]
      const chunk = { stream, bytes, offset, missing: missing[stream], at: null }
      position[stream] = chunk.offset + bytes.length
      missing[stream] = 0
      return chunk
    }
    super(context, {
      connect: (offsets, handlers, attemptSignal) =>
        processes.attach(
          boxId,
          id,
          handlers,
          { stdoutOffset: offsets?.stdout ?? 0, stderrOffset: offsets?.stderr ?? 0 },
          { signal: attemptSignal },
        ),
      check: (checkSignal) => processes.get(boxId, id, {}, { signal: checkSignal }),
      start,
      signal,
      createSink: (push) => ({
        async write(stream, bytes) {
          await push(toChunk(stream, bytes))
        },
        reportMissing(stream, bytes) {
          missing[stream] += bytes
        },
      }),
      getLast: () =>
        (['stdout', 'stderr'] as const)
          .filter((stream) => missing[stream] > 0)
          .map((stream) => toChunk(stream, new Uint8Array())),
    })
    this.#context = context
    this.boxId = boxId
    this.id = id
  }

  /** Ends the standard input after what was written. */
  end(): void {
    this.attachment.endStdin()
  }

  /** The command continues without its client. Resolves when it does: box.process(id) is then its output. */
  async detach(): Promise<void> {
    this.attachment.detach()
    await this.attachment.result
  }

  /** Terminates the command and its descendants. */
  kill(options?: CallOptions) {
    return this.#context.routes.processes.kill(this.boxId, this.id, options)
  }
}
