// Finds the isolation levels that work on this machine by running a probe box at each level, strongest first.
import { randomBytes } from 'node:crypto'
import { readlink, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Isolation, LocalIsolationLevel } from '../../../../shared/api/boxes.ts'
import { runProbe } from '../../parts/run-probe.ts'
import { RUNTIME_FILES } from '../../parts/runtime.ts'
import { isInstalled } from '../../parts/system-path.ts'
import { buildConfinement, type Confinement, probeConfinement } from '../confinement.ts'
import { chooseUid, createBoxDirectories, HIDDEN_PREFIX, removeTree } from '../directories.ts'
import { buildMountList, MAPPED_UID, VIEW_PATHS, WRITABLE_PATHS, writeEtcFiles } from '../filesystem-view.ts'
import type { LevelInput } from '../level-input.ts'
import { boxPathsIn } from '../machine-file.ts'
import { buildOwnNetworkCommand, findMissingRequirement } from '../network/own-network.ts'
import { buildBubblewrapCommand } from './bubblewrap.ts'
import { buildNamespacesCommand } from './namespaces.ts'
import { buildProcessCommand } from './process.ts'

export type Level = LocalIsolationLevel
export type Network = Isolation['network']
export type LevelChoice = {
  /** null when no candidate works. */
  level: Level | null
  network: Network
  /** The stronger candidates, which do not work, and why. */
  unavailable: { level: Level; reason: string }[]
  /** Why boxes do not have their own network; null when they have or when it is not wanted. */
  networkProblem: string | null
  confinement: Confinement
}

const PROBE_HOSTNAME = 'boxwood-probe'

const LEVEL_COMMANDS = {
  bubblewrap: buildBubblewrapCommand,
  namespaces: buildNamespacesCommand,
  process: buildProcessCommand,
} as const satisfies Record<Level, (input: LevelInput) => string[]>

/**
 * Builds the command line of a box.
 * @param dir a directory of the host that the box cannot write to
 */
export const buildBoxCommand = (level: Level, network: Network, input: LevelInput, dir: string): string[] =>
  network === 'own' ? buildOwnNetworkCommand(LEVEL_COMMANDS[level], input, dir) : LEVEL_COMMANDS[level](input)

/** A check whose program was killed is no answer: the exit status of the program becomes that of the probe. */
export const DEFINE_FAIL =
  'fail() { status=$?; echo "$*" >&2; [ "$status" -gt 128 ] || status=1; exit "$status"; }'
/** Fails when a mount that the box can access is writable, except WRITABLE_PATHS, or is mounted without nosuid or nodev. */
export const CHECK_MOUNTS = `while read -r _ _ _ _ path flags _; do
  path=$(printf '%b' "$path")
  [ -e "$path" ] || continue
  required='ro nosuid nodev'
  case $path in
    /proc | /proc/* | /dev | /dev/*) continue ;;
    ${WRITABLE_PATHS.flatMap((path) => [path, `${path}/*`]).join(' | ')}) required='nosuid nodev' ;;
  esac
  for flag in $required; do
    case ,$flags, in *,$flag,*) ;; *) fail "$path is not mounted with $flag" ;; esac
  done
done </proc/self/mountinfo`
/**
 * Shell checks of the properties that a box relies on. A failed check prints the reason.
 * Arguments: $1 node, $2 init, $3 home, $4 a directory that must be hidden, $5 the box's own uid or ''.
 */
const CHECK_USER = `${DEFINE_FAIL}
[ "$(id -u)" != 0 ] || [ -z "$5" ] || fail 'the box would run as uid 0'
[ -r "$2" ] || fail "the box user cannot read $2"
echo >"$3/probe" || fail 'the home directory is not writable'
"$1" --version >/dev/null || fail "$1 does not run"`
const CHECK_VIEW = `[ $$ = 1 ] || fail 'the box does not have its own process ids'
[ "$(cat /proc/sys/kernel/hostname)" = ${PROBE_HOSTNAME} ] || fail 'the box does not have its own hostname'
[ "$(id -u)" != 0 ] || fail 'the box would run as uid 0'
[ ! -e "$4" ] || fail 'the data directory is visible'
[ ! -w /proc/sys/kernel/printk ] || fail '/proc/sys is writable'
echo >/dev/shm/probe && echo >/tmp/probe && : </dev/ptmx || fail '/dev or /tmp does not work'
${CHECK_MOUNTS}`
/** $6: the network namespace of the host. */
export const CHECK_OWN_NETWORK = `[ "$(readlink /proc/self/ns/net)" != "$6" ] || fail 'the box shares the network of the host'
route=
metadata=
while read -r interface destination _; do
  case $interface$destination in tap000000000) route=1 ;; '*0000FEA9') metadata=1 ;; esac
done </proc/net/route
[ "$route" ] || fail 'the network of the box has no default route'
[ "$metadata" ] || fail 'link-local addresses are reachable'`

export type ProbeInput = {
  boxesDir: string
  dataDir: string
  projectRoot: string
  runtimeDir: string
  nodePath: string
  /** The network of the boxes. `auto`: own where it works. */
  network: 'auto' | Network
  /** Called with a sentence while a probe takes long. */
  onSlow(message: string): void
}

type Probe = ProbeInput & { confinement: Confinement }

/**
 * Probes the candidates in order up to the first that works. A probe takes about 100 ms; on a busy machine the call waits for
 * it. Throws InconclusiveProbeError when a probe gives no answer.
 */
export async function chooseLevel(candidates: readonly Level[], input: ProbeInput): Promise<LevelChoice> {
  const unavailable: LevelChoice['unavailable'] = []
  const getConfinement = await probeConfinement(input.runtimeDir, input.onSlow)
  for (const level of candidates) {
    const confinement = getConfinement(level)
    const probe = { ...input, confinement }
    const networkProblem = input.network === 'host' ? null : await probeOwnNetwork(level, probe)
    if (input.network !== 'host' && networkProblem === null)
      return { level, network: 'own', unavailable, networkProblem, confinement }
    const reason =
      input.network === 'own'
        ? `${networkProblem} (with BOXWOOD_LOCAL_NETWORK=own)`
        : await probeLevel(level, 'host', probe)
    if (reason === null) return { level, network: 'host', unavailable, networkProblem, confinement }
    unavailable.push({ level, reason })
  }
  return { level: null, network: 'host', unavailable, networkProblem: null, confinement: null }
}

/** Returns null when a box at this level with its own network works, else why not. */
async function probeOwnNetwork(level: Level, input: Probe): Promise<string | null> {
  if (level === 'process') return 'a network of its own needs level bubblewrap or namespaces'
  // The probe would fail three times.
  if (level === 'bubblewrap' && !isInstalled('bwrap')) return 'bwrap is not installed'
  return findMissingRequirement() ?? (await probeLevel(level, 'own', input))
}

/** Returns null when a box at this level with this network works, else why not. */
async function probeLevel(level: Level, network: Network, input: Probe): Promise<string | null> {
  const dirName = `${HIDDEN_PREFIX}probe-${randomBytes(6).toString('hex')}`
  const paths = boxPathsIn(join(input.boxesDir, dirName))
  const uid = process.getuid?.() === 0 ? chooseUid(new Set()) : null
  const isNamespaced = level !== 'process'
  try {
    await createBoxDirectories(paths, uid, !isNamespaced)
    await writeEtcFiles(paths, PROBE_HOSTNAME, uid ?? MAPPED_UID, network)
    const node = isNamespaced ? VIEW_PATHS.node : input.nodePath
    const init = isNamespaced ? VIEW_PATHS.init : join(input.runtimeDir, RUNTIME_FILES.init)
    const home = isNamespaced ? VIEW_PATHS.home : paths.home
    const check = [
      CHECK_USER,
      ...(isNamespaced ? [CHECK_VIEW] : []),
      ...(network === 'own' ? [CHECK_OWN_NETWORK] : []),
    ].join('\n')
    const hostNetwork = await readlink('/proc/self/ns/net')
    const levelInput = {
      uid,
      hostname: PROBE_HOSTNAME,
      mounts: isNamespaced ? buildMountList({ ...input, paths, socketDir: null }) : [],
      rootDir: paths.root,
      confinement: buildConfinement(input.confinement, level, input.runtimeDir),
      shellArgs: ['-c', check, 'sh', node, init, home, paths.dir, `${uid ?? ''}`, hostNetwork],
    }
    const command = buildBoxCommand(level, network, levelInput, paths.dir)
    const failure = await runProbe(command, {
      description: `The probe of isolation level ${level}${network === 'own' ? ' with its own network' : ''}`,
      onSlow: input.onSlow,
    })
    if (failure === null || isNamespaced || uid === null) return failure
    return (await explainBlockedDirectory([paths.home, node, init])) ?? failure
  } finally {
    // The start removes what remains, in the background.
    await removeTree(paths.dir).catch(() => {})
  }
}

/** Finds the first ancestor directory of the targets that an unprivileged uid cannot enter, and says how to fix it. */
async function explainBlockedDirectory(targets: string[]): Promise<string | null> {
  for (const target of targets) {
    const ancestors: string[] = []
    for (let dir = dirname(target); dir !== '/'; dir = dirname(dir)) ancestors.unshift(dir)
    for (const dir of ancestors) {
      if (((await stat(dir)).mode & 0o001) === 0) {
        return `box users cannot enter ${dir}. Run "chmod o+x ${dir}", or move the data and the project to a directory that every user can enter`
      }
    }
  }
  return null
}
