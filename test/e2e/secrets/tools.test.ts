// The tools of a box use secrets that the box does not have: each server receives the value, and the box sees the placeholder.
import { existsSync } from 'node:fs'
import { dirname } from 'node:path'
import t from 'tap'
import { findPrivateDirectory } from '../../support/private-directory.ts'
import { requires } from '../../support/requires.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { mountSecrets, startBoxWithSecrets } from './box-with-secrets.ts'
import { HOSTS, startToolServers } from './tool-servers.ts'

const NODE = process.execPath
const PYTHON = '/usr/bin/python3'
const skipWithoutCurl = requires('curl')

type Tool = {
  name: string
  skip: string | false
  host: string
  /** The variable with the placeholder. */
  variable: string
  command: string
  /** What the server receives in Authorization. */
  header(value: string): string
  prints: RegExp
}

const unlessExists = (path: string): string | false => !existsSync(path) && `${path} is not installed`
const bearer = (value: string): string => `Bearer ${value}`
const REFLECTED = /"authorization": ?"Bearer \*+"|'authorization': ?'Bearer \*+'/

const TOOLS: readonly Tool[] = [
  {
    ...{ name: 'curl', skip: requires('curl'), host: HOSTS.api, variable: 'API_TOKEN' },
    command: `curl -sSf -H "Authorization: Bearer $API_TOKEN" https://${HOSTS.api}/`,
    ...{ header: bearer, prints: REFLECTED },
  },
  {
    ...{ name: 'git', skip: requires('git'), host: HOSTS.git, variable: 'GIT_TOKEN' },
    command: `git clone "https://x-access-token:$GIT_TOKEN@${HOSTS.git}/team/project.git" && git -C project log --format=%s`,
    header: (value) => `Basic ${Buffer.from(`x-access-token:${value}`).toString('base64')}`,
    prints: /^first$/m,
  },
  {
    ...{ name: 'fetch of Node', skip: false, host: HOSTS.api, variable: 'API_TOKEN' },
    command: `${NODE} -e 'fetch("https://${HOSTS.api}/", { headers: { authorization: "Bearer " + process.env.API_TOKEN } }).then((r) => r.text()).then(console.log)'`,
    ...{ header: bearer, prints: REFLECTED },
  },
  {
    ...{ name: 'urllib of Python', skip: unlessExists(PYTHON), host: HOSTS.api, variable: 'API_TOKEN' },
    command: `${PYTHON} -c 'import os, urllib.request as u; print(u.urlopen(u.Request("https://${HOSTS.api}/", headers={"Authorization": "Bearer " + os.environ["API_TOKEN"]})).read().decode())'`,
    ...{ header: bearer, prints: REFLECTED },
  },
  {
    ...{ name: 'requests of Python', skip: unlessExists('/usr/lib/python3/dist-packages/requests') },
    ...{ host: HOSTS.api, variable: 'API_TOKEN' },
    command: `${PYTHON} -c 'import os, requests; print(requests.get("https://${HOSTS.api}/", headers={"Authorization": "Bearer " + os.environ["API_TOKEN"]}).text)'`,
    ...{ header: bearer, prints: REFLECTED },
  },
  {
    ...{ name: 'npm', skip: unlessExists('/usr/bin/npm'), host: HOSTS.registry, variable: 'NPM_TOKEN' },
    command: `echo '//${HOSTS.registry}/:_authToken=\${NPM_TOKEN}' >.npmrc && npm whoami`,
    ...{ header: bearer, prints: /^tester$/m },
  },
  {
    ...{ name: 'gh', skip: requires('gh'), host: HOSTS.github, variable: 'GH_TOKEN' },
    command: 'gh api user',
    ...{ header: (value) => `token ${value}`, prints: /"login":"tester"/ },
  },
  {
    ...{
      name: 'wget with --ca-certificate',
      skip: unlessExists('/usr/bin/wget'),
      host: HOSTS.api,
      variable: 'API_TOKEN',
    },
    command: `wget -qO- --ca-certificate="$SSL_CERT_FILE" --header="Authorization: Bearer $API_TOKEN" https://${HOSTS.api}/`,
    ...{ header: bearer, prints: REFLECTED },
  },
]

const privateDir = findPrivateDirectory(NODE)
const skip = privateDir === undefined ? false : `other users cannot read ${privateDir}`

t.test('tools', { skip }, async (t) => {
  const servers = await startToolServers(t)
  const coordinator = await startBoxWithSecrets(t, servers, {
    BOXWOOD_LOCAL_ISOLATION: 'process',
    BOXWOOD_LOCAL_NETWORK: 'host',
  })
  const { box, exec, boxRequest, api } = coordinator
  const secrets = await mountSecrets(coordinator, box.id, {
    API_TOKEN: [HOSTS.api],
    GIT_TOKEN: [HOSTS.git],
    NPM_TOKEN: [HOSTS.registry],
    GH_TOKEN: ['*.github.com'],
  })
  const { stdout: placeholders } = await exec('env')
  t.match(placeholders, /^API_TOKEN=dcpsec_[0-9a-z]{32}$/m)

  for (const { name, skip, host, variable, command, header, prints } of TOOLS)
    await t.test(name, { skip }, async (t) => {
      servers.requests.length = 0
      const PATH = `${dirname(NODE)}:/usr/local/bin:/usr/bin:/bin`
      const result = await exec(command, { env: { PATH }, timeoutSeconds: 60 })
      t.match(result, { exitCode: 0 }, JSON.stringify(result))
      t.match(result.stdout, prints)
      const value = secrets[variable]?.value ?? ''
      t.ok(servers.credentials(host).includes(header(value)), 'the server receives the value')
      t.notMatch(JSON.stringify(servers.requests), /dcpsec_/, 'and no placeholder')
      const readable =
        JSON.stringify(result) + (await exec('env; cat -- * .npmrc .git*/config project/.git/config')).stdout
      t.notOk(readable.includes(value), 'the box never sees the value')
    })

  await t.test('each kind of process has the variables', async (t) => {
    const command = 'echo proxy=$HTTPS_PROXY'
    const started = await exec(command, { detached: true })
    const stream = await boxRequest('GET', `/exec/${started.processId}/stream`)
    t.match(stream.text, /proxy=http:\/\/boxwood:/)
    const own = await exec('echo $HTTPS_PROXY $https_proxy', { env: { HTTPS_PROXY: 'http://own:1' } })
    t.match(own, { stdout: 'http://own:1\n' }, 'a variable of the request replaces both cases')
  })

  await t.test(
    'another box, and another user of the machine, cannot use the proxy',
    { skip: skipWithoutCurl },
    async (t) => {
      const { stdout } = await exec('printf %s "$HTTPS_PROXY"')
      const proxy = String(stdout)
      const other = (await api('POST', '/boxes', { name: 'plum' })).json.box
      await coordinator.waitForState(other.id, 'running')
      const connect = `curl -sS -o /dev/null -w '%{http_connect}' -x '${proxy}' https://${HOSTS.api}/`
      const stolen = await coordinator.edge('plum', 'POST', '/exec', { command: connect })
      // The boxes of an ordinary user have its uid: there, the other box has read the credential of the first one.
      if (process.getuid?.() === 0) t.match(stolen.json, { stdout: '403' })
      const without = connect.replace(/boxwood:[0-9a-f]+@/, '')
      const anonymous = await coordinator.edge('plum', 'POST', '/exec', { command: without })
      t.match(anonymous.json, { stdout: process.getuid?.() === 0 ? '403' : '407' })
    },
  )

  await t.test('without a mount, new processes do not use the proxy, which stays', async (t) => {
    const before = (await exec('printf %s "$HTTPS_PROXY"')).stdout
    const { json } = await api('GET', `/boxes/${box.id}/secrets`)
    for (const { id } of json.mounts) {
      const { status } = await api('DELETE', `/boxes/${box.id}/secrets/${id}`)
      t.equal(status, 204)
    }
    const isRemoved = async () => (await exec('printf %s "$HTTPS_PROXY$API_TOKEN"')).stdout === ''
    await waitUntil('new processes do not have the variables', isRemoved)
    await mountSecrets(coordinator, box.id, { API_TOKEN: [HOSTS.api] })
    t.equal((await exec('printf %s "$HTTPS_PROXY"')).stdout, before)
  })
})

t.test('at the strongest isolation level', { skip: skipWithoutCurl }, async (t) => {
  const servers = await startToolServers(t)
  const coordinator = await startBoxWithSecrets(t, servers)
  const { box, exec } = coordinator
  const secrets = await mountSecrets(coordinator, box.id, { API_TOKEN: [HOSTS.api] })
  const result = await exec(`curl -sSf -H "Authorization: Bearer $API_TOKEN" https://${HOSTS.api}/`)
  t.match(result, { exitCode: 0, stdout: REFLECTED })
  t.same(servers.credentials(HOSTS.api), [bearer(secrets.API_TOKEN?.value ?? '')])
})
