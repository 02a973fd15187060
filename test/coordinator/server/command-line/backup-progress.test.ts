// The lines about the progress of a backup.
import t from 'tap'
import type { BackupProgress } from '../../../../coordinator/server/backup/progress.ts'
import { createProgressReport } from '../../../../coordinator/server/command-line/backup-progress.ts'
import { createTestClock } from '../../../support/workspace.ts'

const SECOND = 1000
const MINUTE = 60 * SECOND

t.test('says what is done, and how long the rest of the phase may take', async (t) => {
  const clock = createTestClock()
  const report = createProgressReport(clock)
  t.equal(report.describe(), null)
  const expectLine = (afterMs: number, progress: BackupProgress | null, line: string) => {
    clock.advance(afterMs)
    if (progress !== null) report.update(progress)
    t.equal(report.describe(), line)
  }
  const boxes = (done: number) => ({ phase: 'boxes' as const, done, total: 46 })
  expectLine(0, { phase: 'database', done: 0, total: 0 }, 'Copying the database.')
  expectLine(MINUTE, boxes(0), 'Read the files of 0 of 46 boxes.')
  expectLine(10 * SECOND, null, 'Read the files of 0 of 46 boxes.')
  expectLine(
    110 * SECOND,
    boxes(12),
    'Read the files of 12 of 46 boxes; the others may take about 6 minutes. Then the backup is written.',
  )
  expectLine(
    260 * SECOND,
    boxes(40),
    'Read the files of 40 of 46 boxes; the others may take about 57 seconds. Then the backup is written.',
  )
  expectLine(MINUTE, boxes(46), 'Read the files of 46 of 46 boxes.')
  expectLine(0, { phase: 'archives', done: 0, total: 0 }, 'Listing the files of the archives.')
  const file = (done: number) => ({ phase: 'file' as const, done, total: 40_000_000_000 })
  expectLine(0, file(1_000_000), 'Wrote 1.0 MB of 40000.0 MB.')
  expectLine(10 * SECOND, file(40_000_000), 'Wrote 40.0 MB of 40000.0 MB, about 2.8 hours left.')
  expectLine(40 * MINUTE, file(39_999_000_000), 'Wrote 39999.0 MB of 40000.0 MB, about 1 second left.')
  expectLine(0, file(40_000_001_024), 'Wrote 40000.0 MB of 40000.0 MB.')
})
