// Dependencies of the file routes.
import type { FastifyBaseLogger } from 'fastify'
import type { Clock } from '../../shared/clock.ts'
import type { TransferDialer } from './transfer-dialer.ts'

export type FileDeps = {
  /** Absolute path of the base directory of relative paths. */
  home: string
  log: FastifyBaseLogger
  transferDialer: TransferDialer
  clock?: Clock
}
