// A coordinator with a box that several modules of tests share. Each *.test.ts that imports such modules starts its own.

import t from 'tap'
import { limitsEnv } from '../support/limits-env.ts'
import { HIGH_EDGE_LIMITS, startCoordinatorWithBox } from './coordinator-with-box.ts'

export const sharedCoordinator = await startCoordinatorWithBox(t, {
  // Tests reach the limit of attached commands and of terminals.
  env: limitsEnv({ ...HIGH_EDGE_LIMITS, edgeAttachments: 12 }),
})
