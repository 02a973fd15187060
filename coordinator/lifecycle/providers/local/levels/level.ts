// Which isolation is possible here: found by running a throw-away box at each level, best first.
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { ISOLATION_LEVELS, type Isolation } from '../../../../../shared/api/boxes.ts'
import { SYSTEM_PATH } from '../environment.ts'
import { chooseUid, HIDDEN, makeFolders, removeTree } from '../folders.ts'
import { pathsIn } from '../machine-file.ts'
import { boxView, INSIDE, MAPPED_UID, writeEtc } from '../view.ts'
import { bubblewrapCommand } from './bubblewrap.ts'
import { namespacesCommand } from './namespaces.ts'
import { processCommand } from './process.ts'
import type { LevelInput } from './types.ts'

export type Level = Isolation['level']
export type Choice = {
  /** null: a box cannot even be a plain process here. */
  level: Level | null
  /** Why each better level is not possible. */
  refused: { level: Level; reason: string }[]
}

const PROBE_TIMEOUT_MS = 5_000
const PROBE_HOSTNAME = 'boxwood-probe'

export const levelCommand = {
  bubblewrap: bubblewrapCommand,
  namespaces: namespacesCommand,
  process: processCommand,
} as const satisfies Record<Level, (input: LevelInput) => string[]>

/** What a box relies on; each line says on failure what is wrong. $1 node, $2 init, $3 home, $4 hidden folder. */
const CHECK_USER = `fail() { echo "$*" >&2; exit 1; }
[ "$(id -u)" != 0 ] || [ -z "$5" ] || fail 'the box would run as uid 0'
[ -r "$2" ] || fail "the box user cannot read $2"
echo >"$3/probe" || fail 'the home cannot be written'
"$1" --version >/dev/null || fail "$1 does not run"`
const CHECK_VIEW = `[ $$ = 1 ] || fail 'no process ids of its own'
[ "$(cat /proc/sys/kernel/hostname)" = ${PROBE_HOSTNAME} ] || fail 'no hostname of its own'
[ "$(id -u)" != 0 ] || fail 'the box would run as uid 0'
[ ! -e "$4" ] || fail 'the data folder is visible'
[ ! -w /proc/sys/kernel/printk ] || fail '/proc/sys can be written'
echo >/dev/shm/probe && echo >/tmp/probe && : </dev/ptmx || fail '/dev or /tmp does not work'`

export type ProbeInput = {
  boxesDir: string
  dataDir: string
  projectRoot: string
  runtimeDir: string
  nodePath: string
}

/** Runs the probes, at most 5 s each; some 50 ms where the first one succeeds. */
export async function chooseLevel(candidates: readonly Level[], input: ProbeInput): Promise<Choice> {
  const refused: Choice['refused'] = []
  for (const level of candidates) {
    const reason = await probe(level, input)
    if (reason === null) return { level, refused }
    refused.push({ level, reason })
  }
  return { level: null, refused }
}

export const ALL_LEVELS = ISOLATION_LEVELS

/** null when a box at this level works, else why not. */
async function probe(level: Level, input: ProbeInput): Promise<string | null> {
  const paths = pathsIn(join(input.boxesDir, `${HIDDEN}probe-${randomBytes(6).toString('hex')}`))
  const uid = process.getuid?.() === 0 ? chooseUid(new Set()) : null
  const inside = level !== 'process'
  try {
    await makeFolders(paths, uid, !inside)
    await writeEtc(paths, PROBE_HOSTNAME, uid ?? MAPPED_UID)
    const node = inside ? INSIDE.node : input.nodePath
    const init = inside ? INSIDE.init : join(input.projectRoot, 'agent/init/init.sh')
    const check = inside ? `${CHECK_USER}\n${CHECK_VIEW}` : CHECK_USER
    const command = levelCommand[level]({
      uid,
      hostname: PROBE_HOSTNAME,
      mounts: inside ? boxView({ ...input, paths }) : [],
      scratch: paths.root,
      command: ['-c', check, 'sh', node, init, inside ? INSIDE.home : paths.home, paths.dir, `${uid ?? ''}`],
    })
    const failure = await run(command)
    if (failure === null || inside || uid === null) return failure
    return (await blockedFolder([paths.home, node, init])) ?? failure
  } catch (error) {
    return (error as Error).message
  } finally {
    await removeTree(paths.dir)
  }
}

/** Says what to do about the first folder on the way to one of these that an unprivileged uid may not pass. */
async function blockedFolder(targets: string[]): Promise<string | null> {
  for (const target of targets) {
    const ancestors: string[] = []
    for (let dir = dirname(target); dir !== '/'; dir = dirname(dir)) ancestors.unshift(dir)
    for (const dir of ancestors) {
      if (((await stat(dir)).mode & 0o001) === 0) {
        return `the users that boxes get may not pass through ${dir}: allow it with "chmod o+x ${dir}", or keep the data and the project in a folder that everybody may enter`
      }
    }
  }
  return null
}

async function run([program = '', ...args]: string[]): Promise<string | null> {
  const child = spawn(program, args, {
    detached: true,
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { PATH: SYSTEM_PATH },
    cwd: '/',
  })
  let said = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said += text
  })
  const timer = setTimeout(() => {
    said += `\nno answer after ${PROBE_TIMEOUT_MS / 1000} s`
    // The group reaches into the namespaces: their init was started in it.
    if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
  }, PROBE_TIMEOUT_MS)
  try {
    const code = await new Promise<number | null>((resolve, reject) => {
      child.on('error', reject).on('close', resolve)
    })
    return code === 0 ? null : (said.trim().split('\n').at(-1) ?? '') || `${program} exited with ${code}`
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    return code === 'ENOENT' ? `${program} is not installed` : message
  } finally {
    clearTimeout(timer)
  }
}
