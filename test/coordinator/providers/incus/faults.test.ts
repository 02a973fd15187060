// Faults of a real Incus server, and changes of boxes by other programs.
import { chmodSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import t, { type Test } from 'tap'
import { pack } from 'tar-stream'
import { EngineUnavailableError } from '../../../../coordinator/providers/engine-http/errors.ts'
import { getInstanceName, getNetworkName } from '../../../../coordinator/providers/incus/names.ts'
import { ImageError, PermanentProviderError } from '../../../../coordinator/providers/provider.ts'
import { buildBusyboxTree, packIncusImage } from '../../../support/engines/busybox-tree.ts'
import { findIncusProblem } from '../../../support/engines/incus.ts'
import { createTempDir } from '../../../support/temp-dir.ts'
import { waitUntil } from '../../../support/wait-until.ts'
import { countAgents, createSpec, DEPLOYMENT, startServer, waitForToken } from './support.ts'

const problem = findIncusProblem()
const test = (name: string, body: (t: Test) => Promise<void>) =>
  t.test(name, problem === undefined ? {} : { skip: problem }, body)

/** A process that ignores SIGTERM: the init of the image waits for it a second. */
const SLOW_STOP = "(trap '' TERM; sleep 1000 </dev/null >/dev/null 2>&1 &)"

test('boxes continue when the server is killed', async (t) => {
  const server = await startServer(t)
  const provider = server.open()
  const spec = createSpec()
  const { boxId } = spec
  await provider.create(spec)
  await provider.start(spec)
  await waitForToken(server, spec.agentToken)
  const readPid = () => server.run(boxId, 'cat /var/lib/boxwood/init.pid')
  const pid = readPid()

  server.run(boxId, SLOW_STOP)
  const stopped = provider.stop(boxId)
  await waitUntil('the operation runs', () =>
    server.incus(['operation', 'list', '--format=csv']).includes('RUNNING'),
  )
  await server.kill()
  await t.rejects(stopped, EngineUnavailableError, 'a call whose outcome is unknown fails')
  await t.rejects(provider.inspect(boxId), { message: /^Incus at unix:.* is not available: / })
  await server.start()
  await provider.stop(boxId)
  t.equal(await provider.inspect(boxId), 'stopped', 'the call is repeated')

  await provider.start({ ...spec, agentToken: 'bxt_next' })
  await waitForToken(server, 'bxt_next')
  const next = readPid()
  await server.kill()
  await server.start()
  t.equal(await provider.inspect(boxId), 'running')
  await provider.start({ ...spec, agentToken: 'bxt_last' })
  t.same([readPid(), countAgents(server, boxId)], [next, 1], 'the box has been adopted')
  t.ok(pid !== '')
})

test('operations of an earlier coordinator are adopted', async (t) => {
  const server = await startServer(t)
  const first = server.openHost()
  const provider = server.open(first)
  const spec = createSpec()
  const name = getInstanceName(spec.boxId)
  await provider.create(spec)
  await provider.start(spec)
  server.run(spec.boxId, SLOW_STOP)
  provider.stop(spec.boxId).catch(() => undefined)
  await waitUntil('the operation runs', () =>
    server.incus(['operation', 'list', '--format=csv']).includes('RUNNING'),
  )
  await first.close()

  const second = server.openHost()
  const requests: string[] = []
  const call = second.client.call.bind(second.client)
  second.client.call = (method, path, options) => {
    requests.push(`${method} ${path}`)
    return call(method, path, options)
  }
  const next = server.open(second)
  await next.stop(spec.boxId)
  t.equal(await next.inspect(spec.boxId), 'stopped')
  t.notOk(requests.includes(`PUT /instances/${name}/state`), 'the box is not stopped a second time')
})

test('what was interrupted is removed, and nothing else', async (t) => {
  const server = await startServer(t)
  const spec = createSpec()
  const create = (name: string, deployment: string) =>
    server.incus(['init', 'busybox', name, '--config', `user.boxwood.coordinator=${deployment}`, '--quiet'])
  create('boxwood-interrupted', DEPLOYMENT)
  create('boxwood-other', 'fedcba9876543210')
  server.incus(['init', 'busybox', 'mine', '--quiet'])
  create(getInstanceName(spec.boxId), DEPLOYMENT)
  const host = server.openHost()
  const provider = server.open(host)
  t.equal(await provider.inspect(spec.boxId), 'absent')
  await provider.create(spec)
  t.equal(await provider.inspect(spec.boxId), 'stopped')
  await host.waitUntilUpdated()
  t.same(server.listInstances(), ['boxwood-other', getInstanceName(spec.boxId), 'mine'].sort())
})

test('what does not belong to the coordinator is not changed', async (t) => {
  const server = await startServer(t)
  const host = server.openHost()
  const provider = server.open(host)
  const spec = createSpec()
  const name = getInstanceName(spec.boxId)
  server.incus(['init', 'busybox', name, '--quiet'])
  await t.rejects(provider.create(spec), {
    name: 'PermanentProviderError',
    message: `The instance ${name} in Incus does not belong to this coordinator. Rename or remove it.`,
  })
  await provider.destroy(spec.boxId)
  t.same(server.listInstances(), [name], 'an instance with the name of a box')

  const { name: volume } = host.agentVolumes
  server.incus(['storage', 'volume', 'create', 'default', volume])
  await t.rejects(provider.create(createSpec()), {
    message: `The volume ${volume} in Incus does not belong to this coordinator. Rename or remove it.`,
  })
  t.ok(server.incus(['storage', 'volume', 'list', 'default', '--format=csv']).includes(volume), 'a volume')

  const deploymentId = 'fedcba9876543210'
  const network = getNetworkName(deploymentId)
  server.incus(['network', 'create', network, 'ipv6.address=none'])
  await t.rejects(server.open(server.openHost({ deploymentId })).create(createSpec()), {
    message: `The network ${network} in Incus does not belong to this coordinator. Rename or remove it.`,
  })
  t.notOk(server.incus(['network', 'show', network]).includes('security.acls'), 'a network')
})

test('protections that the server does not have', async (t) => {
  const programs = createTempDir(t, 'programs')
  for (const name of ['ebtables', 'nft']) {
    writeFileSync(join(programs, name), '#!/bin/sh\necho "not supported" >&2\nexit 1\n')
    chmodSync(join(programs, name), 0o755)
  }
  const setup =
    'echo root:1000000:65536 >"$1/ids"; mount --bind "$1/ids" /etc/subuid; mount --bind "$1/ids" /etc/subgid'
  const server = await startServer(t, { setup, programs })
  const provider = server.open()
  t.match(provider.describe(), /with a root file system and user ids of its own. They cannot/)
  for (const spec of [createSpec(), createSpec()]) {
    await provider.create(spec)
    await provider.start(spec)
    t.equal(await provider.inspect(spec.boxId), 'running')
  }
  t.match(server.warnings.filter((warning) => warning.startsWith('boxes ')).sort(), [
    /^boxes can use the network addresses of each other: the firewall/,
    /^boxes have the same user ids: /,
  ])
  const [line] = provider.describe().split('\n')
  t.match(line, /Some have the same user ids, .* A box can use the network addresses of another one, because/)
})

test('changes behind the back of the coordinator', async (t) => {
  const server = await startServer(t)
  const provider = server.open()
  const spec = createSpec()
  const name = getInstanceName(spec.boxId)
  await provider.create(spec)
  await provider.start(spec)

  server.incus(['pause', name])
  t.equal(await provider.inspect(spec.boxId), 'frozen')
  await provider.stop(spec.boxId)
  t.equal(await provider.inspect(spec.boxId), 'stopped', 'a box that was frozen by hand is stopped')
  server.incus(['start', name])
  t.equal(await provider.inspect(spec.boxId), 'stopped', 'a box without an agent is started again')
  await provider.start(spec)
  t.equal(await provider.inspect(spec.boxId), 'running')

  server.incus(['delete', '--force', name])
  t.equal(await provider.inspect(spec.boxId), 'absent')
  await t.rejects(provider.start(spec), PermanentProviderError)
  await provider.stop(spec.boxId)
  await provider.destroy(spec.boxId)
})

test('an image without a shell', async (t) => {
  const server = await startServer(t, { image: null })
  const tree = join(server.dir, 'tree')
  buildBusyboxTree(tree)
  rmSync(join(tree, 'sbin/init'))
  rmSync(join(tree, 'bin/sh'))
  // The init of busybox needs no shell.
  symlinkSync('../bin/busybox', join(tree, 'sbin/init'))
  packIncusImage(tree, join(server.dir, 'image.tar'))
  server.incus(['image', 'import', join(server.dir, 'image.tar'), '--alias=no-shell', '--quiet'])
  const provider = server.open()
  const spec = createSpec({ image: 'no-shell' })
  await provider.create(spec)
  const error = await provider.start(spec).catch((failure: unknown) => failure)
  t.type(error, ImageError)
  t.match(error, { code: 'image_unusable', message: /no usable \/bin\/sh/ })
})

test('a full pool', async (t) => {
  const server = await startServer(t, { poolMiB: 512 })
  const provider = server.open()
  const [one, other] = [createSpec(), createSpec()]
  await provider.create(one)
  await provider.start(one)
  t.throws(() => server.run(one.boxId, 'cat /dev/zero >/root/file'), /No space left/)
  const { bytes } = (await provider.sharedDisk?.readSpace()) ?? {}
  t.ok(
    bytes !== undefined && bytes.free < 0.2 * bytes.total,
    `${bytes?.free} of ${bytes?.total} bytes are free`,
  )
  const run = async () => {
    await provider.create(other)
    await provider.start(other)
  }
  await t.rejects(run(), /space|start script|failed/i)
  server.run(one.boxId, 'rm /root/file; sync')
  await waitUntil(
    'there is space',
    async () => ((await provider.sharedDisk?.readSpace())?.bytes.free ?? 0) > 2e8,
  )
  await run()
  t.equal(await provider.inspect(other.boxId), 'running', 'a repeated call succeeds')
})

test('a running box gets the build of a new coordinator', async (t) => {
  const server = await startServer(t)
  const first = server.openHost()
  const provider = server.open(first)
  const spec = createSpec()
  await provider.create(spec)
  await provider.start(spec)
  await first.close()

  const { agentFiles } = first.options
  const host = server.openHost({
    agentFiles: {
      ...agentFiles,
      contentId: 'next',
      pack() {
        const stream = pack()
        stream.entry({ name: 'next' }, '')
        stream.finalize()
        return Readable.from(stream)
      },
    },
  })
  server.open(host)
  await host.client.connect()
  await host.waitUntilUpdated()
  t.equal(server.run(spec.boxId, 'ls /opt/boxwood/agent').trim(), 'next')
  t.match(server.run(spec.boxId, 'ps'), /agent\.mjs/, 'the agent continues')
  const volumes = server.incus([
    'storage',
    'volume',
    'list',
    'default',
    'type=custom',
    '--format=csv',
    '--columns=n',
  ])
  t.equal(volumes.trim().split('\n').length, 1, 'the volume of the old build is removed')
})
