// Dependencies of the file routes.
import type { Logger } from 'pino'
import type { Clock } from '../../shared/clock.ts'
import type { ActivityTracker } from '../activity-tracker.ts'
import type { CredentialFiles } from './credential-files.ts'
import type { TransferDialer } from './transfer-dialer.ts'

export type FileDeps = {
  /** Absolute path of the base directory of relative paths. */
  home: string
  /** Real path of the agent's state directory, which requests cannot access. */
  stateDir: string
  /** The files that clients cannot read that may not run commands. */
  credentialFiles: Pick<CredentialFiles, 'find'>
  log: Logger
  transferDialer: TransferDialer
  activity: Pick<ActivityTracker, 'touch'>
  clock?: Clock
}
