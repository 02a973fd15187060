// Figures of the requests of a load: counts, failures with their times, and percentiles. Times are milliseconds.
import type { Attempt } from '../chaos/replica-load.ts'

/** A time in which a replica failed, of performance.now(). */
export type Outage = { startedAt: number; endedAt: number }

/** After the lease of a dead replica, others have taken over what it did. */
export const TAKEOVER_MS = 15_000

export function percentile(times: readonly number[], q: number): number | undefined {
  const sorted = times.toSorted((a, b) => a - b)
  const time = sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))]
  return time === undefined ? undefined : Math.round(time * 10) / 10
}

/** p50, p99 and the maximum. */
export const summarizeTimes = (times: readonly number[]) => ({
  count: times.length,
  p50: percentile(times, 0.5),
  p99: percentile(times, 0.99),
  max: percentile(times, 1),
})

const overlaps = ({ startedAt, endedAt }: Attempt, outage: Outage): boolean =>
  startedAt < outage.endedAt && endedAt > outage.startedAt

/** The figures of each kind, and `late`: the failures that began more than TAKEOVER_MS after the last failure of a replica. */
export function summarizeAttempts(attempts: readonly Attempt[], outages: readonly Outage[]) {
  const kinds: Record<string, object> = {}
  for (const kind of new Set(attempts.map(({ kind }) => kind))) {
    const ofKind = attempts.filter((attempt) => attempt.kind === kind)
    const failures: Record<string, object> = {}
    for (const result of new Set(ofKind.map(({ result }) => result)))
      if (result !== 'ok')
        failures[result] = summarizeTimes(
          ofKind
            .filter((attempt) => attempt.result === result)
            .map((attempt) => attempt.endedAt - attempt.startedAt),
        )
    const succeeded = ofKind.filter(({ result }) => result === 'ok')
    const timesOf = (list: readonly Attempt[]) => list.map(({ startedAt, endedAt }) => endedAt - startedAt)
    const isDuring = (attempt: Attempt) => outages.some((outage) => overlaps(attempt, outage))
    kinds[kind] = {
      requests: ofKind.length,
      ok: summarizeTimes(timesOf(succeeded)),
      okWhileOneFails: summarizeTimes(timesOf(succeeded.filter(isDuring))),
      failures,
    }
  }
  return { requests: attempts.length, kinds, late: findLate(attempts, outages) }
}

/** The failures of requests that began before an outage, or more than TAKEOVER_MS after its start. */
function findLate(attempts: readonly Attempt[], outages: readonly Outage[]): string[] {
  return attempts
    .filter(({ result }) => result !== 'ok')
    .filter(
      ({ startedAt, endedAt }) =>
        !outages.some((outage) => endedAt >= outage.startedAt && startedAt < outage.startedAt + TAKEOVER_MS),
    )
    .map((attempt) => {
      const last = outages.findLast(({ startedAt }) => startedAt <= attempt.startedAt)
      const since =
        last === undefined ? 'before any' : `${Math.round(attempt.startedAt - last.startedAt)} ms after`
      return `${attempt.kind} ${attempt.result} ${since}`
    })
}
