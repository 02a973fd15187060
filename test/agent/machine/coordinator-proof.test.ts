// The agent of a machine verifies that the server at the URL of its coordinator has the key of the coordinator.
import { generateKeyPairSync, sign } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { openMachine } from '../../../agent/machine/machine.ts'
import type { JsonRouter } from '../../../agent/requests/json-routes.ts'
import { rejectUpgrade } from '../../../coordinator/agents/tunnel/reject-upgrade.ts'
import { systemClock } from '../../../shared/clock.ts'
import { toProofText, verifyProof } from '../../../shared/coordinator-proof.ts'
import { BOX_HEADER, NONCE_HEADER, PROOF_HEADER } from '../../../shared/protocol.ts'
import { createTempDir } from '../../support/temp-dir.ts'
import { silentLog, startTestAgent, startTunnelServer } from '../../support/tunnel.ts'
import { DEADLINE_MS, waitUntil } from '../../support/wait-until.ts'

const { publicKey, privateKey } = generateKeyPairSync('ed25519')
const createSigner = (key: typeof privateKey) => async (text: string) =>
  sign(null, Buffer.from(text), key).toString('base64')
const coordinatorSigner = createSigner(privateKey)
const otherSigner = createSigner(generateKeyPairSync('ed25519').privateKey)

/** Starts the agent of a machine whose installer has stored the key of the coordinator. */
async function startMachine(t: Test, box: { boxId: string; token: string }, url: string) {
  const prefix = createTempDir(t, 'prefix')
  const stateDir = createTempDir(t, 'state')
  const started = join(prefix, 'started')
  mkdirSync(join(prefix, 'current'))
  writeFileSync(join(prefix, 'current/node'), `#!/bin/sh\ntouch ${started}\n`, { mode: 0o755 })
  writeFileSync(join(prefix, 'coordinator.pub'), publicKey.export({ type: 'spki', format: 'pem' }))
  const machine = await openMachine(prefix, {
    ...{ stateDir, clock: systemClock, log: silentLog },
    cloud: { remove: async () => undefined },
  })
  const { readCoordinatorKey, onConnected, onDisconnected } = machine
  const requests: string[] = []
  const options = { readCoordinatorKey, onConnected, onDisconnected }
  const routes = (router: JsonRouter) => router.add('GET', '/hello', () => requests.push('hello'))
  const agent = await startTestAgent(box, url, routes, options)
  t.teardown(async () => {
    await agent.close()
    await machine.close()
  })
  const read = (path: string) => {
    try {
      return readFileSync(path, 'utf8')
    } catch {
      return null
    }
  }
  return {
    requests,
    readConnection: () => JSON.parse(read(join(stateDir, 'connection.json')) ?? 'null'),
    isUninstalled: () => read(started) !== null,
  }
}

/** Answers every upgrade with 410, and with a proof if `signer` is not null. */
async function startRefusingServer(t: Test, signer: ((text: string) => Promise<string>) | null) {
  let attempts = 0
  const server = createServer().on('upgrade', async (request, socket) => {
    attempts += 1
    const code = 'box_deleted'
    const boxId = String(request.headers[BOX_HEADER])
    const nonce = String(request.headers[NONCE_HEADER])
    const proof = await signer?.(toProofText({ boxId, nonce, status: 410, code }))
    const headers = proof === undefined ? {} : { [PROOF_HEADER]: proof }
    rejectUpgrade(socket, { status: 410, code, message: 'test', headers })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, readAttempts: () => attempts }
}

const BOX = { boxId: '00000000-0000-4000-8000-000000000000', token: 'bxt_0' }

t.test('a coordinator with the key is accepted', async (t) => {
  const coordinator = await startTunnelServer({ sign: coordinatorSigner })
  t.teardown(() => coordinator.close())
  const box = coordinator.addBox()
  const machine = await startMachine(t, box, coordinator.url)
  const tunnel = await coordinator.tunnels.wait(box.boxId, DEADLINE_MS)
  const { status } = await tunnel.call({ method: 'GET', path: '/hello', timeoutMs: DEADLINE_MS })
  t.equal(status, 200)
  t.same(machine.requests, ['hello'])
})

for (const [name, signer] of [
  ['without a proof', undefined],
  ['with another key', otherSigner],
  ['with the proof of another connection', () => coordinatorSigner('boxwood-connection\n')],
] as const)
  t.test(`a server ${name} is refused`, async (t) => {
    const impostor = await startTunnelServer(signer === undefined ? {} : { sign: signer })
    t.teardown(() => impostor.close())
    const box = impostor.addBox()
    let connections = 0
    impostor.tunnels.on('connected', () => {
      connections += 1
    })
    const machine = await startMachine(t, box, impostor.url)
    await waitUntil('the agent has recorded why', () => machine.readConnection() !== null)
    t.match(machine.readConnection(), { connected: false, reason: /did not prove/ })
    t.equal(connections, 0, 'the server has not become the tunnel of the box')
  })

t.test('410 uninstalls the agent only with a proof', async (t) => {
  for (const signer of [null, otherSigner]) {
    const { url, readAttempts } = await startRefusingServer(t, signer)
    const machine = await startMachine(t, BOX, url)
    await waitUntil('the agent was refused twice', () => readAttempts() >= 2)
    await waitUntil('the refusal is recorded', () => machine.readConnection() !== null)
    t.match(machine.readConnection(), { status: 410, code: undefined })
    t.notOk(machine.isUninstalled())
  }
  const { url } = await startRefusingServer(t, coordinatorSigner)
  const machine = await startMachine(t, BOX, url)
  await waitUntil('the agent is uninstalled', () => machine.isUninstalled())
})

t.test('the coordinator proves its rejections', async (t) => {
  const coordinator = await startTunnelServer({
    sign: coordinatorSigner,
    authenticate: async () => null,
    machines: { isDeleted: async () => true, admit: async () => 'accepted' },
  })
  t.teardown(() => coordinator.close())
  const machine = await startMachine(t, BOX, coordinator.url)
  await waitUntil('the agent is uninstalled', () => machine.isUninstalled())
})

t.test('a proof is for one response', (t) => {
  const response = { boxId: BOX.boxId, nonce: 'a'.repeat(43), status: 101, code: '' }
  const pem = publicKey.export({ type: 'spki', format: 'pem' }) as string
  const proof = sign(null, Buffer.from(toProofText(response)), privateKey).toString('base64')
  t.ok(verifyProof(response, proof, pem))
  for (const change of [
    { boxId: 'other' },
    { nonce: 'b'.repeat(43) },
    { status: 410 },
    { code: 'box_deleted' },
  ])
    t.notOk(verifyProof({ ...response, ...change }, proof, pem))
  for (const wrong of [undefined, '', 'AAAA', [proof]]) t.notOk(verifyProof(response, wrong, pem))
  t.notOk(verifyProof(response, proof, 'not a key'))
  t.end()
})
