// Reading /proc is synchronous, 5 to 20 µs per file: long loops yield to the event loop.
import { setImmediate as yieldToEventLoop } from 'node:timers/promises'

/** Yields to the event loop after each `count` items. */
export async function* yieldEvery<T>(count: number, items: Iterable<T>): AsyncGenerator<T> {
  let index = 0
  for (const item of items) {
    yield item
    index += 1
    if (index % count === 0) await yieldToEventLoop()
  }
}
