// The life of a local box at one isolation level, with each network: no stage changes its machine.
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { Level, Network } from '../../../../coordinator/providers/local/levels/choose-level.ts'
import { findLevelProblem } from '../../../support/isolation-levels.ts'
import {
  compareStates,
  type MachineState,
  pickParts,
  readMachineState,
} from '../../../support/machine-state.ts'
import {
  findOwnMachineProblem,
  isOnOwnMachine,
  prepareOwnMachine,
  runOnOwnMachine,
} from '../../../support/own-machine.ts'
import { waitUntil } from '../../../support/wait-until.ts'
import { createDataDir, createMachineSpec, openProvider, waitForFileText } from '../local/support.ts'

/** The parts that a box that is running, or frozen, changes. */
const OF_BOXES = ['cgroups', 'processes']
const ARCHIVE = { workspaceId: 'ws_1', archiveId: 'snp_1' }

/** @param file the test file, which calls this function */
export async function testLocalStages(
  level: Level,
  networks: readonly Network[],
  file: string,
): Promise<void> {
  if (!isOnOwnMachine()) {
    const skip = findOwnMachineProblem()
    return void t.test(`boxes at level ${level} do not change their machine`, { skip }, (t) =>
      runOnOwnMachine(t, file),
    )
  }
  prepareOwnMachine()
  for (const network of networks) {
    const skip = await findLevelProblem(level, network)
    t.test(`level ${level}, network ${network}`, { skip }, (t) => testStages(t, level, network))
  }
}

async function testStages(t: Test, level: Level, network: Network): Promise<void> {
  const dataDir = await createDataDir(t)
  const before = readMachineState()
  t.ok(
    before.mounts?.some((line) => line.includes(' shared:')),
    'the mounts of the machine are shared',
  )
  t.ok(before['named networks']?.includes('boxwood-test'), 'the machine has a named network')
  /** While a box runs. */
  const compare = (stage: string) =>
    t.same(compareStates(before, { ...readMachineState(), ...pickParts(before, OF_BOXES) }), {}, stage)

  const provider = await openProvider(dataDir, {
    level,
    network,
    runProbes: true,
    script: 'echo started >"$HOME/out"; mv "$HOME/out" "$HOME/started"',
  })
  await compareAll(t, before, 'after the probes')
  const spec = createMachineSpec()
  await provider.create(spec)
  const { isolation } = await provider.start(spec)
  t.match(isolation, { level, network })
  await waitForFileText(join(dataDir, 'boxes', spec.boxId, 'home', 'started'))
  compare('while a box runs')
  await provider.capture(spec.boxId, ARCHIVE, 'files')
  const copy = createMachineSpec()
  await provider.create({ ...copy, source: ARCHIVE })
  await provider.start(copy)
  compare('while a copy of it runs')
  if (await provider.freeze(spec.boxId)) {
    compare('while the box is frozen')
    await provider.start(spec)
    compare('after it was thawed')
  }
  await provider.destroy(copy.boxId)
  await provider.stop(spec.boxId)
  await compareAll(t, before, 'after the box was stopped')
  await provider.start(spec)
  compare('after it was started again')
  await provider.destroy(spec.boxId)
  await provider.removeArchive(ARCHIVE)
  await provider.close()
  await compareAll(t, before, 'after the box was deleted')
}

/** Processes of a box and their cgroups may take a moment to disappear. */
async function compareAll(t: Test, before: MachineState, stage: string): Promise<void> {
  await waitUntil(`nothing remains of: ${stage}`, () => isEqual(before)).catch(() => undefined)
  t.same(compareStates(before, readMachineState()), {}, stage)
}

const isEqual = (before: MachineState) => Object.keys(compareStates(before, readMachineState())).length === 0
