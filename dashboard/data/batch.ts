// An action on several boxes: each one is tried, and the failures are listed.
import type { BoxwoodError } from '../../client/http/errors.ts'
import { toBoxwoodError } from '../api/errors.ts'

/** Below the requests that a browser sends at the same time to one host, so that others are not delayed. */
const CONCURRENCY = 3

export type Failure<Item> = { item: Item; error: BoxwoodError }

/** Resolves to the failures, in the order of the items. */
export async function runForEach<Item>(
  items: readonly Item[],
  run: (item: Item) => Promise<unknown>,
): Promise<Failure<Item>[]> {
  const queue = items.entries()
  const failures: (Failure<Item> | undefined)[] = []
  const worker = async () => {
    for (const [index, item] of queue)
      await run(item).catch((reason) => {
        failures[index] = { item, error: toBoxwoodError(reason) }
      })
  }
  await Promise.all(Array.from({ length: CONCURRENCY }, worker))
  return failures.filter((failure) => failure !== undefined)
}
