// An enrolled machine uses secrets in the same way as a local box, through the connections of its agent.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import t from 'tap'
import { requestToken } from '../../support/enroll.ts'
import { requires } from '../../support/requires.ts'
import { runInstaller } from '../../support/run-installer.ts'
import { createTempDir } from '../../support/temp-dir.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { mountSecrets, startCoordinatorOfMachines } from './box-with-secrets.ts'
import { HOSTS, startToolServers } from './tool-servers.ts'

t.test('an enrolled machine', { skip: requires('curl') }, async (t) => {
  const servers = await startToolServers(t)
  const coordinator = await startCoordinatorOfMachines(t, servers)
  const { api } = coordinator
  const home = createTempDir(t, 'machine')
  const prefix = join(home, 'boxwood')
  const { token } = (await requestToken(coordinator, { name: 'fig' })).json
  const args = ['--token', token, '--prefix', prefix, '--no-service']
  const installed = await runInstaller(coordinator.url, home, { args })
  t.match(installed, { status: 0 }, installed.stderr)

  const startMachine = () => {
    const supervisor = spawn('/bin/sh', [join(prefix, 'current/supervise.sh'), prefix], {
      stdio: 'ignore',
      env: { PATH: process.env.PATH, HOME: home, BOXWOOD_RECONNECT_MAX_MS: '500' },
    })
    return async () => {
      if (supervisor.exitCode !== null || supervisor.signalCode !== null) return
      const exited = once(supervisor, 'exit')
      supervisor.kill('SIGTERM')
      await exited
    }
  }
  let stopMachine = startMachine()
  t.teardown(() => stopMachine())
  const { id } = (await api('GET', '/boxes?live=1')).json.boxes[0]
  await coordinator.waitForState(id, 'running')
  const exec = async (command: string) =>
    (await coordinator.edge('fig', 'POST', '/exec', { command, cwd: home })).json
  const secrets = await mountSecrets(coordinator, id, { API_TOKEN: [HOSTS.api] })
  const curl = `curl -sSf -H "Authorization: Bearer $API_TOKEN" https://${HOSTS.api}/`
  t.match(await exec(curl), { exitCode: 0, stdout: /"authorization":"Bearer \*+"/ })
  t.same(servers.credentials(HOSTS.api), [`Bearer ${secrets.API_TOKEN?.value}`])
  const proxy = (await exec('printf %s "$HTTPS_PROXY"')).stdout

  await t.test(
    'another user of the machine',
    { skip: process.getuid?.() !== 0 && 'needs root' },
    async (t) => {
      const args = ['-sS', '-o', '/dev/null', '-w', '%{http_connect}', '-x', proxy, `https://${HOSTS.api}/`]
      const child = spawn('curl', args, { uid: 54_321, gid: 54_321, stdio: ['ignore', 'pipe', 'ignore'] })
      const [[status]] = await Promise.all([once(child.stdout, 'data'), once(child, 'close')])
      t.equal(String(status), '403')
    },
  )

  await t.test('a restart of the agent', async (t) => {
    await stopMachine()
    stopMachine = startMachine()
    await waitUntil('the box can use the secret', async () => {
      const { status, json } = await api('GET', `/boxes/${id}/secrets`)
      return status === 200 && json.broker.state === 'ready'
    })
    t.equal((await exec('printf %s "$HTTPS_PROXY"')).stdout, proxy)
    t.match(await exec(curl), { exitCode: 0 })
  })

  await t.test('a secret that is unmounted while the agent is stopped', async () => {
    await stopMachine()
    const { mounts } = (await api('GET', `/boxes/${id}/secrets`)).json
    await api('DELETE', `/boxes/${id}/secrets/${mounts[0].id}`)
    stopMachine = startMachine()
    await coordinator.waitForState(id, 'running')
    await waitUntil('new processes do not use the proxy', async () => {
      const { exitCode, stdout } = await exec('printf %s "$HTTPS_PROXY$API_TOKEN"')
      return exitCode === 0 && stdout === ''
    })
  })
})
