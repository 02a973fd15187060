// box ssh-config and ssh-proxy: the configuration, the key, and a box without an OpenSSH server.
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { createSshdScript } from '../../cli/openssh/sshd-script.ts'
import { requires } from '../support/requires.ts'
import { createTempDir } from '../support/temp-dir.ts'
import { startCliCoordinator } from './coordinator.ts'
import { createCoordinatorRecord } from './coordinator-record.ts'
import { runBox } from './run-box.ts'

const coordinator = await startCliCoordinator(t, ['fig', 'plum'], { machines: 'local' })
const configDir = createTempDir(t, 'config')
const keyPath = join(configDir, 'boxwood/ssh/id_ed25519')
const box = (...args: string[]) => runBox(coordinator, args, { env: { XDG_CONFIG_HOME: configDir } })

const skip = requires('ssh-keygen', 'ssh')

t.test('ssh-proxy without a key says how to create one', async (t) => {
  t.match(await box('ssh-proxy', 'fig'), { code: 1, stderr: /Create it with `box ssh-config`/ })
})

t.test('ssh-config prints an entry that ssh accepts, and creates a key once', { skip }, async (t) => {
  const { code, stdout, stderr } = await box('ssh-config', 'fig')
  t.equal(code, 0)
  t.match(stderr, /ssh needs BOXWOOD_API_KEY in its environment/)
  const file = join(t.testdir({ config: stdout }), 'config')
  const options = execFileSync('ssh', ['-G', '-F', file, 'box-fig'], { encoding: 'utf8' })
  t.match(options, /^user \w+$/m)
  t.match(options, new RegExp(`^identityfile ${keyPath}$`, 'm'))
  t.match(
    options,
    new RegExp(`^proxycommand env .*BOXWOOD_URL=${coordinator.url}/api/v1 .*box ssh-proxy fig$`, 'm'),
  )
  t.notMatch(stdout, /dcp_/, 'the API key is not printed')
  t.equal(statSync(keyPath).mode & 0o777, 0o600)

  const key = readFileSync(keyPath)
  const all = await box('ssh-config')
  t.match(all.stdout, /^Host box-plum$.*^Host box-fig$/ms)
  t.ok(readFileSync(keyPath).equals(key))
  await coordinator.addBox('debian')
  coordinator.changeNext('GET /api/v1/boxes?box=debian', ({ boxes }) => ({
    boxes: boxes.map((box: object) => ({ ...box, image: 'debian:12' })),
  }))
  t.match((await box('ssh-config', 'debian')).stdout, /^ {2}User root$/m, 'a box with an image')
  t.match(await box('ssh-config', 'none'), { code: 5, stderr: /No such box: 'none'/ })
})

t.test('with a data directory, the configuration names the directory', { skip }, async (t) => {
  const dataDir = t.testdir({
    'coordinator.json': createCoordinatorRecord(coordinator.url),
    'owner.key': coordinator.key,
  })
  const { stdout, stderr } = await runBox(null, ['ssh-config', 'fig'], {
    env: { XDG_CONFIG_HOME: configDir, BOXWOOD_DATA: dataDir },
  })
  t.match(
    stdout,
    new RegExp(
      `^  ProxyCommand env BOXWOOD_DATA=${dataDir} XDG_CONFIG_HOME=\\S+ \\S+box ssh-proxy fig$`,
      'm',
    ),
  )
  t.equal(stderr, '')
})

t.test('a box without an OpenSSH server says what to install', async (t) => {
  const script = createSshdScript('ssh-ed25519 AAAA test').replace(
    '/usr/local/sbin:/usr/sbin:/sbin',
    '/nonexistent',
  )
  const home = t.testdir({})
  try {
    execFileSync('/bin/sh', ['-c', script], { env: { PATH: '/nonexistent', HOME: home }, stdio: 'pipe' })
    t.fail('the script must fail')
  } catch (error) {
    t.match(error, {
      status: 1,
      stderr: /^box: this box has no sshd\. Install the OpenSSH server .*openssh-server\)\.\n$/,
    })
  }
  t.notOk(existsSync(join(home, '.local')), 'nothing is written')
})
