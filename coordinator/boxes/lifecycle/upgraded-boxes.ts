// What the upgrades of agents read and write of boxes.
import type { UpgradedBoxes } from '../../agents/upgrades/service.ts'
import { listAgents } from '../store/box-lists.ts'
import { dismissFailures, findAgent, updateBox } from '../store/boxes.ts'

export const upgradedBoxes: UpgradedBoxes = {
  find: findAgent,
  storeFailure: (trx, boxId, failure) =>
    updateBox(trx, boxId, { agent_failure: failure, agent_failure_dismissed: 0 }),
  dismissFailures,
  list: listAgents,
}
