// The machines of the tests: they boot, connect only outwards, and keep their disk over a reboot.
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'tap'
import { INITS, type InitName } from './inits.ts'
import { HOST_ADDRESS, startMachine } from './machine.ts'
import { buildTrees, type TreeName } from './trees.ts'

const MACHINES: readonly (readonly [TreeName, InitName, fetch: string])[] = [
  ['trixie', 'systemd', 'curl -fsS'],
  ['bookworm', 'systemd', 'curl -fsS'],
  ['busybox', 'busybox', 'wget -q -O -'],
  ['busybox', 'none', 'wget -q -O -'],
]

const trees = await buildTrees(['trixie', 'bookworm', 'busybox'])
const options = 'skip' in trees ? { skip: trees.skip } : {}

for (const [name, init, fetch] of MACHINES)
  test(`${name} boots with ${init} and reboots`, options, async (t) => {
    if ('skip' in trees) return
    const server = createServer((_request, response) => response.end('from the host'))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.teardown(() => server.close())
    const url = `http://${HOST_ADDRESS}:${(server.address() as AddressInfo).port}/`

    const machine = await startMachine(t, { tree: trees.paths[name], init })
    t.match(await machine.run(`${fetch} ${url}`), { exitCode: 0, stdout: 'from the host' })
    t.match(await machine.run('id -un; pwd', { user: 'tester' }), { stdout: 'tester\n/home/tester\n' })
    const before = await machine.listFiles()
    await machine.run('echo kept >/opt/kept')
    if (INITS[init].reboot) await machine.reboot()
    t.match(await machine.run('cat /opt/kept; rm /opt/kept'), { stdout: 'kept\n' })
    t.same(await machine.listFiles(), before)
  })
