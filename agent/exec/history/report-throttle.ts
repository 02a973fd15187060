// Throttles the output reports of a process that writes continuously.

/** The history retains the last 1 MiB per stream, so heavy output is reported at about this rate, in larger steps. */
const BYTES_PER_SECOND = 128 * 1024
const MAX_DELAY_MS = 12_000

export type ReportThrottle = {
  /** Milliseconds until the next report. @param sentBytes size of the last report */
  delayMs(sentBytes: number): number
  /** New output arrived. @param remainingMs of the delay; 0 or less after a pause of the process */
  onOutput(remainingMs: number): void
}

/**
 * Output after a pause is reported immediately. While a process writes continuously, which may last for days, each delay
 * doubles, since each report costs the coordinator a commit.
 * @param minDelayMs the first delay
 */
export function createReportThrottle(minDelayMs: number): ReportThrottle {
  let currentMs = minDelayMs
  return {
    delayMs: (sentBytes) =>
      Math.min(MAX_DELAY_MS, Math.max(currentMs, (sentBytes / BYTES_PER_SECOND) * 1000)),
    onOutput(remainingMs) {
      currentMs = remainingMs > 0 ? Math.min(MAX_DELAY_MS, currentMs * 2) : minDelayMs
    },
  }
}
