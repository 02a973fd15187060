// `box exec` ends when its command has exited, also after the coordinator was killed and started during the command.
import { statSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { runBox } from '../../cli/run-box.ts'
import { createSeededRandom } from '../random.ts'
import { waitUntil } from '../wait-until.ts'
import type { FixedPortSetup } from './fixed-port-setup.ts'

const COMMANDS = 6
/** More than the slowest end without a restart. */
const MARGIN_MS = 1000

/** Returns the milliseconds between the exit of the command and the exit of box exec, the longest without and with restarts. */
export async function runExecEndRound(t: Test, setup: FixedPortSetup, { seed }: { seed: number }) {
  const random = createSeededRandom(seed)
  const undisturbed: number[] = []
  for (let number = 0; number < COMMANDS; number++)
    undisturbed.push(await measureEnd(t, setup, `undisturbed-${seed}-${number}`, async () => undefined))
  const longestUndisturbedMs = Math.max(...undisturbed)
  let longestMs = 0
  for (let number = 0; number < COMMANDS; number++) {
    const restart = () => setup.killAndRestart(random() * 1000)
    const ms = await measureEnd(t, setup, `restarted-${seed}-${number}`, restart)
    longestMs = Math.max(longestMs, ms)
    t.ok(
      ms < longestUndisturbedMs + MARGIN_MS,
      `box exec ends ${Math.round(ms)} ms after its command, ${Math.round(longestUndisturbedMs)} ms without a restart`,
    )
  }
  return { longestUndisturbedMs, longestMs }
}

/** @param disturb runs while the command runs */
async function measureEnd(
  t: Test,
  { coordinator, box, key }: FixedPortSetup,
  name: string,
  disturb: () => Promise<void>,
): Promise<number> {
  const home = join(coordinator.dataDir, 'boxes', box.id, 'home')
  const command = `touch ${name}.started
while [ ! -e ${name}.finish ]; do echo tick; sleep 0.05; done
touch ${name}.exited; exit 3`
  let stdout = ''
  const result = runBox(coordinator.url, ['exec', box.hostname, '--', command], {
    env: { BOXWOOD_API_KEY: key },
    onSpawn: (child) => child.stdout?.on('data', (chunk: Buffer) => (stdout += chunk.toString())),
  }).then((result) => ({ ...result, endedAt: Date.now() }))
  await waitUntil('the command prints', () => stdout !== '')
  await disturb()
  const { length } = stdout
  await waitUntil('the client is connected again', () => stdout.length > length)
  await coordinator.exec(box.hostname, `touch ${name}.finish`)
  const { code, endedAt } = await result
  t.equal(code, 3)
  const exitedAt = statSync(join(home, `${name}.exited`)).mtimeMs
  await coordinator.exec(box.hostname, `rm ${name}.*`)
  return endedAt - exitedAt
}
