// Reads and writes the fields of boxes that the upgrades of agents need.
import type { UpgradedBoxes } from '../../agents/upgrades/service.ts'
import { listAgents } from '../store/box-lists.ts'
import { dismissFailures, findAgent, storeFailure } from '../store/boxes.ts'

export const upgradedBoxes: UpgradedBoxes = {
  find: findAgent,
  storeFailure,
  dismissFailures,
  list: listAgents,
}
