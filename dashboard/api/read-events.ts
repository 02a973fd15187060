// Reads server-sent events from a response.
import { createParser, type EventSourceMessage } from 'eventsource-parser'

/** A stream that sends nothing for this long is lost. The coordinator sends a comment every 15 s. */
const SILENCE_MS = 45_000

/**
 * Resolves at the end of the response, also when it is silent. Rejects when the connection is lost.
 * @param onEvent true: the event is the last one
 */
export async function readEvents(
  body: ReadableStream<Uint8Array<ArrayBuffer>>,
  onEvent: (event: EventSourceMessage) => boolean,
): Promise<void> {
  let hasEnded = false
  const parser = createParser({
    onEvent(event) {
      if (!hasEnded) hasEnded = onEvent(event)
    },
  })
  // Not for await: Safari has no asynchronous iterator of a stream.
  const reader = body.pipeThrough(new TextDecoderStream()).getReader()
  try {
    while (!hasEnded) {
      let timer: ReturnType<typeof setTimeout> | undefined
      const silence = new Promise<{ done: true; value?: undefined }>((resolve) => {
        timer = setTimeout(() => resolve({ done: true }), SILENCE_MS)
      })
      const { done, value } = await Promise.race([reader.read(), silence]).finally(() => clearTimeout(timer))
      if (done) return
      parser.feed(value)
    }
  } finally {
    reader.cancel().catch(() => undefined)
  }
}
