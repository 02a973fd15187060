// What a machine that cannot join prints, and that nothing of the installation stays on it.
import { createHash } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { type Test, test } from 'tap'
import { startMachine } from '../../support/root-filesystems/machine.ts'
import { buildTrees } from '../../support/root-filesystems/trees.ts'
import {
  type JoinCoordinator,
  runLine,
  startJoinCoordinator,
  toUninstallLine,
  withWget,
} from './join-support.ts'

const trees = await buildTrees(['trixie', 'busybox'])
const options = 'skip' in trees ? trees : {}

test('machines that are refused', options, async (t) => {
  if ('skip' in trees) return
  const coordinator = await startJoinCoordinator(t)
  const { paths } = trees
  await t.test('problems of a machine and its network', (t) => testProblems(t, coordinator, paths.trixie))
  await t.test('musl', (t) => testMusl(t, coordinator, paths.busybox))
  await t.test('a used token', (t) => testUsedToken(t, coordinator, paths.busybox))
  await t.test('a coordinator with another key', (t) => testOtherKey(t, coordinator, paths.busybox))
})

async function testProblems(t: Test, coordinator: JoinCoordinator, tree: string) {
  const line = await coordinator.createCommand('fig')
  const machine = await startMachine(t, { tree, init: 'none' })
  const before = await machine.listFiles()

  /** Runs the line, and checks that it prints the sentence, has used no token and has left no file. */
  async function refused(
    name: string,
    sentence: RegExp,
    { before: prepare = '', after = '', args = '' } = {},
  ) {
    await machine.run(prepare)
    const output = await runLine(machine, `${line} ${args}`)
    await machine.run(after)
    t.match(output, sentence, name)
    t.equal(output.match(/^boxwood: /gm)?.length, 1, `${name}: one sentence`)
    t.same(await machine.listFiles(), before, `${name}: no file stays`)
    t.same(await coordinator.listOpenNames(), ['fig'], `${name}: the token can still be used`)
  }

  await refused('a read-only disk', /\/opt is on a read-only file system/, {
    before: 'mount -t tmpfs -o ro tmpfs /opt',
    after: 'umount /opt',
  })
  await refused('a full disk', /The disk of \/opt has \d+ MB free; the installation needs \d+ MB/, {
    before: 'mount -t tmpfs -o size=50m tmpfs /opt',
    after: 'umount /opt',
  })
  const withProgram = (name: string, script: string) => ({
    before: `printf '#!/bin/sh\\n${script}\\n' >/usr/local/bin/${name}; chmod 755 /usr/local/bin/${name}`,
    after: `rm /usr/local/bin/${name}`,
  })
  await refused(
    'a clock that is slow',
    /The clock of this machine is wrong/,
    withProgram('date', 'exec /usr/bin/date --date "2 days ago" "$@"'),
  )
  await refused(
    'an old kernel',
    /The kernel of this machine is 3\.10\.0-1160\.el7\.x86_64; the agent needs 4\.18 or newer/,
    withProgram('uname', 'case $1 in -r) echo 3.10.0-1160.el7.x86_64;; *) exec /usr/bin/uname "$@";; esac'),
  )
  await refused('a name that DNS does not have', /The name coordinator\.invalid cannot be resolved/, {
    args: '--url http://coordinator.invalid:7070',
  })
  await refused('a coordinator that does not run', /The coordinator at 10\.0\.2\.2:1 cannot be reached/, {
    args: '--url http://10.0.2.2:1',
  })

  // The attacker changes a byte of the archive.
  coordinator.proxy.rewrite((path, body) => {
    if (path.startsWith('/agent/bundles/')) body[body.length >> 1] = (body[body.length >> 1] ?? 0) ^ 1
    return body
  })
  await refused('a tampered bundle', /does not have the SHA-256 that this script states/)

  // The attacker replaces the archive, and its digest in the script.
  const addition = gzipSync('')
  const script = (await coordinator.send('GET', '/install.sh', undefined, { key: null })).text
  const [, buildId, size, sha256 = ''] = /linux-x64 \S+ (\S+) (\d+) \d+ (\S+)/.exec(script) ?? []
  const original = await fetch(`${coordinator.url}/agent/bundles/linux-x64-${buildId}.tar.gz`)
  const archive = Buffer.concat([Buffer.from(await original.arrayBuffer()), addition])
  coordinator.proxy.rewrite((path, body) => {
    if (path.startsWith('/agent/bundles/')) return archive
    if (path !== '/install.sh') return body
    const changed = body.toString().replace(sha256, createHash('sha256').update(archive).digest('hex'))
    return Buffer.from(changed.replace(` ${size} `, ` ${archive.length} `))
  })
  await refused('a bundle that another key has signed', /The signature of the agent bundle does not match/)
  coordinator.proxy.rewrite(undefined)

  t.match(await runLine(machine, line), 'box exec fig -- uname -a', 'the token still joins')
  t.equal(await coordinator.exec('fig', 'echo $((6 * 7))'), '42\n')
}

async function testMusl(t: Test, coordinator: JoinCoordinator, tree: string) {
  const machine = await startMachine(t, { tree, init: 'none' })
  await machine.run('mv /lib64/ld-linux-x86-64.so.2 /opt; touch /lib/ld-musl-x86_64.so.1')
  const before = await machine.listFiles()
  const output = await runLine(machine, withWget(await coordinator.createCommand('musl')))
  t.match(
    output,
    /^boxwood: This distribution uses musl; the agent needs glibc\. Use a distribution with glibc/,
  )
  t.same(await machine.listFiles(), before)
}

async function testUsedToken(t: Test, coordinator: JoinCoordinator, tree: string) {
  const first = await startMachine(t, { tree, init: 'none' })
  const second = await startMachine(t, { tree, init: 'none' })
  const before = await second.listFiles()
  const line = withWget(await coordinator.createCommand('used'))
  t.match(await runLine(first, line), 'box exec used -- uname -a')

  // Represents all tokens that the coordinator refuses: test/e2e/machines.test.ts has their sentences.
  t.match(await runLine(second, line), /The token was used at \S+, for box used\. A token works once\./)
  t.same(await second.listFiles(), before, 'no file stays')
  t.equal(await coordinator.exec('used', 'echo $((6 * 7))'), '42\n')
}

async function testOtherKey(t: Test, coordinator: JoinCoordinator, tree: string) {
  const other = await startJoinCoordinator(t)
  const machine = await startMachine(t, { tree, init: 'none' })
  const before = await machine.listFiles()
  const line = withWget(await coordinator.createCommand('plum'))
  const otherLine = withWget(await other.createCommand('plum'))
  await runLine(machine, line)
  t.match(await runLine(machine, otherLine), /belongs to a coordinator with another key/)
  t.equal(await coordinator.exec('plum', 'echo $((6 * 7))'), '42\n')
  t.same(await other.listOpenNames(), ['plum'])

  t.comment('The machine joins the other coordinator when the agent of the first one is uninstalled.')
  await runLine(machine, toUninstallLine(otherLine))
  t.same(await machine.listFiles(), before)
  await runLine(machine, otherLine)
  t.equal(await other.exec('plum', 'echo $((6 * 7))'), '42\n')
}
