// Measures durations, and computes and formats statistics.

/** The q-quantile (q from 0 to 1): the sample at index ⌊q · count⌋ of the sorted samples. NaN without samples. */
export function quantile(samples: readonly number[], q: number): number {
  const sorted = [...samples].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] ?? Number.NaN
}

export const median = (samples: readonly number[]): number => quantile(samples, 0.5)

export const toMiB = (bytes: number): number => bytes / 1024 ** 2

/** Formats with at most three significant digits and without an exponent. */
export const formatNumber = (value: number): string => String(Number(value.toPrecision(3)))

/** Calls `run` `count` times in each of `concurrency` parallel loops. Returns the milliseconds of every call. */
export async function measureRuns(
  count: number,
  concurrency: number,
  run: () => Promise<void>,
): Promise<number[]> {
  const samples: number[] = []
  await Promise.all(
    Array.from({ length: concurrency }, async () => {
      for (let i = 0; i < count; i++) {
        const start = performance.now()
        await run()
        samples.push(performance.now() - start)
      }
    }),
  )
  return samples
}

/** The duration of `work` in milliseconds. */
export async function measureDuration(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now()
  await work()
  return performance.now() - start
}
