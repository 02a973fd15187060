// Runs a file in namespaces and cgroups of its own, as on a machine that no other process uses: its mounts are shared, as
// systemd makes them, and it has networks, routes and rules of a firewall that a fault would remove.
import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { findSandboxProblem, startSandbox } from './engines/sandbox.ts'

const VARIABLE = 'BOXWOOD_TEST_OWN_MACHINE'

/** Why this machine cannot have namespaces for a file. */
export const findOwnMachineProblem = (): string | false => findSandboxProblem([]) ?? false

export const isOnOwnMachine = (): boolean => process.env[VARIABLE] !== undefined

/** Runs the file as a subtest, in which isOnOwnMachine() is true. All that it leaves disappears with it. Requires root. */
export async function runOnOwnMachine(t: Test, file: string, args: readonly string[] = []): Promise<void> {
  const sandbox = await startSandbox()
  t.teardown(() => sandbox.close())
  const command = [process.execPath, ...process.execArgv, file, ...args]
  // A sandbox in these namespaces removes what ended ones have left in TMPDIR, and does not see which other ones run.
  const tempDir = join(sandbox.dir, 'tmp')
  mkdirSync(tempDir)
  // Tests also run programs as other users.
  chmodSync(tempDir, 0o1777)
  const env = { ...process.env, TMPDIR: tempDir, [VARIABLE]: '1' }
  await t.spawn('nsenter', sandbox.enter(command), { env }, 'in namespaces')
}

/** Each may fail, because not every kernel has it: the state of the machine then has less to compare. */
const SETUP = [
  'ip link add boxwood-test type veth peer name boxwood-peer',
  // IPv6 would add addresses and routes some seconds later.
  'for name in test peer; do echo 1 >/proc/sys/net/ipv6/conf/boxwood-$name/disable_ipv6; done',
  'ip address add 192.0.2.1/24 dev boxwood-test',
  'ip link set boxwood-test up && ip link set boxwood-peer up',
  'ip route add blackhole 198.51.100.0/24',
  'ip rule add from 198.51.100.7 lookup 1234',
  'iptables -A INPUT -s 198.51.100.8 -j DROP',
]

/** Called once, on the own machine. */
export function prepareOwnMachine(): void {
  const script = [
    'mount --make-rshared /',
    // Has a mount below /run/netns.
    'ip netns add boxwood-test',
    'mkdir /run/boxwood-test && mount -t tmpfs tmpfs /run/boxwood-test',
    ...SETUP.map((command) => `{ ${command}; } || :`),
  ].join(' && ')
  const env = { ...process.env, PATH: `${process.env.PATH}:/usr/sbin:/sbin` }
  const { status, stderr } = spawnSync('sh', ['-c', script], { encoding: 'utf8', env })
  if (status !== 0) throw new Error(`The namespaces cannot be prepared: ${stderr}`)
}
