// A disk that was copied to another machine: only one of the two machines is the box.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { type Machine, startMachine } from '../../support/root-filesystems/machine.ts'
import { buildTrees } from '../../support/root-filesystems/trees.ts'
import { LONG_DEADLINE_MS, waitUntil } from '../../support/wait-until.ts'
import {
  PREFIXES,
  runLine,
  startAgent,
  startJoinCoordinator,
  toUninstallLine,
  withWget,
} from './join-support.ts'

const trees = await buildTrees(['busybox'])

test('a copy of the disk of a machine', 'skip' in trees ? trees : {}, async (t) => {
  if ('skip' in trees) return
  const coordinator = await startJoinCoordinator(t)
  const machine = { tree: trees.paths.busybox, init: 'busybox' } as const
  const original = await startMachine(t, machine)
  const line = withWget(await coordinator.createCommand('fig'))
  await runLine(original, line)
  await original.run('echo original >/etc/which')

  const copy = await startMachine(t, { ...machine, diskPath: original.diskPath })
  await startAgent(copy, 'root')
  await copy.run('echo copy >/etc/which')
  await waitForReason(t, copy, /Another agent with this token is connected.*If this disk is a copy/)
  t.match(await runLine(copy, line), /Another agent with this token is connected/)
  t.equal(await coordinator.exec('fig', 'cat /etc/which'), 'original\n')

  t.comment('The original stops. The copy connects like a disk that was moved to another machine.')
  await original.stop()
  await copy.stop()
  await copy.start()
  await startAgent(copy, 'root')
  t.equal(await coordinator.exec('fig', 'cat /etc/which'), 'copy\n')
  await copy.stop()
  await original.start()
  await startAgent(original, 'root')
  await waitForReason(t, original, /Another machine has connected as box fig since this one did/)
  t.match(await runLine(original, line), /this disk is a copy of its disk/)
  await copy.start()
  await startAgent(copy, 'root')
  t.equal(await coordinator.exec('fig', 'cat /etc/which'), 'copy\n')

  t.comment('The original becomes a box of its own.')
  await runLine(original, toUninstallLine(line))
  t.match(
    await runLine(original, withWget(await coordinator.createCommand('plum'))),
    'box exec plum -- uname -a',
  )
  t.equal(await coordinator.exec('plum', 'cat /etc/which'), 'original\n')
  t.equal(await coordinator.exec('fig', 'cat /etc/which'), 'copy\n')
})

/** Waits until the coordinator has refused the agent for this reason, which `status` then prints. */
async function waitForReason(t: Test, machine: Machine, reason: RegExp): Promise<void> {
  await waitUntil(
    `the agent is refused: ${reason}`,
    () => {
      try {
        const file = join(machine.rootDir(), PREFIXES.root, 'state/connection.json')
        return reason.test(readFileSync(file, 'utf8'))
      } catch {
        return false
      }
    },
    LONG_DEADLINE_MS,
  )
  const status = `${PREFIXES.root}/current/node ${PREFIXES.root}/current/setup.mjs status`
  t.match((await machine.run(status)).stdout, reason)
}
