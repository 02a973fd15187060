// An agent of an enrolled machine: connection.json, its lineage, and its uninstallation on request and on 410.

import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { openMachine } from '../../../agent/machine/machine.ts'
import { uninstallRoutes } from '../../../agent/machine/uninstall.ts'
import { systemClock } from '../../../shared/clock.ts'
import { LINEAGE_HEADER } from '../../../shared/protocol.ts'
import { VERSION } from '../../../shared/version.ts'
import { createTempDir } from '../../support/temp-dir.ts'
import { silentLog, startTestAgent, startTunnelServer } from '../../support/tunnel.ts'
import { DEADLINE_MS, waitUntil } from '../../support/wait-until.ts'
import { CONFIG, setUpHome, TOKEN } from '../cloud/support.ts'

/** An installation whose `setup.mjs` is a shell script that appends its arguments to `started`. */
function createInstallation(t: Test, exitCode = 0) {
  const prefix = createTempDir(t, 'prefix')
  const current = join(prefix, 'current')
  const started = join(prefix, 'started')
  mkdirSync(current)
  writeFileSync(join(current, 'node'), `#!/bin/sh\necho "$@" >> ${started}\nexit ${exitCode}\n`)
  chmodSync(join(current, 'node'), 0o755)
  const read = (path: string) => {
    try {
      return readFileSync(path, 'utf8')
    } catch {
      return ''
    }
  }
  const stateDir = createTempDir(t, 'state')
  return {
    ...{ prefix, stateDir },
    readStarts: () => read(started).split('\n').filter(Boolean),
    readConnection: () => JSON.parse(read(join(stateDir, 'connection.json')) || 'null'),
  }
}

type Installation = ReturnType<typeof createInstallation>

async function startMachine(
  t: Test,
  { prefix, stateDir }: Installation,
  box: object,
  url: string,
  remove: () => Promise<unknown> = async () => undefined,
) {
  const options = { stateDir, clock: systemClock, log: silentLog, cloud: { remove } }
  const machine = await openMachine(prefix, options)
  const agent = await startTestAgent(
    box as { boxId: string; token: string },
    url,
    (router) => uninstallRoutes(router, machine.uninstall),
    {
      readHeaders: async () => ({ [LINEAGE_HEADER]: machine.lineage.ids.join(',') }),
      ...{ onConnected: machine.onConnected, onDisconnected: machine.onDisconnected },
    },
  )
  t.teardown(async () => {
    await agent.close()
    await machine.close()
  })
  return machine
}

/** A server that answers every upgrade with this response, as a coordinator or a proxy does. */
async function startRefusingServer(t: Test, status: number, body: string): Promise<string> {
  const server = createServer((_request, response) => response.end())
  server.on('upgrade', (_request, socket) =>
    socket.end(`HTTP/1.1 ${status} X\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`),
  )
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as { port: number }).port}`
}

const BOX = { boxId: '00000000-0000-4000-8000-000000000000', token: 'bxt_0' }

t.test('connection.json has the connection, and the id is accepted', async (t) => {
  const installation = createInstallation(t)
  const coordinator = await startTunnelServer()
  t.teardown(() => coordinator.close())
  const machine = await startMachine(t, installation, coordinator.addBox(), coordinator.url)
  await waitUntil('the connection is recorded', async () => installation.readConnection()?.connected === true)
  t.match(installation.readConnection(), { connected: true, at: Number, version: VERSION })
  await waitUntil('the id is accepted', async () => {
    const { accepted } = JSON.parse(readFileSync(join(installation.stateDir, 'lineage.json'), 'utf8'))
    return accepted === machine.lineage.ids[0]
  })
})

t.test('the request of the coordinator starts one uninstallation', async (t) => {
  const installation = createInstallation(t)
  const coordinator = await startTunnelServer()
  t.teardown(() => coordinator.close())
  const box = coordinator.addBox()
  const { write, read, connect, remove } = setUpHome(t)
  await write(CONFIG, '[profile own]\n')
  await connect('default')
  await startMachine(t, installation, box, coordinator.url, remove)
  const tunnel = await coordinator.tunnels.wait(box.boxId, DEADLINE_MS)
  for (let requests = 0; requests < 2; requests++) {
    const { status } = await tunnel.call({ method: 'POST', path: '/uninstall', timeoutMs: DEADLINE_MS })
    t.equal(status, 204)
  }
  await waitUntil('the uninstallation has started', async () => installation.readStarts().length > 0)
  t.same(installation.readStarts(), [`${join(installation.prefix, 'current/setup.mjs')} uninstall`])
  t.equal(await read(CONFIG), '[profile own]\n', 'the AWS profiles of the box are removed before')
  t.equal(await read(TOKEN), null)
})

t.test(
  '410 with the code of the coordinator starts the uninstallation, and repeats a failed one',
  async (t) => {
    const installation = createInstallation(t, 1)
    const error = { code: 'box_deleted', message: 'The box of this machine has been deleted.' }
    const url = await startRefusingServer(t, 410, JSON.stringify({ ok: false, error }))
    const remove = () => Promise.reject(new Error('the disk failed'))
    await startMachine(t, installation, BOX, url, remove)
    await waitUntil('the uninstallation has started twice', async () => installation.readStarts().length >= 2)
    t.match(installation.readConnection(), { connected: false, status: 410, ...error })
  },
)

t.test('410 of another server does not uninstall the agent', async (t) => {
  for (const body of [
    '',
    '<html>',
    '{"error":{"code":"gone","message":"Gone."}}',
    `"${'x'.repeat(20_000)}"`,
  ]) {
    const installation = createInstallation(t)
    const url = await startRefusingServer(t, 410, body)
    await startMachine(t, installation, BOX, url)
    await waitUntil('the refusal is recorded', async () => installation.readConnection() !== null)
    t.match(installation.readConnection(), { connected: false, status: 410, reason: /410/ })
    t.same(installation.readStarts(), [])
  }
})

t.test('an agent that was not installed on a machine refuses to be uninstalled', async (t) => {
  const coordinator = await startTunnelServer()
  t.teardown(() => coordinator.close())
  const box = coordinator.addBox()
  const agent = await startTestAgent(box, coordinator.url, (router) => uninstallRoutes(router, null))
  t.teardown(() => agent.close())
  const tunnel = await coordinator.tunnels.wait(box.boxId, DEADLINE_MS)
  const { status } = await tunnel.call({ method: 'POST', path: '/uninstall', timeoutMs: DEADLINE_MS })
  t.equal(status, 404)
})
