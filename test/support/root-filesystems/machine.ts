// A Linux machine in namespaces of its own, behind a NAT: it can open connections, and nothing can connect to it.
import { mkdirSync, readdirSync, readFileSync, rmdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { createTempDir } from '../temp-dir.ts'
import { LONG_DEADLINE_MS, waitUntil } from '../wait-until.ts'
import { type BoundProcess, type Result, runProgram, startBoundProcess } from './bound-process.ts'
import { INITS, type InitName } from './inits.ts'
import { listFiles } from './list-files.ts'

/** The address at which a machine reaches the loopback interface of this machine. */
export const HOST_ADDRESS = '10.0.2.2'

const HOLD_SCRIPT = join(import.meta.dirname, 'hold.sh')
const BOOT_SCRIPT = join(import.meta.dirname, 'boot.sh')
const NAMESPACES = ['--mount', '--net', '--pid', '--uts', '--ipc', '--cgroup', '--root', '--wd']

/** With these, an init would change the kernel that the machine shares with this one. */
const FORBIDDEN_CAPABILITIES = '-sys_module,-sys_time,-sys_rawio,-syslog'

/** tester: an ordinary user, in a login session. */
export type User = 'root' | 'tester'
export type RunOptions = { user?: User; input?: string }
export type Machine = Awaited<ReturnType<typeof startMachine>>

/**
 * Boots a machine, and stops it after the test.
 * @param tree the root file system, which is not changed @param diskPath the disk of another machine, which is copied
 */
export async function startMachine(
  t: Test,
  { tree, init: initName, diskPath: sourceDisk }: { tree: string; init: InitName; diskPath?: string },
) {
  const init = INITS[initName]
  const dir = createTempDir(t, 'machine')
  const holder = startBoundProcess(t, [
    ...['unshare', '--mount', '--net', HOLD_SCRIPT, tree, dir, sourceDisk ?? ''],
  ])
  await holder.firstOutput
  const namespaces = `/proc/${holder.pid}/ns`
  // The directories of the holder, seen from this process.
  const heldDir = join('/proc', String(holder.pid), 'root', dir)
  const diskPath = join(heldDir, 'upper')
  const cgroup = `boxwood-test-${holder.pid}`
  const cgroupDir = join(heldDir, 'cgroup', cgroup)
  mkdirSync(cgroupDir)

  await startBoundProcess(t, [
    ...['slirp4netns', '--configure', '--mtu=65520', '--ready-fd=3', String(holder.pid), 'tap0'],
  ]).firstOutput

  let unshare: BoundProcess
  let pid = 0
  t.teardown(() => waitUntil('the processes of the machine have exited', () => removeCgroups(cgroupDir)))
  await boot()

  async function boot(): Promise<void> {
    // The process joins its cgroup before it creates the cgroup namespace, whose root this cgroup becomes.
    // No other process may be its first child: its pid is read below.
    const script = 'echo 0 >"$0/cgroup.procs" && exec unshare --fork --kill-child "$@"'
    unshare = startBoundProcess(t, [
      ...['nsenter', `--mount=${namespaces}/mnt`, `--net=${namespaces}/net`],
      ...['sh', '-c', script, join(dir, 'cgroup', cgroup)],
      ...['--pid', '--mount', '--uts', '--ipc', '--cgroup'],
      ...['setpriv', `--bounding-set=${FORBIDDEN_CAPABILITIES}`],
      ...[BOOT_SCRIPT, join(dir, 'root'), ...init.command],
    ])
    const waitUntilTrue = (description: string, condition: () => boolean | Promise<boolean>) =>
      waitUntil(
        description,
        async () => {
          const failure = unshare.failure()
          if (failure) throw new Error(`the machine stopped: ${await failure}`)
          return condition()
        },
        LONG_DEADLINE_MS,
      )
    await waitUntilTrue('the machine has started', () => {
      pid = readChild(unshare.pid)
      return pid !== 0
    })
    // Before pivot_root the machine has the root directory of this machine.
    const isBooted = `[ "$(cat /etc/hostname)" = box-under-test ] && { ${init.isBooted}; }`
    await waitUntilTrue('the machine has booted', async () => {
      const { exitCode } = await enter(['/bin/sh', '-c', isBooted])
      return exitCode === 0
    })
  }

  /** Runs a program in the namespaces and the cgroup of the machine, as root. */
  function enter(command: string[], input?: string): Promise<Result> {
    const script = 'echo 0 >"$0/cgroup.procs"; exec nsenter "$@"'
    return runProgram(['sh', '-c', script, cgroupDir, '--target', String(pid), ...NAMESPACES, ...command], {
      ...(input === undefined ? {} : { input }),
    })
  }

  const rootDir = () => `/proc/${pid}/root`

  return {
    /** The root directory of the machine, seen from this process. Changes with each boot. */
    rootDir,
    /** What the machine has written to its disk. */
    diskPath,
    /** Runs a command line with /bin/sh. */
    run: (commandLine: string, { user = 'root', input }: RunOptions = {}): Promise<Result> =>
      enter(user === 'root' ? ['/bin/sh', '-c', commandLine] : init.login(user, commandLine), input),
    canReboot: init.reboot !== null,
    /** Resolves when the machine has booted again. */
    async reboot(): Promise<void> {
      if (init.reboot) await enter(init.reboot)
      else await unshare.stop()
      await unshare.exited
      await boot()
    },
    /** Stops the machine like a power failure. */
    stop: () => unshare.stop(),
    start: boot,
    listFiles: () => listFiles(rootDir(), tree, diskPath),
    /** The command lines of all processes. */
    async listProcesses(): Promise<string[]> {
      const script = 'for file in /proc/[0-9]*/cmdline; do tr "\\0\\n" "  " <$file; echo; done 2>/dev/null'
      const { stdout } = await enter(['/bin/sh', '-c', script])
      return stdout.split('\n').filter((line) => line !== '' && !line.includes(script.slice(0, 20)))
    },
  }
}

/** The child that unshare has forked, or 0. */
function readChild(pid: number): number {
  try {
    return Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim())
  } catch {
    return 0
  }
}

/** Removes the cgroups that an init has left. False while a process that was killed is in one of them. */
function removeCgroups(dir: string): boolean {
  const children = readdirSync(dir, { withFileTypes: true }).filter((entry) => entry.isDirectory())
  if (!children.every(({ name }) => removeCgroups(join(dir, name)))) return false
  try {
    rmdirSync(dir)
    return true
  } catch {
    return false
  }
}
