// The lines for people: what separates the boxes here, what does not, and how to get more.
import { existsSync, readFileSync } from 'node:fs'
import type { Controller } from './cgroups.ts'
import type { Choice, Level } from './levels/level.ts'

const SEPARATED = {
  bubblewrap: 'each box has its own file-system view, processes and hostname',
  namespaces: 'each box has its own file-system view, processes and hostname',
  process: 'each box has its own home',
} as const satisfies Record<Level, string>

const LIMITED = { cpu: 'CPU', memory: 'memory', pids: 'the number of processes' } as const

export function describeChoice(choice: Choice, limits: Controller[], isRoot: boolean): string {
  if (choice.level === null) return `Local boxes cannot be made here: ${reasons(choice)}`
  const user = isRoot ? ', and a user id of its own' : ''
  const nothing =
    choice.level === 'process' && !isRoot
      ? ' and nothing else: it can read and change whatever you can on this machine'
      : ''
  const limited =
    limits.length === 0
      ? 'Sizes are not enforced: no cgroup may be used here.'
      : `Limited by cgroup: ${limits.map((name) => LIMITED[name]).join(', ')}.`
  const first = `Local boxes, isolation level ${choice.level}: ${SEPARATED[choice.level]}${user}${nothing}. ${limited} The network is this machine's, its localhost included.`
  const advice = betterLevel(choice)
  return advice === null ? first : `${first}\n${advice}`
}

export const impossible = (choice: Choice): string =>
  choice.refused.length === 1
    ? `The isolation level ${reasons(choice)}`
    : `No isolation level is possible on this machine: ${reasons(choice)}`

const reasons = (choice: Choice): string =>
  choice.refused.map(({ level, reason }) => `${level} does not work here: ${reason}`).join('; ')

function betterLevel(choice: Choice): string | null {
  const [refused] = choice.refused
  if (refused === undefined) return null
  if (refused.reason === 'bwrap is not installed') {
    return 'For better isolation install bubblewrap (Debian, Ubuntu: apt-get install bubblewrap) and start again.'
  }
  const restricted = '/proc/sys/kernel/apparmor_restrict_unprivileged_userns'
  if (existsSync(restricted) && readFileSync(restricted, 'utf8').trim() === '1') {
    return `For better isolation allow unprivileged user namespaces (sysctl -w ${restricted.slice(10).replaceAll('/', '.')}=0) and start again: ${reasons(choice)}.`
  }
  return `Better isolation is not possible: ${reasons(choice)}.`
}
