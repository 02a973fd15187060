// Ends the body of a request that is aborted.

/** fetch() of Node reads a body to its end when its request is aborted, and an endless one without a pause, so that nothing else runs. */
export function endOnAbort(
  body: ReadableStream<Uint8Array>,
  signal: AbortSignal,
): ReadableStream<Uint8Array> {
  const reader = body.getReader()
  return new ReadableStream(
    {
      start(controller) {
        const onAbort = () => {
          controller.error(signal.reason)
          reader.cancel(signal.reason).catch(() => undefined)
        }
        signal.addEventListener('abort', onAbort, { once: true })
      },
      async pull(controller) {
        const { done, value } = await reader.read()
        if (signal.aborted) return
        if (done) controller.close()
        else controller.enqueue(value)
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  )
}
