// Reports output that the box has discarded. Prints at most once a second, with the sum of the gaps in between.
const INTERVAL_MS = 1000

export type MissingOutputReporter = {
  /** Prints immediately, or adds to the next report if the last one is less than a second old. */
  report(stream: string, bytes: number): void
  /** Prints the pending reports. */
  flush(): void
}

/** @param now milliseconds of a monotonic clock */
export function createMissingOutputReporter(
  boxName: string,
  print: (text: string) => void,
  now: () => number = () => performance.now(),
): MissingOutputReporter {
  const pending = new Map<string, { bytes: number; gaps: number }>()
  let nextReportAt = Number.NEGATIVE_INFINITY

  function flush(): void {
    for (const [stream, { bytes, gaps }] of pending) {
      const where = gaps === 1 ? 'before this point' : `in ${gaps} gaps before this point`
      print(`${bytes} bytes of ${stream} ${where} are missing: ${boxName} has discarded them.`)
    }
    if (pending.size > 0) nextReportAt = now() + INTERVAL_MS
    pending.clear()
  }

  return {
    report(stream, bytes) {
      const { bytes: bytesBefore, gaps } = pending.get(stream) ?? { bytes: 0, gaps: 0 }
      pending.set(stream, { bytes: bytesBefore + bytes, gaps: gaps + 1 })
      if (now() >= nextReportAt) flush()
    },
    flush,
  }
}
