// Text for people: how local boxes are isolated, what is not isolated, and how to get stronger isolation.
import { existsSync, readFileSync } from 'node:fs'
import type { Cgroups } from './cgroups.ts'
import type { Level, LevelChoice } from './levels/choose-level.ts'

const LEVEL_DESCRIPTIONS = {
  bubblewrap: 'each box has its own file-system view, processes and hostname',
  namespaces: 'each box has its own file-system view, processes and hostname',
  process: 'each box has its own home directory',
} as const satisfies Record<Level, string>

const LIMIT_NAMES = { cpu: 'CPU', memory: 'memory', pids: 'number of processes' } as const

const DISK_LIMIT = 'A box that uses more disk space or has more files than its tier allows is suspended.'

const NO_FREEZER =
  'A suspend terminates the processes of a box, because the coordinator cannot create a cgroup that freezes them.'

const NO_CONFINEMENT =
  'Boxes can use the kernel keyrings of the coordinator: the native part that prevents this is not compiled, or does not run on this system. Install a C compiler, run `npm run build-native`, and restart.'

/** Returns the text for the startup banner. */
export function describeIsolation(
  choice: LevelChoice,
  { controllers, canFreeze }: Pick<Cgroups, 'controllers' | 'canFreeze'>,
  isRoot: boolean,
): string {
  if (choice.level === null) return `Local boxes cannot be created. ${describeFailure(choice)}`
  const ownUser = isRoot ? ', and its own user id' : ''
  const warning =
    choice.level === 'process' && !isRoot
      ? ' and nothing else: it can read and change everything that you can on this machine'
      : ''
  const limited =
    controllers.length === 0
      ? 'Tier limits are not enforced: cgroups are not available.'
      : `Limits enforced by cgroup: ${controllers.map((name) => LIMIT_NAMES[name]).join(', ')}.`
  const freezing = canFreeze ? [] : [NO_FREEZER]
  const keyrings = choice.confinement === null ? [NO_CONFINEMENT] : []
  const summary = `Local boxes use isolation level ${choice.level}: ${LEVEL_DESCRIPTIONS[choice.level]}${ownUser}${warning}. ${limited} ${DISK_LIMIT} ${describeNetwork(choice)}`
  const advice = [...freezing, ...keyrings, adviseStrongerLevel(choice), adviseOwnNetwork(choice)].filter(
    (line) => line !== null,
  )
  return [summary, ...advice].join('\n')
}

const describeNetwork = ({ network }: LevelChoice): string =>
  network === 'own'
    ? 'Each box has its own network, and cannot connect to localhost of this machine.'
    : 'Boxes share the network of this machine, including localhost.'

/** The Debian packages of programs that have another name. */
const PACKAGES: Readonly<Record<string, string>> = {
  ip: 'iproute2',
  unshare: 'util-linux',
  mkfifo: 'coreutils',
}

/** Null when boxes have their own network, or when it is not wanted. */
export function adviseOwnNetwork({ networkProblem }: LevelChoice): string | null {
  if (networkProblem === null) return null
  const missing = /^(\S+) is not installed$/.exec(networkProblem)?.[1]
  return missing === undefined
    ? `Boxes do not have their own network: ${networkProblem}.`
    : `To give each box its own network, install ${missing} (Debian, Ubuntu: apt-get install ${PACKAGES[missing] ?? missing}) and restart.`
}

/** Why no level works, and what to do. */
export const describeFailure = (choice: LevelChoice): string =>
  choice.unavailable.length === 1
    ? `Isolation level ${listReasons(choice)}. Choose another level with BOXWOOD_LOCAL_ISOLATION.`
    : `No isolation level works on this machine: ${listReasons(choice)}. Fix one of these problems and restart the coordinator.`

const listReasons = (choice: LevelChoice): string =>
  choice.unavailable.map(({ level, reason }) => `${level} is not available: ${reason}`).join('; ')

/** Null when the strongest candidate works. */
export function adviseStrongerLevel(choice: LevelChoice): string | null {
  const [strongest] = choice.unavailable
  if (strongest === undefined) return null
  if (strongest.reason === 'bwrap is not installed') {
    return 'For stronger isolation, install bubblewrap (Debian, Ubuntu: apt-get install bubblewrap) and restart.'
  }
  const restriction = '/proc/sys/kernel/apparmor_restrict_unprivileged_userns'
  if (existsSync(restriction) && readFileSync(restriction, 'utf8').trim() === '1') {
    const sysctlName = restriction.slice('/proc/sys/'.length).replaceAll('/', '.')
    return `For stronger isolation, allow unprivileged user namespaces (sysctl -w ${sysctlName}=0) and restart: ${listReasons(choice)}.`
  }
  return `Stronger isolation is not available on this machine: ${listReasons(choice)}.`
}
