// The lines about the progress of a backup, with the time that the rest may take.
import type { Clock } from '../../../shared/clock.ts'
import { formatCount } from '../../../shared/format-count.ts'
import type { BackupProgress } from '../backup/progress.ts'

/** An earlier estimate would be wrong by a multiple. */
const MIN_ESTIMATE_MS = 3_000

export type ProgressReport = {
  update(progress: BackupProgress): void
  /** A line about the current phase. null: nothing is known yet. */
  describe(): string | null
}

export function createProgressReport(clock: Clock): ProgressReport {
  let current: { progress: BackupProgress; since: number } | null = null
  return {
    update(progress) {
      const isSamePhase = current?.progress.phase === progress.phase
      current = { progress, since: isSamePhase && current !== null ? current.since : clock.now() }
    },
    describe: () => current && describeProgress(current.progress, clock.now() - current.since),
  }
}

/** @param elapsedMs since the start of the phase */
function describeProgress({ phase, done, total }: BackupProgress, elapsedMs: number): string {
  if (phase === 'database') return 'Copying the database.'
  if (phase === 'archives') return 'Listing the files of the archives.'
  const rest = estimateRest(done / total, elapsedMs)
  if (phase === 'file') {
    const written = `Wrote ${formatBytes(Math.min(done, total))} of ${formatBytes(total)}`
    return rest === null ? `${written}.` : `${written}, about ${rest} left.`
  }
  const read = `Read the files of ${done} of ${formatCount(total, 'box', 'boxes')}`
  return rest === null
    ? `${read}.`
    : `${read}; the others may take about ${rest}. Then the backup is written.`
}

/** null: too early to know. @param share of the work that is done */
function estimateRest(share: number, elapsedMs: number): string | null {
  if (!(share > 0) || share >= 1 || elapsedMs < MIN_ESTIMATE_MS) return null
  const seconds = (elapsedMs * (1 - share)) / share / 1000
  if (seconds < 60) return formatCount(Math.max(1, Math.round(seconds)), 'second')
  if (seconds < 3600) return formatCount(Math.round(seconds / 60), 'minute')
  return `${(seconds / 3600).toFixed(1)} hours`
}

export const formatBytes = (bytes: number): string =>
  bytes < 1_000_000 ? `${Math.ceil(bytes / 1000)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`
