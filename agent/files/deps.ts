// Dependencies of the file routes.
import type { FastifyBaseLogger } from 'fastify'
import type { Clock } from '../../shared/clock.ts'
import type { ActivityTracker } from '../vitals/activity-tracker.ts'
import type { TransferDialer } from './transfer-dialer.ts'

export type FileDeps = {
  /** Absolute path of the base directory of relative paths. */
  home: string
  /** Real path of the agent's state directory, which requests cannot access. */
  stateDir: string
  log: FastifyBaseLogger
  transferDialer: TransferDialer
  activity: Pick<ActivityTracker, 'touch'>
  clock?: Clock
}
