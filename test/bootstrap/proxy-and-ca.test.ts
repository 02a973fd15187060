// A machine whose only way to the coordinator is an HTTP proxy, and a coordinator whose certificate a private authority signed.
import { copyFileSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { CA_FILE, startConnectProxy, startTlsServer } from '../support/connect-proxy.ts'
import { startTestCoordinator } from '../support/coordinator.ts'
import { requestToken } from '../support/enroll.ts'
import { FakeInfrastructure } from '../support/fake-infrastructure.ts'
import { requires } from '../support/requires.ts'
import { downloadScript, runInstaller } from '../support/run-installer.ts'
import { createTempDir } from '../support/temp-dir.ts'

const LARGE_BYTES = 1_000_000

t.test(
  'the installer and the agent use the proxy and accept the authority',
  { skip: requires('curl') },
  async (test) => {
    let coordinatorPort = 0
    const tls = await startTlsServer(test, () => coordinatorPort)
    const proxy = await startConnectProxy(test)
    const agentUrl = `https://localhost:${tls.port}`
    const coordinator = await startTestCoordinator(test, {
      machines: 'local',
      provider: new FakeInfrastructure().provider,
      env: { BOXWOOD_AGENT_URL: agentUrl },
    })
    coordinatorPort = Number(new URL(coordinator.url).port)
    const script = await downloadScript(coordinator.url)
    const { json: created } = await requestToken(coordinator, { name: 'fig' })
    const home = createTempDir(test, 'home')
    const prefix = join(home, 'boxwood')
    // The installation has a copy of its own.
    const caFile = join(home, 'ca.pem')
    copyFileSync(CA_FILE, caFile)
    const env = { https_proxy: proxy.url.replace('http://', ''), no_proxy: 'example.com' }
    test.teardown(() => runInstaller('', home, { script, args: ['--uninstall', '--prefix', prefix] }))
    const result = await runInstaller('', home, {
      ...{ script, env },
      args: ['--token', created.token, '--prefix', prefix, '--service', 'none', '--ca', caFile],
    })
    test.match(result, { status: 0, stdout: /This machine is the box fig/ })
    rmSync(caFile)
    test.match(readFileSync(join(prefix, 'agent.env'), 'utf8'), `https_proxy='${proxy.url}'`)

    // The tunnel, a transfer in each direction, and a dial-back connection for a stream.
    const content = 'x'.repeat(LARGE_BYTES)
    const upload = await coordinator.edge('fig', 'PUT', `/upload?path=${join(home, 'large')}`, content)
    test.equal(upload.status, 200)
    const download = await coordinator.edge('fig', 'GET', `/download?path=${join(home, 'large')}`)
    test.equal(download.text, content)
    const { json: started } = await coordinator.edge('fig', 'POST', '/exec', {
      command: 'echo streamed',
      detached: true,
    })
    const stream = await coordinator.edge('fig', 'GET', `/exec/${started.processId}/stream`)
    test.match(stream.text, /streamed/)
    const environment = await coordinator.edge('fig', 'POST', '/exec', { command: 'env' })
    test.notMatch(environment.json.stdout, /proxy|NODE_EXTRA/, 'commands have the environment of the machine')

    test.ok(proxy.targets.length >= 5, `${proxy.targets.length} tunnels`)
    test.same([...new Set(proxy.targets)], [`localhost:${tls.port}`])
    test.same(
      tls.clientPorts.filter((port) => !proxy.hasOpened(port)),
      [],
      'no connection without the proxy',
    )
  },
)
