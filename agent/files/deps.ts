// What the file routes need from the agent.
import type { FastifyBaseLogger } from 'fastify'
import type { Clock } from '../../shared/clock.ts'
import type { TransferDialer } from './transfer-dialer.ts'

export type FileDeps = {
  /** Base directory of relative paths. Absolute. */
  home: string
  log: FastifyBaseLogger
  transfers: TransferDialer
  clock?: Clock
}
