// What boxes could change on their machine, as lines: the mounts, the networks, the settings of the kernel, the cgroups and the
// processes.
import { spawnSync } from 'node:child_process'
import { type Dirent, readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs'
import { join } from 'node:path'

export type MachineState = Readonly<Record<string, readonly string[]>>

/** As seen by this process: in its namespaces, and below its cgroups. */
export function readMachineState(): MachineState {
  return {
    mounts: readLines('/proc/self/mountinfo'),
    namespaces: ['cgroup', 'ipc', 'mnt', 'net', 'pid', 'user', 'uts'].map((name) =>
      readlinkSync(`/proc/self/ns/${name}`),
    ),
    'named networks': listDirectory('/run/netns').map(({ name }) => name),
    links: readProgram('ip', '-o', 'link'),
    addresses: readProgram('ip', '-o', 'address'),
    routes: readProgram('ip', 'route', 'show', 'table', 'all'),
    'rules of routes': readProgram('ip', 'rule'),
    firewall: [
      ...readProgram('nft', 'list', 'ruleset'),
      ...readProgram('iptables-save'),
      ...readProgram('ip6tables-save'),
    ]
      .filter((line) => !line.startsWith('#'))
      // The numbers of packets and bytes.
      .map((line) => line.replace(/ \[\d+:\d+\]$/, '')),
    settings: ['net', 'kernel', 'user'].flatMap((name) => listSettings(join('/proc/sys', name))),
    cgroups: listCgroups(),
    // The directories of programs with root access.
    run: listTree('/run').filter((path) => !path.startsWith('/run/netns/')),
    processes: listProcesses(),
  }
}

/** The parts that differ, each with the lines that are only in the first state (-) and only in the second one (+). */
export function compareStates(before: MachineState, after: MachineState): Record<string, string[]> {
  const parts = Object.keys(before).map((name) => [
    name,
    [
      ...subtract(before[name], after[name]).map((line) => `- ${line}`),
      ...subtract(after[name], before[name]).map((line) => `+ ${line}`),
    ],
  ])
  return Object.fromEntries(parts.filter(([, lines]) => (lines?.length ?? 0) > 0))
}

/** These parts of a state. */
export const pickParts = (state: MachineState, names: readonly string[]): MachineState =>
  Object.fromEntries(names.map((name) => [name, state[name] ?? []]))

const subtract = (lines: readonly string[] = [], others: readonly string[] = []): string[] =>
  lines.filter((line) => !others.includes(line))

const readLines = (path: string): string[] => readFileSync(path, 'utf8').trim().split('\n')

/** The output of a program, which may not be installed. */
function readProgram(name: string, ...args: string[]): string[] {
  const env = { ...process.env, PATH: `${process.env.PATH}:/usr/sbin:/sbin` }
  const { status, stdout } = spawnSync(name, args, { encoding: 'utf8', env })
  return status === 0 ? stdout.trim().split('\n') : []
}

function listDirectory(dir: string): Dirent[] {
  try {
    return readdirSync(dir, { withFileTypes: true })
  } catch {
    return []
  }
}

const listTree = (dir: string): string[] =>
  listDirectory(dir).flatMap((entry) => {
    const path = join(dir, entry.name)
    return [path, ...(entry.isDirectory() ? listTree(path) : [])]
  })

/** Files that the kernel changes by itself. */
const COUNTERS = /^\/proc\/sys\/kernel\/(ns_last_pid|perf_event_max_sample_rate|tainted|random\/.*)$/

/** The writable files: the others are counters. */
const listSettings = (dir: string): string[] =>
  listTree(dir).flatMap((path) => {
    if (COUNTERS.test(path)) return []
    try {
      const stats = statSync(path)
      if (!stats.isFile() || (stats.mode & 0o200) === 0 || (stats.mode & 0o400) === 0) return []
      return [`${path}: ${readFileSync(path, 'utf8').trim()}`]
    } catch {
      // Some files cannot be read.
      return []
    }
  })

/** The directories of all hierarchies. */
const listCgroups = (): string[] =>
  readLines('/proc/self/mounts')
    .map((line) => line.split(' '))
    .filter(([, , type]) => type === 'cgroup' || type === 'cgroup2')
    .flatMap(([, dir = '']) =>
      listTree(dir).filter((path) => {
        try {
          return statSync(path).isDirectory()
        } catch {
          return false
        }
      }),
    )

/** Without this process and those that it runs to read the state. Zombies have no command line. */
const listProcesses = (): string[] =>
  listDirectory('/proc').flatMap(({ name }) => {
    if (!/^\d+$/.test(name) || Number(name) === process.pid) return []
    try {
      const commandLine = readFileSync(`/proc/${name}/cmdline`, 'utf8').replaceAll('\0', ' ').trim()
      return commandLine === '' ? [] : [`${name} ${commandLine}`]
    } catch {
      return []
    }
  })
