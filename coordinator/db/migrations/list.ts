// All migrations, in order. Never change a released migration: add a new one.
import type { Migration } from 'kysely/migration'
import { initial } from './0001-initial.ts'
import { commandHistory } from './0002-command-history.ts'
import { boundReportedNumbers } from './0003-bound-reported-numbers.ts'
import { liveBoxesAndCommandStatus } from './0004-live-boxes-and-command-status.ts'

export const migrations: Record<string, Migration> = {
  '0001-initial': initial,
  '0002-command-history': commandHistory,
  '0003-bound-reported-numbers': boundReportedNumbers,
  '0004-live-boxes-and-command-status': liveBoxesAndCommandStatus,
}
