// Fresh machines join a coordinator by the printed line, survive a reboot, and are left as they were before.
import { setTimeout as delay } from 'node:timers/promises'
import { test } from 'tap'
import type { InitName } from '../../support/root-filesystems/inits.ts'
import { startMachine, type User } from '../../support/root-filesystems/machine.ts'
import { buildTrees, type TreeName } from '../../support/root-filesystems/trees.ts'
import { LONG_DEADLINE_MS, waitUntil } from '../../support/wait-until.ts'
import { runLine, startAgent, startJoinCoordinator, toUninstallLine, withWget } from './join-support.ts'

const POLL_METRICS_MS = 500

type Case = {
  tree: TreeName
  init: InitName
  /** The users who join, each as a box of its own. */
  users: readonly User[]
  /** Whose agents the init starts after a reboot. */
  startedByInit: readonly User[]
}

const CASES: readonly Case[] = [
  { tree: 'trixie', init: 'systemd', users: ['root', 'tester'], startedByInit: ['root', 'tester'] },
  { tree: 'bookworm', init: 'systemd', users: ['root', 'tester'], startedByInit: ['root', 'tester'] },
  // An init for which the installer has no service.
  { tree: 'busybox', init: 'busybox', users: ['root', 'tester'], startedByInit: [] },
  // A container whose pid 1 does not reap processes.
  { tree: 'trixie', init: 'none', users: ['root'], startedByInit: [] },
]

const trees = await buildTrees(['trixie', 'bookworm', 'busybox'])

test('fresh machines join', 'skip' in trees ? trees : {}, async (t) => {
  if ('skip' in trees) return
  const coordinator = await startJoinCoordinator(t)
  t.jobs = CASES.length

  for (const { tree, init, users, startedByInit } of CASES)
    t.test(`${tree} with ${init}`, async (t) => {
      const machine = await startMachine(t, { tree: trees.paths[tree], init })
      const before = await machine.listFiles()
      const boxes = users.map((user) => ({ user, name: `${tree}-${init}-${user}` }))
      const lines = new Map<User, string>()

      for (const { user, name } of boxes) {
        const line = await coordinator.createCommand(name)
        lines.set(user, tree === 'busybox' ? withWget(line) : line)
        const output = await runLine(machine, lines.get(user) ?? '', { user })
        t.match(output, `box exec ${name} -- uname -a`)
        // Only root may let the services of a user start with the machine.
        const [, advice] = /run as root: (loginctl .*)/.exec(output) ?? []
        t.equal(advice, init === 'systemd' && user === 'tester' ? 'loginctl enable-linger tester' : undefined)
        if (advice) await machine.run(advice)
        // At once: the line has waited for the connection.
        const { status, json } = await coordinator.edge(name, 'POST', '/exec', { command: 'id -un; pwd' })
        t.match({ status, json }, { status: 200, json: { exitCode: 0 } })
        t.equal(json.stdout, `${user}\n${user === 'root' ? '/root' : '/home/tester'}\n`)
      }

      for (const { user, name } of boxes) {
        const path = `/tmp/${name}`
        t.match(await coordinator.edge(name, 'PUT', `/upload?path=${path}`, 'uploaded'), { status: 200 })
        t.equal((await machine.run(`cat ${path}; rm ${path}`)).stdout, 'uploaded')
        t.match(await runLine(machine, lines.get(user) ?? '', { user }), `the box ${name} already`)
      }

      const { id: firstId } = await coordinator.findBox(boxes[0]?.name ?? '')
      if (machine.canReboot) {
        await machine.reboot()
        for (const { user, name } of boxes) {
          if (!startedByInit.includes(user)) await startAgent(machine, user)
          t.equal(await coordinator.exec(name, 'echo after the reboot'), 'after the reboot\n')
        }
      }
      // A sample takes up to 30 seconds: on the machine that does not use them for a reboot.
      else {
        const counts = await waitUntil(
          'a sample of the machine is stored',
          async () => {
            await delay(POLL_METRICS_MS)
            const { json } = await coordinator.api('GET', `/boxes/${firstId}/metrics`)
            const values: (number | null)[] = json.series.process_count.avg
            return values.some((value) => value !== null) && values
          },
          LONG_DEADLINE_MS,
        )
        t.ok(counts.some((count) => count !== null && count > 0))
      }

      // One agent is removed by its user, the other one by the deletion of its box.
      const [uninstalled, deleted] = boxes
      await machine.run('echo kept >/home/tester/kept', { user: 'tester' })
      if (uninstalled) {
        const line = toUninstallLine(lines.get(uninstalled.user) ?? '')
        await runLine(machine, line, { user: uninstalled.user })
      }
      for (const box of [deleted, uninstalled].filter((box) => box !== undefined)) {
        const { id } = await coordinator.findBox(box.name)
        t.equal((await coordinator.api('DELETE', `/boxes/${id}`)).status, 202)
      }
      await waitUntil(
        'the agents have exited',
        async () => {
          const processes = await machine.listProcesses()
          return !processes.some((line) => line.includes('boxwood'))
        },
        LONG_DEADLINE_MS,
      )
      if (init === 'systemd') await machine.run('loginctl disable-linger tester')
      t.match(await machine.run('cat /home/tester/kept && rm /home/tester/kept'), { stdout: 'kept\n' })
      t.same(await machine.listFiles(), before)
    })
})
