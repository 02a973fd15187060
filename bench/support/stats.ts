// Numbers from samples.

/** The q-quantile (0 to 1) of the samples, by nearest rank. */
export function quantile(samples: readonly number[], q: number): number {
  const sorted = [...samples].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] ?? Number.NaN
}

export const median = (samples: readonly number[]): number => quantile(samples, 0.5)

export const mib = (bytes: number): number => bytes / 1024 ** 2

/** At most three significant digits, without an exponent. */
export const round = (value: number): string => String(Number(value.toPrecision(3)))

/** Runs `once` n times in each of `lanes` parallel lanes and gives each run's milliseconds. */
export async function timed(n: number, lanes: number, once: () => Promise<void>): Promise<number[]> {
  const samples: number[] = []
  await Promise.all(
    Array.from({ length: lanes }, async () => {
      for (let i = 0; i < n; i++) {
        const start = performance.now()
        await once()
        samples.push(performance.now() - start)
      }
    }),
  )
  return samples
}

/** Milliseconds that `work` takes. */
export async function duration(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now()
  await work()
  return performance.now() - start
}
