// Boxes of a real Incus server, from their creation to their removal.
import { execFileSync } from 'node:child_process'
import t, { type Test } from 'tap'
import { getInstanceName } from '../../../../coordinator/providers/incus/names.ts'
import { ArchiveError } from '../../../../coordinator/providers/provider.ts'
import { findIncusProblem } from '../../../support/engines/incus.ts'
import { waitUntil } from '../../../support/wait-until.ts'
import { countAgents, createSpec, startServer, waitForToken } from './support.ts'

const problem = findIncusProblem()
const test = (name: string, body: (t: Test) => Promise<void>) =>
  t.test(name, problem === undefined ? {} : { skip: problem }, body)

test('a box lives in a container', async (t) => {
  const server = await startServer(t)
  const provider = server.open()
  const spec = createSpec({ agentToken: 'bxt_first' })
  const { boxId } = spec
  const config = (key: string) => server.incus(['config', 'get', getInstanceName(boxId), key]).trim()

  t.equal(await provider.inspect(boxId), 'absent')
  const created = await provider.create(spec)
  t.match(created, {
    isolation: { level: 'container', network: 'own' },
    imageDigest: /^sha256:[0-9a-f]{64}$/,
  })
  t.same(await provider.create(spec), created, 'a repeated create changes nothing')
  t.equal(await provider.inspect(boxId), 'stopped')

  await provider.start(spec)
  await waitForToken(server, 'bxt_first')
  t.equal(await provider.inspect(boxId), 'running')
  await provider.start({ ...spec, agentToken: 'bxt_second' })
  await waitForToken(server, 'bxt_second')
  t.equal(countAgents(server, boxId), 1, 'a repeated start does not start another agent')
  t.equal(server.run(boxId, 'hostname').trim(), 'mango')
  t.match(server.run(boxId, 'cat /proc/self/uid_map'), /^\s*0\s+1\d{6}\s+65536\n$/, 'root has ids of its own')
  t.throws(() => server.run(boxId, 'touch /opt/boxwood/agent/current/x'), /Read-only/)

  server.run(boxId, 'echo content >/root/file; echo $$ >/tmp/pid; (sleep 1000 </dev/null >/dev/null 2>&1 &)')
  t.ok(await provider.resize?.({ ...spec, tier: 'micro' }))
  t.same([config('limits.cpu'), config('limits.memory')], ['2', String(2 * 1024 ** 3)])
  await waitUntil('the agent has the new size', () =>
    server.run(boxId, 'cat /var/lib/boxwood/settings').includes("BOXWOOD_CPUS='2'"),
  )
  t.match(server.run(boxId, 'ps'), /sleep 1000/, 'its processes continue')

  t.ok(await provider.freeze(boxId))
  t.equal(await provider.inspect(boxId), 'frozen')
  await provider.start({ ...spec, agentToken: 'bxt_third' })
  await waitForToken(server, 'bxt_third')
  t.match(server.run(boxId, 'ps'), /sleep 1000/, 'its processes have kept their memory')

  server.incus(['restart', '--force', getInstanceName(boxId)])
  await waitUntil('the agent runs again', async () => countAgents(server, boxId) === 1)
  t.equal(await provider.inspect(boxId), 'running', 'a reboot continues with an agent')

  await provider.stop(boxId)
  t.equal(await provider.inspect(boxId), 'stopped')
  await provider.stop(boxId)
  t.notOk(await provider.freeze(boxId))
  await provider.destroy(boxId)
  await provider.destroy(boxId)
  t.equal(await provider.inspect(boxId), 'absent')
  t.same(server.listInstances(), [])
  t.same(server.warnings, [])
})

test('an archive has the files of a box', async (t) => {
  const server = await startServer(t)
  const provider = server.open()
  const spec = createSpec()
  const fork = createSpec()
  const { boxId } = spec
  const key = (archiveId: string) => ({ workspaceId: 'wsp_1', archiveId })
  await provider.create(spec)
  await provider.start(spec)
  server.run(boxId, 'dd if=/dev/zero of=/root/file bs=1M count=2; sync; echo installed >/usr/bin/program')

  const info = await provider.capture(boxId, key('snp_1'), 'files')
  t.ok(info.contentBytes >= 2 * 1024 ** 2, `contentBytes is ${info.contentBytes}`)
  t.same(
    await provider.capture(boxId, key('snp_1'), 'files'),
    info,
    'a repeated capture returns the same archive',
  )
  await provider.create({ ...fork, source: key('snp_1') })
  t.throws(
    () => server.readFile(fork.boxId, '/var/lib/boxwood/token'),
    /does not exist/,
    'without the state of the agent',
  )
  await provider.start(fork)
  t.equal(server.run(fork.boxId, 'cat /usr/bin/program; wc -c </root/file'), 'installed\n2097152\n')

  await provider.stop(boxId)
  await provider.capture(boxId, key('arc_1'), 'all')
  await provider.destroy(boxId)
  await provider.copyFiles(key('arc_1'), key('snp_2'))
  await provider.create({ ...spec, source: key('arc_1') })
  t.equal(server.readFile(boxId, '/var/lib/boxwood/token'), 'bxt_test', 'with the state, for the same box')

  // Another server has the same interface as another region of this one.
  const other = server.open(server.openHost(), 'us-east-1')
  await other.writeArchive(key('snp_2'), provider.readArchive(key('snp_2')))
  await provider.removeArchives('wsp_1')
  await t.rejects(provider.create({ ...createSpec(), source: key('snp_2') }), ArchiveError)
  const copy = createSpec()
  await other.create({ ...copy, source: key('snp_2') })
  await other.start(copy)
  t.equal(server.run(copy.boxId, 'cat /usr/bin/program; wc -c </root/file'), 'installed\n2097152\n')

  t.equal(await provider.inspect(copy.boxId), 'absent', 'a region does not see the boxes of another one')
  await provider.destroy(copy.boxId)
  t.equal(await other.inspect(copy.boxId), 'running', 'nor removes them')
  t.ok(await provider.takeOver?.(copy.boxId, { provider: other, region: 'us-east-1' }))
  t.same([await provider.inspect(copy.boxId), await other.inspect(copy.boxId)], ['running', 'absent'])

  for (const id of [boxId, fork.boxId, copy.boxId]) await provider.destroy(id)
  await other.removeArchives('wsp_1')
  t.same(server.listInstances(), [], 'nothing is left')
})

test('the spool of a stopped box is read', async (t) => {
  const server = await startServer(t)
  const provider = server.open()
  const spec = createSpec()
  await provider.create(spec)
  await provider.start(spec)
  const dir = '/var/lib/boxwood/reports'
  const name = (number: number) => `${dir}/${String(number).padStart(16, '0')}.ndjson`
  await provider.stop(spec.boxId)
  server.incus(['start', getInstanceName(spec.boxId)])
  server.run(
    spec.boxId,
    `rm -rf ${dir}; mkdir ${dir}; printf one >${name(1)}; ln -s /etc/passwd ${name(2)}; mkdir ${name(3)}; printf four >${name(4)}; echo >${dir}/other`,
  )
  server.incus(['stop', '--force', getInstanceName(spec.boxId)])
  const segments: string[] = []
  for await (const segment of provider.readSpool?.(spec.boxId) ?? []) segments.push(String(segment))
  t.same(segments, ['one', 'four'], 'links and directories are skipped')
})

test('boxes do not reach each other', async (t) => {
  const setup =
    'ip link add outside type veth peer name outside-peer; ip link set outside-peer up; ip addr add 198.51.100.1/24 dev outside; ip link set outside up'
  const server = await startServer(t, { setup })
  const provider = server.open()
  const [one, other] = [createSpec(), createSpec()]
  const addresses: string[] = []
  for (const spec of [one, other]) {
    await provider.create(spec)
    await provider.start(spec)
    // The init of the image does not configure the network.
    server.run(
      spec.boxId,
      'cat >/tmp/dhcp <<"E"\n#!/bin/sh\n[ -z "$ip" ] || { ip addr add $ip/24 dev eth0; ip route add default via $router; }\nE\nchmod +x /tmp/dhcp; udhcpc -n -q -i eth0 -s /tmp/dhcp',
    )
    addresses.push(/inet (\S+)\//.exec(server.run(spec.boxId, 'ip -4 addr show eth0'))?.[1] ?? '')
  }
  const [address, otherAddress] = addresses
  const gateway = `${address?.split('.').slice(0, 3).join('.')}.1`
  const ping = (target: string | undefined) =>
    server.run(one.boxId, `ping -c1 -W1 ${target} >/dev/null && echo yes || echo no`)
  t.equal(ping('198.51.100.1'), 'yes\n', 'a box reaches other networks')
  t.equal(ping(otherAddress), 'no\n', 'a box does not reach another one')
  server.run(one.boxId, `ip route add ${otherAddress} via ${gateway}`)
  t.equal(ping(otherAddress), 'no\n', 'nor through the router')
  const forgetNeighbors = () =>
    execFileSync('nsenter', [`--target=${server.namespacesPid}`, '--net', 'ip', 'neigh', 'flush', 'all'])
  server.run(one.boxId, 'ip link set eth0 address 10:66:6a:00:00:01')
  forgetNeighbors()
  t.equal(ping('198.51.100.1'), 'no\n', 'a box has no MAC address but its own')
  const mac = /hwaddr: (\S+)/.exec(server.incus(['config', 'show', getInstanceName(one.boxId)]))?.[1]
  server.run(one.boxId, `ip link set eth0 address ${mac}`)
  server.run(other.boxId, 'ip addr flush dev eth0')
  server.run(
    one.boxId,
    `ip addr flush dev eth0; ip addr add ${otherAddress}/24 dev eth0; ip route add default via ${gateway}`,
  )
  forgetNeighbors()
  t.equal(ping('198.51.100.1'), 'no\n', 'and does not get the IPv4 address of another one')
  t.throws(() => server.run(one.boxId, 'ls /dev/incus'), /No such file/, 'a box has no socket of the server')
})
