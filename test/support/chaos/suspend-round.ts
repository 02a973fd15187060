// A box is suspended while the coordinator is killed. Where boxes can be frozen, its process must keep its memory.
import { setTimeout as delay } from 'node:timers/promises'
import type { Test } from 'tap'
import { createSeededRandom } from '../random.ts'
import { LONG_DEADLINE_MS, waitUntil } from '../wait-until.ts'
import type { FixedPortSetup } from './fixed-port-setup.ts'

const SUSPENDS = 6
/** Holds a random value in a variable of the shell, and writes the value to `answer` when there is a file `ask`. */
export const HOLD_VALUE = `value=$(od -An -N8 -tx1 /dev/urandom | tr -d ' \\n')
printf %s "$value" >held
while :; do
  if [ -e ask ]; then printf %s "$value" >answer.new; rm ask; mv answer.new answer; fi
  sleep 0.05
done`

/** Prints the value that the process holds. */
export const ASK_FOR_VALUE = 'rm -f answer; touch ask; while [ ! -e answer ]; do sleep 0.05; done; cat answer'

/** Returns how the box was suspended: stopped where this machine cannot freeze boxes. */
export async function runSuspendRound(t: Test, setup: FixedPortSetup, { seed }: { seed: number }) {
  const { coordinator, killAndRestart, createBox } = setup
  const random = createSeededRandom(seed)
  const { id, hostname } = await createBox(`suspended-${seed}`)
  const isSuspended = async () => {
    const { box } = await coordinator.sendJson('GET', `/api/v1/boxes/${id}`)
    return box?.observedState === 'suspended' && box
  }
  const wake = async () => {
    await coordinator.sendJson('POST', `/api/v1/boxes/${id}/wake`)
    await coordinator.waitForState(id, 'running')
  }
  const suspend = () => coordinator.sendJson('POST', `/api/v1/boxes/${id}/suspend`)

  await suspend()
  const { suspendedAs } = await waitUntil('the box is suspended', isSuspended)
  await wake()
  if (suspendedAs === 'frozen') {
    await coordinator.exec(hostname, HOLD_VALUE, { detached: true })
    const readHeld = async () => (await coordinator.exec(hostname, 'cat held')).stdout
    const held = await waitUntil('the process holds a value', async () => {
      const value = await readHeld()
      return value?.length === 16 && value
    })
    for (let number = 0; number < SUSPENDS; number++) {
      await suspend()
      await delay(random() * 400)
      await killAndRestart(random() * 1000)
      // The next coordinator waits up to 35 s for the agent before the freeze.
      t.match(await waitUntil('the box is suspended', isSuspended, LONG_DEADLINE_MS), {
        suspendedAs: 'frozen',
      })
      await wake()
      const { stdout } = await coordinator.exec(hostname, ASK_FOR_VALUE, { timeoutSeconds: 20 })
      t.equal(stdout, held, `suspend ${number}: the process has its memory`)
    }
  }
  await coordinator.sendJson('DELETE', `/api/v1/boxes/${id}`)
  await coordinator.waitForState(id, 'terminated')
  return { suspendedAs }
}
