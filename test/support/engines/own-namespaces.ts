// Runs a test file in namespaces of its own, with a bridge to which machines can be connected.
import { chmodSync, mkdtempSync, readdirSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { listInstancesOf, removeCgroups } from './cgroups.ts'

/** The bridge in the namespaces, its address, and the network without the last byte. */
export const HUB_NAME = 'hub'
export const HUB_NETWORK = '10.77.0'
export const HUB_ADDRESS = `${HUB_NETWORK}.1`

const DIRECTORY_VARIABLE = 'BOXWOOD_TEST_NAMESPACES'
const PREFIX = 'bw-ns-'

/** The first process. It reaps orphans, and the kernel kills all others when it exits. */
const SCRIPT = `set -e
ip link set lo up
ip link add ${HUB_NAME} type bridge
ip address add ${HUB_ADDRESS}/24 dev ${HUB_NAME}
ip link set ${HUB_NAME} up
"$@" &
wait $!`

/** The directory of the test in the namespaces; undefined: this process is outside of them. */
export const getNamespacesDir = (): string | undefined => process.env[DIRECTORY_VARIABLE]

/**
 * Runs the test file again, as a subtest, in which getNamespacesDir() returns an empty directory. All processes, mounts and
 * network interfaces of the subtest disappear with it, also when this process is killed. Requires root.
 */
export function runInOwnNamespaces(t: Test, file: string): void {
  removeLeftovers()
  const dir = realpathSync(mkdtempSync(join(tmpdir(), `${PREFIX}${process.pid}-`)))
  // The users of instances enter this directory.
  chmodSync(dir, 0o711)
  t.teardown(() => removeDirectory(dir))
  const flags = ['--net', '--mount', '--pid', '--fork', '--kill-child', '--mount-proc']
  t.spawn(
    'setpriv',
    [
      ...['--pdeathsig', 'KILL', 'unshare', ...flags, 'sh', '-c', SCRIPT, 'sh'],
      ...[process.execPath, ...process.execArgv, file],
    ],
    { env: { ...process.env, [DIRECTORY_VARIABLE]: dir } },
    'in namespaces',
  )
}

/** Test files that were killed could not remove their directories and cgroups. */
function removeLeftovers(): void {
  for (const name of readdirSync(tmpdir())) {
    const pid = new RegExp(`^${PREFIX}(\\d+)-`).exec(name)?.[1]
    if (pid !== undefined && !isRunning(Number(pid))) void removeDirectory(join(tmpdir(), name))
  }
}

async function removeDirectory(dir: string): Promise<void> {
  for (const server of readdirSync(dir)) await removeCgroups(listInstancesOf(join(dir, server)))
  rmSync(dir, { recursive: true, force: true, maxRetries: 10 })
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}
