// The stream of reports as one response per chunk (POST /reports/next).
import { ApiError } from '../../shared/errors.ts'
import type { OpenStreams } from './open-streams.ts'

type OpenStream = (signal: AbortSignal) => AsyncGenerator<Buffer, void>

export class NextReports {
  readonly #openStream: OpenStream
  readonly #openStreams: OpenStreams
  #current: { stream: ReturnType<OpenStream>; close(): void } | undefined

  constructor(openStream: OpenStream, openStreams: OpenStreams) {
    this.#openStream = openStream
    this.#openStreams = openStreams
  }

  /**
   * Resolves with the next chunk. When the signal aborts before, the stream is closed, because the chunk would be lost.
   * @param isFirst whether the stream starts again with the reports that are not acknowledged
   * @throws ApiError bad_request when no stream is open
   */
  async read(isFirst: boolean, signal: AbortSignal): Promise<Buffer> {
    if (isFirst) this.#open()
    const current = this.#current
    if (current === undefined) throw new ApiError('bad_request', 'No stream is open. Set isFirst.')
    if (signal.aborted) current.close()
    signal.addEventListener('abort', current.close, { once: true })
    const { value } = await current.stream.next()
    signal.removeEventListener('abort', current.close)
    if (value === undefined) throw new ApiError('bad_request', 'The stream was closed. Set isFirst.')
    return value
  }

  /** Call it when the coordinator has disconnected. */
  close(): void {
    this.#current?.close()
  }

  #open(): void {
    this.close()
    const controller = new AbortController()
    const stream = this.#openStream(controller.signal)
    const onClose = this.#openStreams.add()
    const current = {
      stream,
      close: () => {
        if (controller.signal.aborted) return
        controller.abort()
        if (this.#current === current) this.#current = undefined
        onClose()
        // Runs the cleanup of a generator that waits at a yield.
        void stream.return()
      },
    }
    this.#current = current
  }
}
