// The systemd unit of the coordinator, on a machine with systemd: starts, restarts without an end of commands, survives a
// reboot, and `boxwood backup` and `boxwood restore` work beside it.
import { cpSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { PROJECT_DIR } from '../support/project.ts'
import { startMachine } from '../support/root-filesystems/machine.ts'
import { buildTrees } from '../support/root-filesystems/trees.ts'
import { createTempDir } from '../support/temp-dir.ts'
import { waitUntil } from '../support/wait-until.ts'
import { installInto } from './production-package.ts'

const trees = await buildTrees(['trixie'])
const READY = 'curl -fsS http://127.0.0.1:7070/readyz'

t.test('the coordinator as a service of systemd', 'skip' in trees ? { skip: trees.skip } : {}, async (t) => {
  if ('skip' in trees) return
  const machine = await startMachine(t, { tree: trees.paths.trixie, init: 'systemd' })
  async function run(commandLine: string): Promise<string> {
    const { exitCode, stdout, stderr } = await machine.run(commandLine)
    t.equal(exitCode, 0, `${commandLine}\n${stdout}${stderr}`)
    return stdout.trim()
  }
  const waitUntilReady = () =>
    waitUntil('the service is ready', async () => (await machine.run(READY)).exitCode === 0)
  const asService = (commandLine: string) =>
    run(`runuser -u boxwood -- env HOME=/tmp BOXWOOD_DATA=/var/lib/boxwood ${commandLine}`)

  installInto(join(machine.rootDir(), 'usr/local'), createTempDir(t, 'package'))
  for (const unit of ['boxwood.service', 'boxwood.socket'])
    cpSync(join(PROJECT_DIR, 'install/systemd', unit), join(machine.rootDir(), 'etc/systemd/system', unit))
  // The steps of docs/install.md.
  await run('useradd --system --user-group --home-dir /var/lib/boxwood --shell /usr/sbin/nologin boxwood')
  t.equal(
    (await machine.run('systemd-analyze verify boxwood.service boxwood.socket')).stderr,
    '',
    'systemd accepts the units',
  )
  await run('systemctl enable --now boxwood 2>&1')
  await waitUntilReady()
  t.equal(
    await run('stat -c "%U %a" /var/lib/boxwood /var/lib/boxwood/owner.key'),
    'boxwood 700\nboxwood 600',
  )

  const name = await asService('box ls -q')
  await asService(`box wait ${name}`)
  const id = await asService(`box exec -d ${name} -- sh -c 'while sleep 0.2; do date +%s.%N >>beats; done'`)
  const mainPid = await run('systemctl show -p MainPID --value boxwood')
  await run('systemctl restart boxwood')
  await waitUntilReady()
  t.not(await run('systemctl show -p MainPID --value boxwood'), mainPid, 'another process')
  t.match(await asService(`box ps ${name}`), new RegExp(`${id}.*running`), 'the command continues')
  await run('kill -9 $(systemctl show -p MainPID --value boxwood)')
  await waitUntil('systemd has started the coordinator again', async () => {
    const { stdout } = await machine.run('systemctl show -p NRestarts --value boxwood')
    return stdout.trim() === '1'
  })
  await waitUntilReady()

  await asService(`box exec ${name} -- sh -c 'echo kept >file'`)
  await run('install -d -o boxwood -m 700 /srv/backups')
  await asService('boxwood backup /srv/backups/boxwood.tar')
  await machine.reboot()
  await waitUntilReady()
  t.equal(await asService(`box exec ${name} -- cat file`), 'kept', 'the box is there after a reboot')

  await run('systemctl stop boxwood')
  // systemd keeps the port, so the request starts the coordinator.
  await waitUntilReady()
  await run('systemctl stop boxwood.socket boxwood')
  await asService('box down')
  // Root restores for the user of the directory.
  await run(
    'mv /var/lib/boxwood /var/lib/boxwood.old && install -d -o boxwood -g boxwood -m 700 /var/lib/boxwood',
  )
  t.match(
    await run('BOXWOOD_DATA=/var/lib/boxwood boxwood restore /srv/backups/boxwood.tar'),
    'Restored the backup of',
  )
  await run('systemctl start boxwood')
  t.equal(await run('systemctl is-active boxwood.socket'), 'active', 'the service starts the socket')
  await waitUntilReady()
  t.equal(await asService(`box exec ${name} -- cat file`), 'kept')
})
