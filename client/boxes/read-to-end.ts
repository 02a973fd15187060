// Reads a stream of which only the result is wanted.

/** Discards the items, and resolves with what the generator returns. */
export async function readToEnd<Result>(items: AsyncGenerator<unknown, Result, undefined>): Promise<Result> {
  for (;;) {
    const next = await items.next()
    if (next.done) return next.value
  }
}
