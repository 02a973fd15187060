// A machine stops, or its agent hangs, before its box is deleted. The records of its commands must be complete.
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Test } from 'tap'
import { killIfAlive } from '../../agent/exec/detached/support.ts'
import { findAgentPid, listBoxPids } from '../find-agent-process.ts'
import { createSeededRandom } from '../random.ts'
import { LONG_DEADLINE_MS, waitUntil } from '../wait-until.ts'
import type { ChaosSetup } from './chaos-round.ts'

const FAULTS: Readonly<Record<string, (boxId: string) => void>> = {
  'the agent hangs': (boxId) => signalAgent(boxId, 'SIGSTOP'),
  'the agent is killed': (boxId) => signalAgent(boxId, 'SIGKILL'),
  'the machine stops': (boxId) => {
    for (const pid of listBoxPids(boxId)) killIfAlive(pid)
  },
}
const LINES = 2000

export async function runLostMachineRound(t: Test, setup: ChaosSetup, { seed }: { seed: number }) {
  const { coordinator, proxy } = setup
  const random = createSeededRandom(seed)
  for (const [index, [fault, inject]] of Object.entries(FAULTS).entries()) {
    const name = `lost-${seed}-${index}`
    const { box } = await coordinator.sendJson('POST', '/api/v1/boxes', { name })
    await coordinator.waitForState(box.id, 'running')
    const command = `while [ ! -e finish ]; do sleep 0.05; done; seq ${LINES}; exit 9`
    const { processId } = await coordinator.exec(name, command, { detached: true })
    const path = `/api/v1/boxes/${box.id}/commands/${processId}`
    await waitUntil('the start is recorded', async () => (await coordinator.sendJson('GET', path)).command)
    // From now on the agent cannot send its reports.
    proxy.blackhole()
    const boxDir = join(coordinator.dataDir, 'boxes', box.id)
    writeFileSync(join(boxDir, 'home/finish'), '')
    await waitUntil('the exit is on the disk of the box', () =>
      globSync(`${boxDir}/state/reports/*.ndjson`).some((file) =>
        readFileSync(file, 'utf8').includes('"command.finished"'),
      ),
    )
    inject(box.id)
    await coordinator.sendJson('DELETE', `/api/v1/boxes/${box.id}`)
    if (random() < 0.5) {
      await delay(random() * 3000)
      await coordinator.kill('SIGKILL')
      await setup.restartCoordinator()
    }
    await waitUntil(
      `the box is deleted after ${fault}`,
      async () =>
        (await coordinator.sendJson('GET', `/api/v1/boxes/${box.id}`)).box?.observedState === 'terminated',
      // The next coordinator waits up to 35 s for the agent before the deletion.
      LONG_DEADLINE_MS,
    )
    proxy.reset()
    t.match(
      await coordinator.sendJson('GET', path),
      { command: { status: 'exited', exitCode: 9 } },
      `${fault}: the record is complete`,
    )
    const { data, done } = await coordinator.sendJson('GET', `${path}/output`)
    const expected = Array.from({ length: LINES }, (_, line) => `${line + 1}\n`).join('')
    t.ok(done && data === expected, `${fault}: the output is complete`)
  }
}

function signalAgent(boxId: string, signal: NodeJS.Signals): void {
  const pid = findAgentPid(boxId)
  if (pid !== undefined) process.kill(pid, signal)
}
