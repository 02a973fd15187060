// The two ways of docs/share-elsewhere.md: a port of a box through ssh, and through Caddy with a certificate for each link.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, rmdirSync, writeFileSync } from 'node:fs'
import { request as createHttpRequest, type IncomingMessage } from 'node:http'
import { request as createHttpsRequest } from 'node:https'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import type { PortShare } from '../../shared/api/port-shares.ts'
import { startCoordinatorWithBox } from '../e2e/coordinator-with-box.ts'
import { boxNode } from '../support/box-node.ts'
import { findProgram, requires } from '../support/requires.ts'
import { createTempDir } from '../support/temp-dir.ts'
import { waitUntil } from '../support/wait-until.ts'
import { canConnect, findFreePort, startLinksProxy } from './start-proxy.ts'

const APP = `
  const app = require("node:http").createServer((request, response) => response.end("from the box"))
  app.listen(0, "127.0.0.1", function () { console.log(this.address().port) })`
const PUBLIC_BASE = '203-0-113-5.sslip.io'

/** Starts a coordinator with a program on its box, and shares its port with anyone. */
async function startSharing(t: Test, env: Record<string, string> = {}) {
  const coordinator = await startCoordinatorWithBox(t, { env })
  const { api, box, boxRequest, url } = coordinator
  const { json } = await boxRequest('POST', '/exec', { command: boxNode(APP), detached: true })
  const port = await waitUntil('the app listens', async () => {
    const { json: status } = await boxRequest('GET', `/exec/${json.processId}`)
    return Number(status.stdout)
  })
  const created = await api('POST', `/boxes/${box.id}/port-shares`, { port, access: 'anyone' })
  const share: PortShare & { url: string } = created.json.share
  return { coordinator, share, target: new URL(url).host }
}

/** Sends GET `url` to a port of this machine, in place of that of the name. */
async function open(url: string, port: number): Promise<{ status: number | undefined; body: string }> {
  const { protocol, host, hostname, pathname, search } = new URL(url)
  const create = protocol === 'https:' ? createHttpsRequest : createHttpRequest
  const tls = { servername: hostname, rejectUnauthorized: false }
  const target = { host: '127.0.0.1', port, path: pathname + search, agent: false, ...tls }
  const request = create({ ...target, headers: { host } }).end()
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  const cookie = response.headers['set-cookie']?.[0]?.split(';')[0]
  const body = await text(response)
  if (response.statusCode !== 303 || cookie === undefined) return { status: response.statusCode, body }
  const followed = create({ ...target, path: '/', headers: { host, cookie } }).end()
  const [page] = (await once(followed, 'response')) as [IncomingMessage]
  return { status: page.statusCode, body: await text(page) }
}

/** sshd of root requires it. The service of Debian creates it. */
function createPrivilegeDirectory(t: Test): void {
  if (process.getuid?.() !== 0 || existsSync('/run/sshd')) return
  mkdirSync('/run/sshd', { mode: 0o755 })
  t.teardown(() => rmdirSync('/run/sshd'))
}

t.test('through ssh', { skip: requires('ssh', 'sshd', 'ssh-keygen') }, async (t) => {
  const { share, target } = await startSharing(t)
  const dir = createTempDir(t, 'share-elsewhere')
  for (const name of ['host', 'user'])
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', join(dir, name)])
  const [sshPort, serverPort, viewerPort] = [await findFreePort(), await findFreePort(), await findFreePort()]
  const config = [
    `Port ${sshPort}`,
    'ListenAddress 127.0.0.1',
    `HostKey ${join(dir, 'host')}`,
    `AuthorizedKeysFile ${join(dir, 'user.pub')}`,
    `PidFile ${join(dir, 'pid')}`,
    'StrictModes no',
    'UsePAM no',
    '',
  ]
  writeFileSync(join(dir, 'sshd_config'), config.join('\n'))

  async function run(program: string, args: string[], port: number): Promise<ChildProcess> {
    const child = spawn(program, args, { stdio: ['ignore', 'ignore', 'pipe'] })
    let output = ''
    child.stderr.on('data', (data: Buffer) => {
      output += data.toString()
    })
    t.teardown(async () => {
      if (child.exitCode !== null || child.signalCode !== null) return
      child.kill()
      await once(child, 'exit')
    })
    await waitUntil(`${program} listens`, async () => {
      if (child.exitCode !== null) throw new Error(`${program} exited: ${output}`)
      return canConnect(port)
    })
    return child
  }
  const ssh = (args: string[], port: number) => {
    const options = ['-i', join(dir, 'user'), '-p', String(sshPort)]
    const known = ['-o', 'StrictHostKeyChecking=no', '-o', `UserKnownHostsFile=${join(dir, 'known')}`]
    const host = `${userInfo().username}@127.0.0.1`
    return run('ssh', ['-F', 'none', '-N', ...options, ...known, ...args, host], port)
  }

  createPrivilegeDirectory(t)
  await run(findProgram('sshd') ?? 'sshd', ['-D', '-e', '-f', join(dir, 'sshd_config')], sshPort)
  await ssh(['-R', `127.0.0.1:${serverPort}:${target}`], serverPort)
  await ssh(['-L', `127.0.0.1:${viewerPort}:127.0.0.1:${serverPort}`], viewerPort)
  t.same(await open(share.url, viewerPort), { status: 200, body: 'from the box' })
})

t.test('through Caddy', { skip: requires('caddy') }, async (t) => {
  const { coordinator, share, target } = await startSharing(t, { BOXWOOD_SHARE_BASE: PUBLIC_BASE })
  t.equal(new URL(share.origin).hostname.endsWith(`.${PUBLIC_BASE}`), true)
  const { port } = await startLinksProxy(t, target, PUBLIC_BASE)

  t.test('the link opens, with a certificate of its own', async (t) => {
    t.same(await open(share.url, port), { status: 200, body: 'from the box' })
  })

  t.test('a name of no link gets no certificate', async (t) => {
    await t.rejects(open(`https://other.${PUBLIC_BASE}/`, port), { message: /alert|SSL|TLS/i })
  })

  t.test('the API is not served', async (t) => {
    const { host } = new URL(share.origin)
    const request = createHttpsRequest({
      host: '127.0.0.1',
      port,
      path: '/api/v1/boxes',
      servername: host,
      rejectUnauthorized: false,
      headers: { host: target },
      agent: false,
    }).end()
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    t.equal(await text(response), '')
  })

  t.test('the name of a link that has ended gets none either', async (t) => {
    const ask = (domain: string) =>
      fetch(`${coordinator.url}/share/certificate?domain=${encodeURIComponent(domain)}`)
    const { hostname } = new URL(share.origin)
    t.equal((await ask(hostname)).status, 200)
    await coordinator.api('DELETE', `/port-shares/${share.id}`)
    t.equal((await ask(hostname)).status, 404)
  })
})

t.test('the question of a proxy', async (t) => {
  const { coordinator, share } = await startSharing(t)
  const ask = async (query: string) => {
    const response = await fetch(`${coordinator.url}/share/certificate${query}`)
    return [response.status, ((await response.json()) as { error?: string }).error]
  }
  const { hostname } = new URL(share.origin)
  t.same(await ask(`?domain=${hostname}`), [200, undefined])
  t.same(await ask(`?domain=${hostname.toUpperCase()}.`), [200, undefined])
  for (const name of [
    `x.${hostname}`,
    'localhost',
    '127.0.0.1',
    'boxes.example.com',
    "';--",
    'a'.repeat(300),
  ])
    t.same(await ask(`?domain=${encodeURIComponent(name)}`), [404, 'not_found'], name)
  for (const query of ['', '?domain=', '?other=1']) t.same(await ask(query), [400, 'bad_request'], query)
})
